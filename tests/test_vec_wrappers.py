"""VecEnv wrappers for videos and for observations that are dicts."""

import os
from importlib.util import find_spec

import numpy as np
import pytest
from gymnasium import spaces
from toy_envs import CounterEnv

from baselines.common.vec_env import DummyVecEnv, VecExtractDictObs
from baselines.common.vec_env.vec_env import VecEnv
from baselines.common.vec_env.vec_video_recorder import VecVideoRecorder

of_videos = pytest.mark.skipif(
    find_spec("imageio_ffmpeg") is None, reason="needs the extra video"
)


class RedEnv(CounterEnv):
    """Its frames are red, by 20 more with each step."""

    def render(self):
        frame = np.zeros((400, 300, 3), np.uint8)
        frame[..., 0] = 20 * self.t
        return frame


def read_video(path):
    """Returns the frames, [T, height, width, RGB]."""
    from imageio import v2

    return np.array(v2.mimread(path))


@of_videos
def test_videos_show_the_steps_that_were_asked_for(tmp_path):
    folder = tmp_path / "new" / "videos"
    venv = DummyVecEnv([lambda: RedEnv(terminate_after=10)])
    venv = VecVideoRecorder(venv, str(folder), lambda step: step % 5 == 2, 3)
    venv.reset()
    assert not folder.exists()
    for _ in range(8):
        venv.step([0])
    venv.close()
    steps = {"video00000002.mp4": [2, 3, 4], "video00000007.mp4": [7, 8]}
    assert sorted(os.listdir(folder)) == list(steps)
    for name in steps:
        colours = read_video(folder / name).mean(axis=(1, 2))
        expected = [[20 * step, 0, 0] for step in steps[name]]
        np.testing.assert_allclose(colours, expected, atol=6)


@of_videos
def test_a_recorder_returns_what_the_inner_env_does_and_its_state(tmp_path):
    plain = DummyVecEnv([lambda: RedEnv(truncate_after=3)] * 2)
    venv = VecVideoRecorder(
        DummyVecEnv([lambda: RedEnv(truncate_after=3)] * 2), tmp_path, lambda step: True
    )
    for env in (plain, venv):
        env.reset()
    for _ in range(4):
        for ours, inner in zip(venv.step([0, 0]), plain.step([0, 0])):
            assert str(ours) == str(inner)
    other = VecVideoRecorder(DummyVecEnv([RedEnv] * 2), tmp_path, lambda step: False)
    other.set_state(venv.get_state())
    assert other.num_steps == 4
    venv.close()


class DictVecEnv(VecEnv):
    """Two environments whose observations are dicts; the first ends with each step."""

    def __init__(self):
        parts = {"a": spaces.Box(0, 9, (2,), np.float32), "b": spaces.Discrete(3)}
        super().__init__(2, spaces.Dict(parts), spaces.Discrete(2))

    def reset(self):
        return {"a": np.array([[1, 2], [3, 4]], np.float32), "b": np.array([0, 2])}

    def step_async(self, actions):
        pass

    def step_wait(self):
        last = {"a": np.array([7, 8], np.float32), "b": 1}
        infos = [{"terminal_observation": last, "TimeLimit.truncated": True}, {}]
        return self.reset(), np.ones(2, np.float32), np.array([True, False]), infos

    get_images = close = reset


def test_one_part_of_dicts():
    venv = VecExtractDictObs(DictVecEnv(), "a")
    assert venv.observation_space == spaces.Box(0, 9, (2,), np.float32)
    np.testing.assert_array_equal(venv.reset(), [[1, 2], [3, 4]])
    obs, rewards, dones, infos = venv.step([0, 0])
    np.testing.assert_array_equal(obs, [[1, 2], [3, 4]])
    assert (rewards.tolist(), dones.tolist()) == ([1, 1], [True, False])
    np.testing.assert_array_equal(infos[0]["terminal_observation"], [7, 8])
    assert infos[0]["TimeLimit.truncated"] is True
    assert infos[1] == {}
