"""A2C's update gets the advantages of what was played."""

import numpy as np
import pytest

from baselines import a2c
from baselines.common.envs import make_vec_env


def test_policy_is_trained_on_advantages_over_the_value_at_acting(empty_folder):
    seen = {}

    def callback(names, _):
        seen.update(names)
        return True

    env = make_vec_env("CartPole-v1", num_env=2, seed=0)
    a2c.learn(env=env, network="mlp", seed=0, callback=callback)
    rollout, advantages = seen["rollout"], seen["returns"] - seen["rollout"].values
    # The loss is that of the policy which acted, before its first update.
    expected = np.mean(advantages * rollout.neglogps)
    assert float(seen["metrics"]["policy_loss"]) == pytest.approx(expected, rel=1e-4)
