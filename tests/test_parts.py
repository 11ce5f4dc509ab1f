"""Parts by name: optimizer, memory, distribution, critic and value network."""

import gymnasium as gym
import keras
import numpy as np
import pytest
from conftest import slow
from gymnasium import spaces

import baselines
from baselines import a2c, crossq, dqn, ppo2, qrdqn, sac, tqc, trpo
from baselines.common.arguments.parts import Part
from baselines.common.base.errors import UserTypeError, UserValueError
from baselines.common.data.replay_buffer import ReplayBuffer
from baselines.common.data.runners import Batch
from baselines.common.networks.distributions import DiagGaussian
from baselines.common.networks.layers import BatchRenorm
from baselines.common.networks.policies import Policy
from baselines.common.saving.config import PARTS
from baselines.common.updates.optimizers import Adam, Groups
from baselines.common.updates.update import Step, make_update

COMMON = dict(seed=0, overwrite=True)
ON_POLICY = dict(COMMON, nsteps=20, total_timesteps=80)
OFF_POLICY = dict(COMMON, learning_starts=50, total_timesteps=100, buffer_size=90)
OFF_POLICY |= dict(train_freq=1, gradient_steps=1)


def seen_in(learn, env_id, **settings):
    """Returns the model, and the local variables of ``learn`` at the last callback."""
    names = {}
    settings["callback"] = lambda those, _: names.update(those)
    return learn(env=gym.make(env_id), **settings), names


ADAMW = dict(optimizer="adamw", weight_decay=0.5)
LION = dict(optimizer=keras.optimizers.Lion)


@pytest.mark.parametrize(
    "learn, env_id, settings, changes",
    [
        slow(a2c.learn, "CartPole-v1", ON_POLICY, LION),
        (ppo2.learn, "CartPole-v1", ON_POLICY, ADAMW),
        (dqn.learn, "CartPole-v1", OFF_POLICY, LION),
        slow(sac.learn, "Pendulum-v1", OFF_POLICY, ADAMW),
    ],
)
def test_an_optimizer_by_name_trains_within_the_same_limits(
    learn, env_id, settings, changes
):
    own, names = seen_in(learn, env_id, **settings)
    model, others = seen_in(learn, env_id, **settings, **changes)
    optimizers = [
        name for name, x in others.items() if isinstance(x, keras.optimizers.Optimizer)
    ]
    for name in optimizers:
        optimizer, same = others[name], names[name]
        assert int(optimizer.iterations) == int(same.iterations) > 0
        limits = optimizer.clipnorm, optimizer.global_clipnorm
        assert limits == (same.clipnorm, same.global_clipnorm)
        if changes is ADAMW:
            assert type(optimizer) is keras.optimizers.AdamW
            assert optimizer.weight_decay == 0.5
    pairs = zip(own.trainable_variables, model.trainable_variables)
    assert optimizers and any((np.asarray(a) != np.asarray(b)).any() for a, b in pairs)


def test_a_value_network_of_another_size(tmp_path):
    settings = dict(value_network="mlp", value_num_hidden=16, num_layers=1)
    model = ppo2.learn(env=gym.make("Pendulum-v1"), **ON_POLICY, **settings)
    shapes = [tuple(v.shape) for v in model.parts["value_network"].variables]
    assert shapes == [(3, 16), (16,), (16, 16), (16,)]
    assert len(model.parts["network"].variables) == 2
    model.save(tmp_path / "model")
    obs = np.float32([[1, 0, 0.5]])
    loaded = baselines.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.value(obs), model.value(obs))
    with pytest.raises(UserTypeError, match="value_num_hidden"):
        ppo2.learn(env=gym.make("Pendulum-v1"), value_num_hidden=16, **ON_POLICY)
    with pytest.raises(UserTypeError, match="recurrent"):
        settings = dict(network="lstm", value_network="mlp")
        a2c.learn(env=gym.make("CartPole-v1"), **settings, **ON_POLICY)


class Shrunk(DiagGaussian):
    """A distribution of one's own: means within a tenth of the bounds."""

    def mode(self, params):
        return 0.1 * keras.ops.tanh(super().mode(params))


def test_a_distribution_of_ones_own(tmp_path):
    env = gym.make("Pendulum-v1")
    model = ppo2.learn(env=env, distribution=Shrunk, **ON_POLICY)
    action, _ = model.predict(env.reset()[0], deterministic=True)
    assert np.abs(action).max() <= 0.1
    model.save(tmp_path / "model")
    with pytest.raises(UserValueError, match="distribution"):
        baselines.load(tmp_path / "model")
    loaded = baselines.load(tmp_path / "model", distribution=Shrunk)
    assert type(loaded.distribution) is Shrunk
    model = ppo2.learn(
        env=env, distribution="gaussian", state_dependent=True, **ON_POLICY
    )
    model.save(tmp_path / "model")
    assert baselines.load(tmp_path / "model").distribution.state_dependent


class Recent(ReplayBuffer):
    """A memory of one's own: batches are of the newest transitions."""

    def __init__(self, *spaces, newest: int = 8, **settings):
        super().__init__(*spaces, **settings)
        self.newest = newest


