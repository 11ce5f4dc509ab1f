"""Videos of what the environments of a VecEnv look like."""

import math
import os
from collections.abc import Callable

from baselines.common.base.lazy import import_extra
from baselines.common.saving.files import writing
from baselines.common.saving.video import enlarge, open_video, shrink
from baselines.common.vec_env.vec_env import VecEnv, VecEnvWrapper, tile_images

FRAMES_PER_SECOND = 30
# Of a VecFilm, which is kept in memory and in logs: at most 450 frames, in 30 seconds.
MAX_SECONDS = 30
MAX_FRAMES_PER_SECOND = 15
MAX_PIXELS = 320  # height and width


class VecVideoRecorder(VecEnvWrapper):
    """Writes MP4 videos, ``video<step>.mp4``, of all environments side by side.

    Environments have to be made with ``render_mode="rgb_array"``, for example through
    ``env_kwargs`` of ``make_vec_env``.

    Args:
        venv: the VecEnv.
        directory: folder for the videos.
        record_video_trigger: function of the number of ``step()`` calls so far; if it
            returns true, a video begins, unless one is already being recorded.
        video_length: steps in a video.

    Raises:
        MissingDependency: if the packages for videos are not installed.
        UserFileError: if a video cannot be written.
        UserValueError: when a video begins, if the environments return no images.
    """

    keeps_observations = True

    def __init__(
        self,
        venv: VecEnv,
        directory: str,
        record_video_trigger: Callable,
        video_length: int = 200,
    ):
        super().__init__(venv)
        self.directory = directory
        self.record_video_trigger = record_video_trigger
        self.video_length = video_length
        self.num_steps = 0
        import_extra("imageio_ffmpeg", "video")
        self.video = self.path = None
        self.frames_left = 0

    def reset(self):
        obs = self.venv.reset()
        self._record()
        return obs

    def step_wait(self):
        results = self.venv.step_wait()
        self.num_steps += 1
        self._record()
        return results

    def _record(self):
        """Adds a frame to the video, which may begin or end with it."""
        if self.video is None and not self.record_video_trigger(self.num_steps):
            return
        frame = self.venv.render()
        if self.video is None:
            self.path = os.path.join(self.directory, f"video{self.num_steps:08}.mp4")
            self.frames_left = self.video_length
        with writing(self.path):
            self.video = self.video or open_video(self.path, FRAMES_PER_SECOND)
            self.video.append_data(enlarge(frame))
        self.frames_left -= 1
        if self.frames_left == 0:
            self._end_video()

    def _end_video(self):
        video, self.video = self.video, None
        if video is not None:
            with writing(self.path):
                video.close()

    def close(self):
        self._end_video()
        self.venv.close()

    def get_state(self) -> dict:
        """Returns the state; a video that is being recorded is not continued later."""
        return {"venv": self.venv.get_state(), "num_steps": self.num_steps}

    def set_state(self, state) -> None:
        self.venv.set_state(state["venv"])
        self.num_steps = state["num_steps"]


class VecFilm(VecEnvWrapper):
    """Films an episode: after each ``reset``, the first one of environment 0.

    The environments have to return images, as for ``VecVideoRecorder``.

    Args:
        venv: the VecEnv.
        steps_per_second: agent steps in a second of the environment's own time.

    Attributes:
        frames: so far, each [height, width, 3], of at most 30 seconds.
        frames_per_second: of the film, at most 15.

    Raises:
        MissingDependency: if the package that encodes videos is not installed.
        UserValueError: from ``reset``, if the environments return no images.
    """

    def __init__(self, venv, steps_per_second):
        super().__init__(venv)
        import_extra("imageio", "video")
        self.interval = math.ceil(steps_per_second / MAX_FRAMES_PER_SECOND)
        self.frames_per_second = steps_per_second / self.interval
        self.frames = []
        self.end = int(MAX_SECONDS * steps_per_second)
        self.num_steps = 0

    def reset(self):
        obs = self.venv.reset()
        self.frames, self.num_steps = [], 0
        self._film()
        return obs

    def step_wait(self):
        obs, rewards, dones, infos = self.venv.step_wait()
        # The frame after the last step would be of the next episode.
        self.num_steps = self.end if "episode" in infos[0] else self.num_steps + 1
        self._film()
        return obs, rewards, dones, infos

    def _film(self):
        if self.num_steps < self.end and self.num_steps % self.interval == 0:
            frame = tile_images(self.venv.get_images()[:1])
            self.frames.append(shrink(frame, MAX_PIXELS))

    def get_state(self):
        return self.venv.get_state()

    def set_state(self, state):
        self.venv.set_state(state)
