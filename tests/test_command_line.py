"""Command lines: settings by layers, mistakes in one line, code that is trusted."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from conftest import error_of
from toy_envs import RandomEnv

import baselines
from baselines import __main__ as commands
from baselines import a2c, evaluate, logger, ppo2, run
from baselines.a2c import defaults
from baselines.common.arguments.arguments import gather
from baselines.common.base.errors import UserError
from baselines.common.base.tables import read_table
from baselines.common.envs import make_vec_env
from baselines.common.run.algorithm import layers_of_call
from baselines.common.run.command_line import read_arguments
from baselines.common.saving.config import read_config, resume_command

CARTPOLE = ["--alg=a2c", "--env=CartPole-v1"]

pytestmark = pytest.mark.usefixtures("empty_folder", "own_modules")


@pytest.fixture
def own_modules():
    """Forgets modules that a test imports from the current folder."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("my_", "presets")):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("--env=CartPole-v1", "--alg"),
        ("--alg=a2c", "--env"),
        ("--alg=a2d --env=CartPole-v1", "'a2c'"),
        ("--alg=a2c --env=CartPol-v1", "'CartPole-v1'"),
        ("--alg=a2c --env=CartPole-v1 --network=mpl", "'mlp'"),
        ("--alg=a2c --env=nowhere:CartPole-v1", "'nowhere'"),
        ("--alg=a2c --env=CartPole-v1 --network=nowhere:mlp", "'nowhere'"),
        ("--alg=a2c --env=CartPole-v1 --num_envs=2", "'num_env'"),
        ("--alg=a2c --env=CartPole-v1 --num_timesteps=-1", "num_timesteps"),
        ("--alg=a2c --env=CartPole-v1 --save_path --overwrite", "save_path"),
        ("--alg=a2c --env=CartPole-v1 --total_timesteps=9", "num_timesteps"),
        ("--alg=a2c --env=CartPole-v1 --env_type=atary", "'atari'"),
        ("--alg=a2c --env=CartPole-v1 --load_path=nowhere", "nowhere"),
        ("--alg=sac --env=CartPole-v1", "Box"),
        ("--resume=nowhere", "nowhere"),
    ],
)
def test_a_mistake_is_one_line(capfd, words, hint):
    assert hint in error_of(capfd, words)


