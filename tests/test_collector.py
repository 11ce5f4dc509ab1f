"""What off-policy algorithms share: collector, memory, actor and critics."""

from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium import spaces
from toy_envs import CounterEnv

from baselines.common.base.errors import UserTypeError, UserValueError
from baselines.common.data.collector import Collector
from baselines.common.data.memory import make_memory
from baselines.common.networks.actor_critic import ActorCritic
from baselines.common.networks.distributions import Deterministic, SquashedGaussian
from baselines.common.vec_env import DummyVecEnv, VecNormalize

BOX = spaces.Box(np.float32([-1, -2]), np.float32([1, 6]))
VECTOR = spaces.Box(-1, 1, (3,), np.float32)


class Pushed(CounterEnv):
    """A CounterEnv with continuous actions, which have to be in their space."""

    action_space = BOX

    def step(self, action):
        assert self.action_space.contains(np.asarray(action, np.float32))
        return super().step(action)


def run_in(env, seed=0):
    return SimpleNamespace(env=env, seed=seed, total_timesteps=1000)


def make_collector(explore=None, num_env=2, seed=0, **arguments):
    env = DummyVecEnv([lambda: Pushed(truncate_after=3)] * num_env)
    memory = make_memory(run_in(env, seed), 100, n_step=1, gamma=0.9)
    return Collector(env, memory, explore, random_seed=seed, **arguments), memory


def play(collector, steps):
    actions = []
    for _ in range(steps):
        collector.step_async()
        collector.step_wait()
        actions.append(np.array(collector.actions))
    return np.array(actions)


def test_actions_are_clipped_before_they_are_played_and_stored():
    collector, memory = make_collector(
        lambda obs: np.full((len(obs), 2), 99, np.float32)
    )
    np.testing.assert_array_equal(play(collector, 2), np.full((2, 2, 2), [1, 6]))
    np.testing.assert_array_equal(memory.actions[:2], np.full((2, 2, 2), [1, 6]))


def test_entropy_of_actions_shows_whether_they_still_vary():
    """Of those since the last call, with a first action other than 0."""

    class Started(CounterEnv):
        action_space = spaces.Discrete(3, start=5)

    chosen = iter([[5, 6], [5, 7], [5, 5], [6, 6]])
    env = DummyVecEnv([Started] * 2)
    memory = make_memory(run_in(env), 100, n_step=1, gamma=0.9)
    collector = Collector(env, memory, lambda obs: np.array(next(chosen)))
    play(collector, 2)
    # Of 5, 5, 6 and 7.
    expected = -(0.5 * np.log(0.5) + 2 * 0.25 * np.log(0.25))
    assert collector.action_entropy() == pytest.approx(expected)
    play(collector, 1)
    other = Collector(env, memory, lambda obs: np.array(next(chosen)))
    other.set_state(collector.get_state())
    assert str(collector.action_entropy()) == "0.0"
    play(other, 1)
    assert other.action_entropy() == pytest.approx(np.log(2))


def test_random_actions_come_first_and_can_be_resumed():
    explored = []

    def explore(obs):
        explored.append(len(obs))
        return np.zeros((len(obs), 2), np.float32)

    collector, memory = make_collector(explore, learning_starts=8)
    actions = play(collector, 6)
    np.testing.assert_array_equal(memory.actions[:6], actions)
    assert (explored, collector.num_timesteps) == ([2, 2], 12)
    assert len(np.unique(actions[:4])) == 16 and not actions[4:].any()
    collector, _ = make_collector(explore, learning_starts=8)
    first = play(collector, 2)
    collector.last_metrics = {"loss": np.float32([1, 2])}
    state = collector.get_state()
    other, _ = make_collector(explore, learning_starts=8, seed=5)
    other.set_state(state)
    again = np.concatenate([first, play(other, 4)])
    np.testing.assert_array_equal(again, actions)
    assert other.last_metrics == {"loss": 1.5}


def test_rewards_in_a_memory_have_one_unit():
    env = VecNormalize(DummyVecEnv([CounterEnv]), ob=False)
    with pytest.raises(UserValueError, match="needs rewards in the same unit"):
        make_memory(run_in(env), 10, gamma=0.9)
    env.training = False
    make_memory(run_in(env), 10, gamma=0.9)


@pytest.mark.parametrize("distribution", [Deterministic, SquashedGaussian])
def test_rounding_does_not_move_actions_out_of_bounds(distribution):
    """In float32, -0.615 + 0.735 · 1 is above 0.12."""
    box = spaces.Box(np.float32([-1.35]), np.float32([0.12]))
    model = ActorCritic(VECTOR, box, "mlp", distribution(box))
    bias = model.parts["pi"].trainable_variables[-1]
    bias.assign(np.full(bias.shape, 50.0))
    for deterministic in False, True:
        actions = model.act(np.zeros((3, 3), np.float32), deterministic)
        assert all(action in box for action in actions)


def test_critics_differ_and_the_lowest_is_the_value():
    model = ActorCritic(VECTOR, BOX, "mlp", Deterministic(BOX), seed=0)
    obs = np.stack([VECTOR.sample() for _ in range(5)])
    actions, values, *_ = model.step(obs)
    critics = np.asarray(model.values(obs, actions))
    assert critics.shape == (2, 5) and (critics[0] != critics[1]).all()
    np.testing.assert_allclose(values, critics.min(axis=0), atol=1e-6)
    np.testing.assert_allclose(model.value(obs), values)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-np.inf, np.inf, (2,)),
        spaces.Box(np.float32([-1, 0]), np.float32([1, 0])),  # of no width
        spaces.Box(0, 5, (2,), np.int32),
    ],
)
def test_squashed_actions_need_floats_with_bounds(space):
    with pytest.raises(UserTypeError):
        Deterministic(space)
