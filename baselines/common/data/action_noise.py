"""Exploration noise on continuous actions."""

import math
import re
from typing import Annotated

import numpy as np

from baselines.common.base.errors import UserValueError

# Of the Ornstein-Uhlenbeck process: the rate at which it reverts to 0, and its time
# step. The values are OpenAI Baselines'. Lillicrap et al. 2016 have a rate of 0.15 too,
# but give no time step; with one of 1, the correlation lasts 7 steps.
THETA, TIME_STEP = 0.15, 0.01


def parse_noise(text, name="noise_type") -> tuple:
    """Returns the kind and the standard deviation in text such as ``normal_0.2``.

    Raises:
        UserValueError: for any other text; ``name`` is the argument's name.
    """
    match = re.fullmatch(r"(normal|ou)_(\d+\.?\d*(?:[eE]-?\d+)?)|none", str(text))
    if match is None or not math.isfinite(float(match[2] or 0)):
        raise UserValueError(
            f"{name} has to be none, or normal_0.2 or ou_0.2 with any other number "
            f"(there is no noise on parameters), received {text!r}"
        )
    return match[1], float(match[2] or 0)


NoiseType = Annotated[
    str,
    parse_noise,
    "noise on actions: normal_0.2 is independent from step to step, with a standard "
    "deviation of 0.2 half widths of the actions' range; ou_0.2 is an "
    "Ornstein-Uhlenbeck process with sigma 0.2, whose standard deviation grows to 0.37 "
    "half widths; or none",
]


class ActionNoise:
    """Noise on the actions of a VecEnv, in units of half the width of their range.

    ``normal_0.2`` is normal noise of that standard deviation, independent from step to
    step. ``ou_0.2`` is a discretised Ornstein-Uhlenbeck process: each step adds a tenth
    of that deviation, and the correlation decays over 1 / (0.15 · 0.01) = 667 steps,
    after which the standard deviation is 0.2 / √0.3. It continues from one episode to
    the next.

    Args:
        text: the kind and its standard deviation, or ``none``.
        env: the VecEnv.
        seed: seed of the noise's random generator.
        random_eps: probability that an action is drawn uniformly instead.
    """

    def __init__(self, text, env, seed, random_eps=0.0):
        self.space, self.random_eps = env.action_space, random_eps
        self.kind, self.deviation = parse_noise(text)
        # A random stream separate from those of acting, the memory and the collector.
        self.rng = np.random.default_rng([seed, 4])
        shape = env.num_envs, *env.action_space.shape
        self.process = np.zeros(shape, np.float32)

    def add(self, actions) -> np.ndarray:
        """Returns actions [N, *action shape] with the next step's noise added."""
        noise = self.deviation * self.rng.standard_normal(actions.shape, np.float32)
        if self.kind == "ou":
            self.process *= 1 - THETA * TIME_STEP
            self.process += math.sqrt(TIME_STEP) * noise
            noise = self.process
        actions = actions + (self.space.high - self.space.low) / 2 * noise
        if self.random_eps:
            chosen = self.rng.random(len(actions)) < self.random_eps
            drawn = self.rng.uniform(self.space.low, self.space.high, actions.shape)
            actions[chosen] = drawn[chosen]
        return actions

    def get_state(self) -> dict:
        return {"process": self.process, "generator": self.rng.bit_generator.state}

    def set_state(self, state) -> None:
        self.process = state["process"].copy()
        self.rng.bit_generator.state = state["generator"]
