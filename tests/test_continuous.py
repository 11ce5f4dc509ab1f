"""DDPG, TD3 and SAC: targets, noise, normalisation, Pendulum."""

import gc
import weakref

import keras
import numpy as np
import pytest
from conftest import long, slow
from gymnasium import spaces
from keras import ops
from test_collector import BOX, Pushed
from toy_envs import CounterEnv

from baselines import ddpg, dqn, sac, td3
from baselines.common import backend
from baselines.common.arguments.discovery import find_algorithm, find_defaults
from baselines.common.base.errors import UserValueError
from baselines.common.data.action_noise import ActionNoise
from baselines.common.data.replay_buffer import Transitions
from baselines.common.envs import make_vec_env
from baselines.common.networks.actor_critic import ActorCritic, Critic
from baselines.common.networks.critics import Minimum, TruncatedQuantiles
from baselines.common.networks.distributions import Deterministic
from baselines.common.networks.quantiles import quantile_losses
from baselines.common.networks.values import QuantileValues
from baselines.common.run.evaluation import evaluate
from baselines.common.vec_env import DummyVecEnv
from baselines.ddpg.ddpg import check_returns, ddpg_targets, lowest_return
from baselines.td3.td3 import td3_targets

VECTOR = spaces.Box(-10, 10, (3,), np.float32)
RETURNS = np.float32([1.0, 2.0])
DISCOUNTS = np.float32([0.5, 0.0])  # The second transition is an episode's last.


def test_rewards_that_clip_return_is_not_for_are_refused():
    assert (lowest_return(1.0), lowest_return(1.0, 3)) == (-np.inf, -3)
    check_returns(np.float32([[-1, 0], [-0.5, -1]]), 0.5, n_step=1)
    check_returns(np.float32([[-1, -1.75]]), 0.5, n_step=3)
    for wrong, n_step in (0.5, 1), (-1.25, 1), (0.5, 3), (-2.0, 3):
        with pytest.raises(UserValueError, match=f"from -1 to 0, received {wrong:.4g}"):
            check_returns(np.float32([[-1, wrong]]), 0.5, n_step)


def test_learn_clips_targets_and_gradients():
    settings = dict(clip_return=True, clip_norm=0.25, gamma=0.5, total_timesteps=1)
    names = names_after(ddpg, Pushed(), **settings)
    batch = batch_of(ddpg, [1, 1], np.zeros((2, 2, 2), np.float32))
    for value, target in (10, 0), (-10, -2):  # 1 + 10 / 2, and 1 - 10 / 2
        set_values(names["target"].critics, value)
        targets = names["critic_loss"](batch)[1]["targets"]
        np.testing.assert_allclose(targets, [target] * 2)
    for kind in "critic", "policy":
        assert names[f"{kind}_optimizer"].clipnorm == 0.25


def make_noise(text, num_env=2, **arguments):
    return ActionNoise(text, DummyVecEnv([Pushed] * num_env), 0, **arguments)


def test_targets():
    np.testing.assert_allclose(
        ddpg_targets(np.float32([3, 4]), RETURNS, DISCOUNTS, (-9, 9)), [2.5, 2.0]
    )
    np.testing.assert_allclose(
        ddpg_targets(np.float32([3, 4]), RETURNS, DISCOUNTS, (-1, 2.25)), [2.25, 2.0]
    )
    values = np.float32([[3, 4], [1, 5]])  # of two critics
    np.testing.assert_allclose(td3_targets(values, RETURNS, DISCOUNTS), [1.5, 2.0])
    # -log π is 2 and 3; at temperature 0.1 the soft values are 1.2 and 4.3.
    neglogps = np.float32([2, 3])
    np.testing.assert_allclose(
        Minimum().targets(values[..., None], 0.1 * neglogps, RETURNS, DISCOUNTS),
        [1.6, 2.0],
        rtol=1e-6,
    )


