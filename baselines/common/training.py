"""Small parts of every training loop."""

import keras
import numpy as np

from baselines.common.errors import UserValueError


def make_seed(seed):
    """Seeds what draws initial weights; returns the seed, a random one for None."""
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0] >> 1)
    keras.utils.set_random_seed(seed)
    return seed


def check_at_least(minimum, **arguments) -> None:
    """Raises UserValueError for the first argument that is below ``minimum``."""
    for name, value in arguments.items():
        if value < minimum:
            raise UserValueError(
                f"{name} has to be at least {minimum}, received {value}"
            )


def count_updates(total_timesteps, batch_size) -> int:
    """Returns how many updates of ``batch_size`` agent steps fit.

    Raises:
        UserValueError: if none fits and 0 were not asked for.
    """
    check_at_least(0, total_timesteps=total_timesteps)
    if 0 < total_timesteps < batch_size:
        raise UserValueError(
            f"total_timesteps (num_timesteps) is {total_timesteps}, but one update "
            f"takes {batch_size} agent steps (num_env x nsteps); give at least that "
            "many, or 0 for none"
        )
    return total_timesteps // batch_size


def mean_of(episodes, key) -> float:
    """Returns the mean of ``key`` over episode results, NaN if there are none."""
    return float(np.mean([episode[key] for episode in episodes] or [np.nan]))
