"""A run that was killed and resumed is the run that was not.

test_algorithms.py has one for every algorithm and other workers, test_mpi.py one of two
ranks, test_log_folder.py a process that is killed, and test_checkpoints.py what is on
the disk at any moment of saving.
"""

import json
import os
import shutil
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from conftest import copied_after, error_of, killed_after, slow
from toy_envs import ActionLog  # which registers environments with goals, too

from baselines import a2c, logger, run
from baselines.bench import Monitor
from baselines.common.base.errors import UserError, UserValueError
from baselines.common.envs import make_env, make_vec_env
from baselines.common.envs.recorder import Recorder, get_env_state, set_env_state
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.saving.tensors import load_tensors
from baselines.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack

CARTPOLE = "--alg=a2c --env=CartPole-v1 --num_env=3 --num_timesteps=600 --seed=1 "
CARTPOLE += "--log_interval=5 --checkpoint_interval=100"  # updates are of 15 steps
TIMES = "clock", "logger", "seconds", "file", "t"  # in states


@pytest.fixture(autouse=True)
def quiet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_LOG_FORMAT", "log,csv,json")
    monkeypatch.setattr("baselines.common.data.replay_buffer.SEGMENT_SIZE", 64)
    with logger.scoped_configure(str(tmp_path / "unused"), []):
        yield


def results(folder):
    """What must not differ: rows, episodes, weights, and all states at the end."""
    folder = Path(folder)
    rows = [
        {k: v for k, v in json.loads(line).items() if k not in ("fps", "time_elapsed")}
        for line in (folder / "progress.json").read_text().splitlines()
    ]
    header, *table = (folder / "progress.csv").read_text().splitlines()
    column = header.split(",").index("total_timesteps")
    counts = [int(line.split(",")[column]) for line in table]
    assert counts == [row["total_timesteps"] for row in rows]
    tables = (folder / "log.txt").read_text().count("| total_timesteps ")
    assert tables == len(rows) > 1
    episodes = {
        path.name: [line.split(",")[:2] for line in path.read_text().splitlines()[1:]]
        for path in folder.glob("*.monitor.csv")
    }
    weights = bytes_of(load_tensors(folder / "model.safetensors")[0])
    manifest = list_manifests(folder / "checkpoints")[-1]
    tensors, metadata = load_tensors(manifest.replace(".json", ".safetensors"))
    replay = json.loads(Path(manifest).read_text())["segments"]  # with checksums
    states = without_times(metadata["states"]), bytes_of(tensors), replay
    return repr(rows), episodes, weights, states


def bytes_of(tensors):
    return {name: tensor.tobytes() for name, tensor in tensors.items()}


def without_times(state):
    if isinstance(state, dict):
        return {k: without_times(v) for k, v in state.items() if k not in TIMES}
    return [*map(without_times, state)] if isinstance(state, list) else state


