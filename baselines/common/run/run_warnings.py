"""What a user should know when a run begins: what has no effect, or a bad one."""

import gymnasium as gym
import keras
import numpy as np

from baselines.bench.monitor import Monitor
from baselines.common.arguments.schedules import check_schedule
from baselines.common.backend import precision
from baselines.common.envs.recorder import has_wrapper
from baselines.common.envs.spaces import has_channels_first, is_image, looks_like_pixels
from baselines.common.networks.distributions import DiagGaussian
from baselines.common.vec_env import (
    DummyVecEnv,
    VecEnvWrapper,
    VecMonitor,
    VecNormalize,
)

MONITORS = Monitor, gym.wrappers.RecordEpisodeStatistics


def find_warnings(run) -> list:
    """Returns the warnings about a ``Run`` that is about to train, one line each."""
    return [
        *run.arguments.without_effect(),
        *getattr(run.env, "ignored", []),
        *warnings_of_arguments(run),
        *warnings_of_wrappers(run),
        *warnings_of_spaces(run),
        *warnings_of_networks(getattr(run.model, "parts", {}).values()),
    ]


def warnings_of_arguments(run):
    """Yields warnings about arguments that can hardly be meant as they are."""
    if run.evaluation is not None and run.evaluation.folder is None:
        yield (
            "the best model of evaluations is not kept, as there is no log folder: "
            "call logger.configure(FOLDER) first"
        )
    bfloat16 = run.arguments.given["precision"] == "bfloat16"
    if bfloat16 and not precision.has_bfloat16():
        yield (
            "precision is bfloat16, which is slower than float32 here: neither a GPU "
            "nor a processor (with oneDNN) that computes in it was found"
        )
    for name, argument in run.arguments.declared.items():
        value = run.arguments.given[name]
        if check_schedule in argument.markers and callable(value) and value(0.0) == 0:
            yield (
                f"{name} is 0 when training begins: its function gets the fraction of "
                "training that is done, not of what remains"
            )


def warnings_of_wrappers(run):
    """Yields warnings about wrappers of environments that are missing or harmful."""
    if has_no_monitor(run.env):
        yield (
            "returns of episodes will not be known, as the environments have no "
            "Monitor: wrap the VecEnv in a VecMonitor"
        )
    if has_normalized_observations(run.env):
        instead = "leave it out (VecNormalize: ob=False)"
        if "normalize_observations" in run.arguments.declared:
            instead += ", and give normalize_observations=True"
        yield (
            "a wrapper normalises observations, and its statistics are not saved with "
            f"the model, which will get others in evaluate and play: {instead}"
        )


def warnings_of_spaces(run):
    """Yields warnings about observations and actions that suit no network."""
    space = run.env.observation_space
    if is_image(space) and has_channels_first(space):
        yield (
            f"observations of shape {space.shape} look like [channels, height, width], "
            "but networks take [height, width, channels]; move the axis with "
            "gymnasium.wrappers.TransformObservation"
        )
    scaled = run.arguments.given.get("normalize_observations")
    if looks_like_pixels(space) and len(space.shape) != 3 and not scaled:
        yield (
            "observations go from 0 to 255 and are not divided, as their shape "
            f"{space.shape} is not that of an image, [height, width, channels]: divide "
            "them in a wrapper, or add the axis, for instance with gymnasium.wrappers."
            "GrayscaleObservation(env, keep_dim=True)"
        )
    space = run.env.action_space
    gaussian = type(getattr(run.model, "distribution", None)) is DiagGaussian
    if gaussian and not has_usual_bounds(space):
        yield (
            f"the actions {space} are far from -1 to 1, but the policy begins with "
            "actions of mean 0 and standard deviation 1: scale them, for instance with "
            "gymnasium.wrappers.RescaleAction(env, -1, 1)"
        )


def warnings_of_networks(parts):
    """Yields warnings about layers that do not act as in other Keras programs."""
    idle = {type(layer).__name__ for part in parts for layer in layers_of(part)} & {
        "BatchNormalization",
        "Dropout",
    }
    if idle:
        yield (
            f"the network has {' and '.join(sorted(idle))} layers, which act as after "
            "training: batch statistics do not change, and nothing is dropped; for "
            "normalisation, use LayerNormalization"
        )
    if any(part.losses for part in parts):
        yield (
            "the network has regularizers, which are not part of the loss: add them in "
            "an algorithm of your own"
        )


def layers_of(layer):
    """Yields a Keras layer, and those that a Sequential or Model in it is made of."""
    yield layer
    if isinstance(layer, keras.Model):
        for child in layer.layers:
            yield from layers_of(child)


def has_no_monitor(venv) -> bool:
    """Whether nothing reports the ends of episodes; false if that is unknown."""
    *wrappers, base = layers_of_vec_env(venv)
    return (
        isinstance(base, DummyVecEnv)
        and not any(isinstance(wrapper, VecMonitor) for wrapper in wrappers)
        and not any(has_wrapper(env, MONITORS) for env in base.envs)
    )


def has_normalized_observations(venv) -> bool:
    """Whether a wrapper normalises observations; false if that is unknown."""
    *wrappers, base = layers_of_vec_env(venv)
    return any(
        isinstance(wrapper, VecNormalize) and wrapper.ob_rms is not None
        for wrapper in wrappers
    ) or any(
        has_wrapper(env, gym.wrappers.NormalizeObservation)
        for env in getattr(base, "envs", [])
    )


def layers_of_vec_env(venv) -> list:
    """Returns the wrappers of a VecEnv, from the outside, and what they wrap."""
    found = [venv]
    while isinstance(found[-1], VecEnvWrapper):
        found.append(found[-1].venv)
    return found


def has_usual_bounds(space) -> bool:
    """Whether actions of mean 0 and variance 1 explore a Box; true if unbounded."""
    low, high = np.float64(space.low), np.float64(space.high)
    with np.errstate(invalid="ignore"):  # where it is unbounded
        middle, half_width = (low + high) / 2, (high - low) / 2
    bounded = np.isfinite(half_width)
    usual = (half_width >= 0.1) & (half_width <= 10) & (np.abs(middle) <= half_width)
    return bool((usual | ~bounded).all())