def test_a_memory_of_ones_own(tmp_path):
    settings = OFF_POLICY | dict(batch_size=4)
    _, names = seen_in(dqn.learn, "CartPole-v1", memory=Recent, newest=3, **settings)
    assert type(names["memory"]) is Recent and names["memory"].newest == 3
    with pytest.raises(UserValueError, match="prioritized_replay"):
        given = dict(memory=Recent, prioritized_replay=True)
        dqn.learn(env=gym.make("CartPole-v1"), **given, **settings)
    # It is not part of a model.
    names["model"].save(tmp_path / "model")
    baselines.load(tmp_path / "model")


@pytest.mark.parametrize(
    "learn, env_id, settings, outputs",
    [
        (tqc.learn, "Pendulum-v1", dict(num_quantiles=5, num_critics=3), 5),
        (qrdqn.learn, "CartPole-v1", dict(num_quantiles=7), 14),
    ],
)
def test_quantiles_are_loaded(learn, env_id, settings, outputs, tmp_path):
    env = gym.make(env_id)
    model = learn(env=env, **OFF_POLICY, **settings)
    last = [v for name, v in model.named_variables.items() if "kernel" in name][-1]
    assert last.shape[-1] == outputs
    model.save(tmp_path / "model")
    obs, _ = env.reset(seed=0)
    loaded = baselines.load(tmp_path / "model")
    actions = [one.predict(obs, deterministic=True)[0] for one in (model, loaded)]
    np.testing.assert_array_equal(*actions)


def test_groups_have_rates_of_their_own():
    box = spaces.Box(-1, 1, (2,), np.float32)
    policy = Policy(box, box, "mlp", "copy", seed=0)

    def loss(batch):
        out = policy(batch)
        return keras.ops.sum(out.params) + keras.ops.sum(out.values), {}

    groups = policy.policy_variables, policy.value_variables
    optimizer = Groups((Adam(), groups[0], 1.0), (Adam(), groups[1], 0.1))
    step = Step(loss, optimizer, policy.trainable_variables)
    before = [[np.array(v) for v in group] for group in groups]
    update = make_update(step, variables=policy.variables)
    update(np.float32(1e-3), Batch(np.ones((1, 2, 2), np.float32)))
    for group, old, rate in zip(groups, before, (1e-3, 1e-4)):
        moves = [np.abs(np.asarray(v) - x).max() for v, x in zip(group, old)]
        np.testing.assert_allclose(moves, rate, rtol=1e-2)
    assert int(optimizer.iterations) == 1


def test_batch_renormalisation_golden():
    """A batch of 1 and 3 has mean 2 and deviation 1."""
    layer, batch = BatchRenorm(), np.float32([[1], [3]])
    np.testing.assert_allclose(layer(batch), batch)
    np.testing.assert_allclose(layer(batch, training=True), [[-1], [1]], atol=1e-3)
    np.testing.assert_allclose(layer.mean, [0.02], rtol=1e-4)
    # Corrected towards mean 0.02 and deviation 1, which acting uses.
    layer.warm_up = 0
    found = layer(batch, training=True)
    np.testing.assert_allclose(found, batch - 0.02, atol=1e-3)
    acting = (batch - np.asarray(layer.mean)) / np.asarray(layer.std)
    np.testing.assert_allclose(layer(batch), acting, rtol=1e-5)


def test_crossq_has_moments_of_its_own_and_no_targets():
    model, names = seen_in(crossq.learn, "Pendulum-v1", **OFF_POLICY)
    means = [x for name, x in model.named_variables.items() if name.endswith("mean")]
    assert len(means) == 9  # of the policy and two critics, with two layers each
    assert all(np.asarray(mean).any() for mean in means)
    counts = [x for name, x in model.named_variables.items() if name.endswith("count")]
    updates = int(names["policy_optimizer"].iterations)
    expected = 3 * [updates] + 6 * [3 * updates]  # policy_delay is 3
    assert sorted(map(float, counts)) == expected
    old, new = (names[x].critic_variables for x in ("target", "model"))
    assert any((np.asarray(a) != np.asarray(b)).any() for a, b in zip(old, new))
    with pytest.raises(UserTypeError, match="unknown"):
        crossq.learn(env=gym.make("Pendulum-v1"), weight_decay=0.1, **OFF_POLICY)


def test_what_the_algorithm_sets_is_refused():
    given = dict(optimizer=keras.optimizers.Lion, learning_rate=0.3)
    with pytest.raises(UserTypeError, match="learning_rate"):
        ppo2.learn(env=gym.make("CartPole-v1"), **given, **ON_POLICY)


def test_every_part_is_among_those_that_need_trust():
    """By whatever name a file may say which code to run."""
    learns = a2c.learn, dqn.learn, sac.learn, trpo.learn
    declared = {k: x for learn in learns for k, x in learn.declared.items()}
    assert {k for k, x in declared.items() if x.marker(Part)} == {*PARTS}
