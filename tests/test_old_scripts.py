"""Scripts that were written for OpenAI Baselines, and what they import."""

import importlib
import random
import re
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import keras
import numpy as np
import pytest
from toy_envs import CounterEnv

from baselines import bench, deepq, logger, run
from baselines.common import cmd_util, set_global_seeds
from baselines.common.arguments.schedules import (
    ConstantSchedule,
    LinearSchedule,
    PiecewiseSchedule,
)
from baselines.common.base.errors import UserValueError
from baselines.common.envs import make_env, make_vec_env
from baselines.common.envs.atari_wrappers import make_atari
from baselines.common.saving.tensors import load_tensors

PAGE = Path(__file__).parent.parent / "docs" / "from_openai_baselines.md"
TABLE = re.findall(r"^\| `(baselines[\w.]*)` \| (.*) \|$", PAGE.read_text(), re.M)


def is_here(text):
    return text.startswith("here: ")


def train_cartpole(**fewer):
    """As OpenAI Baselines' experiment of this name, but for the number of steps."""

    def callback(lcl, _glb):
        # Stops once it is solved: a return of 199 on average.
        return lcl["t"] > 100 and sum(lcl["episode_rewards"][-101:-1]) / 100 >= 199

    env = gym.make("CartPole-v0")
    act = deepq.learn(
        env,
        network="mlp",
        lr=1e-3,
        buffer_size=50000,
        exploration_fraction=0.1,
        exploration_final_eps=0.02,
        print_freq=10,
        callback=callback,
        **fewer,
    )
    print("Saving model to cartpole_model.pkl")
    act.save("cartpole_model.pkl")


def enjoy_cartpole(games):
    """As the experiment of this name, which played forever."""
    env = gym.make("CartPole-v0")
    act = deepq.learn(
        env, network="mlp", total_timesteps=0, load_path="cartpole_model.pkl"
    )
    for _ in range(games):
        (obs, _), done = env.reset(), False
        episode_rew = 0
        while not done:
            env.render()
            obs, rew, terminated, truncated, _ = env.step(act(obs[None])[0])
            done = terminated or truncated
            episode_rew += rew
        print("Episode reward", episode_rew)


def train_pong(**fewer):
    """As the experiment of this name, but for the number of steps."""
    logger.configure()
    env = make_atari("PongNoFrameskip-v4")
    env = bench.Monitor(env, logger.get_dir())
    env = deepq.wrap_atari_dqn(env)
    model = deepq.learn(
        env,
        "conv_only",
        convs=[(32, 8, 4), (64, 4, 2), (64, 3, 1)],
        hiddens=[256],
        dueling=True,
        lr=1e-4,
        exploration_fraction=0.1,
        exploration_final_eps=0.01,
        train_freq=4,
        gamma=0.99,
        **fewer,
    )
    model.save("pong_model.pkl")
    env.close()


@pytest.mark.filterwarnings("ignore:.*CartPole-v0", "ignore:.*render")
def test_cartpole_scripts(empty_folder, capsys):
    train_cartpole(total_timesteps=300, learning_starts=200)
    assert (empty_folder / "cartpole_model.pkl").is_file()
    enjoy_cartpole(games=2)
    assert capsys.readouterr().out.count("Episode reward") == 2


def test_pong_script(empty_folder):
    train_pong(
        total_timesteps=120,
        buffer_size=100,
        learning_starts=80,
        target_network_update_freq=50,
    )
    model = empty_folder / "pong_model.pkl"
    assert load_tensors(model)[0]["exploration.0.epsilon"] == np.float32(0.01)
    assert (empty_folder / "log" / "monitor.csv").is_file()


def test_callback_reads_what_it_read_there():
    seen = []

    def callback(lcl, _glb):
        seen.append((lcl["t"], lcl["episode_rewards"]))
        return lcl["t"] == 7

    env = CounterEnv(terminate_after=3)  # returns 1 + 2 + 3
    with logger.scoped_configure(None, []):
        deepq.learn(env, "mlp", total_timesteps=100, callback=callback)
    assert seen[0] == (1, [0.0])
    assert seen[2] == (3, [6.0, 0.0])
    assert seen[-1] == (7, [6.0, 6.0, 0.0])


def test_act_takes_a_batch_of_observations():
    act = deepq.learn(CounterEnv(), "mlp", total_timesteps=0)
    actions = act(np.zeros((4, 1), np.float32))
    assert actions.shape == (4,) and actions.dtype == np.int64
    with pytest.raises(UserValueError, match="have to come as a batch"):
        act(np.zeros(1, np.float32))


def test_load_act_is_what_was_saved(tmp_path):
    act = deepq.learn(CounterEnv(), "mlp", total_timesteps=0)
    act.save(tmp_path / "act.pkl")
    loaded, obs = deepq.load_act(tmp_path / "act.pkl"), np.float32([[1], [50]])
    np.testing.assert_array_equal(loaded.value(obs), act.value(obs))
    assert loaded(obs).shape == (2,)