def test_play_without_a_display_explains_itself(capfd, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert "no display" in error_of(capfd, "--alg=a2c --env=CartPole-v1 --play")


def write_module(path, text):
    """Writes a module below the current folder, with its packages' __init__.py."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_preset_sets_arguments_of_its_parts_and_has_defaults(monkeypatch):
    write_module(
        "presets/my_c51/my_c51.py",
        "from baselines.common.run.algorithm import preset\n"
        "from baselines.common.networks.values import categorical\n"
        "from baselines.dqn import dqn\n"
        "learn = preset(dqn.learn, values=categorical, atoms=21, train_freq=2)\n",
    )
    monkeypatch.syspath_prepend(os.getcwd())
    alg = "--alg=presets.my_c51"
    arguments = read_arguments([alg, "--env=CartPole-v1", "--v_max=5"])
    assert arguments["values"] == "baselines.common.networks.values:categorical"
    assert (arguments["atoms"], arguments["v_max"]) == (21, 5.0)
    # Without a defaults.py of its own it has dqn's, but for what it sets.
    arguments = read_arguments([alg, "--env=PongNoFrameskip-v4"])
    assert [arguments[x] for x in ("num_env", "lr", "train_freq")] == [8, 1e-4, 2]


def test_python_and_the_command_line_have_the_same_defaults():
    """Those for the kind of environment, also for one that normalises rewards."""
    env = make_vec_env("Pendulum-v1", num_env=2, seed=3)
    given = dict(nsteps=8, total_timesteps=64, log_interval=1, seed=3)
    words = [f"--{name}={value}" for name, value in given.items()]
    words[1] = "--num_timesteps=64"
    run.main(["--alg=a2c", "--env=Pendulum-v1", "--log_path=command", *words])
    logger.configure("python", ["csv"])
    model = a2c.learn(env=env, **given)
    logger.close()
    rows, same = (
        read_table(f"{name}/progress.csv").drop(columns=["fps", "time_elapsed"])
        for name in ("command", "python")
    )
    assert rows.equals(same) and len(rows) == 4
    other = baselines.load("command")
    for variable, same in zip(model.variables, other.variables):
        np.testing.assert_array_equal(variable, same)


@pytest.mark.parametrize(
    ("env", "given", "expected"),
    [
        ("CartPole-v1", {}, ("copy", 5e-3, "mlp")),
        ("CartPole-v1", {"defaults": False}, ("shared", 7e-4, "mlp")),
        ("CartPole-v1", {"lr": 0.1, "network": "lstm"}, ("copy", 0.1, "lstm")),
        ("toy_envs:CounterByName-v0", {}, ("copy", 7e-4, "mlp")),
    ],
)
def test_defaults_are_those_for_the_kind_of_environment(env, given, expected):
    names = "value_network", "lr", "network"
    with gym.make(env) as made:
        layers = layers_of_call(a2c.learn, {"env": made, **given})
        in_python = gather(a2c.learn, layers)
    words = [f"--{name}={value}" for name, value in given.items()]
    on_command = read_arguments(["--alg=a2c", f"--env={env}", *words])
    for arguments in in_python, on_command:
        assert tuple(arguments[name] for name in names) == expected
    assert in_python.sources["lr"] == on_command.sources["lr"]


def test_a_task_has_settings_of_its_own_on_top_of_its_kind(monkeypatch):
    tasks = {"Acrobot-v1": {"lr": 0.1}, "Taxi-v4": {"lr": 0.2}}
    monkeypatch.setattr(defaults, "TASKS", tasks, raising=False)
    other = dict(entry_point="toy_envs:CounterEnv", id="Acrobot-v1")
    with gym.make("Acrobot-v1") as made:
        found = gather(a2c.learn, layers_of_call(a2c.learn, {"env": made}))
        assert (found["lr"], found["value_network"]) == (0.1, "copy")
        made.unwrapped.spec = gym.envs.registration.EnvSpec(**other)
        found = gather(a2c.learn, layers_of_call(a2c.learn, {"env": made.unwrapped}))
        assert found["lr"] == 7e-4
    found = read_arguments(["--alg=a2c", "--env=Acrobot-v1"])
    assert (found["lr"], found["num_env"]) == (0.1, 2)
    found = read_arguments(["--alg=a2c", "--env=Taxi-v4"])  # no toy_text() in a2c
    assert (found["lr"], found["value_network"]) == (0.2, "copy")


def test_unknown_environments_of_images_have_the_defaults_of_games():
    images = gym.spaces.Box(0, 255, (36, 36, 3), np.uint8)
    env = RandomEnv(images, gym.spaces.Discrete(2))
    layers = layers_of_call(ppo2.learn, {"env": env, "total_timesteps": 0})
    arguments = gather(ppo2.learn, layers)
    assert (arguments["network"], arguments["nsteps"]) == ("cnn", 128)


def test_help_shows_values_and_the_defaults_for_an_environment(capfd):
    pong = "run in parallel", "(default: 4)", "(default: cnn)", "linear, middle_drop"
    for words, expected, missing in (
        ("--help", ["--log_path"], "--lrschedule"),
        ("--help --alg=a2c", ["--lrschedule"], "--atoms"),
        ("--help --alg=a2c --env=PongNoFrameskip-v4", pong, "--atoms"),
    ):
        with pytest.raises(SystemExit) as stop:
            run.main(words.split())
        text = " ".join(capfd.readouterr().out.split())
        assert not stop.value.code and missing not in text
        assert all(words in text for words in expected)


def test_light_answers_import_no_keras():
    lines = "--help", "--alg=a2d --env=CartPole-v1", "--alg=a2c --env=CartPole-v9"
    script = (
        "import sys\n"
        "from baselines.run import main\n"
        f"for words in {lines}:\n"
        "    try: main(words.split())\n"
        "    except SystemExit: pass\n"
        "    assert not {'keras', 'tensorflow'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


@pytest.fixture
def own_code(monkeypatch):
    """A fork of a2c, an environment and a network in the current folder."""
    text = (Path(baselines.__file__).parent / "a2c" / "a2c.py").read_text()
    write_module("my_pkg/my_alg/my_alg.py", text)
    write_module(
        "my_envs.py",
        "import gymnasium as gym\n"
        "from gymnasium.envs.classic_control import CartPoleEnv\n"
        "class Mine(CartPoleEnv): pass\n"
        "gym.register('Mine-v0', entry_point=Mine, max_episode_steps=7)\n",
    )
    write_module(
        "my_networks.py",
        "from baselines.common.models import mlp\n"
        "def wide(units: int = 8):\n"
        "    return mlp(num_hidden=units)\n",
    )
    monkeypatch.syspath_prepend(os.getcwd())
    words = ["--alg=my_pkg.my_alg", "--env=my_envs:Mine-v0", "--units=9"]
    return [*words, "--network=my_networks:wide", "--num_timesteps=200"]


def test_code_that_a_file_names_is_imported_with_trust_only(capfd, own_code):
    run.main([*own_code, "--num_env=2", "--log_path=log"])
    lengths = [row.split(",")[1] for row in Path("log/0.1.monitor.csv").open()][2:]
    assert max(map(int, lengths)) == 7
    versions = json.loads(Path("log/config.json").read_text())["versions"]
    assert versions["commit of my_pkg.my_alg"] is None  # It is in no repository.
    assert "--trust" in error_of(capfd, "--resume=log --num_timesteps=400")
    assert "--trust" in error_of(capfd, "log --episodes=1", evaluate.main)
    run.main(["--resume=log", "--num_timesteps=400", "--trust"])
    evaluate.main(["log", "--episodes=1", "--trust"])
    assert "Mine-v0: mean score" in capfd.readouterr().out
    with pytest.raises(UserError, match="trust"):
        baselines.load("log")
    model = baselines.load("log", trust=True)
    assert [v.shape[-1] for v in model.variables][:2] == [9, 9]


def test_environments_that_an_algorithm_registers_are_found(own_code, capfd):
    def forget():
        gym.registry.pop("Mine-v0", None)
        for name in [x for x in sys.modules if x.startswith("my_")]:
            del sys.modules[name]

    with open("my_pkg/my_alg/my_alg.py", "a") as file:
        file.write("import my_envs\n")
    forget()
    alg, env, *words = own_code
    run.main([alg, "--env=Mine-v0", *words, "--log_path=log"])
    forget()
    assert read_arguments(["--resume=log", "--trust"])["env"] == "Mine-v0"
    forget()
    evaluate.main(["log", "--episodes=1", "--trust"])
    assert "Mine-v0: mean score" in capfd.readouterr().out


def test_a_stored_path_is_written_with_trust_or_if_given_again(capfd):
    run.main([*CARTPOLE, "--num_timesteps=40", "--log_path=log", "--save_path=model"])
    os.unlink("model")
    assert "save_path" in error_of(capfd, "--resume=log --num_timesteps=60")
    run.main(["--resume=log", "--num_timesteps=60", "--trust"])
    before = Path("model").read_bytes()
    printed = resume_command("log", read_config("log"))
    run.main([*shlex.split(printed)[3:], "--num_timesteps=80"])
    assert Path("model").read_bytes() != before


def test_commands_are_listed_and_found(capsys):
    commands.main([])
    out = capsys.readouterr().out
    assert all(f"\n  {command} " in out for command in commands.COMMANDS)
    commands.main(["--version"])
    assert capsys.readouterr().out == f"baselines {baselines.__version__}\n"
    with pytest.raises(SystemExit):
        commands.main(["evalute"])
    assert "'evaluate'" in capsys.readouterr().err
