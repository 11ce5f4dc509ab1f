"""What a user should know when a run begins: what has no effect, or a bad one."""

import keras
import numpy as np

from baselines.common.arguments.schedules import check_schedule
from baselines.common.envs.spaces import has_channels_first, has_large_numbers, is_image
from baselines.common.networks.distributions import DiagGaussian
from baselines.common.vec_env.vec_normalize import normalizes


def find_warnings(run):
    """Yields the warnings about a ``Run`` that is about to train, one line each."""
    yield from run.arguments.without_effect()
    yield from getattr(run.env, "ignored", [])
    values = run.arguments
    for name, argument in run.arguments.declared.items():
        schedule = check_schedule in argument.markers and callable(values[name])
        if schedule and values[name](0.0) == 0:
            yield (
                f"{name} is 0 when training begins: its function gets the fraction of "
                "training that is done, not of what remains"
            )
    if normalizes(run.env, "observations"):
        instead = "leave it out (VecNormalize: ob=False)"
        if "normalize_observations" in values:
            instead += ", and give normalize_observations=True"
        yield (
            "a wrapper normalises observations, and its statistics are not saved with "
            f"the model, which will get others in evaluate and play: {instead}"
        )
    space = run.env.observation_space
    normalized = values.get("normalize_observations")
    leaves = [x for x, _ in getattr(space, "leaves", {"": (space, 0)}).values()]
    raw = [leaf for leaf in leaves if has_large_numbers(leaf) and not is_image(leaf)]
    if raw and not normalized:
        yield (
            f"observations of shape {raw[0].shape} have bounds beyond -127 to 127, and "
            "networks get them as they are: divide them, for instance with "
            "gymnasium.wrappers.RescaleObservation(env, -1, 1)"
        )
    if has_channels_first(space):
        yield (
            f"observations of shape {space.shape} look like images with the channels "
            "first, but networks take [height, width, channels]: move the axis with "
            "gymnasium.wrappers.TransformObservation"
        )
    gaussian = type(getattr(run.model, "distribution", None)) is DiagGaussian
    if gaussian and not suits_gaussian(run.env.action_space):
        yield (
            f"the actions {run.env.action_space} are far from -1 to 1, but the policy "
            "begins with actions of mean 0 and standard deviation 1: scale them, for "
            "instance with gymnasium.wrappers.RescaleAction(env, -1, 1)"
        )
    joint = getattr(getattr(run.model, "kind", None), "joint", False)
    for part in getattr(run.model, "parts", {}).values():
        if idle := find_idle(part) - ({"BatchRenorm"} if joint else set()):
            yield (
                f"{' and '.join(sorted(idle))} of the network have no effect: layers "
                "act as after training, and the loss has no other terms"
            )


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
    idle = {type(layer).__name__} & {
        "BatchNormalization",
        "BatchRenorm",
        "Dropout",
    }
    children = layer.layers if isinstance(layer, keras.Model) else []
    regularizers = {"regularizers"} if layer.losses else set()
    return idle.union(regularizers, *map(find_idle, children))
