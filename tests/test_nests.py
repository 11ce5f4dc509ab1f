"""Dicts and Tuples with images, and as actions: through every room and back."""

import gymnasium as gym
import numpy as np
import pytest
from conftest import slow
from gymnasium import spaces
from toy_envs import PLANE, Reach, seeded

import baselines
from baselines import a2c, acktr, ddpg, dqn, logger, ppo2, sac, trpo
from baselines.common.base.errors import UserError, UserTypeError, UserValueError
from baselines.common.envs import as_vec_env
from baselines.common.envs.nests import FlatBox, MixedActions
from baselines.common.networks.distributions import make_distribution
from baselines.common.networks.model import make_scaling
from baselines.common.networks.networks import mlp, multi
from baselines.common.networks.normalizer import make_normalizer
from baselines.common.run.evaluation import evaluate
from baselines.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
)

AXIS = spaces.Box(-1, 1, (1,), np.float32)
ACTIONS = {
    "box": PLANE,
    "brake": spaces.Tuple((spaces.Discrete(2, start=1), PLANE)),
    "axes": spaces.Dict(x=AXIS, y=AXIS),
}
SMALL = dict(image_network="cnn_small", seed=0)
ON_POLICY = dict(nsteps=20, total_timesteps=120)
OFF_POLICY = dict(total_timesteps=60, learning_starts=40, buffer_size=200, batch_size=8)


@pytest.mark.parametrize(
    "learn, actions, settings",
    [
        slow(acktr.learn, "brake", ON_POLICY),
        (ppo2.learn, "brake", ON_POLICY | dict(normalize_observations=True)),
        slow(trpo.learn, "brake", dict(timesteps_per_batch=60, total_timesteps=120)),
        (sac.learn, "axes", OFF_POLICY | dict(normalize_observations=True)),
        (ddpg.learn, "box", OFF_POLICY),
    ],
)
def test_models_act_in_the_nest_they_were_trained_in(
    learn, actions, settings, tmp_path
):
    env = Reach(ACTIONS[actions])
    logger.configure(tmp_path, [])
    model = learn(env, **SMALL, **settings)
    assert model.arguments["network"] == "multi"
    model.save(tmp_path / "model")
    obs, _ = env.reset(seed=0)
    action, _ = model.predict(obs, deterministic=True)
    assert env.action_space.contains(action)
    again, _ = baselines.load(tmp_path / "model").predict(obs, deterministic=True)
    np.testing.assert_equal(action, again)
    assert [result["l"] for result in evaluate(model, env, 2)] == [20, 20]


@pytest.mark.parametrize("learn", [ppo2.learn, slow(sac.learn)])
def test_resumed_runs_with_other_workers_go_on_as_they_were(learn, tmp_path):
    settings = SMALL | (ON_POLICY if learn is ppo2.learn else OFF_POLICY)
    models, axes = [], ACTIONS["axes"]
    for name, kind, steps in (
        ("whole", DummyVecEnv, [120]),
        ("parts", SubprocVecEnv, [80, 120]),
    ):
        for i, total in enumerate(steps):
            logger.configure(tmp_path / name, ["csv"])
            given = dict(resume=str(tmp_path / name)) if i else {}
            given |= settings | dict(total_timesteps=total, checkpoint_interval=40)
            given |= dict(lr=1e-3)  # which does not depend on the length of the run
            with VecMonitor(
                kind([lambda i=i: seeded(Reach(axes), i) for i in range(2)])
            ) as env:
                model = learn(env, **given)
            logger.close()
        models.append(model)
    for variable, same in zip(models[0].variables, models[1].variables):
        np.testing.assert_array_equal(variable, same)


