"""Each wrapper against its specification, on the emulator, frame by frame."""

import ale_py
import cv2
import gymnasium as gym
import numpy as np
import pytest
from toy_envs import ActionLog, ToyGame

from baselines.bench.monitor import Monitor
from baselines.common.base.errors import UserValueError
from baselines.common.envs import atari_wrappers, make_env
from baselines.common.envs.atari_wrappers import (
    EpisodicLifeEnv,
    FireResetEnv,
    MaxAndSkipEnv,
    NoopResetEnv,
    make_atari,
    wrap_deepmind,
)
from baselines.common.envs.recorder import wrappers_of
from baselines.common.vec_env import DummyVecEnv

gym.register_envs(ale_py)

PONG = "PongNoFrameskip-v4"
BREAKOUT = "BreakoutNoFrameskip-v4"


def emulator(env_id, **kwargs):
    """The plain game: grey screens, one frame a step."""
    return gym.make(env_id, obs_type="grayscale", **kwargs)


def skip_four(env, action):
    """What one agent step has to be, computed from plain frames.

    Returns:
        the observation, summed reward, terminated, truncated.
    """
    total, frames = 0.0, []
    for _ in range(4):
        frame, reward, terminated, truncated, _ = env.step(action)
        total += reward
        frames.append(frame)
        if terminated or truncated:
            break
    if len(frames) == 4:
        frame = np.maximum(frames[2], frames[3])
    return frame, total, terminated, truncated


def shrink(frame):
    return cv2.resize(frame, (84, 84), interpolation=cv2.INTER_AREA)[:, :, None]


def frame_number(env):
    return env.unwrapped.ale.getEpisodeFrameNumber()


def noop_counts(env, resets, seed):
    counts = []
    for i in range(resets):
        env.reset(seed=seed if i == 0 else None)
        assert set(env.env.actions) == {0}
        counts.append(len(env.env.actions))
    return counts


def test_noop_reset_repeats_with_its_seed_and_ignores_the_global_generator():
    env = NoopResetEnv(ActionLog(ToyGame()))
    np.random.seed(0)
    first = noop_counts(env, resets=20, seed=5)
    np.random.seed(0)
    assert noop_counts(env, resets=20, seed=6) != first
    assert noop_counts(env, resets=20, seed=5) == first


def test_noop_reset_never_returns_a_finished_game():
    env = NoopResetEnv(ToyGame(terminate_after=3))
    env.reset(seed=0)
    assert {env.reset()[0][0] for _ in range(50)} == {0, 1, 2}


def test_max_and_skip_steps_what_it_wraps():
    below = ActionLog(gym.make(PONG, obs_type="rgb"))
    env, plain = MaxAndSkipEnv(below), gym.make(PONG, obs_type="rgb")
    np.testing.assert_array_equal(env.reset(seed=0)[0], plain.reset(seed=0)[0])
    for t in range(20):
        obs, *results, info = env.step(t % 6)
        expected, *expected_results = skip_four(plain, t % 6)
        np.testing.assert_array_equal(obs, expected)
        assert results == expected_results
        assert len(below.actions) == 4 * (t + 1)


def test_reset_of_an_unfinished_life_starts_a_new_game():
    env = EpisodicLifeEnv(make_atari(BREAKOUT))
    env.reset(seed=0)
    for _ in range(20):
        env.step(0)
    env.reset()
    assert frame_number(env) <= 30
    while not env.step(1)[2]:
        pass
    env.reset()
    assert frame_number(env) > 30
    env.reset()
    assert frame_number(env) <= 30 and env.unwrapped.ale.lives() == 5


@pytest.mark.parametrize("monitored", [False, True])
def test_game_is_restored_in_its_second_life(monitored):
    def make():
        env = make_atari(BREAKOUT)
        return wrap_deepmind(Monitor(env, None) if monitored else env)

    def play(venv, steps):
        return [venv.step([1 + t % 3]) for t in range(steps)]

    with DummyVecEnv([make]) as venv:
        venv.reset()
        assert sum(dones[0] for _, _, dones, _ in play(venv, 150)) in range(1, 5)
        state = venv.get_state()
        expected = play(venv, 60)
    with DummyVecEnv([make]) as venv:
        venv.set_state(state)
        for results, others in zip(play(venv, 60), expected):
            for array, other in zip(results[:3], others[:3]):
                np.testing.assert_array_equal(array, other)


def game_of_lives(lives, length):
    """A game that ends after so many steps, with a function of them for its lives."""

    class Ale:
        def lives(self):
            return lives(game.t)

    game = ToyGame(terminate_after=length)
    game.ale = Ale()
    env = EpisodicLifeEnv(game)
    env.reset(seed=0)
    return env


