"""A run that was killed and resumed is the run that was not."""

import builtins
import contextlib
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import toy_envs  # noqa: F401 - registers environments with goals
from conftest import Killed, import_learn, killed_after, long, slow

from baselines import a2c, logger, run
from baselines.bench import Monitor
from baselines.common.base.errors import UserError, UserValueError
from baselines.common.base.tables import read_table
from baselines.common.envs import make_env, make_vec_env
from baselines.common.envs.recorder import Recorder, get_env_state, set_env_state
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.saving.tensors import load_tensors
from baselines.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack

CARTPOLE = "--alg=a2c --env=CartPole-v1 --num_env=3 --num_timesteps=3000 --seed=1 "
CARTPOLE += "--log_interval=10 --checkpoint_interval=500"


@pytest.fixture(autouse=True)
def quiet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_LOG_FORMAT", "log,csv,json")
    with logger.scoped_configure(str(tmp_path / "unused"), []):
        yield


def results(folder):
    """What must not differ: rows without clock columns, episodes, weights."""
    folder = Path(folder)
    rows = [
        {
            key: value
            for key, value in json.loads(line).items()
            if key not in ("fps", "time_elapsed")
        }
        for line in (folder / "progress.json").read_text().splitlines()
    ]
    header, *table = (folder / "progress.csv").read_text().splitlines()
    column = header.split(",").index("total_timesteps")
    counts = [int(line.split(",")[column]) for line in table]
    assert counts == [row["total_timesteps"] for row in rows]
    tables = (folder / "log.txt").read_text().count("| total_timesteps ")
    assert tables == len(rows)
    episodes = {
        path.name: [line.split(",")[:2] for line in path.read_text().splitlines()[1:]]
        for path in folder.glob("*.monitor.csv")
    }
    weights = load_tensors(folder / "model.safetensors")[0]
    return repr(rows), episodes, {key: w.tobytes() for key, w in weights.items()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Results of the run of CARTPOLE that nothing interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_LOG_FORMAT", "log,csv,json")
        with logger.scoped_configure(None, []):
            run.main(f"{CARTPOLE} --log_path={folder}".split())
    return folder


def check_exact_resume(arguments, *updates):
    """Compares a run with one that is killed after so many updates, and resumed."""
    run.main(f"{arguments} --log_path=whole".split())
    words = f"{arguments} --log_path=cut".split()
    for number in updates:
        with killed_after(number):
            run.main(words)
        words = ["--resume=cut"]
    run.main(words)
    assert results("cut") == results("whole")


def command(arguments):
    return [sys.executable, "-m", "baselines.run", *arguments.split()]


@pytest.mark.parametrize("updates", [1, 34, 77, 190])
def test_interrupted_run_goes_on_as_if_it_had_not_been(updates, whole):
    with killed_after(updates):
        run.main(f"{CARTPOLE} --log_path=cut".split())
    run.main(["--resume=cut"])
    assert results("cut") == results(whole)


@pytest.mark.parametrize(
    "settings",
    [
        "CartPole-v1 --value_network=copy",
        "Pendulum-v1 --value_network=copy --normalize_observations "
        "--precision=bfloat16",
        "CartPole-v1 --network=lnlstm --value_network=shared",
    ],
)
def test_interrupted_ppo2_goes_on_as_if_it_had_not_been(settings):
    arguments = f"--alg=ppo2 --env={settings} --num_env=2 --nsteps=25 "
    arguments += "--nminibatches=2 --noptepochs=2 --num_timesteps=2000 --seed=1 "
    arguments += "--log_interval=3 --checkpoint_interval=200"
    check_exact_resume(arguments, 23)


@pytest.mark.parametrize(
    ("alg", "env", "settings"),
    [
        ("dqn", "CartPole-v1", ""),
        ("dqn", "CartPole-v1", "--prioritized_replay"),
        slow("rainbow", "CartPole-v1", "--v_max=100"),
        ("dqn", "CartPole-v1", "--values=categorical --noisy --n_step=3"),
        (
            "dqn",
            "CartPole-v1",
            "--train_freq=3 --large_batch --checkpoint_freq=200 --precision=bfloat16",
        ),
        ("dqn", "BitFlips-v0", "--replay_k=4 --n_step=2"),
    ],
)
def test_interrupted_dqn_goes_on_as_if_it_had_not_been(alg, env, settings, monkeypatch):
    monkeypatch.setattr("baselines.common.data.replay_buffer.SEGMENT_SIZE", 128)
    arguments = f"--alg={alg} --env={env} --num_env=2 --num_timesteps=1200 "
    arguments += f"--seed=1 --buffer_size=400 --learning_starts=300 {settings} "
    arguments += "--hiddens=[32] --print_freq=5 --checkpoint_interval=200"
    check_exact_resume(arguments, 350, 130)


@pytest.mark.parametrize(
    ("alg", "env", "settings"),
    [
        (
            "ddpg",
            "Pendulum-v1",
            "--noise_type=ou_0.2 --random_eps=0.1 --normalize_returns "
            "--normalize_observations --nb_rollout_steps=10 --nb_train_steps=5",
        ),
        slow("td3", "Pendulum-v1", "--prioritized_replay --n_step=3 --policy_delay=3"),
        slow("sac", "Pendulum-v1", "--normalize_observations --n_step=2"),
        (
            "her",
            "PointReach-v0",
            "--nb_rollout_steps=40 --nb_train_steps=4 --normalize_observations",
        ),
    ],
)
def test_interrupted_continuous_control_goes_on(alg, env, settings, monkeypatch):
    monkeypatch.setattr("baselines.common.data.replay_buffer.SEGMENT_SIZE", 128)
    arguments = f"--alg={alg} --env={env} --num_env=2 --num_timesteps=1200 --seed=1 "
    arguments += f"--network=mlp --num_hidden=16 --buffer_size=400 {settings} "
    arguments += "--learning_starts=300 --batch_size=32 --print_freq=1 "
    arguments += "--checkpoint_interval=200"
    check_exact_resume(arguments, 350)


def test_interrupted_acer_goes_on_as_if_it_had_not_been(monkeypatch):
    """Also what earlier policies would have done, in a memory that is overwritten."""
    monkeypatch.setattr("baselines.common.data.replay_buffer.SEGMENT_SIZE", 128)
    arguments = "--alg=acer --env=CartPole-v1 --num_env=2 --num_timesteps=1200 "
    arguments += "--seed=1 --nsteps=10 --buffer_size=400 --replay_start=200 "
    arguments += "--replay_ratio=1 --log_interval=5 --checkpoint_interval=100"
    check_exact_resume(arguments, 43)


def test_segments_of_a_replay_memory_stay_while_a_manifest_names_them(monkeypatch):
    monkeypatch.setattr("baselines.common.data.replay_buffer.SEGMENT_SIZE", 50)
    arguments = "--alg=dqn --env=CartPole-v1 --num_env=2 --num_timesteps=1600 --seed=1 "
    arguments += "--buffer_size=300 --learning_starts=300 --checkpoint_interval=200 "
    run.main(f"{arguments} --print_freq=5 --log_path=whole".split())
    newest, before = (
        json.loads(Path("whole", "checkpoints", f"{steps:012d}.json").read_text())
        for steps in (1600, 1400)
    )
    named = [set(newest["segments"]), set(before["segments"])]
    # 300 transitions, and both checkpoints lie where a segment ends.
    assert [len(names) for names in named] == [300 // 50] * 2
    assert len(named[0] - named[1]) == 200 // 50
    assert segments_in("whole") == named[0] | named[1]
    shutil.copytree("whole", "cut", ignore=shutil.ignore_patterns("model.safetensors"))
    flip_a_bit(f"cut/checkpoints/{max(named[0])}")
    kept = [Path("cut", "checkpoints", name) for name in named[1]]
    times = [path.stat().st_mtime_ns for path in kept]
    run.main(["--resume=cut"])
    # Rewritten, the oldest would lack rows that the memory has replaced since.
    assert [path.stat().st_mtime_ns for path in kept] == times
    assert "; resumed from the one before it" in Path("cut/log.txt").read_text()
    assert results("cut") == results("whole")
    assert segments_in("cut") == named[0] | named[1]


def learn_in(folder, steps, seed=0, **given):
    with logger.scoped_configure(folder, ["csv", "log"]):
        env, learn = gym.make("CartPole-v1"), import_learn("a2c")
        learn(env=env, network="mlp", seed=seed, total_timesteps=steps, **given)


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_run_is_resumed_in_its_own_folder_whatever_is_configured(checkpoints):
    learn_in("a", 20)
    learn_in("b", 40)
    if not checkpoints:
        shutil.rmtree("a/checkpoints")
    files = {x: x.read_bytes() for x in Path("b").rglob("*") if x.is_file()}
    learn_in("b", 60, resume="a")
    rows = [5, 20, 60] if checkpoints else [5, 60]
    assert list(read_table("a/progress.csv").total_timesteps) == rows
    assert {x: x.read_bytes() for x in Path("b").rglob("*") if x.is_file()} == files


def test_run_that_begins_again_from_python_is_described_anew():
    learn_in("log", 20)
    shutil.rmtree("log/checkpoints")
    learn_in("log", 40, resume="log", nsteps=4)
    config = json.loads(Path("log/config.json").read_text())
    assert config["arguments"]["num_timesteps"] == 40
    assert config["settings"]["nsteps"] == 4


def falling(fraction):
    return 1e-3 * (1 - fraction)


def test_another_seed_or_function_is_not_ignored_when_resumed_from_python():
    learn_in("log", 20, lr=falling)
    with pytest.raises(UserValueError, match="its seed is 0, not 1; leave seed out"):
        learn_in("log", 40, seed=1, lr=falling, resume="log")
    with pytest.raises(UserValueError, match="its lr is a function or another object"):
        learn_in("log", 40, lr=1e-3, resume="log")
    learn_in("log", 40, lr=falling, resume="log")
    assert "began with" not in Path("log/log.txt").read_text()
    learn_in("log", 60, lr=abs, resume="log")
    warning = "warning: lr is builtins.abs: 0, 0.25, 0.5, 0.75 at 0, 25, 50 and 75 %"
    assert f"{warning}, but the run" in Path("log/log.txt").read_text()


@pytest.mark.parametrize("evaluated", ["", "--eval_interval=60 --eval_episodes=2"])
def test_run_that_ended_at_a_score_trains_no_further(evaluated):
    words = f"{CARTPOLE} --stop_at=5 --log_path=log {evaluated}"
    run.main(words.split())
    ended = results("log")
    run.main(["--resume=log"])
    assert results("log") == ended
    assert Path("log/log.txt").read_text().count("training ends, as stop_at is 5") == 2
    run.main(["--resume=log", "--num_timesteps=6000"])
    assert results("log")[2] != ended[2]  # It has trained for longer.


def test_what_does_not_affect_learning_may_change(whole):
    cut_run(updates=130)
    run.main(["--resume=cut", "--log_interval=50", "--checkpoint_interval=1000"])
    assert results("cut")[1:] == results(whole)[1:]
    assert len(results("cut")[0]) < len(results(whole)[0])
    run.main(["--resume=cut", "--num_timesteps=6000", "--stop_at=1"])
    assert "training ends, as stop_at is 1" in Path("cut/log.txt").read_text()


def segments_in(folder):
    names = {path.name for path in Path(folder, "checkpoints").glob("memory-*")}
    return {name for name in names if name.endswith(".safetensors")}


class Parts(gym.Env):
    """CartPole that shows its state in parts."""

    def __init__(self):
        self.inner = gym.make("CartPole-v1")
        self.action_space = self.inner.action_space
        vector = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
        pair = gym.spaces.Tuple([gym.spaces.Discrete(2), vector])
        self.observation_space = gym.spaces.Dict(pair=pair, seen=vector)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        obs, info = self.inner.reset(seed=int(self.np_random.integers(2**31)))
        return self.parts(obs), info

    def step(self, action):
        obs, *results = self.inner.step(action)
        return self.parts(obs), *results

    def parts(self, obs):
        return {"pair": (int(obs[0] > 0), obs), "seen": obs}


gym.register("Parts-v0", entry_point=Parts)


def test_interrupted_run_with_observations_in_parts_goes_on():
    arguments = CARTPOLE.replace("CartPole-v1", "Parts-v0")
    # So that they need no workers.
    arguments += " --env_type=classic_control"
    check_exact_resume(arguments, 77)


def test_run_that_has_not_trained_yet_goes_on():
    arguments = "--alg=dqn --env=CartPole-v1 --seed=1 --learning_starts=200 "
    arguments += "--print_freq=1 --checkpoint_interval=50 --log_path="
    run.main(f"{arguments}whole --num_timesteps=100".split())
    shutil.copytree("whole", "cut")
    run.main(["--resume=cut", "--num_timesteps=150"])
    rows = Path("whole/progress.json").read_text()
    assert Path("cut/progress.json").read_text().startswith(rows)
    log = Path("cut/log.txt").read_text()
    assert log.startswith(Path("whole/log.txt").read_text().partition("trained")[0])
    assert log.count("nothing will be trained") == 2


def test_interrupted_retro_game_goes_on_as_if_it_had_not_been():
    """Also which actions come late, which random numbers decide."""
    pytest.importorskip("stable_retro")
    arguments = "--alg=ppo2 --env=Airstriker-Genesis-v0 --network=cnn_small "
    arguments += "--num_env=2 --nsteps=60 --num_timesteps=1440 --seed=1 "
    arguments += "--log_interval=3 --checkpoint_interval=600"
    check_exact_resume(arguments, 11)
    assert all(len(rows) > 1 for rows in results("whole")[1].values())


def test_interrupted_again_and_again(whole):
    with killed_after(50):
        run.main(f"{CARTPOLE} --log_path=cut".split())
    for updates in (20, 60, 5):
        with killed_after(updates):
            run.main(["--resume=cut"])
    run.main(["--resume=cut"])
    assert results("cut") == results(whole)


def test_killed_process_goes_on_with_other_workers(monkeypatch):
    # Called another type, as environments as quick as CartPole get no workers.
    arguments = f"{CARTPOLE} --env_type=box2d"
    run.main(f"{arguments} --log_path=whole".split())
    process = subprocess.Popen(command(f"{arguments} --log_path=cut"))
    while len(list_manifests("cut/checkpoints")) < 2:
        assert process.poll() is None
        time.sleep(0.002)
    process.kill()
    process.wait()
    assert not os.path.exists("cut/model.safetensors")
    monkeypatch.setattr("baselines.common.base.mpi.available_cores", lambda: 3)
    run.main(["--resume=cut"])
    assert results("cut") == results("whole")


@pytest.mark.parametrize(
    "arguments",
    [
        long(
            "ppo2 --env=HalfCheetah-v4 --num_env=2 --num_timesteps=10000 --nsteps=160"
        ),
        slow(
            "dqn --env=PongNoFrameskip-v4 --num_env=4 --num_timesteps=6000 "
            "--learning_starts=500 --buffer_size=3000 --network=cnn_small"
        ),
        long("a2c --env=Airstriker-Genesis-v0 --num_env=2 --num_timesteps=3000"),
    ],
)
def test_killed_at_random_moments(arguments):
    packages = {"HalfCheetah": "mujoco", "Airstriker": "stable_retro"}
    for env_id, package in packages.items():
        if env_id in arguments:
            pytest.importorskip(package)
    often = "--print_freq=3" if arguments.startswith("dqn") else "--log_interval=20"
    arguments = f"--alg={arguments} --seed=3 {often} --checkpoint_interval=1000"
    run.main(f"{arguments} --log_path=whole".split())
    generator = random.Random(0)
    next_arguments = f"{arguments} --log_path=cut"
    for _ in range(3):
        process = subprocess.Popen(command(next_arguments))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(generator.uniform(3.5, 7))
        process.kill()
        process.wait()
        if os.path.exists("cut/config.json"):
            next_arguments = "--resume=cut"
    run.main(next_arguments.split())
    assert results("cut") == results("whole")


def wait_for_first_row(folder, process):
    path = Path(folder, "progress.json")
    while not (path.exists() and path.read_text()):
        assert process.poll() is None
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_saves_a_checkpoint_and_stops(number):
    arguments = CARTPOLE.replace("3000", "10_000_000").replace("=500", "=1_000_000")
    process = subprocess.Popen(command(f"{arguments} --log_path=cut"))
    try:
        wait_for_first_row("cut", process)
        assert not list_manifests("cut/checkpoints")
        process.send_signal(number)
        assert process.wait(20) == 128 + number
    finally:
        process.kill()
    assert len(list_manifests("cut/checkpoints")) == 1
    assert "resume" in Path("cut/log.txt").read_text().splitlines()[-1]


def cut_run(updates=120):
    with killed_after(updates):
        run.main(f"{CARTPOLE} --log_path=cut".split())


def test_models_of_the_user_beside_checkpoints_are_kept():
    cut_run()
    own = "best.safetensors", "step_500.safetensors"
    old = "000000000001.1.safetensors", "memory-000000000007.safetensors"
    for name in own + old:
        Path("cut/checkpoints", name).touch()
    run.main(["--resume=cut"])
    files = os.listdir("cut/checkpoints")
    assert set(own) < set(files) and not set(old) & set(files)


def test_two_checkpoints_are_kept():
    cut_run()
    manifests = list_manifests("cut/checkpoints")
    names = ["000000001005", "000000001500"]
    assert [Path(path).stem for path in manifests] == names
    files = sorted(f"{name}.{end}" for name in names for end in ("json", "safetensors"))
    assert sorted(os.listdir("cut/checkpoints")) == files


def test_new_run_in_an_old_folder_has_its_own_checkpoints(whole):
    cut_run()
    with killed_after(60):
        run.main(f"{CARTPOLE} --log_path=cut --overwrite".split())
    assert [Path(path).stem for path in list_manifests("cut/checkpoints")] == [
        "000000000510"
    ]
    run.main(["--resume=cut"])
    assert results("cut") == results(whole)


def flip_a_bit(path):
    data = bytearray(Path(path).read_bytes())
    data[len(data) // 2] ^= 1
    Path(path).write_bytes(data)


def test_damaged_checkpoint_gives_way_to_the_one_before_it(whole):
    cut_run()
    flip_a_bit("cut/checkpoints/000000001500.safetensors")
    run.main(["--resume=cut"])
    assert results("cut") == results(whole)
    assert "damaged" in Path("cut/log.txt").read_text()


def test_kill_while_writing_leaves_the_checkpoint_before_it(monkeypatch, whole):
    from baselines.common.saving import checkpoints as checkpoint

    original = checkpoint.replace_file

    def replace_file(path, data):
        if "000000001500" in path:
            raise Killed
        original(path, data)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(checkpoint, "replace_file", replace_file)
        run.main(f"{CARTPOLE} --log_path=cut".split())
    assert "000000001500.safetensors" in os.listdir("cut/checkpoints")
    run.main(["--resume=cut"])
    assert results("cut") == results(whole)


class FullDisk:
    """Files that can be written to so many times and then find no space.

    Args:
        writes: how many times.
    """

    def __init__(self, writes):
        self.left = writes

    def open(self, file, mode="r", *args, **kwargs):
        stream = REAL_OPEN(file, mode, *args, **kwargs)
        if not set(mode) & set("wax+"):
            return stream
        write = stream.write

        def write_or_fail(data):
            self.left -= 1
            if self.left < 0:
                write(data[: len(data) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(data)

        return Disguised(stream, write_or_fail)


class Disguised:
    """A stream with another ``write``."""

    def __init__(self, stream, write):
        self.stream = stream
        self.write = write

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.stream.close()


REAL_OPEN = builtins.open
PLENTY = 10**6


@pytest.mark.parametrize("every", [40, long(5)], ids=["some", "many"])
def test_full_disk_leaves_the_checkpoint_before_it(every, capsys, monkeypatch):
    arguments = "--alg=dqn --env=CartPole-v1 --num_env=2 --seed=1 --print_freq=2 "
    arguments += "--learning_starts=50 --buffer_size=200 --checkpoint_interval=100 "
    arguments += "--num_timesteps=400 --checkpoint_freq=0 --log_path="
    monkeypatch.setattr("baselines.common.data.replay_buffer.SEGMENT_SIZE", 32)
    disk = FullDisk(PLENTY)
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", disk.open)
        run.main(f"{arguments}whole".split())
    points = range(0, PLENTY - disk.left, every)
    resumed = 0
    for writes in points:
        shutil.rmtree("cut", ignore_errors=True)
        with monkeypatch.context() as patch:
            patch.setattr(builtins, "open", FullDisk(writes).open)
            error = error_of(capsys, f"{arguments}cut", status=1)
        assert "No space left on device" in error
        if manifests := list_manifests("cut/checkpoints"):
            if "; the last good" in error:
                assert error.endswith(f"is {os.path.abspath(manifests[-1])}\n")
            else:  # Training had ended.
                assert manifests[-1].endswith("000000000400.json")
            run.main(["--resume=cut"])
            assert "damaged" not in Path("cut/log.txt").read_text()
            assert results("cut") == results("whole")
            resumed += 1
    assert 1 < resumed < len(points)


def error_of(capsys, arguments, status=2):
    with pytest.raises(SystemExit) as stop:
        run.main(arguments.split())
    assert stop.value.code == status
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1
    return err


def edit_config(**changes):
    path = Path("cut/config.json")
    config = json.loads(path.read_text())
    for key, value in changes.items():
        for level in (config, config["arguments"], config["settings"]):
            if key in level:
                level[key] = value
    path.write_text(json.dumps(config))


def test_what_does_not_fit_is_refused_and_nothing_is_cut(capsys):
    cut_run(updates=130)
    kept = Path("cut/progress.csv").read_bytes()
    assert "no run to resume in nowhere" in error_of(capsys, "--resume=nowhere")
    for flag in "--lr=1", "--eval_interval=100":
        name = flag.partition("=")[0]
        assert f"{name} cannot be given" in error_of(capsys, f"--resume=cut {flag}")
    error = error_of(capsys, "--resume=cut --checkpoint_interval=-1")
    assert "checkpoint_interval has to be at least 0" in error
    error = error_of(capsys, "--resume=cut --env=Acrobot-v1")
    assert "its env is CartPole-v1, not Acrobot-v1" in error
    edit_config(num_env=4)
    assert "num_envs is 3, this run's is 4" in error_of(capsys, "--resume=cut")
    edit_config(num_env=3, env="Acrobot-v1")
    assert "observation is Box(4,)" in error_of(capsys, "--resume=cut")
    edit_config(env="CartPole-v0")
    assert "CartPole-v1, this run has CartPole-v0" in error_of(capsys, "--resume=cut")
    edit_config(env="CartPole-v1", format=99)
    assert "the format of its config.json is 99" in error_of(capsys, "--resume=cut")
    edit_config(format=3)
    assert Path("cut/progress.csv").read_bytes() == kept
    Path("cut/config.json").write_text("{")
    assert "config.json is damaged" in error_of(capsys, "--resume=cut")


def test_no_whole_checkpoint_is_an_error(capsys):
    cut_run()
    for path in list_manifests("cut/checkpoints"):
        flip_a_bit(path.replace(".json", ".safetensors"))
    assert "is damaged" in error_of(capsys, "--resume=cut")


def test_longer_training_says_what_it_does_to_schedules(capsys):
    run.main(f"{CARTPOLE} --log_path=cut".split())
    run.main(["--resume=cut", "--num_timesteps=4500"])
    log = Path("cut/log.txt").read_text()
    folder = Path("cut").absolute()
    assert f"resuming {folder} at 3000 of 4500 agent steps" in log
    assert "meant to have 3000" in log and "67% of training" in log
    rows = Path("cut/progress.json").read_text().splitlines()
    assert json.loads(rows[-1])["total_timesteps"] == 4500
    config = json.loads(Path("cut/config.json").read_text())
    assert config["settings"]["total_timesteps"] == 4500
    assert "--num_timesteps=9000" in log.splitlines()[-4]
    assert "--resume" not in config["command"]
    assert [again["command"] for again in config["resumed"]] == [
        "python -m baselines.run --resume=cut --num_timesteps=4500"
    ]


def test_fewer_steps_than_are_done_are_refused(capsys):
    run.main(f"{CARTPOLE} --log_path=cut".split())
    error = error_of(capsys, "--resume=cut --num_timesteps=500")
    assert "3000 agent steps are done, more than the 500" in error
    assert "trains nothing" in error_of(capsys, "--resume=cut --num_timesteps=0")


def test_run_without_a_checkpoint(capsys, whole):
    none = CARTPOLE.replace("--checkpoint_interval=500", "--checkpoint_interval=0")
    run.main(f"{none} --log_path=none".split())
    for interval in "", " --checkpoint_interval=100000":
        error = error_of(capsys, f"--resume=none{interval}")
        assert "run without checkpoints" in error
    with killed_after(3):
        run.main(f"{CARTPOLE} --log_path=cut".split())
    run.main(["--resume=cut"])
    assert "starting from its beginning" in Path("cut/log.txt").read_text()
    rows = [Path(folder, "progress.json").read_text() for folder in ("cut", whole)]
    assert len({len(text.splitlines()) for text in rows}) == 1
    assert weights_of("cut") == weights_of(whole)


def test_run_without_a_checkpoint_but_with_a_best_model():
    arguments = CARTPOLE.replace("=3000", "=90") + " --eval_episodes=1"
    with killed_after(4):
        run.main(f"{arguments} --eval_interval=30 --log_path=cut".split())
    assert Path("cut/best_model.safetensors").exists()
    run.main(["--resume=cut"])
    assert Path("cut/model.safetensors").exists()


def test_run_that_has_lost_its_checkpoints(capsys):
    often = CARTPOLE.replace("checkpoint_interval=500", "checkpoint_interval=30")
    run.main(f"{CARTPOLE} --log_path=ended".split())
    with killed_after(12):
        run.main(f"{often} --log_path=cut".split())
    for folder in "ended", "cut":
        shutil.rmtree(f"{folder}/checkpoints")
        rows = Path(folder, "progress.json").read_text()
        assert "its checkpoints are gone" in error_of(capsys, f"--resume={folder}")
        assert Path(folder, "progress.json").read_text() == rows


def weights_of(folder):
    tensors = load_tensors(Path(folder, "model.safetensors"))[0]
    return {name: tensor.tobytes() for name, tensor in tensors.items()}


def test_loaded_model_is_loaded_again_without_a_checkpoint():
    first = CARTPOLE.replace("--seed=1", "--seed=5")
    run.main(f"{first} --log_path=first".split())
    load = f"{CARTPOLE} --load_path=first/model.safetensors"
    run.main(f"{load} --log_path=whole".split())
    with killed_after(3):
        run.main(f"{load} --log_path=cut".split())
    run.main(["--resume=cut"])
    assert weights_of("cut") == weights_of("whole")


def test_loading_a_model_leaves_the_checkpoints_of_the_log_folder():
    from baselines.a2c import learn

    run.main(f"{CARTPOLE} --log_path=first".split())
    before = sorted(os.listdir("first/checkpoints"))
    with logger.scoped_configure("first", []):
        learn(
            env=make_env("CartPole-v1"),
            network="mlp",
            value_network="copy",
            total_timesteps=0,
            load_path="first/model.safetensors",
        )
    assert sorted(os.listdir("first/checkpoints")) == before


def test_library_resumes_as_well():
    from baselines.a2c import learn

    def train(folder, **changes):
        logger.configure(folder, ["json"])
        with make_vec_env("CartPole-v1", num_env=2, seed=0, log_dir=folder) as env:
            model = learn(
                env=env,
                network="mlp",
                seed=0,
                total_timesteps=1000,
                checkpoint_interval=200,
                log_interval=10,
                **changes,
            )
        logger.close()
        return [v.numpy().tobytes() for v in model.variables]

    whole = train("whole")
    with killed_after(70):
        train("cut")
    assert train("cut", resume="cut") == whole
    with pytest.raises(UserError, match="no run to resume"):
        train("cut", resume="nowhere")
    with pytest.raises(UserError, match=r"its lr is 0.0007, this run's is 1.0"):
        train("cut", resume="cut", lr=1.0)
    with pytest.raises(UserError, match="its num_hidden is 64, this run's is 32"):
        train("cut", resume="cut", num_hidden=32)


def test_run_resumes_with_a_monitor_of_ones_own():
    from baselines.a2c import learn

    def train(folder, steps, **changes):
        logger.configure(folder, ["csv"])
        env = Monitor(gym.make("CartPole-v1"), f"{folder}/own")
        learn(env=env, network="mlp", seed=0, total_timesteps=steps, **changes)
        logger.close()
        env.close()
        return Path(folder, "own.monitor.csv").read_text().splitlines()[1:]

    def results(lines):
        return [line.rpartition(",")[0] for line in lines]

    whole = train("whole", 400)
    first = train("cut", 205)
    again = train("cut", 400, resume="cut")
    assert len(whole) > len(first) > 4
    assert results(again) == results(whole) and again[: len(first)] == first


def test_unresumable_vector_env_trains_without_checkpoints(tmp_path):
    from baselines.a2c import learn

    mode = gym.vector.AutoresetMode.SAME_STEP
    env = gym.make_vec(
        "CartPole-v1",
        2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
    )
    with logger.scoped_configure(str(tmp_path / "log"), ["log"]):
        learn(env=env, network="mlp", total_timesteps=100, checkpoint_interval=10)
        with pytest.raises(UserError, match="cannot be resumed"):
            learn(env=env, network="mlp", total_timesteps=100, resume="log")
    assert "no checkpoints" in Path("log/log.txt").read_text()
    assert not os.path.exists("log/checkpoints")


class SavedStatistics(gym.wrappers.NormalizeReward):
    def get_state(self):
        return {}


@pytest.mark.parametrize("above", [False, True])
def test_statistics_are_saved_by_a_wrapper_above_the_recorder(monkeypatch, above):
    monkeypatch.setattr(SavedStatistics, "above_recorder", above, raising=False)
    env = DummyVecEnv([lambda: SavedStatistics(gym.make("Pendulum-v1"))])
    assert env.resumable == above


@pytest.mark.parametrize("kind", ["NormalizeObservation", "NormalizeReward"])
@pytest.mark.parametrize("in_workers", [False, True])
def test_statistics_that_a_replay_does_not_restore_are_refused(kind, in_workers):
    def make():
        return getattr(gym.wrappers, kind)(gym.make("Pendulum-v1"))

    def train():
        env = SubprocVecEnv([make], 1) if in_workers else make()
        return a2c.learn(
            env=env, network="mlp", total_timesteps=200, checkpoint_interval=100
        )

    with logger.scoped_configure("log", ["log"]):
        train()
    text = Path("log/log.txt").read_text()
    assert "no checkpoints are written" in text
    assert "is Gymnasium's NormalizeObservation or NormalizeReward" in text
    assert not os.path.exists("log/checkpoints")


@pytest.mark.parametrize(
    ("env_id", "package"),
    [
        ("CartPole-v1", "gymnasium"),
        ("FrozenLake-v1", "gymnasium"),
        ("Pendulum-v1", "gymnasium"),
        ("BreakoutNoFrameskip-v4", "ale_py"),
        ("LunarLander-v3", "Box2D"),
        ("HalfCheetah-v4", "mujoco"),
        ("Hopper-v4", "mujoco"),
    ],
)
def test_environment_state_in_another_instance(env_id, package):
    pytest.importorskip(package)
    first, second = make_env(env_id, seed=1), make_env(env_id, seed=99)
    actions = [first.action_space.sample() for _ in range(600)]

    def play(env, actions):
        trace = []
        for action in actions:
            obs, reward, terminated, truncated, info = env.step(action)
            trace.append((np.array(obs).tobytes(), reward, terminated, truncated))
            trace.append(info.get("episode", {}).get("r"))
            if terminated or truncated:
                trace.append(np.array(env.reset()[0]).tobytes())
        return trace

    first.reset()
    play(first, actions[:333])
    state = get_env_state(first)
    set_env_state(second, state)
    assert play(second, actions[333:]) == play(first, actions[333:])


def test_actions_of_a_long_episode_take_little_memory_and_are_those_that_were_taken():
    env = Recorder(gym.make("Pendulum-v1", max_episode_steps=10**6))
    env.reset(seed=0)
    for _ in range(5000):
        env.step(np.float32([1.5]))
    assert env.actions.nbytes <= 2 * 4 * 5000
    env.step(np.float64([0.1]))  # not a float32
    actions = env.get_state()["actions"]
    assert actions.shape == (5001, 1)
    assert actions[0] == actions[-2] == 1.5 and actions[-1] == 0.1
    env.reset()
    assert len(env.get_state()["actions"]) == 0


class Counting(gym.Wrapper):
    """Has a state, the number of its steps, and does not hand it over."""

    steps = 0

    def step(self, action):
        self.steps += 1
        obs, *results = self.env.step(action)
        return obs, *results


@pytest.mark.parametrize("vec_env", [DummyVecEnv, SubprocVecEnv])
def test_wrapper_with_a_state_of_its_own_is_told(vec_env):
    from baselines.a2c import learn

    with (
        logger.scoped_configure("log", ["log"]),
        vec_env([lambda: Counting(make_env("CartPole-v1", seed=0))]) as env,
    ):
        learn(env=env, network="mlp", total_timesteps=100, checkpoint_interval=10)
    assert "cannot be resumed" in Path("log/log.txt").read_text()
    assert not os.path.exists("log/checkpoints")


def test_state_that_only_rewards_show_is_noticed():
    first, second = (
        Recorder(gym.wrappers.NormalizeReward(gym.make("CartPole-v1")))
        for _ in range(2)
    )
    for _ in range(3):
        first.reset(seed=0)
        for _ in range(5):
            first.step(0)
    with pytest.raises(UserValueError, match="hidden state that survives"):
        second.set_state(first.get_state())


def test_environment_that_does_not_replay_says_so():
    class Drifting(gym.Env):
        """Counts its resets, a state that outlives them."""

        observation_space = gym.spaces.Box(0, 100, (1,), np.float32)
        action_space = gym.spaces.Discrete(2)
        resets = 0

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.resets += 1
            return np.full(1, self.resets, np.float32), {}

        def step(self, action):
            return np.full(1, self.resets, np.float32), 0.0, True, False, {}

    first, second = Recorder(Drifting()), Recorder(Drifting())
    for _ in range(3):
        first.reset()
    with pytest.raises(UserValueError, match="hidden state that survives"):
        second.set_state(first.get_state())


def test_frame_stacks_are_part_of_the_state():
    def make():
        return VecFrameStack(make_vec_env("PongNoFrameskip-v4", seed=0), 4)

    with make() as first, make() as second:
        first.reset()
        for _ in range(20):
            first.step([2])
        second.set_state(first.get_state())
        for _ in range(20):
            for a, b in zip(first.step([3])[:3], second.step([3])[:3]):
                np.testing.assert_array_equal(a, b)


def test_copied_run_resumes_elsewhere(whole):
    cut_run()
    shutil.move("cut", "moved")
    run.main(["--resume=moved"])
    assert results("moved") == results(whole)


def test_log_format_that_config_names_is_not_imported():
    run.main(["--alg=a2c", "--env=CartPole-v1", "--num_timesteps=50", "--log_path=cut"])
    config = json.loads(Path("cut/config.json").read_text())
    config["log_formats"].append("payload:Output")
    Path("cut/config.json").write_text(json.dumps(config))
    Path("payload.py").write_text("open('exploited', 'w')")
    with pytest.raises(UserValueError, match="OPENAI_LOG_FORMAT=payload:Output"):
        run.run(["--resume=cut", "--num_timesteps=100"])
    assert not Path("exploited").exists()
