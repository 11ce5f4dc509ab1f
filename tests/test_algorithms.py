"""What every algorithm promises, held for each one that is found."""

import csv
import importlib
import inspect
import os
import re

import gymnasium as gym
import numpy as np
import pytest
from discovered import algorithms

from baselines import logger
from baselines.common import cli
from baselines.common.checkpoint import list_manifests
from baselines.common.envs import make_env, make_vec_env
from baselines.common.errors import UserTypeError, UserValueError
from baselines.common.tensors import load_tensors
from baselines.common.vec_env import DummyVecEnv, SubprocVecEnv
from baselines.run import find_algorithm, find_defaults, main

ENV_TYPES = ("atari", "retro", "classic_control", "box2d", "mujoco", "toy_text")
TIME_COLUMNS = {"fps"}
DISCRETE_ONLY = {"deepq", "dqn", "rainbow"}


@pytest.fixture(params=algorithms())
def alg(request):
    return request.param


@pytest.fixture
def learn(alg):
    return importlib.import_module(find_algorithm(alg)).learn


@pytest.fixture
def small(learn):
    """Settings with which an update takes few agent steps, and rows come often."""
    settings = {
        "nsteps": 4,
        "nminibatches": 2,
        "noptepochs": 2,
        "log_interval": 20,
        "learning_starts": 100,
        "buffer_size": 1000,
        "print_freq": 5,
    }
    known = inspect.signature(learn).parameters
    return {name: value for name, value in settings.items() if name in known}


def flags(settings):
    return [f"--{name}={value}" for name, value in settings.items()]


@pytest.fixture(autouse=True)
def log_folder(tmp_path):
    with logger.scoped_configure(str(tmp_path / "log"), ["csv"]):
        yield tmp_path / "log"


def cartpoles(num_env=2, seed=0):
    return DummyVecEnv(
        [lambda i=i: make_env("CartPole-v1", seed=seed + i) for i in range(num_env)]
    )


def read_rows(folder):
    """Rows of progress.csv without what depends on the clock."""
    with open(os.path.join(folder, "progress.csv"), newline="") as file:
        return [
            {key: value for key, value in row.items() if key not in TIME_COLUMNS}
            for row in csv.DictReader(file)
        ]


def read_episodes(folder):
    """(file, return, length) of every episode in the monitor files."""
    return [
        (name, *line.split(",")[:2])
        for name in sorted(os.listdir(folder))
        if name.endswith("monitor.csv")
        for line in open(os.path.join(folder, name)).read().splitlines()[2:]
    ]


def test_divergence_stops_training(learn, small, log_folder):
    """And writes no checkpoint of what came of it."""
    settings = dict(small, network="mlp", seed=0, total_timesteps=4000, lr=1e30)
    settings["checkpoint_interval"] = 8
    with pytest.raises(ArithmeticError) as stopped:
        learn(env=cartpoles(), **settings)
    message = str(stopped.value)
    assert re.search(
        "is (nan|inf|-inf) after optimiser step [0-9]+; a smaller", message
    )
    where = "there is no checkpoint"  # Before it, ppo2 trains four times.
    for manifest in list_manifests(log_folder / "checkpoints"):
        where = f"the last good checkpoint is {manifest}"
        tensors = load_tensors(manifest.replace("json", "safetensors"))[0]
        assert all(np.isfinite(x).all() for x in tensors.values())
    assert message.endswith(f"; {where}")


def test_learn_takes_keywords_and_explains_them(learn):
    parameters = inspect.signature(learn).parameters
    shared = ["env", "network", "seed", "total_timesteps", "callback", "load_path"]
    shared += ["checkpoint_interval", "resume"]
    assert set(shared) <= set(parameters)
    kinds = {parameter.kind for parameter in parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}
    assert list(cli.argument_meanings(learn)) == list(parameters)
    assert all(cli.argument_meanings(learn).values())


@pytest.mark.parametrize("env_type", ENV_TYPES)
def test_defaults_are_arguments_of_learn(alg, learn, env_type):
    defaults = find_defaults(find_algorithm(alg), env_type)
    assert set(defaults.pop("env", {})) <= {"num_env"}
    assert set(defaults) <= set(inspect.signature(learn).parameters)


def test_callback_is_called_at_even_intervals_and_stops(learn, small):
    seen = []

    def callback(local_variables, global_variables):
        # Presets are partial functions.
        assert global_variables["learn"] is getattr(learn, "func", learn)
        seen.append(local_variables["num_timesteps"])
        return len(seen) == 3

    learn(
        **small, env=cartpoles(), network="mlp", total_timesteps=1000, callback=callback
    )
    assert seen == [seen[0], 2 * seen[0], 3 * seen[0]]


