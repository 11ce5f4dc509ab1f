"""The ``config.json`` of a run that was started from Python."""

import contextlib
import inspect
import os

import gymnasium as gym

from baselines.common import cli
from baselines.common.checked_arguments import is_json
from baselines.common.config import add_start, make_config, read_config
from baselines.common.envs.registry import find_env_type
from baselines.common.errors import shortened
from baselines.common.schedules import check_schedule
from baselines.common.settings import OWN, Settings

# Gymnasium's wrappers after which a policy sees and does the same
CHANGE_REWARDS = "ClipReward", "NormalizeReward", "TransformReward"
NEUTRAL = (
    *CHANGE_REWARDS,
    "ClipAction",
    "FlattenObservation",  # which this library adds itself
    "HumanRendering",
    "RecordEpisodeStatistics",
    "RecordVideo",
    "RenderCollection",
)


def config_of_call(run, resumed=None) -> dict:
    """Returns the content of ``config.json`` for a call of ``learn()``.

    Args:
        run: the ``Run`` of that call.
        resumed: log folder of the run that it resumes, or None.
    """
    if resumed and os.path.isfile(os.path.join(resumed, "config.json")):
        config = read_config(resumed, OWN)
        add_start(config, None, run.total_timesteps)
        return config
    spec = getattr(run.env, "spec", None)
    declared, given = run.arguments.declared, run.arguments.given
    known = cli.of_text(declared)
    plain = {name: x for name, x in given.items() if name in known and is_json(x)}
    settings = Settings(
        alg=run.module.rpartition(".")[0].removeprefix("baselines.") or run.module,
        env=None if spec is None else spec.id,
        env_type=None if spec is None else find_env_type(spec),
        seed=run.seed,
        num_timesteps=run.total_timesteps,
        network=plain.get("network"),
        num_env=run.env.num_envs,
        normalize_rewards=False,
    )
    left_out = {"env", "eval_env", "seed", "resume"}
    settings.learn_arguments = {k: v for k, v in plain.items() if k not in left_out}
    left_out |= {"callback", "on_update", *plain}
    described = {k: describe(v) for k, v in given.items() if k not in left_out}
    for name in described:
        if name in declared and check_schedule in declared[name].markers:
            described[name] = describe_schedule(given[name])
    if spec is not None and (differences := describe_differences(spec)):
        described["env_kwargs"] = differences
    if spec is not None and (rewards := describe_reward_wrappers(spec)):
        described["reward_wrappers"] = rewards
    config = make_config(settings)
    return config | {"described": described, "update_size": run.batch_size}


def describe_kwargs(spec) -> dict:
    """Returns what an environment is made with, as text, by name.

    It leaves out how it is drawn, what ``make_atari`` and ``make_retro`` add, and
    wrappers that change nothing for the policy, such as those of this library.
    """
    left_out = "render_mode", "obs_type", "use_restricted_actions"
    found = {k: describe(x) for k, x in spec.kwargs.items() if k not in left_out}
    if find_env_type(spec) != "retro":
        found["max_episode_steps"] = str(spec.max_episode_steps)
    wrappers = [x for x in spec.additional_wrappers if not is_neutral(x)]
    return found | {x.name: describe_wrapper(x) for x in wrappers}


def is_neutral(wrapper) -> bool:
    """Whether a ``WrapperSpec`` is of this library, or in ``NEUTRAL``."""
    return wrapper.entry_point.startswith("baselines.") or wrapper.name in NEUTRAL


def describe_wrapper(wrapper) -> str:
    """Returns the arguments of a ``gymnasium.envs.registration.WrapperSpec``."""
    arguments = (wrapper.kwargs or {}).items()
    return ", ".join(f"{name}={describe(x)}" for name, x in arguments) or "True"


def describe_reward_wrappers(spec) -> str:
    """Returns Gymnasium's wrappers of an environment that change rewards, as text."""
    wrappers = [x for x in spec.additional_wrappers if x.name in CHANGE_REWARDS]
    return ", ".join(f"{x.name}: {describe_wrapper(x)}" for x in wrappers)


def describe_differences(spec) -> dict:
    """Returns what an environment is made with, as far as it is not registered so."""
    registered = gym.envs.registry.get(spec.id)
    usual = {} if registered is None else describe_kwargs(registered)
    found = describe_kwargs(spec)
    return {name: text for name, text in found.items() if usual.get(name) != text}


def describe(value) -> str:
    """Returns a short text for a value: itself, or its name, or that of its class."""
    if is_json(value):
        return shortened(str(value))
    name = name_of(value)
    if hasattr(value, "__code__") and "<" in name:  # Others may have the same name.
        with contextlib.suppress(OSError):  # typed into an interpreter
            name += f" in {' '.join(inspect.getsource(value).split())}"
    return shortened(name)


def describe_schedule(function) -> str:
    """Returns the name of a schedule and its values, as others may share the name."""
    values = ", ".join(f"{float(function(done)):g}" for done in (0, 0.25, 0.5, 0.75))
    return f"{name_of(function)}: {values} at 0, 25, 50 and 75 % of training"


def name_of(value) -> str:
    """Returns the name of a function or class, or that of the class of an object."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"
