"""The ``config.json`` of a run that was started from Python."""

import contextlib
import functools
import types
import zlib

import gymnasium as gym

from baselines import logger
from baselines.common.arguments import cli
from baselines.common.arguments.checked import is_json
from baselines.common.arguments.schedules import check_schedule, make_schedule
from baselines.common.base.errors import UserValueError, shortened
from baselines.common.envs.registry import find_env_type
from baselines.common.run.settings import OWN, Settings
from baselines.common.saving.config import (
    NEVER_STORED,
    add_start,
    make_config,
    read_config,
)

# Gymnasium's wrappers after which a policy sees and does the same
CHANGE_REWARDS = "ClipReward", "NormalizeReward", "TransformReward"
NOT_STORED = NEVER_STORED | {"eval_env"}
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
    if resumed:
        config = read_config(resumed, OWN)
        warn_of_changes(config, run)
        add_start(config, None, run.total_timesteps)
        return config
    spec = getattr(run.env, "spec", None)
    plain = plain_arguments(run.arguments)
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
    settings.learn_arguments = {k: v for k, v in plain.items() if k not in NOT_STORED}
    config = make_config(settings)
    return config | {"described": describe_call(run), "update_size": run.batch_size}


def plain_arguments(arguments) -> dict:
    """Returns those of the ``Arguments`` of a call that are numbers, text or lists."""
    known = cli.of_text(arguments.declared)
    return {k: x for k, x in arguments.given.items() if k in known and is_json(x)}


def describe_call(run) -> dict:
    """Returns text for what else a run's call was given, by name."""
    declared, given = run.arguments.declared, run.arguments.given
    left_out = {*NOT_STORED, "callback", "on_update", *plain_arguments(run.arguments)}
    described = {
        name: describe_schedule(name, value)
        if name in declared and check_schedule in declared[name].markers
        else describe(value)
        for name, value in given.items()
        if name not in left_out
    }
    spec = getattr(run.env, "spec", None)
    if spec is not None and (differences := describe_differences(spec)):
        described["env_kwargs"] = differences
    if spec is not None and (rewards := describe_reward_wrappers(spec)):
        described["reward_wrappers"] = rewards
    return described


def check_seed(folder, seed) -> None:
    """Raises UserValueError for a seed that a resumed run does not have.

    Args:
        folder: its log folder.
        seed: of the call of ``learn()``, or None.
    """
    found = read_config(folder, OWN)["arguments"]["seed"]
    if seed not in (None, found):
        raise UserValueError(
            f"cannot resume {folder}: its seed is {found}, not {seed}; leave seed out"
        )


def warn_of_changes(config, run) -> None:
    """Warns of functions and wrappers that are not those that a run began with.

    Args:
        config: the ``config.json`` of the run that is resumed.
        run: the ``Run`` that resumes it.
    """
    before = config["settings"] | config.get("described", {})
    described, declared = describe_call(run), run.arguments.declared
    for name in sorted({*described, "env_kwargs", "reward_wrappers"}):
        if name in declared and declared[name].may_change:
            continue
        if before.get(name) != described.get(name):
            logger.warn(
                f"{name} is {described.get(name)}, but the run that is resumed began "
                f"with {before.get(name)}"
            )


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
    if isinstance(value, functools.partial):
        given = [describe(x) for x in value.args]
        given += [f"{name}={describe(x)}" for name, x in value.keywords.items()]
        return shortened(f"{describe(value.func)} with {', '.join(given)}")
    code = getattr(value, "__code__", None)
    if code is None or "<" not in value.__qualname__:
        return name_of(value)
    # Others may have the same name.
    known = []
    for cell in value.__closure__ or ():
        with contextlib.suppress(ValueError):  # It may be empty yet.
            x = cell.cell_contents
            known.append(str(x) if is_json(x) else name_of(x))
    checksum = zlib.crc32(repr((text_of_code(code), known)).encode())
    return f"{name_of(value)} (code {checksum:08x})"


def name_of(value) -> str:
    """Returns the name of a function or class, or that of the class of an object."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def text_of_code(code) -> str:
    """Returns what a code object does, wherever it stands, as text."""
    constants = []
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            constants.append(text_of_code(value))
        elif isinstance(value, frozenset):  # whose order differs between processes
            constants.append(str(sorted(map(repr, value))))
        else:
            constants.append(repr(value))
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def describe_schedule(name, function) -> str:
    """Returns the text of a schedule, with some values, as others may share its name.

    Args:
        name: of the argument.
        function: from the fraction of training that is done to a number.
    """
    schedule = make_schedule(function, name=name)
    try:
        values = [f"{schedule(done):g}" for done in (0.0, 0.25, 0.5, 0.75)]
    except Exception:  # It is raised where training asks for that value.
        return describe(function)
    return f"{describe(function)}: {', '.join(values)} at 0, 25, 50 and 75 %"