def check_exact_resume(arguments, *updates):
    """Compares a run with those that were killed after so many updates, and resumed."""
    with copied_after(*updates):
        run.main(f"{arguments} --log_path=whole".split())
    expected = results("whole")
    for number in range(1, len(updates) + 1):
        assert list_manifests(f"cut{number}/checkpoints")
        run.main([f"--resume=cut{number}"])
        assert results(f"cut{number}") == expected
    assert all(len(rows) > 1 for rows in expected[1].values())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of CARTPOLE; beside it, cut1 to cut3 are what kills would have left."""
    folder = tmp_path_factory.mktemp("a2c") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_LOG_FORMAT", "log,csv,json")
        patch.chdir(folder.parent)
        with logger.scoped_configure(None, []), copied_after(3, 17, 32):
            run.main(f"{CARTPOLE} --log_path={folder}".split())
    return folder


@pytest.fixture
def cut(whole):
    """What a kill after 32 updates, or 480 agent steps, has left: the folder cut."""
    shutil.copytree(whole.parent / "cut3", "cut")


def test_run_that_is_interrupted_again_and_again(whole):
    shutil.copytree(whole.parent / "cut2", "cut")
    for updates in 2, 15:
        with killed_after(updates):
            run.main(["--resume=cut"])
    run.main(["--resume=cut"])
    assert results("cut") == results(whole)


PPO2 = "ppo2 --nsteps=25 --nminibatches=2 --noptepochs=2 --num_timesteps=1000 "
PPO2 += "--log_interval=3 --checkpoint_interval=200 --num_env=2"
DQN = "dqn --buffer_size=150 --learning_starts=150 --hiddens=[16] --num_hidden=16 "
DQN += "--num_timesteps=500 --print_freq=2 --checkpoint_interval=90 --num_env=2"


@pytest.mark.parametrize(
    ("arguments", "updates"),
    [
        slow(f"{PPO2} --env=CartPole-v1 --network=lnlstm", [10]),
        (
            f"{PPO2} --env=Pendulum-v1 --value_network=copy --normalize_observations "
            "--precision=bfloat16 --normalize_rewards",
            [14],
        ),
        # Before it trains, and when its memory has been overwritten.
        (
            f"{DQN} --env=CartPole-v1 --prioritized_replay --values=categorical "
            "--noisy --n_step=3",
            [60, 215],
        ),
        (
            f"{DQN} --env=BitFlips-v0 --replay_k=4 --n_step=2 --train_freq=3 "
            "--large_batch --checkpoint_freq=200 --precision=bfloat16",
            [215],
        ),
        slow(
            "ddpg --env=Pendulum-v1 --noise_type=ou_0.2 --random_eps=0.1 "
            "--normalize_returns --normalize_observations --nb_rollout_steps=10 "
            "--nb_train_steps=5 --num_hidden=16 --buffer_size=200 --batch_size=32 "
            "--learning_starts=100 --print_freq=1 --num_env=2 --num_timesteps=600 "
            "--checkpoint_interval=90",
            [260],
        ),
    ],
    ids=lambda x: "-".join(x.split()[:1]) if isinstance(x, str) else "",
)
def test_interrupted_run_goes_on_as_if_it_had_not_been(arguments, updates):
    check_exact_resume(f"--alg={arguments} --seed=1", *updates)


@pytest.mark.slow
def test_interrupted_retro_game_goes_on_as_if_it_had_not_been():
    """Also which actions come late, which random numbers decide."""
    pytest.importorskip("stable_retro")
    arguments = "--alg=a2c --env=Airstriker-Genesis-v0 --network=cnn_small "
    arguments += "--num_env=2 --nsteps=60 --num_timesteps=1440 --seed=1 "
    check_exact_resume(f"{arguments} --log_interval=3 --checkpoint_interval=600", 11)


def edit_config(**changes):
    path = Path("cut/config.json")
    config = json.loads(path.read_text())
    for key, value in changes.items():
        for level in (config, config["arguments"]):
            if key in level:
                level[key] = value
    path.write_text(json.dumps(config))


@pytest.mark.usefixtures("cut")
def test_what_does_not_fit_is_refused_and_nothing_is_cut(capsys):
    kept = Path("cut/progress.csv").read_bytes()
    assert "--lr cannot be given" in error_of(capsys, "--resume=cut --lr=1")
    error = error_of(capsys, "--resume=cut --num_timesteps=300")
    assert "405 agent steps are done, more than the 300" in error
    assert "trains nothing" in error_of(capsys, "--resume=cut --num_timesteps=0")
    edit_config(num_env=4)
    assert "num_envs is 3, this run's is 4" in error_of(capsys, "--resume=cut")
    edit_config(num_env=3, env="Acrobot-v1")
    assert "observation is Box(4,)" in error_of(capsys, "--resume=cut")
    edit_config(env="CartPole-v0")
    assert "CartPole-v1, this run has CartPole-v0" in error_of(capsys, "--resume=cut")
    edit_config(env="CartPole-v1", format=99)
    assert "the format of its config.json is 99" in error_of(capsys, "--resume=cut")
    assert Path("cut/progress.csv").read_bytes() == kept


def test_longer_training_says_what_it_does_to_schedules(whole):
    shutil.copytree(whole, "cut")
    run.main(["--resume=cut", "--num_timesteps=900", "--log_interval=20"])
    assert "67% of training" in Path("cut/log.txt").read_text()
    rows = [json.loads(x) for x in Path("cut/progress.json").read_text().splitlines()]
    assert [row["total_timesteps"] for row in rows][-2:] == [600, 900]
    config = json.loads(Path("cut/config.json").read_text())
    assert config["arguments"]["total_timesteps"] == 900
    assert "--resume" not in config["command"]
    assert [again["command"] for again in config["resumed"]] == [
        "python -m baselines.run --resume=cut --num_timesteps=900 --log_interval=20"
    ]


def test_run_that_ended_at_a_score_trains_no_further():
    evaluated = "--stop_at=5 --eval_interval=60 --eval_episodes=1"
    run.main(f"{CARTPOLE} {evaluated} --log_path=log".split())
    ended = results("log")
    run.main(["--resume=log"])
    assert results("log") == ended


def test_run_without_a_checkpoint(capsys, whole):
    shutil.copytree(whole.parent / "cut1", "cut")  # before the first
    run.main(["--resume=cut"])
    assert results("cut")[2:] == results(whole)[2:]
    shutil.rmtree("cut/checkpoints")
    rows = Path("cut/progress.json").read_text()
    for checkpoint_interval in 0, 100:
        edit_config(checkpoint_interval=checkpoint_interval)
        assert "has no checkpoints" in error_of(capsys, "--resume=cut")
        assert Path("cut/progress.json").read_text() == rows


def test_loaded_model_is_loaded_again_without_a_checkpoint(whole):
    load = f"{CARTPOLE} --load_path={whole}/model.safetensors"
    with copied_after(3):
        run.main(f"{load} --log_path=loaded".split())
    run.main(["--resume=cut1"])
    assert results("cut1")[2] == results("loaded")[2] != results(whole)[2]


def test_library_resumes_as_well():
    """In a Monitor of one's own, and in the run's folder, whatever is configured."""

    def train(folder, steps=400, **given):
        with logger.scoped_configure(folder, ["csv"]):
            env = Monitor(gym.make("CartPole-v1"), f"{folder}/own")
            given = dict(seed=0, log_interval=10, checkpoint_interval=100) | given
            model = a2c.learn(env, "mlp", total_timesteps=steps, **given)
            env.close()
        return bytes_of({x.path: x.numpy() for x in model.variables}).values()

    weights = [*train("whole")]
    with killed_after(52):
        train("cut")
    with logger.scoped_configure("elsewhere", ["csv"]):
        assert [*train("cut", resume="cut")] == weights
    assert not os.path.exists("elsewhere")
    lines = [
        [line.rpartition(",")[0] for line in path.read_text().splitlines()[1:]]
        for path in (Path("whole/own.monitor.csv"), Path("cut/own.monitor.csv"))
    ]
    assert lines[0] == lines[1] and len(lines[0]) > 4
    for given in (
        dict(resume="nowhere"),
        dict(lr=1.0),
        dict(num_hidden=32),
        dict(seed=1),
    ):
        with pytest.raises(UserError):
            train("cut", **{"resume": "cut"} | given)


@pytest.mark.parametrize(
    ("vec_env", "wrapper", "resumable"),
    [
        (DummyVecEnv, lambda env: env, True),
        (DummyVecEnv, ActionLog, False),  # which has a state of its own
        (SubprocVecEnv, gym.wrappers.NormalizeReward, False),
    ],
)
def test_only_environments_whose_state_is_known_are_resumable(
    vec_env, wrapper, resumable
):
    with vec_env([lambda: wrapper(make_env("Pendulum-v1", seed=0))]) as env:
        assert env.resumable == resumable


def test_environment_that_is_not_resumable_trains_without_checkpoints():
    env = gym.wrappers.NormalizeReward(gym.make("CartPole-v1"))
    given = dict(total_timesteps=20, checkpoint_interval=10)
    with logger.scoped_configure("log", ["log"]):
        a2c.learn(env, "mlp", **given)
        with pytest.raises(UserError, match="cannot be resumed"):
            a2c.learn(env, "mlp", **given, resume="log")
    assert "no checkpoints are written" in Path("log/log.txt").read_text()
    assert not os.path.exists("log/checkpoints")


@pytest.mark.parametrize(
    ("env_id", "package"),
    [
        ("CartPole-v1", "gymnasium"),
        ("BreakoutNoFrameskip-v4", "ale_py"),
        ("LunarLander-v3", "Box2D"),
        ("HalfCheetah-v4", "mujoco"),
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


def test_recorded_actions_are_those_that_were_taken():
    env = Recorder(gym.make("Pendulum-v1", max_episode_steps=10**6))
    env.reset(seed=0)
    for _ in range(5):
        env.step(np.float32([1.5]))
    env.step(np.float64([0.1]))  # not a float32
    actions = env.get_state()["actions"]
    assert actions.shape == (6, 1)
    assert actions[0] == actions[-2] == 1.5 and actions[-1] == 0.1


def test_environment_whose_rewards_do_not_replay_says_so():
    """Observations alone would not show the state of this wrapper."""
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


@pytest.mark.usefixtures("cut")
def test_log_format_that_config_names_is_not_imported(capsys):
    edit_config(log_formats=["csv", "payload:Output"])
    Path("payload.py").write_text("open('exploited', 'w')")
    error_of(capsys, "--resume=cut")
    with pytest.raises(UserValueError, match="payload:Output"):
        a2c.learn(gym.make("CartPole-v1"), "mlp", resume="cut")
    assert not Path("exploited").exists()


@pytest.mark.usefixtures("cut")
def test_config_cannot_say_that_a_file_may_be_replaced(capsys):
    config = json.loads(Path("cut/config.json").read_text())
    config["arguments"]["overwrite"] = True
    Path("cut/config.json").write_text(json.dumps(config))
    Path("mine").write_text("mine")
    error_of(capsys, "--resume=cut --save_path=mine")
    assert Path("mine").read_text() == "mine"
