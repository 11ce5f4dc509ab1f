"""Videos of environments."""

import os

import gymnasium as gym
import numpy as np

from baselines.common.base.errors import UserValueError
from baselines.common.base.lazy import import_extra

SUFFIXES = ".mp4", ".gif"
MIN_HEIGHT = 400  # pixels; smaller frames, such as those of Atari games, are enlarged


def check_video(path) -> None:
    """Raises a UserError if videos have no such format, or need other packages."""
    if os.path.splitext(path)[1] not in SUFFIXES:
        raise UserValueError(
            f"the video has to be a file {' or '.join(SUFFIXES)}, received {path!r}"
        )
    import_extra("imageio_ffmpeg", "video")


class TerminalFrame(gym.Wrapper):
    """Adds a frame of an episode's last state to info, as a VecEnv resets at once."""

    stateless = True  # for checkpoints

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            info = {**info, "terminal_frame": self.env.render()}
        return obs, reward, terminated, truncated, info


def encode_gif(frames, frames_per_second) -> bytes:
    """Returns frames [height, width, 3] as a GIF that loops forever."""
    from imageio import v3  # Only here, because training needs no videos.

    duration = 1000 / frames_per_second  # milliseconds
    return v3.imwrite("<bytes>", frames, extension=".gif", duration=duration, loop=0)


def shrink(frame, max_pixels) -> np.ndarray:
    """Returns a frame [height, width, 3], shrunk to at most ``max_pixels`` per side."""
    import cv2  # Only here, because training needs no videos.

    factor = min(1.0, max_pixels / max(frame.shape))
    return cv2.resize(frame, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)


def open_video(path, fps):
    """Opens a video file, .mp4 (H.264) or .gif, whose missing folders are created.

    Returns:
        an ``imageio`` writer, whose ``append_data`` takes frames [height, width, 3].
    """
    from imageio import v2  # Only here, because training needs no videos.

    path = os.path.abspath(os.path.expanduser(path))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if path.endswith(".gif"):
        return v2.get_writer(path, mode="I", duration=1000 / fps, loop=0)
    # Players accept H.264 only with even heights and widths.
    return v2.get_writer(path, fps=fps, macro_block_size=2)


def enlarge(frame) -> np.ndarray:
    """Returns a frame [height, width, 3], repeating its pixels if they are few."""
    factor = -(-MIN_HEIGHT // len(frame))
    return np.kron(frame, np.ones((factor, factor, 1), np.uint8))
