"""Videos of environments."""

import os

import gymnasium as gym
import numpy as np

from baselines.common.errors import MissingDependency, UserValueError
from baselines.common.saving.files import check_writable

SUFFIXES = ".mp4", ".gif"
MIN_HEIGHT = 400  # pixels; smaller frames, such as those of Atari games, are enlarged


def check_video(path) -> None:
    """Raises a UserError if no video can be written to a path."""
    if os.path.splitext(path)[1] not in SUFFIXES:
        raise UserValueError(
            f"the video has to be a file {' or '.join(SUFFIXES)}, received {path!r}"
        )
    try:
        import imageio  # noqa: F401
        import imageio_ffmpeg  # noqa: F401
    except ImportError:
        raise MissingDependency(
            "videos need imageio, which is not installed: pip install -e '.[video]'"
        ) from None
    check_writable(os.path.dirname(os.path.abspath(os.path.expanduser(path))))


class TerminalFrame(gym.Wrapper):
    """Draws the last state of an episode, which a VecEnv resets at once, to info."""

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            info = {**info, "terminal_frame": self.env.render()}
        return obs, reward, terminated, truncated, info


class Video:
    """A video file, .mp4 (H.264) or .gif.

    Args:
        path: of the file; missing folders are made.
        fps: frames a second.
    """

    def __init__(self, path, fps):
        check_video(path)
        # Only here, because training needs no videos.
        from imageio import v2

        path = os.path.abspath(os.path.expanduser(path))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if path.endswith(".gif"):
            self.writer = v2.get_writer(path, mode="I", duration=1000 / fps, loop=0)
        else:
            # Players take H.264 with even heights and widths alone.
            self.writer = v2.get_writer(path, fps=fps, macro_block_size=2)

    def add(self, frame) -> None:
        """Adds a frame [height, width, 3]."""
        factor = -(-MIN_HEIGHT // len(frame))
        self.writer.append_data(np.kron(frame, np.ones((factor, factor, 1), np.uint8)))

    def close(self) -> None:
        self.writer.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()