def test_a_vector_of_bytes_has_each_part_where_it_says():
    """Golden: float32 1.0 is 0, 0, 128, 63 in little-endian bytes."""
    image = spaces.Box(0, 255, (1, 2, 1), np.uint8)
    space = FlatBox(
        spaces.Dict(
            a=image,
            b=spaces.Dict(x=spaces.Box(-9, 9, (1,)), y=spaces.MultiBinary(2)),
            c=spaces.Discrete(3),
        )
    )
    obs = dict(a=np.uint8([[[7], [255]]]), b=dict(x=[1.0], y=[0, 1]), c=2)
    flat = space.flatten(obs)
    assert flat.tolist() == [7, 255, 0, 0, 128, 63, 0, 1, 0, 0, 1]
    assert flat.dtype == space.dtype == np.uint8 and space.contains(flat)
    assert space.parts == dict(a=slice(0, 2), b=slice(2, 8), c=slice(8, 11))
    parts = {k: np.asarray(x) for k, x in make_scaling(space)(flat[None]).items()}
    np.testing.assert_allclose(parts.pop("a"), [[[[7 / 255], [1]]]])
    assert {k: x.tolist() for k, x in parts.items()} == {
        "b.x": [[1.0]],
        "b.y": [[0.0, 1.0]],
        "c": [[0.0, 0.0, 1.0]],
    }
    with pytest.raises(UserValueError, match="b.x"):
        space.flatten(obs | dict(b=dict(x=[np.nan], y=[0, 1])))