def test_losing_the_game_in_the_noop_after_a_life_starts_a_new_one():
    env = game_of_lives(lambda t: max(0, 3 - t // 2), length=3)
    assert [env.step(0)[2] for _ in range(2)] == [False, True]
    obs, _ = env.reset()
    assert obs == [0]


def test_zero_lives_before_the_end_is_no_end():
    env = game_of_lives(lambda t: int(t < 2), length=4)
    assert [env.step(0)[2] for _ in range(4)] == [False, False, False, True]


@pytest.mark.parametrize(("end", "expected"), [(1, 0), (2, 0), (3, 2)])
def test_fire_reset_never_returns_a_finished_game(end, expected):
    env = FireResetEnv(ToyGame(terminate_after=end))
    obs, _ = env.reset(seed=0)
    assert obs == [expected]


def ours(env):
    """The names of our wrappers, outermost first."""
    kinds = [type(wrapper) for wrapper in wrappers_of(env)]
    return [kind.__name__ for kind in kinds if kind.__module__.startswith("baselines")]


def test_stack_of_wrappers_has_deepminds_order():
    below = ["Monitor", "Recorder", "CheckedEnv", "MaxAndSkipEnv", "NoopResetEnv"]
    above = ["ClipRewardEnv", "WarpFrame", "FireResetEnv", "EpisodicLifeEnv"]
    assert ours(make_env(BREAKOUT)) == [*above, *below]
    plain = dict(episode_life=False, clip_rewards=False, frame_stack=True)
    above = ["FrameStack", "WarpFrame", "FireResetEnv"]
    assert ours(make_env(BREAKOUT, wrapper_kwargs=plain)) == [*above, *below]


class Specification:
    """The observations that an agent has to get, computed from plain frames.

    Except for the number of no-ops, it does not depend on the wrappers.
    """

    def __init__(self, env_id, seed, max_frames=108_000):
        self.game = emulator(env_id, max_num_frames_per_episode=max_frames)
        self.game.reset(seed=seed)
        self.fire = "FIRE" in self.game.unwrapped.get_action_meanings()
        self.over = True

    def reset(self, noops):
        if self.over:
            self.game.reset()
            self.score, self.steps = 0.0, 0
            for _ in range(noops):
                frame, *_ = self.game.step(0)
        else:
            frame = self.skip(0)[0]
        if self.fire:
            self.skip(1)
            frame = self.skip(2)[0]
        return shrink(frame)

    def step(self, action):
        lives = self.game.unwrapped.ale.lives()
        frame, reward, terminated, truncated = self.skip(action)
        lost = 0 < self.game.unwrapped.ale.lives() < lives
        return shrink(frame), np.sign(reward), terminated or lost, truncated

    def skip(self, action):
        results = skip_four(self.game, action)
        self.score += results[1]
        self.steps += 1
        self.over = results[2] or results[3]
        return results


@pytest.mark.parametrize(
    ("env_id", "max_frames"), [(BREAKOUT, 108_000), ("MsPacmanNoFrameskip-v4", 1_001)]
)
def test_observations_are_the_specification_and_monitor_records_full_games(
    monkeypatch, env_id, max_frames
):
    monkeypatch.setattr(atari_wrappers, "MAX_FRAMES", max_frames)
    env = make_env(env_id, seed=3)
    wanted = Specification(env_id, seed=3, max_frames=max_frames)
    rng = np.random.default_rng(0)
    games, episodes, clipped, scores = 0, 0, 0.0, []
    while games < 2:
        over = wanted.over
        obs, _ = env.reset()
        noops = frame_number(env) - (8 if wanted.fire else 0)
        np.testing.assert_array_equal(obs, wanted.reset(noops))
        assert not over or 1 <= noops <= 30
        episodes += 1
        ended = False
        while not ended:
            action = rng.integers(env.action_space.n)
            obs, *results, info = env.step(action)
            expected, *expected_results = wanted.step(action)
            np.testing.assert_array_equal(obs, expected)
            assert results == expected_results
            clipped += results[0]
            ended = results[1] or results[2]
            assert ("episode" in info) == wanted.over
        if wanted.over:
            games += 1
            assert info["episode"]["r"] == wanted.score
            assert info["episode"]["l"] == wanted.steps
            scores.append(wanted.score)
    if env_id == BREAKOUT:
        assert episodes == 10
    else:
        assert results[2] and sum(scores) > clipped > 0


def test_max_episode_steps_counts_agent_steps():
    env = make_atari(PONG, max_episode_steps=5)
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(5)]
    assert ends == [(False, False)] * 4 + [(False, True)]


def test_scaling_is_refused_with_the_reason():
    with pytest.raises(UserValueError, match="255"):
        wrap_deepmind(make_atari(PONG), scale=True)


@pytest.mark.parametrize("env_id", ["ALE/Pong-v5", "Pong-v4", "PongNoFrameskip-v0"])
def test_a_game_that_skips_frames_itself_is_refused(env_id):
    with pytest.raises(UserValueError, match="NoFrameskip-v4"):
        make_env(env_id)


def test_frame_stack_returns_the_last_four_frames():
    env = make_env(BREAKOUT, seed=0, wrapper_kwargs={"frame_stack": True})
    plain = make_env(BREAKOUT, seed=0)
    rng = np.random.default_rng(0)
    assert env.observation_space.shape == (84, 84, 4)
    for _ in range(2):
        obs, _ = env.reset()
        frames, ended = [plain.reset()[0]] * 4, False
        while not ended:
            assert env.observation_space.contains(obs)
            np.testing.assert_array_equal(obs, np.concatenate(frames, -1))
            action = rng.integers(4)
            obs, _, ended, _, _ = env.step(action)
            frames = [*frames[1:], plain.step(action)[0]]
        np.testing.assert_array_equal(obs, np.concatenate(frames, -1))