def test_quantile_losses_golden():
    """Quantiles 0 and 2 at 1/4 and 3/4, samples 1 and 4.

    Errors of the first are 1 and 4, above it: 1/4 x (0.5 + 3.5) / 2. Those of the
    second are -1 and 2: (1/4 x 0.5 + 3/4 x 1.5) / 2.
    """
    losses = quantile_losses(np.float32([[0, 2]]), np.float32([[1, 4]]))
    np.testing.assert_allclose(losses, [[0.5, 0.625]], rtol=1e-6)
    theta = keras.Variable([[0.0, 2.0]])
    loss = backend.value_and_grad(
        lambda: (ops.sum(quantile_losses(theta, np.float32([[-4, 2.5]]))), {}), [theta]
    )
    # Errors -4 and 2.5, -6 and 0.5; slopes 3/4, 1/4 and 1/4, 3/4.
    np.testing.assert_allclose(loss()[1][0], [[0.25, -0.0625]], rtol=1e-6)
    values = QuantileValues(2)
    outputs, targets = np.float32([[0, 2]]), np.float32([[1, 4]])
    losses, priorities = values.losses(outputs, targets)
    np.testing.assert_allclose((losses[0], priorities[0]), (1.125, 1.5), rtol=1e-6)
    np.testing.assert_allclose(values.mean(outputs), [1.0])
    moved = values.targets(outputs, np.float32([1]), np.float32([0.5]))
    np.testing.assert_allclose(moved, [[1.0, 2.0]])


def test_the_highest_quantiles_are_left_out_golden():
    """Of 1, 5, 9 and 2, 4, 8 the two highest are dropped, one for each critic."""
    kind = TruncatedQuantiles(2, 3, 1)
    outputs = np.float32([[[9, 1, 5]], [[2, 8, 4]]])
    found = kind.targets(outputs, np.float32([1]), np.float32([10]), np.float32([0.5]))
    np.testing.assert_allclose(found, [[11.0, 11.5, 12.5, 13.0]])
    np.testing.assert_allclose(kind.value(outputs), [29 / 6], rtol=1e-6)
    losses, priorities = kind.losses(outputs, found)
    assert losses.shape == (2, 1) and priorities.shape == (1,)
    one = np.mean(quantile_losses(outputs[0], found)) / 2
    np.testing.assert_allclose(losses[0], [one], rtol=1e-6)


def test_target_actions_are_smoothed_within_bounds():
    """The middle of BOX is at 0 and 2, its half widths are 1 and 4."""
    params = np.arctanh(np.float32([[0, 0], [0.75, 0.25]]))
    noise = np.float32([[0.25, -0.25], [9, -9]])  # in half widths, 0.5 at most
    found = Deterministic(BOX).smoothed(params, noise, 0.5)
    np.testing.assert_allclose(found, [[0.25, 1], [1, 1]], rtol=1e-6)


def test_critics_see_actions_in_half_widths_from_the_middle():
    """The middle of BOX is at 0 and 2, its half widths are 1 and 4."""
    unit = spaces.Box(-1, 1, (2,), np.float32)
    mine, same = (
        ActorCritic(VECTOR, box, "mlp", Deterministic(box), seed=0)
        for box in (BOX, unit)
    )
    same.set_state(mine.get_state())
    obs = np.ones((2, 3), np.float32)
    values = mine.values(obs, np.float64([[0.5, 4], [-1, -2]]))
    expected = same.values(obs, np.float32([[0.5, 0.5], [-1, -1]]))
    np.testing.assert_allclose(values, expected, rtol=1e-6)


def test_normal_noise_has_its_deviation_in_half_widths():
    noise = make_noise("normal_0.5")
    drawn = np.array([noise.add(np.zeros((2, 2), np.float32)) for _ in range(5000)])
    np.testing.assert_allclose(drawn.std(axis=(0, 1)), [0.5, 2.0], rtol=0.03)
    np.testing.assert_allclose(drawn.mean(axis=(0, 1)), 0, atol=0.06)
    assert drawn.dtype == np.float32


