"""What a user should know when a run begins: what has no effect, or a bad one."""

import gymnasium as gym
import keras
import numpy as np

from baselines.common.arguments.schedules import check_schedule
from baselines.common.envs.recorder import has_wrapper
from baselines.common.envs.spaces import has_channels_first, is_image, looks_like_pixels
from baselines.common.networks.distributions import DiagGaussian
from baselines.common.vec_env import VecEnvWrapper


def find_warnings(run) -> list:
    """Returns the warnings about a ``Run`` that is about to train, one line each."""
    return [
        *run.arguments.without_effect(),
        *getattr(run.env, "ignored", []),
        *find_mistakes(run),
    ]


def find_mistakes(run):
    """Yields a line for each mistake that trains without an error, but badly."""
    values = run.arguments
    for name, argument in run.arguments.declared.items():
        schedule = check_schedule in argument.markers and callable(values[name])
        if schedule and values[name](0.0) == 0:
            yield (
                f"{name} is 0 when training begins: its function gets the fraction of "
                "training that is done, not of what remains"
            )
    if normalizes_observations(run.env):
        instead = "leave it out (VecNormalize: ob=False)"
        if "normalize_observations" in values:
            instead += ", and give normalize_observations=True"
        yield (
            "a wrapper normalises observations, and its statistics are not saved with "
            f"the model, which will get others in evaluate and play: {instead}"
        )
    space = run.env.observation_space
    undivided = looks_like_pixels(space) and len(space.shape) != 3
    undivided &= not values.get("normalize_observations")
    if undivided or (is_image(space) and has_channels_first(space)):
        yield (
            f"observations of shape {space.shape} have numbers from 0 to 255, but not "
            "the shape of images for networks, [height, width, channels]: move or add "
            "an axis, or divide them, with gymnasium.wrappers.TransformObservation"
        )
    gaussian = type(getattr(run.model, "distribution", None)) is DiagGaussian
    if gaussian and not suits_gaussian(run.env.action_space):
        yield (
            f"the actions {run.env.action_space} are far from -1 to 1, but the policy "
            "begins with actions of mean 0 and standard deviation 1: scale them, for "
            "instance with gymnasium.wrappers.RescaleAction(env, -1, 1)"
        )
    for part in getattr(run.model, "parts", {}).values():
        if idle := find_idle(part):
            yield (
                f"{' and '.join(sorted(idle))} of the network have no effect: layers "
                "act as after training, and the loss has no other terms"
            )


def normalizes_observations(venv) -> bool:
    """Whether a wrapper normalises observations; false if that is unknown."""
    while isinstance(venv, VecEnvWrapper):
        if getattr(venv, "ob_rms", None) is not None:
            return True
        venv = venv.venv
    envs = getattr(venv, "envs", [])
    return any(has_wrapper(env, gym.wrappers.NormalizeObservation) for env in envs)


def suits_gaussian(space) -> bool:
    """Whether actions of mean 0 and variance 1 explore a Box; true if unbounded."""
    low, high = np.float64(space.low), np.float64(space.high)
    with np.errstate(invalid="ignore"):  # where it is unbounded
        middle, half_width = (low + high) / 2, (high - low) / 2
    bounded = np.isfinite(half_width)
    near = (half_width >= 0.1) & (half_width <= 10) & (np.abs(middle) <= half_width)
    return bool((near | ~bounded).all())


def find_idle(layer) -> set:
    """Returns what has no effect in a Keras layer and those that it consists of."""
    idle = {type(layer).__name__} & {"BatchNormalization", "Dropout"}
    children = layer.layers if isinstance(layer, keras.Model) else []
    regularizers = {"regularizers"} if layer.losses else set()
    return idle.union(regularizers, *map(find_idle, children))
