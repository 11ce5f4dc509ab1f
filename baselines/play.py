"""A model plays in a window."""

import contextlib
import os
import sys

import numpy as np

from baselines.common import mpi
from baselines.common.errors import UserValueError


def check_can_play(env_type) -> None:
    """Raises UserValueError if there is no screen to play on, or several ranks."""
    if mpi.size > 1:
        raise UserValueError(
            "--play opens one window; leave it out, and play the model without mpiexec"
        )
    names = ["DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"]
    if env_type == "retro":
        names = names[:1]  # stable-retro draws by pyglet, which knows X11 alone.
    if sys.platform.startswith("linux") and not any(map(os.environ.get, names)):
        raise UserValueError(
            "--play opens a window, but there is no display: set "
            f"{' or '.join(names[:2])} (over ssh, try ssh -X)"
        )


def play(model, env, games=None) -> None:
    """Lets a model play in its window and prints the score of each game.

    Args:
        model: has ``step`` and ``initial_state``.
        env: a VecEnv of one environment that renders itself.
        games: how many; None for as many as there are until Ctrl-C.
    """
    obs, states, dones = env.reset(), model.initial_state, np.zeros(1, bool)
    played = 0
    with contextlib.suppress(KeyboardInterrupt):
        while games is None or played < games:
            actions, _, states, _ = model.step(obs, S=states, M=dones)
            obs, _, dones, infos = env.step(actions)
            if "episode" in infos[0]:
                played += 1
                episode = infos[0]["episode"]
                print(f"game {played}: score {episode['r']:g}, {episode['l']} steps")