def test_ornstein_uhlenbeck_noise():
    """x' = x - 0.15 · 0.01 x + 0.2 · 0.1 ε, times half widths of 1 and 4."""
    draws = np.random.default_rng([0, 4])
    first, second = (draws.standard_normal((2, 2), np.float32) for _ in range(2))
    noise, actions = make_noise("ou_0.2"), np.zeros((2, 2), np.float32)
    np.testing.assert_allclose(noise.add(actions), 0.02 * first * [1, 4], rtol=1e-5)
    expected = 0.9985 * 0.02 * first + 0.02 * second
    np.testing.assert_allclose(noise.add(actions), expected * [1, 4], 1e-5, 1e-8)


def test_noise_can_be_left_out_and_actions_drawn_uniformly():
    actions = np.ones((2, 2), np.float32)
    np.testing.assert_array_equal(make_noise("none").add(actions), actions)
    noise = make_noise("none", random_eps=0.25)
    drawn = np.array([noise.add(actions) for _ in range(2000)])
    changed = (drawn != 1).any(axis=-1)
    assert changed.mean() == pytest.approx(0.25, abs=0.02)
    np.testing.assert_allclose(drawn[changed].min(axis=0), BOX.low, atol=0.05)
    np.testing.assert_allclose(drawn[changed].max(axis=0), BOX.high, atol=0.05)


@pytest.mark.parametrize("text", ["adaptive-param_0.2", "normal_1e999"])
def test_unknown_noise_is_refused(text):
    with pytest.raises(UserValueError):
        td3.learn(Pushed(), "mlp", noise_type=text, total_timesteps=0)


def make_model(**arguments):
    pi = Deterministic(BOX)
    return ActorCritic(VECTOR, BOX, "mlp", pi, critic=Minimum(1), seed=0, **arguments)


def test_values_stay_when_statistics_of_returns_change():
    """Pop-Art: of outputs that were right for other statistics."""
    model, target = (make_model(normalize_returns=True) for _ in range(2))
    obs = np.stack([VECTOR.sample() for _ in range(4)])
    actions = np.stack([BOX.sample() for _ in range(4)])
    before = np.asarray(model.values(obs, actions))
    others = np.asarray(target.values(obs, actions))
    model.observe_returns(np.float32([[90, 110], [90, 110]]), target)
    assert float(model.parts["returns"].mean) == 100
    assert float(model.deviation_of_returns) == pytest.approx(10)
    np.testing.assert_allclose(model.values(obs, actions), before, atol=1e-4)
    np.testing.assert_allclose(target.values(obs, actions), others, atol=1e-4)
    assert float(target.parts["returns"].mean) == 100
    scaled = (actions - [0, 2]) / [1, 4]
    outputs = np.asarray(model.critics[0](obs, np.float32(scaled)))
    np.testing.assert_allclose(100 + 10 * outputs[:, 0], before[0], atol=1e-4)


def test_weight_decay_is_half_the_squares_but_of_biases_and_the_last_layer():
    critic = Critic(lambda: keras.Sequential([keras.layers.Dense(3)]), 1)
    critic(np.ones((1, 2), np.float32), np.ones((1, 2), np.float32))
    for variable in critic.trainable_variables:
        variable.assign(2 * np.ones(variable.shape))
    # One matrix [4, 3] of twos before the values.
    assert float(critic.weight_decay()) == 0.5 * 12 * 4


@pytest.mark.slow
@pytest.mark.parametrize("alg", [ddpg, sac, td3])
def test_the_unit_of_actions_changes_nothing(alg):
    """Neither what is learned nor how entropies are measured (-1 per action)."""

    def train(unit):
        class Scaled(Pushed):
            action_space = spaces.Box(-unit, unit, (2,), np.float32)

            def step(self, action):
                return super().step(action / unit)

        settings = dict(total_timesteps=100, learning_starts=50, batch_size=8, seed=0)
        return alg.learn(Scaled(), "mlp", **settings)

    expected = train(1.0).named_variables
    for name, value in train(64.0).named_variables.items():
        np.testing.assert_allclose(value, expected[name], 1e-4, 1e-5, err_msg=name)