def test_same_seed_gives_the_same_rows(alg, small, tmp_path):
    def rows(folder, seed):
        folder = str(tmp_path / folder)
        main(
            f"--alg={alg} --env=CartPole-v1 --num_timesteps=1000 --num_env=2 "
            f"--seed={seed} --log_path={folder}".split()
            + flags(small)
        )
        return read_rows(folder), read_episodes(folder)

    first, again, other = rows("a", 3), rows("b", 3), rows("c", 4)
    assert len(first[0]) > 3
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("env_id", "steps"), [("CartPole-v1", 500), ("PongNoFrameskip-v4", 300)]
)
def test_results_do_not_depend_on_the_number_of_workers(
    learn, small, tmp_path, env_id, steps
):
    def results(num_workers):
        folder = str(tmp_path / str(num_workers))
        with (
            logger.scoped_configure(folder, ["csv"]),
            make_vec_env(
                env_id, num_env=3, seed=5, log_dir=folder, num_workers=num_workers
            ) as env,
        ):
            network = "cnn_small" if "Pong" in env_id else "mlp"
            model = learn(
                **small,
                env=env,
                network=network,
                seed=5,
                total_timesteps=steps,
            )
        weights = [np.asarray(v.numpy()) for v in model.variables]
        return read_rows(folder), read_episodes(folder), weights

    one, three = results(1), results(3)
    assert one[:2] == three[:2]
    for a, b in zip(one[2], three[2]):
        np.testing.assert_array_equal(a, b)


def test_saved_model_acts_the_same(learn, small, tmp_path):
    path = str(tmp_path / "model")
    model = learn(**small, env=cartpoles(), network="mlp", total_timesteps=200, seed=0)
    model.save(path)
    loaded = learn(
        **small,
        env=cartpoles(),
        network="mlp",
        total_timesteps=0,
        seed=1,
        load_path=path,
    )
    obs = cartpoles(num_env=2, seed=7).reset()
    for a, b in zip(
        model.step(obs, deterministic=True), loaded.step(obs, deterministic=True)
    ):
        np.testing.assert_array_equal(a, b)


def test_environment_can_be_used_after_learn(learn, small):
    env = gym.make("CartPole-v1")
    learn(**small, env=env, network="mlp", total_timesteps=100)
    env.reset(seed=0)
    obs, *_ = env.step(0)
    assert obs.shape == (4,)


def test_same_seed_repeats_a_gymnasium_environment(learn, small):
    def returns():
        episodes = []

        def callback(local_variables, global_variables):
            episodes[:] = local_variables["episodes"].results

        env = gym.make("CartPole-v1")
        learn(
            **small,
            env=env,
            network="mlp",
            seed=3,
            total_timesteps=500,
            callback=callback,
        )
        return [(episode["r"], episode["l"]) for episode in episodes]

    assert len(returns()) > 5
    assert returns() == returns()


@pytest.mark.parametrize("vector", [False, True])
def test_vector_environments_of_gymnasium(learn, small, vector):
    if vector:
        mode = gym.vector.AutoresetMode.SAME_STEP
        kwargs = {"vector_kwargs": {"autoreset_mode": mode}}
    else:
        kwargs = {}
    env = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync", **kwargs)
    if vector:
        learn(**small, env=env, network="mlp", total_timesteps=100)
    else:
        with pytest.raises(UserTypeError, match="SAME_STEP"):
            learn(**small, env=env, network="mlp", total_timesteps=100)


def test_unknown_keyword_names_the_nearest(learn, small):
    with pytest.raises(UserTypeError, match="did you mean 'gamma'"):
        learn(**small, env=cartpoles(), network="mlp", gama=0.9)
    with pytest.raises(UserTypeError, match="did you mean 'num_layers'"):
        learn(**small, env=cartpoles(), network="mlp", num_layer=3)


def test_old_gym_environment_names_the_remedy(learn, small):
    class OldEnv:
        def reset(self):
            return 0

        def step(self, action):
            return 0, 0, False, {}

    with pytest.raises(UserTypeError, match=r"gymnasium.*shimmy"):
        learn(**small, env=OldEnv(), network="mlp")


def test_unsupported_spaces_are_named(learn):
    class OddAction(gym.Env):
        observation_space = gym.spaces.Box(-1, 1, (3,))
        action_space = gym.spaces.Text(3)

        def reset(self, *, seed=None, options=None):
            return np.zeros(3, np.float32), {}

    with pytest.raises(UserTypeError, match=r"action space Text.*not supported"):
        learn(env=OddAction(), network="mlp")


