"""The command line: settings, saving and playing, forks."""

import importlib.util
import json
import math
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import baselines
from baselines import __main__ as commands
from baselines import evaluate, logger, run
from baselines.a2c import learn
from baselines.bench import Monitor
from baselines.common.arguments.checked import check_arguments
from baselines.common.base import mpi
from baselines.common.base.errors import UserTypeError, UserValueError
from baselines.common.envs import make_env, make_vec_env
from baselines.common.run import parsing
from baselines.common.run.loading import find_env, rendered
from baselines.common.run.parsing import parse
from baselines.common.run.python_config import describe, describe_schedule
from baselines.common.saving import config
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.saving.tensors import load_tensors, save_tensors
from baselines.common.views.curves import find_curves
from baselines.play import play

CARTPOLE = ["--alg=a2c", "--env=CartPole-v1"]


pytestmark = pytest.mark.usefixtures("empty_folder")


def error_of(capfd, arguments):
    """The one line that a wrong command line must give."""
    before = sorted(os.listdir())
    with pytest.raises(SystemExit) as stop:
        run.main(arguments)
    out, err = capfd.readouterr()
    assert stop.value.code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert sorted(os.listdir()) == before
    return err


def test_model_of_another_algorithm_or_environment(capfd):
    run.main([*CARTPOLE, "--num_timesteps=40", "--save_path=model", "--log_path=first"])
    capfd.readouterr()
    acrobot = ["--alg=a2c", "--env=Acrobot-v1", "--load_path=model"]
    assert "observation Box(4,)" in error_of(capfd, acrobot)
    assert "was saved with num_hidden 64, but this run has 32" in error_of(
        capfd, [*CARTPOLE, "--load_path=model", "--num_hidden=32"]
    )
    whole = Path("model").read_bytes()
    Path("model").write_bytes(whole[: len(whole) // 2])
    assert "damaged" in error_of(capfd, [*CARTPOLE, "--load_path=model"])
    save_tensors("model", {}, {"format": 4, "algorithm": "other"})
    error = error_of(capfd, [*CARTPOLE, "--load_path=model"])
    assert "algorithm other" in error


def test_atari_without_its_emulator_says_what_to_install(capfd, monkeypatch):
    import gymnasium

    monkeypatch.setitem(sys.modules, "ale_py", None)
    without = {k: v for k, v in gymnasium.registry.items() if "NoFrameskip" not in k}
    monkeypatch.setattr(gymnasium, "registry", without)
    error = error_of(capfd, ["--alg=a2c", "--env=PongNoFrameskip-v4"])
    assert "pip install ale-py" in error


@pytest.mark.parametrize("env_id", ["Airstriker-Genesis-v0", "Airstriker-Genesis"])
def test_retro_without_its_emulators_says_what_to_install(capfd, monkeypatch, env_id):
    monkeypatch.setitem(sys.modules, "stable_retro", None)
    error = error_of(capfd, ["--alg=a2c", f"--env={env_id}"])
    assert "unknown environment" in error
    assert re.search(rf"{sys.executable} -m pip install -e '.*\[.*retro\]'", error)


@pytest.mark.skipif(
    importlib.util.find_spec("gymnasium_robotics") is not None,
    reason="gymnasium-robotics is installed, so Gymnasium knows its environments",
)
def test_robots_without_their_package_say_what_to_install(capfd):
    error = error_of(capfd, ["--alg=ppo2", "--env=FetchReach-v4"])
    assert "robotics" in error


def test_play_without_a_display_explains_itself(capfd, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert "no display" in error_of(capfd, [*CARTPOLE, "--play"])


def settings_of(*arguments):
    return parse([*CARTPOLE, *arguments]).learn_arguments


def test_settings_win_in_order(monkeypatch):
    from baselines.a2c import defaults

    assert settings_of()["gamma"] == 0.99
    monkeypatch.setattr(
        defaults, "classic_control", lambda: dict(gamma=0.5, lr=0.1), raising=False
    )
    settings = settings_of("--gamma=0.25")
    assert (settings["gamma"], settings["lr"]) == (0.25, 0.1)


def test_defaults_choose_num_env_and_network_and_the_command_line_wins(monkeypatch):
    from baselines.a2c import defaults

    monkeypatch.setattr(
        defaults,
        "classic_control",
        lambda: dict(env=dict(num_env=3), network="cnn"),
        raising=False,
    )
    settings = parse(CARTPOLE)
    assert (settings.num_env, settings.learn_arguments["network"]) == (3, "cnn")
    settings = parse([*CARTPOLE, "--num_env=2", "--network=mlp"])
    assert (settings.num_env, settings.learn_arguments["network"]) == (2, "mlp")


def test_defaults_of_a_network_are_for_no_other(monkeypatch):
    from baselines.a2c import defaults

    monkeypatch.setattr(
        defaults,
        "classic_control",
        lambda: dict(activation="relu", num_hidden=7),
        raising=False,
    )
    assert settings_of()["activation"] == "relu"
    assert settings_of("--num_hidden=9")["num_hidden"] == 9
    settings = settings_of("--network=lstm")
    assert settings.keys().isdisjoint({"activation", "num_hidden"})
    assert settings["nlstm"] == 128


def test_atari_has_4_environments_whatever_the_machine(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    settings = parse(["--alg=a2c", "--env=PongNoFrameskip-v4"])
    assert (settings.num_env, settings.env_type) == (4, "atari")


def test_preset_sets_arguments_of_its_parts_and_has_defaults(empty_folder, monkeypatch):
    folder = empty_folder / "my_c51"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "my_c51.py").write_text(
        "from baselines.common.run.algorithm import preset\n"
        "from baselines.common.networks.values import categorical\n"
        "from baselines.dqn import dqn\n"
        "learn = preset(dqn.learn, values=categorical, atoms=21, train_freq=2)\n"
    )
    monkeypatch.syspath_prepend(str(empty_folder.parent))
    alg = f"--alg={empty_folder.name}.my_c51"
    settings = parse([alg, "--env=CartPole-v1", "--v_max=5"]).learn_arguments
    assert settings["values"] == "baselines.common.networks.values:categorical"
    assert (settings["atoms"], settings["v_max"]) == (21, 5.0)
    # Without a defaults.py of its own it has dqn's, but for what it sets.
    settings = parse([alg, "--env=PongNoFrameskip-v4"])
    assert settings.num_env == 8 and settings.learn_arguments["lr"] == 1e-4
    assert settings.learn_arguments["train_freq"] == 2


def test_other_names_of_arguments_take_no_defaults_of_the_base(
    empty_folder, monkeypatch
):
    folder = empty_folder / "my_ppo"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "my_ppo.py").write_text(
        "from baselines.common import arguments as arg\n"
        "from baselines.common.run.algorithm import algorithm\n"
        "from baselines.ppo2 import ppo2\n"
        "@algorithm(preset_of=ppo2.learn)\n"
        "def learn(run, *, env: arg.Env, network: arg.Network, seed: arg.Seed = None,\n"
        "          total_timesteps: arg.Timesteps = 100, steps: arg.Count = 9):\n"
        "    pass\n"
    )
    monkeypatch.syspath_prepend(str(empty_folder.parent))
    alg = f"--alg={empty_folder.name}.my_ppo"
    settings = parse([alg, "--env=PongNoFrameskip-v4"])
    assert settings.num_env == 1 and settings.learn_arguments["steps"] == 9


def test_only_what_was_given_is_reported_as_without_effect():
    def without_effect(*words, alg="dqn"):
        settings = parse([f"--alg={alg}", "--env=PongNoFrameskip-v4", *words])
        given = {**settings.learn_arguments, "env": None}
        return check_arguments(settings.learn, given).without_effect()

    # defaults.py sets exploration_fraction and exploration_final_eps.
    assert without_effect("--noisy") == without_effect(alg="rainbow") == []
    (sentence,) = without_effect("--noisy", "--exploration_final_eps=0.05")
    assert sentence == "exploration_final_eps is 0.05, which has no effect with noisy"


def test_command_to_start_again_has_no_paths_and_no_flags_with_their_values():
    command = "python -m baselines.run --alg=a2c --overwrite yes --play --log_path x "
    words = run.command_of_model(command + "--save_path=y --seed 1 --play=no", "m")
    assert words.endswith(" -m baselines.run --alg=a2c --seed 1 --load_path=m")


def test_commands_that_are_printed_are_for_the_model_that_was_saved(capsys):
    run.main([*CARTPOLE, "--num_timesteps=50", "--log_path=log", "--save_path=there"])
    out = capsys.readouterr().out
    there = Path("there").absolute()
    assert f"baselines.play {there} --env=CartPole-v1\n" in out
    assert f"baselines.evaluate {there} --env=CartPole-v1\n" in out


def test_no_environment_is_built_to_find_a_network_that_the_defaults_name(monkeypatch):
    monkeypatch.setattr(parsing, "make_env", None)
    settings = parse(["--alg=sac", "--env=Pendulum-v1"]).learn_arguments
    assert settings["network"] == "mlp" and settings["num_hidden"] == 256


def test_unknown_key_in_defaults_is_refused(monkeypatch):
    from baselines.a2c import defaults

    monkeypatch.setattr(
        defaults, "classic_control", lambda: dict(gama=0.5), raising=False
    )
    with pytest.raises(UserTypeError, match=r"'gama'.*did you mean 'gamma'"):
        parse(CARTPOLE)
    monkeypatch.setattr(defaults, "classic_control", lambda: dict(env=dict(n=1)))
    with pytest.raises(UserTypeError, match=r"env\['n'\]"):
        parse(CARTPOLE)


def test_function_in_defaults_is_refused(monkeypatch):
    """A run's settings are JSON, which resuming reads."""
    from baselines.a2c import defaults

    monkeypatch.setattr(
        defaults, "classic_control", lambda: dict(lr=lambda f: f), raising=False
    )
    with pytest.raises(UserTypeError, match=r"'lr' to a function"):
        parse(CARTPOLE)


def test_values_are_typed_from_the_signature():
    settings = settings_of(
        "--num_timesteps=2e4",
        "--nsteps=1e1",
        "--lr=1",
        "--max_grad_norm=None",
        "--layer_norm",
        "--activation=relu",
    )
    assert settings["total_timesteps"] == 20_000
    assert settings["nsteps"] == 10 and isinstance(settings["nsteps"], int)
    assert settings["lr"] == 1.0 and isinstance(settings["lr"], float)
    assert settings["max_grad_norm"] is None
    assert settings["layer_norm"] is True
    assert settings["activation"] == "relu"
    assert settings_of("--layer_norm=false")["layer_norm"] is False
    args = ["--network=conv_only", "--convs=[(8, 4, 2)]"]
    assert settings_of(*args)["convs"] == [(8, 4, 2)]


def test_help_shows_values_and_the_defaults_for_an_environment(capfd):
    with pytest.raises(SystemExit, match="0"):
        run.main(["--alg=a2c", "--env=PongNoFrameskip-v4", "--help"])
    words = " ".join(capfd.readouterr().out.split())
    assert "environment id, or module:EnvId (required)" in words
    assert "run in parallel (default: 4)" in words
    assert "or module:function (default: cnn)" in words
    assert "linear, middle_drop" in words


def test_help_lists_shared_and_own_arguments(capfd):
    with pytest.raises(SystemExit) as stop:
        run.main(["--help"])
    assert stop.value.code == 0
    shared = capfd.readouterr().out
    assert "--log_path" in shared and "--lrschedule" not in shared
    with pytest.raises(SystemExit) as stop:
        run.main(["--alg=a2c", "--env=CartPole-v1", "--help"])
    assert stop.value.code == 0
    own = " ".join(capfd.readouterr().out.split())
    assert "steps of each environment per update (default: 5)" in own
    assert "--num_hidden" in own


@pytest.mark.parametrize(
    "arguments",
    ["--help", "--alg=a2d --env=CartPole-v1", "--alg=a2c --env=CartPole-v9"],
)
def test_light_answers_import_no_keras(arguments):
    script = (
        "import sys\n"
        "from baselines.run import main\n"
        f"try: main({arguments.split()!r})\n"
        "except SystemExit: pass\n"
        "assert not {'keras', 'tensorflow'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_a_run_writes_its_files_and_says_where(capfd, empty_folder):
    arguments = [*CARTPOLE, "--num_timesteps=200", "--num_env=2", "--seed=4"]
    run.main(arguments)
    log = empty_folder / "log"
    assert sorted(os.listdir(log)) == [
        "0.0.monitor.csv",
        "0.1.monitor.csv",
        "checkpoints",
        "config.json",
        "log.txt",
        "model.safetensors",
        "progress.csv",
    ]
    config = json.loads((log / "config.json").read_text())
    assert config["arguments"]["seed"] == 4
    assert config["settings"]["total_timesteps"] == 200
    assert config["settings"]["nsteps"] == 5
    assert config["settings"]["num_hidden"] == 64
    assert config["command"].endswith(" ".join(arguments))
    assert "tensorflow" in config["versions"]
    out = capfd.readouterr().out
    assert "| total_timesteps " in out
    model = log / "model.safetensors"
    assert f"--num_timesteps=200 --num_env=2 --seed=4 --load_path={model}" in out
    assert f"baselines.evaluate {log}" in out and f"baselines.play {log}" in out
    table = (log / "log.txt").read_text()
    assert table.splitlines()[0] == out.splitlines()[0]


def test_train_save_load_and_play(capfd, monkeypatch):
    run.main([*CARTPOLE, "--num_timesteps=200", "--save_path=deep/model"])
    capfd.readouterr()
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    played = play
    monkeypatch.setattr(run, "play", lambda model, env: played(model, env, 2))
    before = sorted(os.listdir("log"))
    run.main([*CARTPOLE, "--num_timesteps=0", "--load_path=deep/model", "--play"])
    lines = capfd.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["game 1", "game 2"]
    assert sorted(os.listdir("log")) == before


def test_play_carries_recurrent_state_and_shows_the_raw_score(capfd):
    class Env:
        num_envs = 1

        def reset(self):
            self.t = 0
            return [0]

        def step(self, actions):
            # As it was drawn: environments that are made here clip it.
            np.testing.assert_array_equal(actions, [[3]])
            self.t += 1
            done = self.t % 2 == 0
            info = {"episode": {"r": 21.0, "l": 2}} if done else {}
            return [self.t], [1.0], [done], [info]

    class Model:
        initial_state = "start"
        seen = []

        def step(self, obs, S, M, deterministic):
            self.seen.append((S, bool(M[0])))
            return np.array([[3.0]]), None, f"after {obs[0]}", None

    play(Model(), Env(), episodes=2)
    assert Model.seen == [
        ("start", False),
        ("after 0", False),
        ("after 1", True),
        ("after 2", False),
    ]
    out = capfd.readouterr().out
    assert out == "game 1: score 21, 2 steps\ngame 2: score 21, 2 steps\n"


def test_run_outlives_its_terminal():
    """Worker processes as well, which belong to the same terminal."""
    command = [sys.executable, "-m", "baselines.run", "--alg=a2c", "--num_env=2"]
    command += ["--env=PongNoFrameskip-v4", "--network=cnn_small", "--seed=0"]
    command += ["--log_interval=1", "--num_timesteps=2000"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    while b"total_timesteps" not in os.read(terminal, 1000):
        pass
    os.close(terminal)  # The process group gets SIGHUP; writing becomes an error.
    assert os.waitpid(pid, 0)[1] == 0
    last = Path("log/progress.csv").read_text().splitlines()[-1]
    assert last.startswith("2000,")
    assert "Log files: " in Path("log/log.txt").read_text()


def test_run_outlives_its_pipe():
    command = [sys.executable, "-m", "baselines.run", *CARTPOLE]
    command += ["--log_interval=1", "--num_timesteps=2000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 0
    assert "Log files: " in Path("log/log.txt").read_text()


def test_network_of_your_own_by_module_and_function(monkeypatch, tmp_path):
    Path("own_networks.py").write_text(
        "import keras\n"
        "def wide(width: int = 8):\n"
        "    return keras.layers.Dense(width, 'relu')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    model = run.main(
        [*CARTPOLE, "--network=own_networks:wide", "--width=9", "--num_timesteps=40"]
    )
    assert model.parts["network"].units == 9


def test_environment_of_your_own_by_module_and_id():
    Path("my_envs.py").write_text(
        "import gymnasium as gym\n"
        "from gymnasium.envs.classic_control import CartPoleEnv\n"
        "class Mine(CartPoleEnv): pass\n"
        "gym.register('Mine-v0', entry_point=Mine, max_episode_steps=7)\n"
    )
    command = [sys.executable, "-m", "baselines.run", "--alg=a2c"]
    command += ["--env=my_envs:Mine-v0", "--num_env=2", "--num_timesteps=300"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    rows = Path("log/0.1.monitor.csv").read_text().splitlines()
    assert "Mine-v0" in rows[0]
    assert max(int(row.split(",")[1]) for row in rows[2:]) == 7


def test_fork_of_an_algorithm_runs_by_its_name(tmp_path):
    source = Path(baselines.__file__).parent / "a2c"
    fork = tmp_path / "my_pkg" / "my_alg"
    shutil.copytree(source, fork, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "my_pkg" / "__init__.py").touch()
    text = (fork / "a2c.py").read_text()
    changed = text.replace(
        'policy_loss": policy_loss,', 'policy_loss": policy_loss, "mine": loss * 0 + 7,'
    )
    assert changed != text
    (fork / "a2c.py").unlink()
    (fork / "my_alg.py").write_text(changed)
    command = [sys.executable, "-m", "baselines.run", "--alg=my_pkg.my_alg"]
    command += ["--env=CartPole-v1", "--num_timesteps=100", "--ent_coef=0.5"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    header, row, *_ = Path("log/progress.csv").read_text().splitlines()
    assert dict(zip(header.split(","), row.split(",")))["mine"] == "7.0"
    versions = json.loads(Path("log/config.json").read_text())["versions"]
    assert versions["commit of my_pkg.my_alg"] is None  # It is in no repository.


@pytest.mark.parametrize(
    ("name", "line", "other", "message"),
    [
        (
            "plain",
            "@algorithm()\n",
            "",
            "my_pkg.plain.plain has to have the decorator",
        ),
        ("fresh", "    run.load(policy)\n", "", "has to call run.load(model)"),
        ("empty", "    return policy\n", "", "model; the last good checkpoint is /"),
        ("alone", "    run,\n", "", "my_pkg.alone.alone has to be run, received env"),
        (
            "bare",
            "Step(loss, ",
            "Step(lambda *batch: loss(*batch)[0], ",
            "the loss learn.<locals>.<lambda> has to return (loss, metrics), a scalar ",
        ),
        (
            "long",
            "ops.mean(ops.square(values - returns))",
            "ops.square(values - returns)",
            "the loss learn.<locals>.loss has to return a scalar, such as a mean over "
            "the batch, returned a tensor of shape (5,)",
        ),
    ],
)
def test_what_a_fork_forgets(capfd, monkeypatch, tmp_path, name, line, other, message):
    (tmp_path / "my_pkg" / name).mkdir(parents=True)
    text = (Path(baselines.__file__).parent / "a2c" / "a2c.py").read_text()
    assert text.count(line) == 1
    (tmp_path / "my_pkg" / name / f"{name}.py").write_text(text.replace(line, other))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("OPENAI_LOGDIR", "other")
    words = [f"--alg=my_pkg.{name}", "--env=CartPole-v1", "--num_timesteps=100"]
    with pytest.raises(SystemExit):
        run.main([*words, "--num_env=1"])
    error = capfd.readouterr().err
    assert message in error and error.count("\n") == 1


def test_a_second_network_of_a_fork_is_named_again(capfd, monkeypatch, tmp_path):
    fork = tmp_path / "my_pkg" / "twice" / "twice.py"
    fork.parent.mkdir(parents=True)
    text = (Path(baselines.__file__).parent / "a2c" / "a2c.py").read_text()
    line = "    network: arg.Network,\n"
    assert text.count(line) == 1
    second = f'{line}    critic_network: arg.Network = "mlp",\n'
    fork.write_text(text.replace(line, second))
    (tmp_path / "my_nets.py").write_text(
        "from baselines.common.models import mlp\ndef wide():\n    return mlp()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    named = ["--alg=my_pkg.twice", "--critic_network=my_nets:wide"]
    run.main([*named, "--env=CartPole-v1", "--num_timesteps=100", "--log_path=log"])
    with pytest.raises(SystemExit):
        evaluate.main(["log", "--alg=my_pkg.twice", "--episodes=1"])
    assert "give again --critic_network=my_nets:wide" in capfd.readouterr().err
    with pytest.raises(SystemExit):
        evaluate.main(["log", *named, named[1]])
    assert "--critic_network is given twice" in capfd.readouterr().err
    evaluate.main(["log", *named, "--episodes=1"])
    assert capfd.readouterr().out.startswith("CartPole-v1: mean score")


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_commit_of_code_of_your_own():
    Path("mine.py").touch()
    person = ["-c", "user.name=me", "-c", "user.email=me@example.com"]
    for words in (["init"], ["add", "mine.py"], ["commit", "-m", "Add it"]):
        subprocess.run(["git", *person, *words], check=True, capture_output=True)
    commit = config.commit_of_file("mine.py")
    assert re.fullmatch("[0-9a-f]{40}", commit)
    Path("mine.py").write_text("changed = True")
    assert config.commit_of_file("mine.py") == f"{commit}-dirty"
    Path("other.py").touch()
    assert config.commit_of_file("other.py") is None


def test_config_of_a_run_from_python_names_what_is_not_json():
    env = gym.make("CartPole-v1", sutton_barto_reward=True)
    common = dict(env=env, network="mlp", total_timesteps=10)
    with logger.scoped_configure("log", []):
        learn(**common, lr=math.sqrt, callback=lambda *_: False)
    found = json.loads(Path("log/config.json").read_text())
    kwargs = {"sutton_barto_reward": "True"}
    lr = "math.sqrt: 0, 0.5, 0.707107, 0.866025 at 0, 25, 50 and 75 %"
    assert found["described"] == {"lr": lr, "env_kwargs": kwargs}
    assert found["settings"]["num_layers"] == 2


def test_functions_are_described_by_what_they_do_not_by_where_they_stand():
    def times(factor):
        return lambda x: factor * x if x in {"a", 1.5, 2} else (lambda y: y)(x)

    half, same = lambda x: x / 2, lambda x: x
    again = [lambda x: x / 2]
    assert describe(half) == describe(again[0]) != describe(same)
    assert describe(times(2)) == describe(times(2)) != describe(times(3))
    assert describe(partial(round, ndigits=2)) == "builtins.round with ndigits=2"
    code = (
        "from baselines.common.run.python_config import describe; print(describe({}))"
    )
    code = code.format("lambda x: x in {'a', 'b', 'c'}")
    words = [sys.executable, "-c", code]
    first, second = (subprocess.check_output(words, text=True) for _ in range(2))
    assert first == second and first.startswith("__main__.<lambda> (code ")


@pytest.mark.parametrize("lr", [lambda done: None, lambda done: 1 / (0.75 - done)])
def test_a_schedule_that_fails_is_described_by_its_name(lr):
    text = describe_schedule("lr", lr)
    assert "<lambda> (code " in text and "%" not in text


@pytest.mark.parametrize(
    ("lr", "text"),
    [
        (math.sqrt, "math.sqrt: 0, 0.5, 0.707107, 0.866025 at 0, 25, 50 and 75 %"),
        (lambda done: 1e-3, "): 0.001, 0.001, 0.001, 0.001 at 0, 25, 50 and 75 %"),
    ],
)
def test_schedules_are_described_by_their_values(lr, text):
    assert text in describe_schedule("lr", lr)


def test_text_that_the_terminal_cannot_show_is_escaped():
    command = [sys.executable, "-m", "baselines.run", *CARTPOLE]
    command += ["--num_timesteps=100", "--log_path=w\u00f6rk", "--log_interval=1000"]
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, stdout=subprocess.PIPE, env=env, check=True)
    assert b"log folder: " in done.stdout and rb"w\xf6rk" in done.stdout
    words = [sys.executable, "-m", "baselines.runs", "w\u00f6rk"]
    done = subprocess.run(words, stdout=subprocess.PIPE, env=env, check=True)
    assert rb"w\xf6rk" in done.stdout and rb"\u2013" in done.stdout


def output_of(command, redirection):
    words = shlex.join([sys.executable, "-m", *command])
    script = f"{words} {redirection}; echo ${{PIPESTATUS[0]}} >&2"
    env = {**os.environ, "PYTHONUNBUFFERED": ""}
    words = ["bash", "-c", script]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, env=env)
    return done.stderr


def test_output_that_cannot_be_written_is_no_traceback():
    runs, train = ["baselines.runs", "."], ["baselines.run", *CARTPOLE]
    train += ["--num_timesteps=100", "--log_path=log", "--log_interval=1000"]
    assert output_of(train, ">&-") == "0\n"
    assert output_of(runs, ">&-") == "0\n"
    assert output_of(runs, "| true") == "1\n"
    assert output_of(runs, "> /dev/full") == (
        "error: cannot write to standard output: No space left on device\n2\n"
    )


def test_runs_from_python_with_other_functions_are_different_curves():
    def train(folder, scale, lr):
        env = gym.make("CartPole-v1")
        if scale is not None:
            env = gym.wrappers.TransformReward(env, scale)
        with logger.scoped_configure(folder, ["csv"]):
            learn(env=env, network="mlp", total_timesteps=10, seed=0, lr=lr)

    def constant(value):
        return lambda fraction: value

    train("a", None, constant(1e-3))
    train("b", None, constant(1e-4))
    train("c", lambda reward: reward / 2, constant(1e-4))
    train("d", lambda reward: reward / 4, constant(1e-4))
    curves, env = find_curves(["a", "b", "c", "d"], "policy_entropy")
    assert len(curves) == 4 and env == "CartPole-v1"


@pytest.mark.parametrize("make", [gym.make, make_vec_env])
def test_environment_made_with_other_arguments_is_not_guessed(make):
    kwargs = dict(sutton_barto_reward=True)
    if make is make_vec_env:
        kwargs = dict(env_kwargs=kwargs)
    with make("CartPole-v1", **kwargs) as env, logger.scoped_configure("log", []):
        learn(env=env, network="mlp", total_timesteps=10)
    with pytest.raises(UserValueError, match="made with sutton_barto_reward=True"):
        find_env("log")
    assert find_env("log", "CartPole-v1").spec.id == "CartPole-v1"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gym.make("CartPole-v1", max_episode_steps=9), "max_episode_steps=9"),
        (
            lambda: gym.wrappers.NormalizeObservation(gym.make("CartPole-v1")),
            r"NormalizeObservation=epsilon=1e-08",
        ),
    ],
)
def test_environment_with_other_limits_or_wrappers_is_not_guessed(make, words):
    with logger.scoped_configure("log", []):
        learn(env=make(), network="mlp", total_timesteps=10)
    with pytest.raises(UserValueError, match=f"made with {words}, which is not how"):
        find_env("log")


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_vec_env("CartPole-v1", num_env=2, log_dir="log"),
        lambda: make_env("CartPole-v1", reward_scale=0.5),
        lambda: Monitor(gym.make("CartPole-v1")),
        lambda: gym.wrappers.RecordEpisodeStatistics(gym.make("CartPole-v1")),
        # Its observations are a Tuple, which is flattened.
        lambda: gym.make("Blackjack-v1"),
        lambda: gym.wrappers.FlattenObservation(gym.make("Blackjack-v1")),
    ],
)
def test_wrappers_that_change_nothing_for_the_policy_do_not_count(make):
    with logger.scoped_configure("log", []):
        learn(env=make(), network="mlp", total_timesteps=10)
    found = json.loads(Path("log/config.json").read_text())
    assert "env_kwargs" not in found["described"]
    assert find_env("log").spec.id == found["arguments"]["env"]


def test_drawn_environment_is_found_again():
    env = gym.make("CartPole-v1", render_mode="rgb_array")
    with logger.scoped_configure("log", []):
        learn(env=env, network="mlp", total_timesteps=10)
    assert find_env("log").spec.id == "CartPole-v1"


def test_videos_of_training(empty_folder):
    imageio = pytest.importorskip("imageio.v2")
    arguments = [*CARTPOLE, "--num_env=2", "--num_timesteps=120", "--seed=0"]
    videos = ["--save_video_interval=25", "--save_video_length=10"]
    run.main([*arguments, *videos, "--checkpoint_interval=60"])
    assert list_manifests("log/checkpoints")
    assert sorted(os.listdir("log/videos")) == [
        "video00000000.mp4",
        "video00000025.mp4",
        "video00000050.mp4",
    ]
    with imageio.get_reader("log/videos/video00000025.mp4") as reader:
        frames = list(reader.iter_data())
    assert len(frames) == 10
    assert frames[0].shape == (800, 600, 3)  # two environments, 400 x 600 each
    without = Path("without")
    run.main([*arguments, f"--log_path={without}"])
    models = [load_tensors(x / "model.safetensors")[0] for x in (Path("log"), without)]
    for name, value in models[0].items():
        np.testing.assert_array_equal(value, models[1][name])


def test_retro_games_that_are_drawn_have_a_worker_each(monkeypatch):
    monkeypatch.setattr(mpi, "available_cores", lambda: 2)
    assert rendered(4, "rgb_array", "retro")["num_workers"] == 4
    assert rendered(4, "rgb_array", "atari")["num_workers"] == 2


def test_commands_are_listed_and_found(capsys, empty_folder):
    commands.main([])
    out = capsys.readouterr().out
    for command in commands.COMMANDS:
        assert re.search(
            rf"^  {command} +[A-Z].*python -m baselines.{command} ", out, re.M
        )
    commands.main(["--version"])
    assert capsys.readouterr().out == f"baselines {baselines.__version__}\n"
    for words, error in (
        (["evalute"], "error: unknown command 'evalute'; did you mean 'evaluate'?"),
        (["evaluate", "nowhere"], "error: there is no log folder and no saved model"),
        (["run", "--alg=a2x"], "error: --env is required"),
    ):
        with pytest.raises(SystemExit):
            commands.main(words)
        assert capsys.readouterr().err.startswith(error)


def test_command_reads_the_command_line_itself(monkeypatch):
    seen = []
    monkeypatch.setattr(run, "main", lambda argv: seen.append((argv, sys.argv[1:])))
    monkeypatch.setattr(sys, "argv", ["baselines", "run", "--alg=a2c"])
    commands.main()  # so that a second Ctrl-C ends it, as without "baselines"
    assert seen == [(None, ["--alg=a2c"])]


def test_model_of_another_program_is_not_replaced(capsys, monkeypatch):
    def learn_while_another_saves(*args, **kwargs):
        model = learn(*args, **kwargs)
        Path("model").write_text("another")
        return model

    learn_while_another_saves.settings = {}
    arguments = [*CARTPOLE, "--num_timesteps=50", "--log_path=log", "--save_path=model"]
    settings = parse(arguments)
    settings.learn = learn_while_another_saves
    run.train(settings)
    assert Path("model").read_text() == "another"
    assert Path("log/model.safetensors").is_file()
    out = capsys.readouterr().out
    assert "which another program has written" in out and "--save_path" not in out


def test_run_that_ended_at_a_score_is_not_offered_to_train_longer(capsys):
    words = [*CARTPOLE, "--num_timesteps=5000", "--log_path=log", "--seed=0"]
    run.main([*words, "--stop_at=5", "--checkpoint_interval=500"])
    assert "Train longer" not in capsys.readouterr().out