@pytest.mark.parametrize("seed", [slow(0), long(1)])
@pytest.mark.parametrize("alg", ["ddpg", "td3", "sac"], scope="module")
def test_pendulum_better_than_minus_200(alg, learn, seed):
    """With the defaults of its kind, but for small networks and batches."""
    settings = find_defaults(find_algorithm(alg), "classic_control")
    num_env = settings.pop("num_env")
    # After half as many steps, one seed in ten is below -200.
    settings |= dict(num_hidden=64, batch_size=64, seed=seed, total_timesteps=20_000)
    if alg != "ddpg":
        settings["lr"] = 1e-3
    env = make_vec_env("Pendulum-v1", num_env=num_env, seed=seed)
    model = learn(env, **settings)
    results = evaluate(model, env, episodes=100, deterministic=True)
    assert np.mean([result["r"] for result in results]) > -200


@pytest.fixture(scope="module", params=[ddpg, td3, sac], ids=["ddpg", "td3", "sac"])
def updated(request):
    """(algorithm, local names of its learn() after one update, weights before it)."""
    alg, names = request.param, {}
    settings = dict(
        seed=0, learning_starts=8, batch_size=2, gamma=0.7, n_step=3, tau=0.25
    )
    if alg is ddpg:
        settings |= dict(nb_rollout_steps=1, nb_train_steps=1, critic_l2_reg=0.0)
        settings |= dict(action_l2=0.5)
    if alg is sac:
        settings |= dict(ent_coef=1e-9)

    def callback(now, _):
        names.update(now)
        return int(now["critic_optimizer"].iterations) > 0

    env = Pushed(truncate_after=4)
    untrained = alg.learn(env, "mlp", total_timesteps=0, **settings)
    alg.learn(env, "mlp", total_timesteps=40, callback=callback, **settings)
    return alg, names, list(map(keras.ops.convert_to_numpy, untrained.critic_variables))


def test_memory_has_gamma_and_target_networks_follow_by_tau(updated):
    _, names, before = updated
    assert (names["memory"].gamma, names["memory"].n_step) == (0.7, 3)
    moved = 0.0
    for old, model, target in zip(
        before,
        names["model"].critic_variables,
        names["target"].critic_variables,
        strict=True,
    ):
        change = keras.ops.convert_to_numpy(model) - old
        np.testing.assert_allclose(target, old + 0.25 * change, atol=1e-7)
        moved = max(moved, np.abs(change).max())
    assert moved > 1e-5


def set_values(critics, *values):
    """Makes each critic return one value, whatever the observation and the action."""
    for critic, value in zip(critics, values):
        critic.value.kernel.assign(np.zeros(critic.value.kernel.shape))
        critic.value.bias.assign([value])


def batch_of(alg, weights, noise):
    """Returns two transitions, of return 1, as the losses of an algorithm take them.

    Args:
        weights: [2]
        noise: [2, 2, 2], for next actions and for actions; td3 has only the former
    """
    obs, half = np.float32([[1], [2]]), np.float32([0.5, 0.5])
    actions = np.float32([[0, 2], [0, 2]])
    fields = obs, actions, 2 * half, obs, half, np.float32(weights), np.zeros(2, int)
    return Transitions(*fields, noise[0] if alg is td3 else noise)


def losses_of(updated, weights, noise):
    """Returns the losses of critics and of the policy for two transitions."""
    alg, names, _ = updated
    batch = batch_of(alg, weights, np.float32(noise))
    policy_loss = names["policy_loss"](batch)[1]["policy_loss"]
    return float(names["critic_loss"](batch)[0]), float(policy_loss)