def test_each_part_is_stacked_by_itself():
    venv = VecFrameStack(DummyVecEnv([Reach] * 2), 3)
    space = venv.observation_space
    venv.reset()
    for _ in range(2):
        obs, *_ = venv.step(np.full((2, 2), 0.5, np.float32))
    parts = {k: np.asarray(x) for k, x in make_scaling(space)(obs).items()}
    assert parts["camera"].shape == (2, 20, 20, 3)
    np.testing.assert_array_equal(parts["camera"][..., 0], parts["camera"][..., 2])
    np.testing.assert_array_equal(parts["arm.loads"], [[0, 1, 2]] * 2)
    first, last = parts["arm.joints"][:, :2], parts["arm.joints"][:, 4:]
    np.testing.assert_allclose(last, np.clip(first + 0.2, -1, 1), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(space.numbers(obs), parts["arm.joints"])


def test_only_numbers_are_normalized():
    space = FlatBox(Reach().observation_space)
    normalizer = make_normalizer(space)
    parts = make_scaling(space)(np.zeros((1, *space.shape), np.uint8))
    normalizer(parts)
    obs = dict(Reach().observation_space.sample())
    flat = []
    for joints in [-0.5, 1.0], [0.5, 1.0]:
        obs["arm"] = dict(joints=np.float32(joints), loads=np.uint8([5]))
        flat.append(space.flatten(obs))
    normalizer.update(np.stack(flat))
    parts = make_scaling(space)(np.stack(flat))
    normalized = normalizer(parts)
    np.testing.assert_allclose(normalized["arm.joints"], [[-1, 0], [1, 0]], atol=1e-4)
    for name in "camera", "arm.loads", "phase":
        np.testing.assert_array_equal(normalized[name], parts[name])


def test_mixed_actions_golden():
    nest = spaces.Dict(
        a=spaces.Tuple((spaces.Discrete(3, start=2), spaces.MultiDiscrete([2, 2]))),
        b=spaces.Box(-1, 1, (2,), np.float32),
        c=spaces.MultiBinary(1),
    )
    space = MixedActions(nest)
    assert space.shape == (6,) and space == MixedActions(nest)
    action = space.unflatten(np.float32([4, 0, 1, 5.0, -0.5, 1]))
    assert nest.contains(action)
    np.testing.assert_equal(
        action,
        dict(a=(np.int64(4), np.array([0, 1])), b=np.float32([1, -0.5]), c=[1]),
    )
    pi = make_distribution(space)
    params = np.zeros((1, pi.num_params), np.float32)
    # ln 3 + 2 ln 2, a standard normal at 0.5 and -0.5, and ln 2.
    actions = np.float32([[2, 0, 1, 0.5, -0.5, 1]])
    expected = np.log(3) + 3 * np.log(2) + np.log(2 * np.pi) + 0.25
    np.testing.assert_allclose(pi.neglogp(params, actions), [expected], rtol=1e-5)
    expected = np.log(3) + 3 * np.log(2) + np.log(2 * np.pi * np.e)
    np.testing.assert_allclose(pi.entropy(params), [expected], rtol=1e-5)
    shifted = params.copy()
    shifted[0, 7] = 2.0  # one mean: KL is 2² / 2
    np.testing.assert_allclose(pi.kl(params, shifted), [2.0], rtol=1e-5)
    noise = pi.noise(np.random.default_rng(0), 1)
    sample = np.asarray(pi.sample(params, noise))
    assert nest.contains(space.unflatten(sample[0]))


def test_a_vector_env_of_dicts_and_tuples_is_flattened():
    gym.register("Reach-v0", lambda: Reach(ACTIONS["brake"]))
    kwargs = {"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}
    made = gym.make_vec("Reach-v0", 2, "sync", vector_kwargs=kwargs)
    plain = DummyVecEnv([lambda: Reach(ACTIONS["brake"])] * 2)
    venvs = as_vec_env(made, seed=0), plain
    actions = np.float32([[1, 0.5, 1.5], [2, 0.5, -0.5]])
    for venv in venvs:
        assert venv.observation_space == plain.observation_space
        assert venv.action_space == plain.action_space
        obs = venv.reset()
        for _ in range(20):
            last, (obs, _, dones, infos) = obs, venv.step(actions)
        assert dones.all() and obs.shape == (2, *venv.observation_space.shape)
        arm = venv.observation_space.parts["arm"]
        changed = (infos[0]["terminal_observation"] != last[0])[arm].any()
        assert changed and infos[1]["terminal_observation"].shape == last[1].shape


def test_networks_of_ones_own_get_the_parts():
    import keras

    class Mine(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = mlp()

        def call(self, parts):
            assert sorted(parts) == ["arm.joints", "arm.loads", "camera", "phase"]
            return self.inner(parts["arm.joints"])

    a2c.learn(Reach(), Mine, total_timesteps=10)
    with pytest.raises(UserValueError, match="multi"):
        a2c.learn(Reach(), "mlp", total_timesteps=10)
    with pytest.raises(UserValueError, match="impala_cnn"):
        a2c.learn(Reach(), lambda: multi("cnn"), total_timesteps=10)


def test_what_nests_cannot_do_is_refused():
    with pytest.raises(UserTypeError, match="camera"):
        VecNormalize(DummyVecEnv([Reach]))
    for learn in dqn.learn, sac.learn:
        with pytest.raises(UserTypeError, match="Tuple"):
            learn(Reach(ACTIONS["brake"]), total_timesteps=10)
    with pytest.raises(UserError, match="Text"):
        a2c.learn(Reach(spaces.Tuple((spaces.Text(3), PLANE))), total_timesteps=10)


@pytest.mark.slow
def test_a_hand_learns_to_reach_what_a_camera_sees():
    settings = dict(nsteps=64, nminibatches=8, noptepochs=4, lr=5e-4, gamma=0.8)
    settings |= dict(ent_coef=0.0, clip_values=False, value_network="copy")
    settings |= dict(normalize_rewards=True)
    env = VecMonitor(
        DummyVecEnv([lambda i=i: seeded(Reach(ACTIONS["brake"]), i) for i in range(8)])
    )
    model = ppo2.learn(env, **SMALL | settings, total_timesteps=45_000)
    results = evaluate(
        model, seeded(Reach(ACTIONS["brake"]), 100), 20, deterministic=True
    )
    # It is -15 in the middle, without a camera.
    assert np.mean([result["r"] for result in results]) > -9


def test_predict_refuses_parts_of_another_type_or_size():
    model = a2c.learn(Reach(), total_timesteps=10, **SMALL)
    obs, _ = Reach().reset(seed=0)
    for camera in obs["camera"] / 255, obs["camera"][:10]:
        with pytest.raises(UserValueError, match="camera"):
            model.predict(obs | dict(camera=camera))
