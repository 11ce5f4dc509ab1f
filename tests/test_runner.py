"""Rollouts of an environment whose numbers show which step they belong to."""

import numpy as np
import pytest
from gymnasium import spaces
from toy_envs import CounterEnv

from baselines.common.data.runners import Batch, Runner
from baselines.common.networks.policies import Policy
from baselines.common.vec_env import DummyVecEnv


class ValueIsHundredPlusObservation:
    """Actions count its calls; v(s) = 100 + s."""

    initial_state = None

    def __init__(self):
        self.masks = []

    def step(self, obs, S=None, M=None):
        obs = np.asarray(obs)
        self.masks.append(list(M))
        actions = np.full(len(obs), (len(self.masks) - 1) % 2)
        return actions, 100 + obs[:, 0], S, -obs[:, 0]

    def value(self, obs, S=None, M=None):
        return 100 + np.asarray(obs)[:, 0]


@pytest.fixture
def runner():
    env_fns = [CounterEnv, lambda: CounterEnv(terminate_after=3)]
    env_fns.append(lambda: CounterEnv(truncate_after=3))
    return Runner(DummyVecEnv(env_fns), ValueIsHundredPlusObservation(), nsteps=4)


def test_rollout_is_aligned(runner):
    rollout = runner.run()
    obs = np.array([[0, 0, 0], [1, 1, 1], [2, 2, 2], [3, 0, 0]])
    np.testing.assert_array_equal(np.asarray(rollout.obs)[..., 0], obs)
    np.testing.assert_array_equal(rollout.rewards, obs + 1)
    np.testing.assert_array_equal(rollout.values, 100 + obs)
    np.testing.assert_array_equal(rollout.neglogps, -obs)
    np.testing.assert_array_equal(rollout.actions, [[0] * 3, [1] * 3, [0] * 3, [1] * 3])
    ended = [False, True, True]
    dones = [[False] * 3, [False] * 3, ended, [False] * 3]
    np.testing.assert_array_equal(rollout.dones, dones)
    # Inside an episode the next state's value; at an end 0; at a time limit that
    # of the last state, 3, and not of the next episode's first.
    next_values = [[101, 101, 101], [102, 102, 102], [103, 0, 103], [104, 101, 101]]
    np.testing.assert_array_equal(rollout.next_values, next_values)


def test_next_rollout_continues_where_the_last_one_stopped(runner):
    runner.run()
    second = runner.run()
    np.testing.assert_array_equal(np.asarray(second.obs)[0, :, 0], [4, 1, 1])
    np.testing.assert_array_equal(second.dones[:, 0], [False] * 4)
    np.testing.assert_array_equal(second.dones[:, 1], [False, True, False, False])


def test_model_gets_masks_of_first_steps(runner):
    runner.run()
    runner.run()
    begun = [False, True, True]
    inside = [False, False, False]
    expected = [*[inside] * 3, begun, inside, inside, begun, inside]
    assert runner.model.masks == expected


def test_values_of_recurrent_networks_are_bootstrapped_from_their_state():
    env = DummyVecEnv([lambda: CounterEnv(truncate_after=5), CounterEnv])
    policy = Policy(env.observation_space, env.action_space, "lstm", seed=0)
    runner = Runner(env, policy, 4)
    first, second = runner.run(), runner.run()
    np.testing.assert_allclose(first.next_values[-1], second.values[0], rtol=1e-5)
    # A time limit of 5 ends an episode in the first step of the second rollout.
    obs = np.arange(6, dtype=np.float32).reshape(6, 1, 1)
    state, masks = np.zeros((1, 256), np.float32), np.zeros((6, 1), bool)
    values = policy(Batch(obs, state, masks)).values
    np.testing.assert_allclose(second.next_values[0, 0], float(values[-1]), rtol=1e-4)


def test_minibatches_have_the_states_of_their_environments():
    x = np.arange(6).reshape(2, 3)  # [T, N]
    part = Batch(x, states=np.float32([[1], [2], [3]])).take(np.array([2, 0]))
    assert np.asarray(part.states).tolist() == [[3], [1]]
    assert np.asarray(part.obs).tolist() == [[2, 0], [5, 3]]
    part = Batch(x, actions=10 * x).take(np.array([4, 0]))
    assert part.states is None and np.asarray(part.obs).tolist() == [[4, 0]]
    assert np.asarray(part.flat().actions).tolist() == [40, 0]


def test_environments_get_actions_within_bounds_and_losses_those_drawn():
    class Bounded(CounterEnv):
        action_space = spaces.Box(-1, 1, (2,), np.float32)

        def step(self, action):
            assert action in self.action_space
            return super().step(action)

    class Wild(ValueIsHundredPlusObservation):
        def step(self, obs, S=None, M=None):
            _, *others = super().step(obs, S, M)
            return np.full((len(obs), 2), 5.0, np.float32), *others

    rollout = Runner(DummyVecEnv([Bounded] * 2), Wild(), nsteps=3).run()
    assert (rollout.actions == 5.0).all()
