"""Networks and policies: one normalisation, shapes, saving and loading."""

import os
import pickle
import subprocess
import sys
from functools import partial

import keras
import numpy as np
import pytest
from gymnasium import spaces
from toy_envs import CounterEnv
from white_images import Peak, on_white_images

from baselines.a2c import learn
from baselines.common import backend
from baselines.common.base.errors import UserTypeError, UserValueError
from baselines.common.data.runners import Batch, Runner
from baselines.common.networks.networks import cnn, lnlstm, mlp
from baselines.common.networks.policies import Policy

IMAGE = spaces.Box(0, 255, (84, 84, 4), np.uint8)
GREY = spaces.Box(0, 255, (4, 4, 1), np.uint8)
FLAT = spaces.Box(-1, 1, (3,), np.float32)
ACTIONS = spaces.Discrete(4)


@on_white_images
def test_largest_input_of_the_first_convolution_is_one(make):
    peak = Peak()
    with make() as env:
        network = keras.Sequential([peak, *cnn().layers])
        policy = Policy(env.observation_space, env.action_space, lambda: network)
        assert float(peak.peak) == 0
        rollout = Runner(env, policy, nsteps=3).run()
        assert rollout.obs.dtype == "uint8"
        assert float(peak.peak) == 1.0


def test_observations_without_their_first_axis_are_refused():
    policy = Policy(FLAT, ACTIONS, "mlp")
    for act in (policy.step, policy.value):
        with pytest.raises(UserValueError, match=r"shape \(N, 3\), received \(3,\)"):
            act(np.zeros(3, np.float32))


@pytest.mark.parametrize(
    ("network", "parameters"),
    [
        # 8*8*4*32+32 + 4*4*32*64+64 + 3*3*64*64+64 + 3136*512+512
        ("cnn", 1_684_128),
        (partial(cnn, dense_layer=False), 77_984),
        # 8*8*4*8+8 + 4*4*8*16+16 + 1296*128+128
        ("cnn_small", 170_136),
        # 8*8*4*32+32 + 4*4*32*64+64 + 3*3*64*64+64
        ("conv_only", 77_984),
        # 28224*64+64 + 64*64+64
        ("mlp", 1_810_560),
    ],
)
def test_size_of_networks(network, parameters):
    policy = Policy(IMAGE, ACTIONS, network)
    assert policy.parts["network"].count_params() == parameters


@pytest.mark.parametrize("size", [5, 8])
def test_halves_of_a_batch_make_the_features_of_the_whole(size, monkeypatch):
    monkeypatch.setattr(backend, "HALVES", 2)
    space = spaces.Box(0, 255, (84, 84, 4), np.uint8)
    policy = Policy(space, spaces.Discrete(3), "cnn", seed=0)
    obs = np.random.default_rng(0).integers(0, 255, (size, 84, 84, 4), np.uint8)
    whole = policy.parts["network"](policy.inputs(obs))
    features = policy.features(policy.inputs(obs))
    np.testing.assert_allclose(features, whole, rtol=1e-4, atol=1e-6)


def test_statistics_of_a_batch_are_of_the_whole(monkeypatch):
    monkeypatch.setattr(backend, "HALVES", 2)

    def network():
        return keras.Sequential(
            [keras.layers.Flatten(), keras.layers.BatchNormalization()]
        )

    space = spaces.Box(0, 255, (8, 8, 1), np.uint8)
    policy = Policy(space, spaces.Discrete(3), network, seed=0)
    obs = np.random.default_rng(0).integers(0, 255, (6, 8, 8, 1), np.uint8)
    features = policy.features(policy.inputs(obs), training=True)
    np.testing.assert_allclose(np.mean(features, axis=0), 0, atol=1e-5)
    half = np.mean(features[:3], axis=0)  # 0 if each half had its own statistics
    assert np.abs(half).max() > 0.1


def test_weights_are_orthogonal_with_the_gains_of_openai_baselines():
    policy = Policy(FLAT, ACTIONS, "mlp")
    for layer, gain in [
        (policy.parts["network"].layers[3], 2**0.5),
        (policy.parts["pi"], 0.01),
        (policy.parts["vf"], 1.0),
    ]:
        kernel = np.asarray(layer.kernel)
        product = kernel.T @ kernel
        expected = gain**2 * np.eye(len(product))
        np.testing.assert_allclose(product, expected, atol=1e-5)
        assert not np.asarray(layer.bias).any()


@pytest.mark.parametrize(
    ("build", "epsilon"),
    [(partial(mlp, layer_norm=True), 1e-12), (lnlstm, 1e-5)],
)
def test_layer_norms_have_the_epsilons_of_openai_baselines(build, epsilon):
    norms = [
        layer
        for layer in build()._flatten_layers()
        if isinstance(layer, keras.layers.LayerNormalization)
    ]
    assert len(norms) > 1 and {norm.epsilon for norm in norms} == {epsilon}


def test_value_networks_that_cannot_be_copies_are_refused():
    network = keras.Sequential([keras.layers.Dense(8)])
    with pytest.raises(UserTypeError, match="network has to build a new network"):
        Policy(FLAT, ACTIONS, lambda: network, value_network="copy")
    with pytest.raises(UserValueError, match="'copy'"):
        learn(env=None, network="mlp", value_network="cpoy")