def test_schedules_of_steps():
    assert ConstantSchedule(0.25).value(9) == 0.25
    linear = LinearSchedule(schedule_timesteps=100, final_p=0.2)
    assert [linear.value(t) for t in (0, 50, 100, 200)] == pytest.approx(
        [1.0, 0.6, 0.2, 0.2]
    )
    assert LinearSchedule(10, 3.0, initial_p=2.0).value(5) == 2.5
    points = zip([0, 10, 30], [10, 20, 0])
    piecewise = PiecewiseSchedule(points, outside_value=-1)
    found = [piecewise.value(t) for t in (-1, 0, 5, 10, 20, 30)]
    assert found == [-1, 10, 15, 20, 10, -1]
    steps = PiecewiseSchedule([(0, 1), (4, 2)], lambda left, right, fraction: left)
    assert steps.value(3) == 1
    with pytest.raises(UserValueError, match="no value at step 4.*outside_value"):
        steps.value(4)
    with pytest.raises(UserValueError, match=r"have to rise, received \[4, 0\]"):
        PiecewiseSchedule([(4, 1), (0, 2)])


def test_global_seeds():
    def draw(seed):
        set_global_seeds(seed)
        tensor = keras.random.uniform(())
        return random.random(), np.random.rand(), float(np.asarray(tensor))

    first = draw(5)
    assert draw(5) == first
    assert draw(None) != first
    assert all(a != b for a, b in zip(draw(6), first))


def test_make_vec_env_writes_monitor_files_to_the_folder_of_the_logger(empty_folder):
    logger.configure("log", ["csv"])
    with cmd_util.make_vec_env("CartPole-v1", "classic_control", 2, seed=3) as env:
        obs = env.reset()
    with make_vec_env("CartPole-v1", num_env=2, seed=3) as other:
        np.testing.assert_array_equal(obs, other.reset())
    files = sorted(path.name for path in (empty_folder / "log").iterdir())
    assert files == ["0.0.monitor.csv", "0.1.monitor.csv"]


def test_make_env_is_one_environment_of_a_rank(tmp_path):
    settings = dict(mpi_rank=2, subrank=1, seed=3, logger_dir=str(tmp_path))
    env = cmd_util.make_env("CartPole-v1", "classic_control", **settings)
    other = make_env("CartPole-v1", seed=4)
    np.testing.assert_array_equal(env.reset()[0], other.reset()[0])
    assert [path.name for path in tmp_path.iterdir()] == ["2.1.monitor.csv"]


def test_arguments_of_scripts():
    words = "--env=PongNoFrameskip-v4 --num_timesteps=2e3 --play --lr=1e-3 --nsteps 5"
    args, unknown = cmd_util.common_arg_parser().parse_known_args(words.split())
    assert (args.env, args.num_timesteps, args.play) == (
        "PongNoFrameskip-v4",
        2000,
        True,
    )
    assert (args.alg, args.seed, args.num_env, args.reward_scale) == (None,) * 3 + (1,)
    assert (args.save_video_interval, args.save_video_length) == (0, 200)
    assert cmd_util.parse_unknown_args(unknown) == {"lr": "1e-3", "nsteps": "5"}
    assert run.get_env_type(args) == ("atari", "PongNoFrameskip-v4")
    args.env_type = "retro"
    assert run.get_env_type(args) == ("retro", "PongNoFrameskip-v4")


def test_unknown_arguments_keep_all_their_text_and_none_is_dropped():
    assert cmd_util.parse_unknown_args(["--a=b=c", "--d", "-1"]) == {
        "a": "b=c",
        "d": "-1",
    }
    for words in (["--double_q"], ["x", "--a=1"]):
        with pytest.raises(UserValueError, match=f"received '{words[0]}'"):
            cmd_util.parse_unknown_args(words)


@pytest.mark.parametrize(("name", "text"), [x for x in TABLE if is_here(x[1])])
def test_modules_that_are_here_have_what_the_page_says(name, text):
    if name == "baselines.common.envs.retro_wrappers":
        pytest.importorskip("stable_retro")
    module = importlib.import_module(name)
    for attribute in re.findall("`(.*?)`", text.partition(";")[0]):
        assert hasattr(module, attribute), attribute


def test_replacements_exist():
    names = r"((?:`\w+`(?:, | and )?)+) of `(baselines[.\w]+)`"
    found = [match for _, text in TABLE for match in re.findall(names, text)]
    assert len(found) > 10
    for attributes, module in found:
        for attribute in re.findall(r"\w+(?=`)", attributes):
            assert hasattr(importlib.import_module(module), attribute), attribute
    for _, text in TABLE:
        for module in re.findall(r"`(baselines\.[.\w]+)`", text):
            importlib.import_module(module)


def test_modules_that_are_not_here_name_the_page_that_says_what_replaced_them():
    for code in ("import baselines.her.rollout", "from baselines.her import rollout"):
        with pytest.raises(ModuleNotFoundError, match="from_openai_baselines.md"):
            exec(code)


def test_a_module_that_moved_is_named_without_keras():
    script = """
import sys
try:
    from baselines.common import tf_util as U
except ImportError as error:
    assert "tf_util" in str(error)
assert not {"keras", "tensorflow"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
