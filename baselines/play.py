"""Lets a trained model play: ``python -m baselines.play LOGDIR``.

It plays in a window, or into a video file (``--video=FILE``), which needs no display.
"""

import contextlib
import itertools
import os
import sys
from typing import Annotated

from baselines.common.arguments import cli
from baselines.common.arguments import types as arg
from baselines.common.base import mpi
from baselines.common.base.errors import UserValueError
from baselines.common.envs.spaces import check_spaces
from baselines.common.run.evaluation import how_to_act, play_steps
from baselines.common.run.loading import find_env, load
from baselines.common.saving.files import check_writable
from baselines.common.saving.video import check_video, enlarge, open_video
from baselines.common.vec_env.vec_env import VecEnvWrapper


def play_run(
    path: Annotated[str, "log folder of a run, or a saved model"],
    episodes: Annotated[
        arg.Count | None, "number of episodes (default: until Ctrl-C, or 1 for a video)"
    ] = None,
    video: Annotated[
        str | None,
        "file to write a video to, .mp4 or .gif, instead of opening a window",
    ] = None,
    deterministic: arg.Deterministic = None,
    seed: arg.Seed = None,
    precision: arg.ActingPrecision = None,
    env: arg.PlayedEnv = None,
    trust: arg.Trust = False,
):
    """Lets a trained model play, and prints the raw score of each episode."""
    trained_env = find_env(path, env, trust)
    if deterministic is None:
        deterministic = trained_env.deterministic
    if video is None:
        check_can_play(trained_env.env_type)
    else:
        check_video(video)
        check_writable(*os.path.split(os.path.abspath(os.path.expanduser(video))))
    model = load(path, trust, seed=seed, precision=precision)
    render_mode = "human" if video is None else "rgb_array"
    with trained_env.make(1, seed, render_mode) as vec_env:
        check_spaces(model, vec_env)
        if video is None:
            play(model, vec_env, episodes, deterministic)
        else:
            with open_video(video, trained_env.steps_per_second) as file:
                play(model, FilmedVecEnv(vec_env, file), episodes or 1, deterministic)
            print(f"wrote {video}")
    print(how_to_act(deterministic))


def check_can_play(env_type) -> None:
    """Raises UserValueError if there is no display, or if there are several ranks."""
    if mpi.size > 1:
        raise UserValueError(
            "--play opens one window; leave it out, and play the model without mpiexec"
        )
    names = ["DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"]
    if env_type == "retro":
        names = names[:1]  # stable-retro draws with pyglet, which only supports X11.
    if sys.platform.startswith("linux") and not any(map(os.environ.get, names)):
        raise UserValueError(
            "there is no display to open a window on: set "
            f"{' or '.join(names[:2])} (over ssh, try ssh -X), or write a video: "
            "python -m baselines.play LOGDIR --video=FILE.mp4"
        )


def play(model, env, episodes=None, deterministic=False) -> None:
    """Lets a model play and prints the score of each episode.

    Args:
        model: has ``step`` and ``initial_state``.
        env: a VecEnv of one environment that renders itself.
        episodes: how many to play; None to play until Ctrl-C.
        deterministic: whether to take the most likely or best actions.
    """
    played = itertools.count(1)
    with contextlib.suppress(KeyboardInterrupt):
        for *_, infos in play_steps(model, env, deterministic):
            if "episode" in infos[0]:
                number, result = next(played), infos[0]["episode"]
                print(f"game {number}: score {result['r']:g}, {result['l']} steps")
                if number == episodes:
                    return


class FilmedVecEnv(VecEnvWrapper):
    """Adds a frame to a video before each action and at the end of each episode."""

    def __init__(self, venv, video):
        super().__init__(venv)
        self.video = video

    def step_async(self, actions):
        self.video.append_data(enlarge(self.venv.render()))
        self.venv.step_async(actions)

    def step_wait(self):
        *results, infos = self.venv.step_wait()
        if "terminal_frame" in infos[0]:
            self.video.append_data(enlarge(infos[0]["terminal_frame"]))
        return *results, infos


def main(argv=None):
    """Runs the command line."""
    return cli.command(play_run, argv)


if __name__ == "__main__":
    main()
