"""What every algorithm promises, checked for each one that is found.

``pytest tests/test_algorithms.py --alg=my_pkg.my_alg`` checks one of your own.
"""

import contextlib
import csv
import functools
import gc
import inspect
import os
import pickle
import re
import shutil

import gymnasium as gym
import keras
import numpy as np
import pytest
from conftest import after_updates, long, skipped_if_refused, slow
from gymnasium import spaces
from toy_envs import RandomEnv

import baselines
from baselines import logger
from baselines.common import backend
from baselines.common.arguments import types as arg
from baselines.common.arguments.arguments import gather
from baselines.common.arguments.declaration import declared_arguments
from baselines.common.arguments.discovery import (
    find_algorithm,
    find_defaults,
    find_layers,
)
from baselines.common.base.errors import DivergedError, UserTypeError, UserValueError
from baselines.common.envs import make_vec_env
from baselines.common.envs.spaces import clip_actions
from baselines.common.run.algorithm import train
from baselines.common.run.run import Run
from baselines.common.run.settings import RUN_ARGUMENTS
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.saving.tensors import load_tensors
from baselines.common.vec_env import DummyVecEnv, VecMonitor
from baselines.run import main

ENV_TYPES = ("atari", "retro", "classic_control", "box2d", "mujoco", "toy_text")
TIME_COLUMNS = {"fps", "time_elapsed"}


def flags(settings):
    return [f"--{name}={value}" for name, value in settings.items()]


@pytest.fixture
def make(env_id):
    """A function that makes environments as one VecEnv."""
    return functools.partial(make_vec_env, env_id, num_env=2, seed=0)


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


def results(folder):
    """Rows, episodes and weights: what interruptions of a run must not change."""
    tensors = load_tensors(os.path.join(folder, "model.safetensors"))[0]
    weights = {name: tensor.tobytes() for name, tensor in tensors.items()}
    return read_rows(folder), read_episodes(folder), weights


def assert_acts_alike(model, other, obs):
    for a, b in zip(
        model.step(obs, deterministic=True), other.step(obs, deterministic=True)
    ):
        np.testing.assert_array_equal(a, b)


def test_divergence_stops_training(learn, small, make, log_folder):
    """And writes no checkpoint of diverged weights."""
    names = declared_arguments(learn)
    rates = [name for name in names if re.search(r"(^|_)(lr|stepsize)$", name)]
    assert rates, "no argument is named lr, or ends in _lr or _stepsize"
    settings = dict(small, network="mlp", seed=0, total_timesteps=4000)
    settings |= dict.fromkeys(rates, 1e30)
    with pytest.raises(DivergedError):
        learn(env=make(), checkpoint_interval=8, **settings)
    for manifest in list_manifests(log_folder / "checkpoints"):
        tensors = load_tensors(manifest.replace("json", "safetensors"))[0]
        assert all(np.isfinite(x).all() for x in tensors.values())


def arguments_of_parts(learn, defaults):
    """What ``learn`` takes for each function of its parts, with these defaults."""
    for name, argument in declared_arguments(learn).items():
        if part := argument.marker(arg.Part):
            names = ["mlp", "cnn"] if name == "network" else [argument.default]
            for value in [defaults[name]] if name in defaults else names:
                if value not in (None, *part.without):
                    yield part.arguments(part.find(value))


def test_arguments_have_a_meaning_and_their_defaults_are_in_range(learn):
    env, network, *others, parts = inspect.signature(learn).parameters.values()
    assert (env.name, network.name) == ("env", "network")
    assert {x.kind for x in others} == {inspect.Parameter.KEYWORD_ONLY}
    documentation = " ".join(inspect.getdoc(learn).split())
    for name, argument in declared_arguments(learn).items():
        assert f" {name}: {argument.meaning}" in documentation
    for arguments in declared_arguments(learn), *arguments_of_parts(learn, {}):
        for argument in arguments.values():
            assert argument.meaning, argument.name
            if argument.default is not inspect.Parameter.empty:
                argument.validate(argument.default)
    assert pickle.loads(pickle.dumps(learn)) is learn


def test_defaults_are_arguments_of_learn_and_its_parts(alg, learn):
    for env_type in *ENV_TYPES, "small":
        defaults = find_defaults(find_algorithm(alg), env_type)
        known = declared_arguments(learn) | {"num_env": RUN_ARGUMENTS["num_env"]}
        for arguments in arguments_of_parts(learn, defaults):
            known = arguments | known
        for name, value in defaults.items():
            known[name].validate(value)