def test_losses_use_the_target_critics_and_the_weights(updated):
    alg, names, _ = updated
    set_values(names["target"].critics, 10, 20)
    set_values(names["model"].critics, 3, 2)
    critic_loss, policy_loss = losses_of(updated, [1, 0.5], np.zeros((2, 2, 2)))
    # The target is 1 + 10 / 2 = 6, so errors are -3 and -4; weights are 1 and 1/2.
    one, other = (9 + 4.5) / 2, (16 + 8) / 2
    expected = {ddpg: one, td3: one + other, sac: (one + other) / 2}
    assert critic_loss == pytest.approx(expected[alg], rel=1e-5)
    # Of the first critic, or of the lower one; in ddpg with the squares of actions, in
    # half widths, times action_l2.
    pi, obs = names["pi"], np.float32([[1], [2]])
    squares = (pi.mode(names["model"].policy(obs)) - [0, 2]) ** 2 / [1, 16]
    expected = {ddpg: -3 + np.mean(squares) / 2, td3: -3, sac: -2}
    assert policy_loss == pytest.approx(expected[alg], rel=1e-5)


def test_targets_are_for_smoothed_actions_of_the_target_policy(updated, monkeypatch):
    alg, names, _ = updated
    model, target, pi = names["model"], names["target"], names["pi"]
    for variable in target.policy_variables:  # so that the policies differ
        variable.assign(variable + 0.1)
    noise = np.float32([[[1, -9], [2, 0]], [[0, 0], [0, 0]]])
    seen, outputs = [], target.outputs
    monkeypatch.setattr(
        target, "outputs", lambda obs, x, *n: seen.append(x) or outputs(obs, x, *n)
    )
    losses_of(updated, [1, 1], noise)
    obs = np.float32([[1], [2]])
    expected = {
        ddpg: lambda: pi.mode(target.policy(obs)),
        td3: lambda: pi.smoothed(target.policy(obs), 0.2 * noise[0], 0.5),
        sac: lambda: pi.sample_with_neglogp(model.policy(obs), noise[0])[0],
    }[alg]()
    np.testing.assert_allclose(seen[0], expected, rtol=1e-5)
    assert not np.allclose(seen[0], pi.mode(model.policy(obs)), rtol=1e-3)


def test_entropy_is_part_of_targets_and_of_the_policy_loss(updated):
    alg, names, _ = updated
    if alg is not sac:
        pytest.skip("it has no entropy")
    assert names["target_entropy"] == -2  # -1 per action
    temperature = names["model"].parts["temperature"].value
    assert float(temperature) == pytest.approx(np.log(1e-9))  # fixed by ent_coef
    set_values(names["target"].critics, 10, 20)
    set_values(names["model"].critics, 2, 3)
    temperature.assign(np.log(0.5))
    noise = np.float32([[[1, -1], [0, 0.5]], [[0.5, 0], [0, 1]]])
    critic_loss, policy_loss = losses_of(updated, [1, 1], noise)
    params = names["model"].policy(np.float32([[1], [2]]))
    of_next, of_now = (
        np.asarray(names["pi"].sample_with_neglogp(params, x)[1]) for x in noise
    )
    targets = 1 + 0.5 * (10 + 0.5 * of_next)
    expected = sum(np.mean((value - targets) ** 2) / 2 for value in (2, 3))
    assert critic_loss == pytest.approx(expected, rel=1e-5)
    assert policy_loss == pytest.approx(-2 - 0.5 * of_now.mean(), rel=1e-5)


def names_after(alg, env, **settings):
    """Returns the local names of a learn() at its end."""
    names = {}
    settings = dict(seed=0, batch_size=8, total_timesteps=24) | settings
    alg.learn(env, "mlp", callback=lambda now, _: names.update(now), **settings)
    return names


@pytest.mark.parametrize("alg", [dqn, ddpg, td3, sac], ids=lambda alg: alg.__name__)
def test_the_memory_is_freed_when_training_ends(alg):
    """At once, as it may have gigabytes, without waiting for the garbage collector."""
    env = (CounterEnv if alg is dqn else Pushed)(truncate_after=5)
    memories = []

    def callback(names, _):
        memories[:] = [weakref.ref(names["memory"])]

    gc.collect()
    gc.disable()
    try:
        alg.learn(env=env, network="mlp", total_timesteps=40, callback=callback)
        assert memories[0]() is None
    finally:
        gc.enable()