def test_recurrent_value_network_has_a_state_of_its_own():
    policy = Policy(FLAT, ACTIONS, partial(lnlstm, nlstm=8), value_network="copy")
    obs = np.ones((1, 3, *FLAT.shape), np.float32)
    start, masks = np.zeros((3, 32), np.float32), np.zeros((1, 3), bool)
    outputs = policy(Batch(obs, states=start, masks=masks))
    for part, other in ((slice(0, 16), "params"), (slice(16, 32), "values")):
        states = start.copy()
        states[:, part] = 1.0  # which changes all but the other function's output
        after = policy(Batch(obs, states=states, masks=masks))
        changed = {
            name: bool(np.any(getattr(after, name) != getattr(outputs, name)))
            for name in ("params", "values")
        }
        assert changed == {"params": other == "params", "values": other == "values"}


@pytest.mark.parametrize(
    "space", [FLAT, GREY, spaces.Box(0, 255, (3, 84, 84), np.uint8)], ids=str
)
def test_network_that_cannot_take_the_observations_is_refused(space):
    with pytest.raises(UserValueError):
        Policy(space, ACTIONS, "cnn")


@pytest.mark.parametrize(
    ("space", "obs", "expected"),
    [
        (spaces.Discrete(3, start=1), [1, 3], [[1, 0, 0], [0, 0, 1]]),
        (spaces.MultiBinary(2), [[1, 0]], [[1, 0]]),
        (spaces.Box(0, 500, (2,), np.float32), [[400, 500]], [[400, 500]]),
        # Bytes that are no image, and bytes that are one.
        (spaces.Box(0, 1, (1, 1, 1), np.uint8), [[[[1]]]], [[[[1]]]]),
        (spaces.Box(0, 255, (1, 1, 1), np.uint8), [[[[51]]]], [[[[0.2]]]]),
    ],
    ids=str,
)
def test_observations_become_floats(space, obs, expected):
    policy = Policy(space, ACTIONS, "mlp")
    obs = np.asarray(obs, space.dtype)
    scaled = policy.scale(obs)
    assert scaled.dtype == "float32"
    np.testing.assert_allclose(scaled, expected, rtol=1e-6)
    assert policy.step(obs)[0].shape == (len(obs),)


def some_policy(**changes):
    arguments = dict(
        observation_space=FLAT, action_space=ACTIONS, network="mlp", algorithm="x.y"
    )
    return Policy(**{**arguments, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        dict(algorithm="x.z"),
        dict(observation_space=spaces.Box(-1, 1, (4,), np.float32)),
        dict(action_space=spaces.Discrete(5)),
        dict(network=partial(mlp, num_hidden=32)),
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_model_of_another_run_is_refused(tmp_path, changes):
    path = tmp_path / "model"
    some_policy().save(path)
    with pytest.raises(UserValueError):
        some_policy(**changes).load(path)


class Exploit:
    def __reduce__(self):
        return os.mkdir, ("exploited",)


@pytest.mark.parametrize(
    "damage",
    [
        lambda good: b"",
        lambda good: good[:-1],
        lambda good: good + b"x",
        lambda good: pickle.dumps(Exploit()),
    ],
    ids=["empty", "truncated", "longer", "pickle"],
)
def test_damaged_or_hostile_file_is_refused(tmp_path, monkeypatch, damage):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model"
    policy = some_policy()
    policy.save(path)
    path.write_bytes(damage(path.read_bytes()))
    before = [variable.numpy() for variable in policy.variables]
    with pytest.raises(UserValueError, match="not a saved model, or is damaged"):
        policy.load(path)
    for old, new in zip(before, policy.variables):
        np.testing.assert_array_equal(old, new)
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(3, dtype=np.int8),
        spaces.MultiDiscrete([2, 3], dtype=np.int8),
        spaces.MultiBinary(2),
    ],
)
def test_actions_are_of_the_space(space):
    policy, obs = some_policy(action_space=space), np.zeros((5, 3), np.float32)
    for deterministic in False, True:
        actions, *_ = policy.step(obs, deterministic=deterministic)
        assert actions.dtype == space.dtype
        assert all(space.contains(action) for action in actions[:, ...])


@pytest.mark.slow
def test_recurrent_networks_are_compiled_by_xla_as_well(monkeypatch):
    """It is used on GPUs alone, but works here, too."""

    def weights(use_xla):
        monkeypatch.setattr(backend.tensorflow, "USE_XLA", use_xla)
        env = CounterEnv(terminate_after=3)
        model = learn(env, "lstm", nlstm=4, nsteps=4, seed=0, total_timesteps=40)
        return [variable.numpy() for variable in model.variables]

    for expected, found in zip(weights(False), weights(True), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_settings_for_gpus_are_known_to_the_installed_tensorflow():
    """A flag that XLA does not know ends the process."""
    code = [
        "import os",
        "import tensorflow as tf",
        "tf.config.list_physical_devices = lambda kind: [kind]",
        "from baselines.common import backend",
        "print(float(backend.compile(lambda x: x + 1, [])(tf.constant(1.0))))",
        "print(os.environ['XLA_FLAGS'])",
        "print(os.environ['TF_FORCE_GPU_ALLOW_GROWTH'])",
    ]
    of_user = {
        "XLA_FLAGS": "--xla_gpu_enable_triton_gemm=true",
        "TF_FORCE_GPU_ALLOW_GROWTH": "false",
    }
    found = subprocess.run(
        [sys.executable, "-c", "\n".join(code)],
        env=os.environ | of_user,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    ours = "--xla_gpu_enable_triton_gemm=false"
    expected = ["2.0", f"{ours} {of_user['XLA_FLAGS']}", "false"]
    assert found.stdout.splitlines() == expected
