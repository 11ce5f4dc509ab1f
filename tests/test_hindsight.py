"""Hindsight: goals of memories and environments, by hand, and what dqn learns."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from memory_checks import check_memory
from toy_envs import BitFlips, CounterEnv

from baselines import ddpg, run, sac, td3
from baselines.common.base.errors import UserError, UserValueError
from baselines.common.data.episodes import EpisodeResults, result_of, results_of
from baselines.common.data.hindsight_replay import HindsightReplayBuffer
from baselines.common.envs import make_vec_env
from baselines.common.envs.goals import Goals, find_goals
from baselines.common.run.evaluation import summary
from baselines.common.vec_env import (
    DummyVecEnv,
    VecMonitor,
)
from baselines.dqn import learn
from baselines.evaluate import evaluate_run

VECTOR = spaces.Box(-np.inf, np.inf, (3,), np.float32)
ALWAYS = 10**15  # k, with which no transition keeps its goal


def minus_distance(achieved, desired):
    return -np.abs(achieved - desired)[:, 0]


def make(size=100, replay_k=ALWAYS, n_step=1):
    """A memory of observations (achieved, 0, desired), of two environments."""
    return HindsightReplayBuffer(
        VECTOR,
        spaces.Discrete(2),
        size,
        num_envs=2,
        n_step=n_step,
        gamma=0.5,
        seed=0,
        goals=Goals(slice(0, 1), slice(2, 3), minus_distance),
        replay_k=replay_k,
    )


def show(*achieved):
    return np.array([[x, 0, goal] for x, goal in zip(achieved, (70, 80))], np.float32)


def fill(buffer):
    """Six steps: 0 ends at 12, at 22 by a time limit, 1 at 55 by a time limit."""
    buffer.start(show(10, 50))
    for obs, last_obs, truncated in [
        (show(11, 51), {}, []),
        (show(20, 52), {0: show(12, 0)[0]}, []),
        (show(21, 53), {}, []),
        (show(30, 54), {0: show(22, 0)[0]}, [0]),
        (show(31, 60), {1: show(0, 55)[1]}, [1]),
        (show(32, 61), {}, []),
    ]:
        following = obs.copy()
        for env, last in last_obs.items():
            following[env] = last
        rewards = minus_distance(following[:, :1], following[:, 2:])
        dones = np.array([0 in last_obs, 1 in last_obs])
        buffer.add(np.zeros(2, int), rewards, dones, obs, last_obs, truncated)
        check_memory(buffer)
    return buffer


# By environment and row: what may be desired, achieved in the same episode from the
# step on.
POSSIBLE = [
    [{11, 12}, {12}, {21, 22}, {22}, {31, 32}, {32}],
    [{51, 52, 53, 54, 55}, {52, 53, 54, 55}, {53, 54, 55}, {54, 55}, {55}, {61}],
]
ACHIEVED = [[11, 12, 21, 22, 31, 32], [51, 52, 53, 54, 55, 61]]  # after each step


@pytest.mark.parametrize(
    ("size", "first"), [(100, 0), (6, 3)], ids=["whole", "overwritten"]
)
def test_goals_are_those_achieved_later_in_the_episode(size, first):
    buffer = fill(make(size))
    batch = buffer.sample(2, 500)
    found = [[set() for _ in range(6)] for _ in range(2)]
    for i in np.ndindex(2, 500):
        slot, env = divmod(int(batch.indices[i]), 2)
        row = slot if slot >= first else slot + 4
        goal, achieved = batch.obs[i][2], ACHIEVED[env][row]
        found[env][row].add(int(goal))
        assert batch.returns[i] == achieved - goal  # minus how far the goal is
        # One episode truly ended, whatever the goal.
        true_end = (env, row) == (0, 1)
        assert batch.discounts[i] == (0 if true_end else 0.5)
        assert true_end or batch.next_obs[i].tolist() == [achieved, 0, goal]
    for env in range(2):
        assert found[env][first:] == POSSIBLE[env][first:]
        assert not any(found[env][:first])


def test_returns_of_three_steps_are_for_the_new_goal():
    buffer = fill(make(n_step=3))
    batch = buffer.sample(1, 500)
    columns = batch.obs[0], batch.returns[0], batch.discounts[0]
    returns = {
        (obs[0], obs[2]): (value, factor) for obs, value, factor in zip(*columns)
    }
    # From 50, three steps to 53: -4 - 3/2 - 2/4 for 55, -2 - 1/2 for 53; and so on.
    expected = {51: -1.0, 52: -1.25, 53: -2.5, 54: -4.25, 55: -6.0}
    for goal, value in expected.items():
        assert returns[50, goal] == (value, 0.125)
    # Two steps to a true end, to a time limit, and to the newest step.
    assert [returns[10, goal] for goal in (11, 12)] == [(-0.5, 0), (-1, 0)]
    assert [returns[20, goal] for goal in (21, 22)] == [(-0.5, 0.25), (-1, 0.25)]
    assert [returns[30, goal] for goal in (31, 32)] == [(-0.5, 0.25), (-1, 0.25)]


def test_four_in_five_get_another_goal_all_alike():
    batch = fill(make(replay_k=4)).sample(1, 50_000)
    goals = batch.obs[0, :, 2]
    kept = (goals == 70) | (goals == 80)
    assert np.mean(kept) == pytest.approx(0.2, abs=0.01)
    of_first = goals[(batch.obs[0, :, 0] == 50) & ~kept]
    shares = np.bincount(of_first.astype(int), minlength=56)[51:] / len(of_first)
    np.testing.assert_allclose(shares, 0.2, atol=0.03)


def test_rewards_that_compute_reward_does_not_return_are_refused():
    buffer = make()
    buffer.start(show(10, 50))
    with pytest.raises(UserValueError, match=r"gave \[-1. -1.\].* \[-59. -29.\]"):
        rewards = np.array([-1, -1], np.float32)
        buffer.add(np.zeros(2, int), rewards, np.zeros(2, bool), show(11, 51), {}, [])


@pytest.mark.parametrize("num_workers", [None, 2])
def test_goals_of_environments_in_this_process_and_in_workers(num_workers):
    arguments = dict(reward_scale=0.5, num_workers=num_workers, env_kwargs={"bits": 3})
    with make_vec_env("toy_envs:BitFlips-v0", num_env=2, **arguments) as env:
        goals = find_goals(VecMonitor(env))
        assert (goals.achieved, goals.desired) == (slice(0, 3), slice(3, 6))
        desired = np.array([[1, 0, 0], [0, 0, 0]])
        # What the algorithm sees is half of what the environment pays.
        np.testing.assert_array_equal(
            goals.compute_reward(np.zeros((2, 3)), desired), [-0.5, 0]
        )


def normalized():
    flat = gym.wrappers.FlattenObservation(BitFlips())
    return gym.wrappers.NormalizeObservation(flat)


@pytest.mark.parametrize("make_env", [CounterEnv, normalized])
def test_environments_without_goals_are_refused(make_env):
    """Or whose goals wrappers may change."""
    env = DummyVecEnv([lambda: gym.wrappers.FlattenObservation(make_env())])
    with pytest.raises(UserError):
        find_goals(env)


def test_either_priorities_or_goals():
    env = make_vec_env("toy_envs:BitFlips-v0")
    with pytest.raises(UserValueError, match="prioritized_replay and replay_k cannot"):
        learn(env=env, network="mlp", prioritized_replay=True, replay_k=4)


@pytest.mark.slow
def test_her_reaches_all_goals_of_a_robot(tmp_path):
    pytest.importorskip("gymnasium_robotics")
    folder = str(tmp_path / "run")
    words = ["--alg=her", "--env=FetchReach-v4", "--num_timesteps=5000", "--seed=0"]
    run.main([*words, f"--log_path={folder}"])
    found = evaluate_run(folder, episodes=50, deterministic=True, seed=0)
    assert found["success_rate"] >= 0.95


def test_rate_of_successes_in_training_and_evaluations():
    ends = [{"is_success": np.True_}, {"is_success": 0.0}, {"success": True}]
    ends.append({"is_success": "perhaps"})
    infos = [{"episode": {"r": 1.0, "l": 2, "t": 0.1}} | end for end in ends]
    inside = {"is_success": False}  # in the middle of an episode
    episodes, other = EpisodeResults(), EpisodeResults()
    assert "success_rate" not in episodes.columns()
    episodes.extend(results_of([*infos, inside]))
    episodes.previous = 3  # With several ranks, rows are of the update before.
    other.set_state(episodes.get_state())
    assert (other.previous, other.count) == (3, 4)
    rate = pytest.approx(2 / 3)
    columns = {"eprewmean": 1.0, "eplenmean": 2.0, "success_rate": rate}
    assert other.columns() == columns
    results = [result_of(info) for info in infos]
    assert summary(results)["success_rate"] == rate
    assert "success_rate" not in summary(results[3:])


def success_rate(learn, env, **settings):
    """Returns the fraction of the last 100 episodes that reached the goal."""
    runs = []
    settings |= dict(activation="relu", gamma=0.98, batch_size=128, seed=0)
    learn(env=env, network="mlp", on_update=runs.append, **settings)
    return runs[-1].episodes.columns()["success_rate"]


def success(bits, replay_k, **settings):
    """Returns dqn's success rate with a number of bits."""
    kwargs = {"bits": bits}
    env = make_vec_env("toy_envs:BitFlips-v0", num_env=8, seed=0, env_kwargs=kwargs)
    settings |= dict(num_layers=1, num_hidden=256, hiddens=[], train_freq=4)
    settings |= dict(exploration_fraction=0.2, checkpoint_freq=0, replay_k=replay_k)
    return success_rate(learn, env, **settings)