@pytest.mark.parametrize(
    "space",
    [
        gym.spaces.MultiDiscrete([2, 3]),
        gym.spaces.MultiBinary(3),
        gym.spaces.Box(-2, 2, (3,)),
    ],
    ids=lambda space: type(space).__name__,
)
def test_action_spaces(alg, learn, small, space, tmp_path):
    """Actions fit the space, and a saved model has them after loading."""

    class AnyAction(gym.Env):
        observation_space = gym.spaces.Box(-1, 1, (3,))
        action_space = space

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return self.np_random.uniform(-1, 1, 3).astype(np.float32), {}

        def step(self, action):
            assert self.action_space.contains(np.asarray(action, space.dtype))
            obs, _ = self.reset()
            return obs, float(np.sum(action)), bool(obs[0] > 0.8), False, {}

    def train(**changes):
        return learn(**small, env=AnyAction(), network="mlp", **changes)

    if alg in DISCRETE_ONLY:
        with pytest.raises(UserTypeError, match="need a Discrete one"):
            train(total_timesteps=80)
        return
    model = train(total_timesteps=80, seed=0)
    model.save(tmp_path / "model")
    loaded = train(total_timesteps=0, seed=1, load_path=str(tmp_path / "model"))
    obs = np.random.default_rng(0).uniform(-1, 1, (5, 3)).astype(np.float32)
    for a, b in zip(
        model.step(obs, deterministic=True), loaded.step(obs, deterministic=True)
    ):
        np.testing.assert_array_equal(a, b)


def test_too_few_timesteps_are_refused(learn, small):
    with pytest.raises(UserValueError, match="one update takes"):
        learn(**small, env=cartpoles(), network="mlp", total_timesteps=1)


def test_learns_in_worker_processes(learn, small):
    env_fns = [lambda: make_env("CartPole-v1", seed=0) for _ in range(3)]
    with SubprocVecEnv(env_fns) as env:
        learn(**small, env=env, network="mlp", total_timesteps=200)


def test_ppo2_plays_in_eval_env_and_saves_models(tmp_path):
    from baselines.ppo2 import learn

    settings = dict(nsteps=50, nminibatches=2, noptepochs=1, network="mlp")
    arguments = dict(**settings, save_interval=2, log_interval=1)
    with logger.scoped_configure(str(tmp_path / "evaluated"), ["csv"]):
        learn(
            env=cartpoles(),
            eval_env=cartpoles(seed=9),
            total_timesteps=400,
            **arguments,
        )
    rows = read_rows(tmp_path / "evaluated")
    assert 9 < float(rows[-1]["eval_eplenmean"]) < 500
    assert float(rows[-1]["eval_eprewmean"]) == float(rows[-1]["eval_eplenmean"])
    saved = sorted(os.listdir(tmp_path / "evaluated" / "models"))
    assert saved == ["00002.safetensors", "00004.safetensors"]


@pytest.mark.parametrize("normalize_observations", [False, True])
def test_first_minibatch_of_ppo2_has_ratio_1(tmp_path, normalize_observations):
    from baselines.ppo2 import learn

    learn(
        env=cartpoles(),
        network="mlp",
        normalize_observations=normalize_observations,
        nsteps=50,
        nminibatches=1,
        noptepochs=1,
        total_timesteps=500,
        log_interval=1,
    )
    rows = read_rows(tmp_path / "log")
    assert len(rows) == 5
    for row in rows:
        assert float(row["clipfrac"]) == 0
        assert float(row["approxkl"]) < 1e-10


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(nsteps=5, nminibatches=4), r"divide 10 \(num_env 2 x nsteps 5\)"),
        (dict(network="lstm", nminibatches=4), r"divide 2 .*whole sequences"),
        (dict(network="lstm", value_network="copy"), "needs value_network='shared'"),
        (dict(lr="fast"), "lr has to be a number"),
        (dict(cliprange="liner:0.2"), "did you mean 'linear'"),
    ],
)
def test_what_ppo2_cannot_do_is_said(settings, words):
    from baselines.ppo2 import learn

    with pytest.raises(UserValueError, match=words):
        learn(env=cartpoles(), **{"network": "mlp", **settings})


@pytest.mark.parametrize("network", ["lstm", "lnlstm"])
def test_training_sees_what_acting_saw(network):
    """A whole recurrent rollout gives the values that single steps gave."""
    from baselines.common.policies import Policy
    from baselines.common.runners import Runner

    env = cartpoles(num_env=3)
    policy = Policy(env.observation_space, env.action_space, network, seed=0)
    runner = Runner(env, policy, nsteps=40)
    for _ in range(2):  # The second begins in the middle of episodes.
        rollout = runner.run()
        assert rollout.masks.any()
        params, values = policy(rollout.obs, rollout.states, rollout.masks)
        values = np.asarray(values).reshape(40, 3)
        np.testing.assert_allclose(values, rollout.values, atol=1e-5)
        actions = rollout.actions.reshape(-1)
        neglogps = np.asarray(policy.distribution.neglogp(params, actions))
        neglogps = neglogps.reshape(40, 3)
        np.testing.assert_allclose(neglogps, rollout.neglogps, atol=1e-5)
