"""Running statistics, in a wrapper and in the model."""

import numpy as np
from gymnasium import spaces

from baselines.common.base.running_moments import RunningMoments
from baselines.common.networks.normalizer import Normalizer
from baselines.common.networks.policies import Policy
from baselines.common.vec_env import VecEnv, VecNormalize

FLAT = spaces.Box(-np.inf, np.inf, (3,), np.float32)


def test_moments_of_batches_are_those_of_all_samples():
    rng = np.random.default_rng(0)
    batches = [rng.normal(5, 3, size=(n, 2)) for n in (1, 7, 100, 3)]
    moments = RunningMoments((2,))
    for batch in batches:
        moments.update(batch)
    everything = np.concatenate(batches)
    np.testing.assert_allclose(moments.mean, everything.mean(axis=0))
    np.testing.assert_allclose(moments.var, everything.var(axis=0))
    assert moments.count == 111


def test_many_single_samples_far_from_0_are_not_lost_in_rounding():
    normalizer = Normalizer()
    normalizer.build((None,))
    normalizer.set_statistics(1000.0, 1.0, 2.0**24)
    for _ in range(2**10):
        normalizer.update([1001.0])
    mean = np.asarray(normalizer.statistics[0])
    np.testing.assert_allclose(mean - 1000, 1 / (2**14 + 1), rtol=1e-6)
    assert float(normalizer.count) == 2**24 + 2**10


class Scripted(VecEnv):
    """Two environments with fixed rewards; the second ends with its second step."""

    def __init__(self):
        space = spaces.Box(-99, 99, (1,), np.float32)
        super().__init__(2, space, spaces.Discrete(2))

    def reset(self):
        self.t = 0
        return np.array([[0], [4]], np.float32)

    def step_async(self, actions):
        pass

    def step_wait(self):
        self.t += 1
        rewards = np.array([[1, 2], [3, 4], [5, 6]][self.t - 1], np.float32)
        dones = np.array([False, self.t == 2])
        infos = [{}, {"terminal_observation": np.array([9], np.float32)}]
        return np.array([[0], [4]], np.float32), rewards, dones, infos

    def get_images(self):
        return []

    def close(self):
        pass


def test_rewards_are_divided_by_the_deviation_of_the_discounted_return():
    env = VecNormalize(Scripted(), ob=False, gamma=0.5, epsilon=0)
    env.reset()
    # Returns 1, 2; then 3.5, 5; then 5 + 1.75 and, after the end, 6 alone.
    returns = [1, 2, 3.5, 5, 6.75, 6]
    for n, rewards in ((2, [1, 2]), (4, [3, 4]), (6, [5, 6])):
        obs, scaled, _, _ = env.step([0, 0])
        np.testing.assert_allclose(scaled, rewards / np.std(returns[:n]), rtol=1e-6)
        np.testing.assert_array_equal(obs, [[0], [4]])


def test_observations_are_normalised_and_clipped():
    env = VecNormalize(Scripted(), ret=False, clipob=3.0, epsilon=0)
    # Mean 2 and deviation 2, which more of the same does not change.
    np.testing.assert_allclose(env.reset(), [[-1], [1]])
    env.step([0, 0])
    obs, rewards, dones, infos = env.step([0, 0])
    np.testing.assert_allclose(obs, [[-1], [1]])
    np.testing.assert_allclose(infos[1]["terminal_observation"], [3])  # not 3.5
    np.testing.assert_array_equal(rewards, [3, 4])


def test_rewards_are_clipped_and_reset_clears_returns():
    env = VecNormalize(Scripted(), ob=False, gamma=0.5, epsilon=0, cliprew=1.5)
    env.reset()
    np.testing.assert_allclose(env.step([0, 0])[1], [1.5, 1.5])  # not 2 and 4
    env.step([0, 0])
    env.reset()
    env.step([0, 0])
    returns = [1, 2, 3.5, 5, 1, 2]
    np.testing.assert_allclose(env.ret_rms.var, np.var(returns))


def test_statistics_do_not_change_while_not_training():
    env = VecNormalize(Scripted(), epsilon=0)
    env.reset()
    env.training = False
    before = env.ob_rms.get_state(), env.ret_rms.get_state()
    env.step([0, 0])
    assert (env.ob_rms.get_state(), env.ret_rms.get_state()) == before


def test_model_normalises_by_what_it_observed():
    box = spaces.Box(-1, 1, (2,))
    policy = Policy(FLAT, box, "mlp", normalize_observations=True, seed=0)
    obs = np.random.default_rng(0).normal(50, 7, (400, 3)).astype(np.float32)
    policy.observe(obs[:100].reshape(10, 10, 3))
    policy.observe(obs[100:].reshape(30, 10, 3))
    normalised = np.asarray(policy.parts["normalizer"](obs))
    np.testing.assert_allclose(normalised.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(normalised.std(axis=0), 1, atol=1e-4)
    far = np.full((1, 3), 1e6, np.float32)
    np.testing.assert_array_equal(policy.parts["normalizer"](far), [[10, 10, 10]])