def test_dqn_flips_bits_with_hindsight():
    settings = dict(lr=2e-3, learning_starts=200, target_network_update_freq=100)
    assert success(8, 4, total_timesteps=2500, **settings) > 0.9


@pytest.mark.slow
def test_dqn_flips_15_bits_with_hindsight_and_not_without():
    """One of 32,768 states is the goal: almost none is reached by chance."""
    assert success(15, 4, lr=1e-3, total_timesteps=20_000) > 0.95
    assert success(15, 0, lr=1e-3, total_timesteps=20_000) == 0


def reaches(learn, replay_k, **settings):
    """Returns the success rate of an algorithm for continuous actions."""
    env = make_vec_env("toy_envs:PointReach-v0", num_env=4, seed=0)
    settings |= dict(num_layers=2, num_hidden=64, total_timesteps=4000, tau=0.01)
    return success_rate(learn, env, replay_k=replay_k, **settings)


DDPG = dict(actor_lr=1e-3, random_eps=0.3, action_l2=1.0, critic_l2_reg=0.0)
DDPG |= dict(nb_rollout_steps=40, nb_train_steps=20)


def test_ddpg_reaches_goals_with_hindsight():
    assert reaches(ddpg.learn, 4, **DDPG) > 0.5


@pytest.mark.slow
def test_others_reach_goals_with_hindsight_and_ddpg_not_without():
    assert reaches(ddpg.learn, 0, **DDPG) < 0.2
    for alg in td3, sac:
        assert reaches(alg.learn, 4, lr=1e-3) > 0.5


@pytest.mark.parametrize("num_envs", [1, 2])
@pytest.mark.parametrize(
    "reward",
    [
        lambda a, b: -np.abs(a - b).sum(axis=0),
        lambda a, b: -(abs(a[0] - b[0]) + abs(a[1] - b[1])),
        lambda a, b: -float(np.linalg.norm(a - b) > 0.5),
    ],
    ids=["first axis", "indices", "one number"],
)
def test_rewards_of_one_goal_alone_are_refused(reward, num_envs):
    def make_env():
        env = BitFlips(2)
        env.compute_reward = lambda a, b, info: reward(a, b)
        return gym.wrappers.FlattenObservation(env)

    with pytest.raises(UserValueError):
        learn(DummyVecEnv([make_env] * num_envs), total_timesteps=20, replay_k=4)
