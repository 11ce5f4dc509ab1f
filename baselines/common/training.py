"""Small parts of every training loop."""

import functools
import inspect
import math
import numbers
import secrets
from collections import deque

import keras
import numpy as np

from baselines import logger
from baselines.common import mpi
from baselines.common.errors import UserValueError


def make_seed(seed):
    """Seeds what draws initial weights; returns the seed, a random one for None.

    With several MPI ranks their weights have one seed; what comes back is each rank's
    own, for what is drawn later.
    """
    if seed is None:
        seed = mpi.broadcast(secrets.randbelow(2**31))
    check_whole(0, seed=seed)
    check_range(0, 2**32 - 1, seed=seed)
    keras.utils.set_random_seed(int(seed))
    return mpi.own_seed(int(seed))


def check_whole(minimum, **arguments) -> None:
    """Raises UserValueError for the first that is no whole number >= ``minimum``."""
    for name, value in arguments.items():
        if not isinstance(value, numbers.Integral):
            raise UserValueError(f"{name} has to be a whole number, received {value!r}")
    check_range(minimum, **arguments)


def check_range(minimum, maximum=None, **arguments) -> None:
    """Raises UserValueError for the first argument outside [minimum, maximum].

    None stands for no limit; infinity and what is no number are refused.
    """
    for name, value in arguments.items():
        if not (isinstance(value, numbers.Real) and math.isfinite(value)):
            raise UserValueError(
                f"{name} has to be a finite number, received {value!r}"
            )
        if minimum is not None and value < minimum:
            raise UserValueError(
                f"{name} has to be at least {minimum}, received {value}"
            )
        if maximum is not None and value > maximum:
            raise UserValueError(
                f"{name} has to be at most {maximum}, received {value}"
            )


def check_switches(**arguments) -> None:
    """Raises UserValueError for the first that is neither True nor False."""
    for name, value in arguments.items():
        if not isinstance(value, (bool, np.bool_)):
            raise UserValueError(f"{name} has to be True or False, received {value!r}")


def check_gradient_limit(max_grad_norm) -> None:
    """Raises UserValueError unless it is a number above 0, or None for no limit."""
    if max_grad_norm is None:
        return
    check_range(0, max_grad_norm=max_grad_norm)
    if max_grad_norm == 0:
        raise UserValueError("max_grad_norm has to be above 0, or None; received 0")


def count_updates(total_timesteps, batch_size) -> int:
    """Returns how many updates of ``batch_size`` agent steps fit.

    Raises:
        UserValueError: if none fits and 0 were not asked for.
    """
    check_whole(0, total_timesteps=total_timesteps)
    if 0 < total_timesteps < batch_size:
        raise UserValueError(
            f"total_timesteps (num_timesteps) is {total_timesteps}, but one update "
            f"takes {batch_size} agent steps over all environments; give at least that "
            "many, or 0 for none"
        )
    return total_timesteps // batch_size


def warn_unused(learn, switch, **arguments) -> None:
    """Warns of arguments that are not ``learn``'s defaults, while ``switch`` is off."""
    parameters = inspect.signature(learn).parameters
    for name, value in arguments.items():
        if value != parameters[name].default:
            logger.warn(f"{name} is {value}, which counts for nothing without {switch}")


def preset(learn, **settings):
    """Returns an algorithm's ``learn`` with other defaults."""
    other = functools.partial(learn, **settings)
    other.__doc__ = learn.__doc__
    return other


class EpisodeResults:
    """The results of the last 100 episodes (``info["episode"]``), newest last."""

    def __init__(self):
        self.results = deque(maxlen=100)
        self.count = 0  # of all episodes

    def extend(self, results) -> None:
        """Takes in a list of results; with several MPI ranks, those of all of them."""
        for results_of_rank in mpi.gather(results):
            self.results.extend(results_of_rank)
            self.count += len(results_of_rank)

    def mean(self, key) -> float:
        """Returns the mean of ``r`` or ``l`` (return, length), NaN if there is none."""
        return float(np.mean([result[key] for result in self.results] or [np.nan]))

    def get_state(self) -> dict:
        return {"results": list(self.results), "count": self.count}

    def set_state(self, state) -> None:
        self.results = deque(state["results"], maxlen=100)
        self.count = state["count"]


class Shuffler:
    """Cuts batches into random minibatches, from a generator of its own."""

    def __init__(self, seed):
        # Not the policy's numbers, which the same seed alone would give.
        self.rng = np.random.default_rng([seed, 1])

    def minibatches(self, size, count) -> np.ndarray:
        """Returns indices [count, size / count] that hold 0 to ``size`` - 1 once."""
        return self.rng.permutation(size).reshape(count, -1)

    def get_state(self) -> dict:
        return self.rng.bit_generator.state

    def set_state(self, state) -> None:
        self.rng.bit_generator.state = state
