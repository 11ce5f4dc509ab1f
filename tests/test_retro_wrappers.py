"""Retro games: each wrapper against its specification, with and without the emulator.

A process can have one emulator at a time, so what is compared is run in turn.
"""

import copy
import gzip
import os
from contextlib import closing

import cv2
import numpy as np
import pytest
from toy_envs import ActionLog, ToyGame

from baselines.common.base.errors import UserError
from baselines.common.envs import make_env, make_vec_env
from baselines.common.vec_env import SubprocVecEnv

stable_retro = pytest.importorskip("stable_retro")

from baselines.common.envs.retro_wrappers import (  # noqa: E402
    StochasticFrameSkip,
    make_retro,
)

AIRSTRIKER = "Airstriker-Genesis-v0"


def frame_actions(action, before, generator):
    """What the emulator has to be given for one agent step."""
    late = before is not None and generator.random() < 0.25
    return [before if late else action, action, action, action]


def shrink(screen):
    grey = cv2.cvtColor(screen, cv2.COLOR_RGB2GRAY)
    return cv2.resize(grey, (84, 84), interpolation=cv2.INTER_AREA)[:, :, None]


def test_late_actions_are_those_of_the_step_before():
    log = ActionLog(ToyGame())
    env = StochasticFrameSkip(log, n=4, stickprob=1.0)
    env.reset(seed=0)
    action = np.array([1, 0])
    env.step(action)
    action[:] = 0, 1
    env.step(action)
    assert [a.tolist() for a in log.actions[4:]] == [[1, 0], *[[0, 1]] * 3]
    env.reset()  # No action of the episode before comes late in the next.
    env.step(np.array([1, 1]))
    assert [a.tolist() for a in log.actions] == [[1, 1]] * 4


def test_observations_are_the_specification_and_monitor_records_raw_scores():
    rng = np.random.default_rng(0)
    found, frames = [], []
    with closing(make_env(AIRSTRIKER, seed=3)) as env:
        first_obs, _ = env.reset()
        assert env.observation_space.contains(first_obs)
        generator = copy.deepcopy(env.unwrapped.np_random)
        before, ended = None, False
        while not ended:
            action = int(rng.integers(env.action_space.n))
            obs, *results, info = env.step(action)
            found.append((obs, results))
            frames.append(frame_actions(action, before, generator))
            before, ended = action, results[1] or results[2]
    plain = stable_retro.make(
        AIRSTRIKER,
        render_mode="rgb_array",
        use_restricted_actions=stable_retro.Actions.DISCRETE,
    )
    with closing(plain):
        np.testing.assert_array_equal(first_obs, shrink(plain.reset()[0]))
        score = 0
        for actions, (obs, results) in zip(frames, found, strict=True):
            total = 0
            for action in actions:
                screen, reward, terminated, truncated, _ = plain.step(action)
                total += reward
                if terminated:
                    break
            score += total
            np.testing.assert_array_equal(obs, shrink(screen), strict=True)
            assert results == [np.sign(total), terminated, truncated]
    assert terminated and score >= 20
    assert (info["episode"]["r"], info["episode"]["l"]) == (score, len(frames))


def test_every_environment_has_its_own_worker_and_seed(monkeypatch):
    monkeypatch.setattr("baselines.common.base.mpi.available_cores", lambda: 1)
    actions = np.random.default_rng(0).integers(126, size=60)

    def screens(num_env, seed):
        with make_vec_env(AIRSTRIKER, num_env=num_env, seed=seed) as venv:
            assert isinstance(venv, SubprocVecEnv)
            assert len(set(venv.worker_pids) - {os.getpid()}) == num_env
            venv.reset()
            return np.array([venv.step([x] * num_env)[0] for x in actions])

    three = screens(3, seed=5)
    # Only which actions are late differs.
    assert (three[:, 0] != three[:, 1]).any() and (three[:, 1] != three[:, 2]).any()
    np.testing.assert_array_equal(screens(1, seed=7)[:, 0], three[:, 2])


@pytest.mark.parametrize(
    ("env_id", "gamestate", "words"),
    [
        (AIRSTRIKER, "level1", "did you mean 'Level1'"),
        ("CartPole-v1", "Level1", "retro"),
        ("SonicTheHedgehog-Genesis-v0", None, "ROM"),
    ],
)
def test_game_or_state_that_is_not_there_is_named(env_id, gamestate, words):
    with pytest.raises(UserError, match=words):
        make_vec_env(env_id, gamestate=gamestate)


@pytest.fixture
def states_folder(tmp_path):
    """A folder whose ``.state`` files are states of Airstriker as well."""
    folder = tmp_path / AIRSTRIKER
    folder.mkdir()
    stable_retro.data.add_custom_integration(str(tmp_path))
    yield folder
    stable_retro.data.Integrations.clear_custom_paths()
    stable_retro.data.DefaultIntegrations.reset()


def test_gamestate_is_where_every_episode_starts(states_folder):
    with closing(make_retro(AIRSTRIKER)) as env:
        start, _ = env.reset(seed=0)
        for _ in range(50):
            env.step(0)
        with gzip.open(states_folder / "Later.state", "wb") as file:
            file.write(env.unwrapped.em.get_state())
        expected = env.unwrapped.step(0)[0]
    assert (start != expected).any()
    stacked = {"frame_stack": True}
    with closing(
        make_env(AIRSTRIKER, gamestate="Later", wrapper_kwargs=stacked)
    ) as env:
        for _ in range(2):
            obs, _ = env.reset()
            np.testing.assert_array_equal(obs, np.repeat(shrink(expected), 4, axis=-1))
            env.step(5)