@pytest.fixture(scope="module", params=[dqn, ddpg, td3, sac], ids=lambda x: x.__name__)
def trained(request):
    """(algorithm, local names of its learn() after 24 steps of two environments)."""
    alg = request.param
    settings = dict(learning_starts=16, prioritized_replay=True, total_timesteps=48)
    if alg is not dqn:
        settings |= dict(normalize_observations=True)
    if alg is ddpg:
        settings |= dict(nb_rollout_steps=4, nb_train_steps=1)
    else:
        settings |= dict(lr="linear:0.048")
    if alg is sac:
        settings |= dict(target_entropy=5.0)
    kind = CounterEnv if alg is dqn else Pushed
    env = DummyVecEnv([lambda: kind(truncate_after=5)] * 2)
    return alg, names_after(alg, env, **settings)


def test_training_updates_priorities_rates_and_all_parts(trained):
    alg, names = trained
    # Transitions that were drawn have another priority than new ones.
    assert len(np.unique(names["memory"].tree.get(np.arange(48)))) > 4
    optimizers = {k: x for k, x in names.items() if k.endswith("optimizer") and x}
    if alg is not ddpg:
        # 46 of 48 steps were done before the last update.
        rates = [float(x.learning_rate) for x in optimizers.values()]
        assert rates == pytest.approx([0.002] * len(rates)) and rates
    if alg is td3:  # which updates its policy once for two updates of its critics
        steps = {name: int(x.iterations) for name, x in optimizers.items()}
        assert steps == dict(critic_optimizer=32, policy_optimizer=16)
    if alg is sac:  # whose temperature rises while the entropy is below its target
        assert float(names["log_alpha"]) > 0.001


def test_observations_are_normalised_for_model_and_target_alike(trained):
    alg, names = trained
    if alg is dqn:
        pytest.skip("it does not normalise observations")
    model, target = (names[name].parts["normalizer"] for name in ("model", "target"))
    assert float(model.count) == 48
    for one, other in zip(model.variables, target.variables):
        np.testing.assert_array_equal(one, other)
    stored = names["memory"].frames[1:25].reshape(-1, 1)
    np.testing.assert_allclose(model.mean, stored.mean(axis=0), rtol=1e-5)


def test_errors_are_in_deviations_of_returns_and_priorities_are_not():
    """New transitions enter at the highest priority of all earlier errors."""
    settings = dict(normalize_returns=True, gamma=0.5, total_timesteps=1)
    names = names_after(ddpg, Pushed(), **settings)
    model, target = names["model"], names["target"]
    model.observe_returns(np.float32([[90, 110], [90, 110]]), target)
    set_values(model.critics, 3)
    set_values(target.critics, 0)
    batch = batch_of(ddpg, [1, 1], np.zeros((2, 2, 2), np.float32))
    _, metrics = names["critic_loss"](batch)
    # Values are 100 + 10 · 3, targets 1 + 100 / 2.
    np.testing.assert_allclose(metrics["priorities"], [79, 79], rtol=1e-4)
    assert float(metrics["critic_loss"]) == pytest.approx(7.9**2, rel=1e-4)


@pytest.mark.parametrize("alg", [ddpg, td3], ids=lambda alg: alg.__name__)
def test_actions_are_played_with_noise(alg):
    settings = dict(noise_type="normal_0.1", learning_starts=0, total_timesteps=8)
    own = dict(nb_rollout_steps=10) if alg is ddpg else dict(train_freq=10)
    names = names_after(alg, Pushed(), **settings, **own)
    memory = names["memory"]
    noise = memory.actions[:8, 0] - names["model"].act(memory.frames[:8, 0])
    deviations = noise.std(axis=0) / [1, 4]  # in half widths
    assert (deviations > 0.03).all() and (deviations < 0.3).all()