def test_images_keep_their_network(alg):
    """Also in a kind of environment whose others are vectors, such as Box2D."""
    for env_type in ENV_TYPES:
        layers = find_layers(
            find_algorithm(alg), {"env_type": env_type, "network": "cnn"}
        )
        assert layers["defaults.py"].get("network") != "mlp"


@pytest.mark.slow
def test_no_default_makes_an_error(alg, learn, env_id, monkeypatch):
    """In networks that remember, with the settings for each kind of environment."""
    monkeypatch.setattr(Run, "updates", lambda run: iter(()))
    image, vector = spaces.Box(0, 255, (84, 84, 4), np.uint8), spaces.Box(-1, 1, (3,))
    actions, plain = gym.make(env_id).action_space, functools.partial(gym.make, env_id)
    both = spaces.Dict(image=image, vector=vector)
    kinds = dict.fromkeys(ENV_TYPES, (None, plain, "lstm"))
    kinds["atari"] = "cnn", functools.partial(RandomEnv, image, actions), "cnn_lstm"
    kinds[""] = "multi", functools.partial(RandomEnv, both, actions), None
    for env_type, (network, env_fn, recurrent) in kinds.items():
        kind = dict(env_type=env_type, network=network)
        layers = find_layers(find_algorithm(alg), kind)
        num_env = layers["defaults.py"].pop("num_env", 1)
        given = dict(env=VecMonitor(DummyVecEnv([env_fn] * num_env)), overwrite=True)
        if "buffer_size" in declared_arguments(learn):
            given |= dict(buffer_size=1000)
        if "value_network" in declared_arguments(learn) and recurrent:
            given |= dict(network=recurrent)
        layers |= {"preset": learn.settings, "given": given}
        with contextlib.suppress(pytest.skip.Exception), skipped_if_refused(learn):
            train(gather(learn, layers))


