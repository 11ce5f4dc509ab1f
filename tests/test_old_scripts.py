"""Scripts that were written for OpenAI Baselines, and what they import."""

import importlib
import random
import re
from pathlib import Path

import keras
import numpy as np
import pytest
from toy_envs import CounterEnv

from baselines import bench, deepq, logger, run
from baselines.common import cmd_util, set_global_seeds
from baselines.common.base.errors import UserValueError
from baselines.common.envs import make_env, make_vec_env
from baselines.common.envs.atari_wrappers import make_atari

PAGE = Path(__file__).parent.parent / "docs" / "from_openai_baselines.md"
TABLE = re.findall(r"^\| `(baselines[\w.]*)` \| (.*) \|$", PAGE.read_text(), re.M)


@pytest.mark.long
def test_pong_script(empty_folder):
    """As OpenAI Baselines' experiment of this name, with fewer settings and steps."""
    logger.configure()
    env = make_atari("PongNoFrameskip-v4")
    env = bench.Monitor(env, logger.get_dir())
    env = deepq.wrap_atari_dqn(env)
    model = deepq.learn(
        env,
        "conv_only",
        convs=[(32, 8, 4), (64, 4, 2), (64, 3, 1)],
        hiddens=[256],
        total_timesteps=120,
        buffer_size=100,
        learning_starts=80,
    )
    model.save("pong_model.pkl")
    assert (empty_folder / "log" / "monitor.csv").is_file()


def test_callback_reads_what_it_read_there(empty_folder):
    seen = []

    def callback(lcl, _glb):
        seen.append((lcl["t"], lcl["episode_rewards"]))
        return lcl["t"] == 7

    env = CounterEnv(terminate_after=3)  # returns 1 + 2 + 3
    act = deepq.learn(env, "mlp", total_timesteps=100, callback=callback)
    assert seen[0] == (1, [0.0])
    assert seen[2] == (3, [6.0, 0.0])
    assert seen[-1] == (7, [6.0, 6.0, 0.0])
    act.save("act.pkl")
    loaded, obs = deepq.load_act("act.pkl"), np.float32([[1], [50]])
    np.testing.assert_array_equal(loaded.value(obs), act.value(obs))
    assert loaded(obs).shape == (2,) and loaded(obs).dtype == np.int64
    with pytest.raises(UserValueError, match="have to come as a batch"):
        act(np.zeros(1, np.float32))


def test_global_seeds():
    def draw(seed):
        set_global_seeds(seed)
        tensor = keras.random.uniform(())
        return random.random(), np.random.rand(), float(np.asarray(tensor))

    first = draw(5)
    assert draw(5) == first
    assert draw(None) != first
    assert all(a != b for a, b in zip(draw(6), first))


def test_environments_of_cmd_util(empty_folder):
    logger.configure("log", ["csv"])
    with cmd_util.make_vec_env("CartPole-v1", "classic_control", 2, seed=3) as env:
        obs = env.reset()
        env.step([0, 0])
    with make_vec_env("CartPole-v1", num_env=2, seed=3) as other:
        np.testing.assert_array_equal(obs, other.reset())
    files = sorted(path.name for path in (empty_folder / "log").iterdir())
    assert files == ["0.0.monitor.csv", "0.1.monitor.csv"]
    settings = dict(mpi_rank=2, subrank=1, seed=3, logger_dir="other")
    env = cmd_util.make_env("CartPole-v1", "classic_control", **settings)
    other = make_env("CartPole-v1", seed=4)
    np.testing.assert_array_equal(env.reset()[0], other.reset()[0])
    env.step(0)
    assert Path("other", "2.1.monitor.csv").is_file()


def test_arguments_of_scripts():
    words = "--env=PongNoFrameskip-v4 --num_timesteps=2e3 --play --lr=1e-3 --nsteps 5"
    args, unknown = cmd_util.common_arg_parser().parse_known_args(words.split())
    assert (args.num_timesteps, args.play) == (2000, True)
    assert cmd_util.parse_unknown_args(unknown) == {"lr": "1e-3", "nsteps": "5"}
    assert run.get_env_type(args) == ("atari", "PongNoFrameskip-v4")


def test_modules_have_what_the_page_says():
    """Those that are here, and those that replace others."""
    pairs = [
        (name, attribute)
        for name, text in TABLE
        if text.startswith("here: ") and not name.endswith("retro_wrappers")
        for attribute in re.findall("`(.*?)`", text.partition(";")[0])
    ]
    names = r"((?:`\w+`(?:, | and )?)+) of `(baselines[.\w]+)`"
    for _, text in TABLE:
        for attributes, module in re.findall(names, text):
            pairs += [(module, x) for x in re.findall(r"\w+(?=`)", attributes)]
        for module in re.findall(r"`(baselines\.[.\w]+)`", text):
            importlib.import_module(module)
    assert len(pairs) > 100
    for module, attribute in pairs:
        assert hasattr(importlib.import_module(module), attribute), (module, attribute)


def test_modules_that_are_not_here_name_the_page_that_says_what_replaced_them():
    for code in (
        "import baselines.her.rollout",
        "from baselines.common import tf_util",
    ):
        with pytest.raises(ModuleNotFoundError, match="from_openai_baselines.md"):
            exec(code)
