"""The ``config.json`` of a run that was started from Python."""

import os

from baselines.common import cli
from baselines.common.checked_arguments import is_json
from baselines.common.config import add_start, make_config, read_config
from baselines.common.envs.registry import find_env_type
from baselines.common.errors import shortened
from baselines.common.settings import OWN, Settings


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
    known, given = cli.of_text(run.arguments.declared), run.arguments.given
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
    if spec is not None and (kwargs := describe_kwargs(spec)):
        described["env_kwargs"] = kwargs
    config = make_config(settings)
    return config | {"described": described, "update_size": run.batch_size}


def describe_kwargs(spec) -> dict:
    """Returns the arguments that an environment is made with, as text, by name.

    It leaves out how it is drawn, and what ``make_atari`` and ``make_retro`` add.
    """
    left_out = "render_mode", "obs_type", "use_restricted_actions"
    return {k: describe(x) for k, x in spec.kwargs.items() if k not in left_out}


def describe(value) -> str:
    """Returns a short text for a value: itself, or its name, or that of its class."""
    if is_json(value):
        return shortened(str(value))
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"