def test_each_training_has_its_optimiser_steps(learn, small, env_id):
    if "gradient_steps" not in declared_arguments(learn):
        pytest.skip("it has none")
    counts = []

    def callback(names, _):
        optimizer = names.get("optimizer") or names["critic_optimizer"]
        steps, delay = int(optimizer.iterations), names.get("policy_delay", 1)
        if "policy_optimizer" in names:
            assert int(names["policy_optimizer"].iterations) * delay == steps
        counts.append(steps // delay)

    settings = dict(small, train_freq=10, gradient_steps=3, total_timesteps=130)
    learn(env=gym.make(env_id), callback=callback, **settings)
    assert set(np.diff(counts)) == {0, 3}


def test_on_update_adds_to_rows_and_stops(learn, small, make, log_folder):
    steps, rows = [], []

    def on_update(run):
        obs = run.env.observation_space.sample()
        assert run.model.predict(obs) is not None
        actions = run.model.step(obs[None], deterministic=True)[0]
        best = clip_actions(actions, run.env.action_space)[0]
        found = run.model.predict(obs, deterministic=True)[0]
        np.testing.assert_allclose(found, best, rtol=1e-5, atol=1e-6)
        steps.append(run.num_timesteps)
        if run.row is not None:
            run.row["seen"] = len(steps)
            rows.append(run.num_timesteps)
        return run.row is None and len(rows) >= 2

    with make() as env:
        settings = dict(small, network="mlp", total_timesteps=10_000)
        learn(env=VecMonitor(env), on_update=on_update, **settings)
    # A key lands in the row of its update.
    logged = [(row["total_timesteps"], row["seen"]) for row in read_rows(log_folder)]
    assert logged == [(str(x), str(steps.index(x) + 1)) for x in rows]
    # It stopped at the first update without a row after the second row.
    assert [x for x in steps if x > rows[1] and x not in rows] == steps[-1:]


def test_callback_is_called_at_even_intervals_and_stops_and_graphs_are_freed(
    learn, small, env_id
):
    """And losses compare each sample with its own, as graphs show.

    [B, 1] - [B] is [B, B], and nothing else here has the size of B, which is 13.
    """
    seen, shapes = [], []

    def find_graphs():
        gc.collect()
        return [x for x in gc.get_objects() if type(x).__name__ == "FuncGraph"]

    def callback(names, _):
        seen.append(names["num_timesteps"])
        if seen[-1] < 120:  # after learning_starts
            return False
        operations = sum((graph.get_operations() for graph in find_graphs()), [])
        tensors = [tensor for x in operations for tensor in x.outputs]
        shapes.extend(list(x.shape) for x in tensors if x.shape.rank)
        return True

    sizes = "nsteps batch_size timesteps_per_batch timesteps_per_actorbatch"
    ones = "nminibatches noptepochs optim_epochs"
    settings = dict.fromkeys(sizes.split(), 13) | dict.fromkeys(ones.split(), 1)
    known = declared_arguments(learn)
    settings = small | {name: x for name, x in settings.items() if name in known}
    before, env = len(find_graphs()), gym.make(env_id)
    settings |= dict(total_timesteps=1000, seed=0)
    model = learn(env, "mlp", callback=callback, **settings)
    assert seen == list(range(seen[0], 120 + seen[0], seen[0]))
    most = [shape.count(13) for shape in shapes]
    assert max(most) == 1, shapes[most.index(max(most))]
    del model
    assert len(find_graphs()) == before
    # Nothing drew from NumPy's global generator, which no checkpoint has.
    expected = np.random.RandomState(0).get_state()
    np.testing.assert_equal(np.random.get_state(), expected)
    # The environment can be used afterwards.
    env.reset(seed=0)
    assert env.step(env.action_space.sample())[0].shape == env.observation_space.shape


@pytest.mark.long
def test_training_compiled_by_xla_is_that_of_tensorflow(
    learn, small, make, monkeypatch
):
    """XLA is for GPUs, but works here, too; it refuses shapes that depend on data."""

    def train(use_xla):
        monkeypatch.setattr(backend.tensorflow, "USE_XLA", use_xla)
        settings = dict(small, seed=0, total_timesteps=110, overwrite=True)
        with make() as env:
            model = learn(env, "mlp", **settings)
        return [variable.numpy() for variable in model.variables]

    for expected, value in zip(train(False), train(True), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("precision", ["float32", long("bfloat16")])
def test_interrupted_run_goes_on_as_if_it_had_not_been(
    alg, small, env_id, tmp_path, precision, monkeypatch
):
    """Also in worker processes. So the same seed gives the same rows, too."""

    def arguments(folder):
        words = f"--alg={alg} --env={env_id} --num_timesteps=820 --num_env=2 "
        words += (
            f"--checkpoint_interval=100 --seed=3 --log_path={tmp_path / folder} "
            f"--precision={precision} --eval_interval=400 --eval_episodes=1"
        )
        return words.split() + flags(small)

    def copy(run, number):
        """Leaves what a kill would, between two checkpoints."""
        if run.num_timesteps >= 650 and not (tmp_path / "cut").exists():
            shutil.copytree(tmp_path / "whole", tmp_path / "cut")

    with after_updates(copy):
        main(arguments("whole"))
    workers = "baselines.common.envs.make.use_workers"
    monkeypatch.setattr(workers, lambda env_type, num_env: True)
    main([f"--resume={tmp_path / 'cut'}", "--trust"])
    whole = results(tmp_path / "whole")
    assert len(whole[0]) > 1, "too few rows: give small() settings that log more often"
    assert any(row["eval_eprewmean"] for row in whole[0])
    assert results(tmp_path / "cut") == whole


class RandomImages(gym.Env):
    """Images and rewards that do not depend on the actions; episodes of two steps."""

    observation_space = gym.spaces.Box(0, 255, (36, 36, 2), np.uint8)

    def __init__(self, action_space):
        self.action_space = action_space
        self.t = 0

    def _observe(self):
        return self.np_random.integers(256, size=(36, 36, 2), dtype=np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._observe(), {}

    def step(self, action):
        self.t += 1
        reward = float(self.np_random.normal())
        return self._observe(), reward, self.t % 2 == 0, False, {}


@pytest.mark.slow
def test_training_in_bfloat16_is_that_of_float32(learn, small, env_id, tmp_path):
    """Losses differ by 2 % or 0.005 at most: its numbers have 8 bits.

    Some 30 updates change each kernel by vectors whose cosine is above 0.95, and whose
    lengths differ by 10 % at most.
    """
    space = gym.make(env_id).action_space
    settings = dict(small)
    # The smallest change of a priority draws other transitions, and that of a value may
    # be another action.
    steady = dict(prioritized_replay=False, exploration_final_eps=1.0)
    settings |= {k: x for k, x in steady.items() if k in declared_arguments(learn)}

    def train(precision, **changes):
        folder = tmp_path / precision
        with logger.scoped_configure(str(folder), ["csv"]):
            given = dict(settings, seed=0, precision=precision, **changes)
            model = learn(RandomImages(space), "cnn_small", **given)
        return model, folder

    def read_weights(model):
        model.save(tmp_path / "model")
        return load_tensors(tmp_path / "model")[0]

    # K-FAC adds up roundings: of three seeds, the lowest cosine is 0.96 after 70 agent
    # steps, and 0.83 after 110.
    steps = 70 if "kfac_clip" in declared_arguments(learn) else 110
    model, _ = train("float32", total_timesteps=0)
    initial, rows, weights = read_weights(model), [], []
    for precision in "float32", "bfloat16":
        model, folder = train(precision, total_timesteps=steps)
        # Some algorithms begin to learn after their first rows.
        complete = [row for row in read_rows(folder) if "" not in row.values()]
        assert complete, "no row has all columns: let small() train sooner"
        first = complete[0]
        # Roundings decide between actions of nearly equal values.
        first.pop("action_entropy", None)
        rows.append({name: float(value) for name, value in first.items()})
        assert {variable.dtype for variable in model.variables} == {"float32"}
        weights.append(read_weights(model))
    float32, bfloat16 = rows
    assert bfloat16 == pytest.approx(float32, rel=0.02, abs=0.005, nan_ok=True)
    losses = {name: value for name, value in float32.items() if "loss" in name}
    assert any(bfloat16[name] != value for name, value in losses.items())
    # Some loss is large enough to be compared at all.
    assert any(abs(value) > 0.05 for value in losses.values())
    kernels = [name for name in initial if name.endswith("kernel")]
    for name in kernels:
        changes = [(tensors[name] - initial[name]).ravel() for tensors in weights]
        lengths = [np.linalg.norm(change) for change in changes]
        if lengths[0]:  # some networks have not been trained yet
            assert np.dot(*changes) / np.prod(lengths) > 0.95, name
            assert lengths[1] == pytest.approx(lengths[0], rel=0.1), name
    assert kernels and {x.dtype for x in weights[1].values()} == {np.dtype("float32")}


def test_seed_decides_the_weights_and_two_arguments_come_by_position(
    learn, small, make
):
    settings = dict(small, total_timesteps=0)
    model = learn(make(), "mlp", seed=3, **settings)
    same = learn(env=make(), network="mlp", seed=3, **settings)
    assert_acts_alike(model, same, make().reset())
    other = learn(env=make(), network="mlp", seed=4, **settings)
    pairs = zip(model.variables, other.variables)
    assert any((x.numpy() != y.numpy()).any() for x, y in pairs)


class AnyAction(RandomEnv):
    """Checks that actions fit the space.

    Those of a Box need not: environments that are made here clip them.
    """

    def step(self, action):
        space = self.action_space
        action = np.asarray(action, space.dtype)
        assert action.shape == space.shape
        assert isinstance(space, gym.spaces.Box) or space.contains(action)
        return super().step(action)


@pytest.mark.parametrize(
    "space",
    [
        gym.spaces.Discrete(3, start=1),
        gym.spaces.MultiDiscrete([2, 3]),
        slow(gym.spaces.MultiDiscrete([3])),
        slow(gym.spaces.MultiBinary(3)),
        gym.spaces.Box(-2, 2, (3,)),
        gym.spaces.Text(3),
    ],
    ids=lambda space: type(space).__name__,
)
def test_action_spaces(alg, learn, small, space, tmp_path):
    """Actions fit the space, and a saved model acts the same after loading."""

    def train(**changes):
        env = AnyAction(gym.spaces.Box(-1, 1, (3,)), space)
        return learn(**small, env=env, network="mlp", **changes)

    if not isinstance(space, learn.actions):
        with pytest.raises(UserTypeError):
            train()
        return
    model = train(total_timesteps=130, seed=0)
    model.save(tmp_path / "model")
    loaded = train(total_timesteps=0, seed=1, load_path=str(tmp_path / "model"))
    obs = np.random.default_rng(0).uniform(-1, 1, (5, 3)).astype(np.float32)
    assert_acts_alike(model, loaded, obs)
    loaded = baselines.load(tmp_path / "model", trust=True)
    assert_acts_alike(model, loaded, obs)


def grid():
    return keras.Sequential([keras.layers.Dense(4), keras.layers.Reshape((2, 2))])


@pytest.mark.parametrize("alg", ["a2c", "sac"], scope="module")
def test_network_whose_features_are_no_vector_is_refused(learn, small, make):
    with pytest.raises(UserValueError):
        learn(**small, env=make(), network=grid)
