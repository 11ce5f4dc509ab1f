"""Environments and command lines for scripts written for OpenAI Baselines."""

import argparse
import os

from baselines import logger
from baselines.common.arguments import cli
from baselines.common.arguments.declaration import REQUIRED, Text
from baselines.common.base.errors import UserValueError
from baselines.common.envs import make
from baselines.common.run.command_line import BASIC
from baselines.common.run.settings import NUM_TIMESTEPS, RUN_ARGUMENTS


def make_vec_env(env_id, env_type, num_env, seed, **settings):
    """Returns environments as a VecEnv, with monitor files in the logger's folder.

    Args:
        env_id, env_type, num_env, seed, settings: as in ``make_vec_env`` of
            ``baselines.common.envs``.
    """
    settings = {"log_dir": logger.get_dir(), **settings}
    return make.make_vec_env(env_id, env_type, num_env, seed, **settings)


def make_env(
    env_id, env_type, mpi_rank=0, subrank=0, seed=None, logger_dir=None, **settings
):
    """Returns environment ``subrank`` of an MPI rank.

    Args:
        env_id, env_type: as in ``make_env`` of ``baselines.common.envs``.
        seed: seed of environment 0, or None.
        logger_dir: folder of the monitor file, or None for no file.
        settings: other arguments of that ``make_env``.
    """
    return make.make_env(
        env_id,
        env_type,
        seed=None if seed is None else seed + subrank,
        monitor_file=logger_dir and os.path.join(logger_dir, f"{mpi_rank}.{subrank}"),
        **settings,
    )


def common_arg_parser() -> argparse.ArgumentParser:
    """Returns a parser of the arguments that OpenAI Baselines' scripts share.

    Arguments that are not given have their default in ``baselines.run``, or None if
    they have none there. The script itself makes videos, with a ``VecVideoRecorder``.
    """
    defaults = {"num_timesteps": NUM_TIMESTEPS, "num_env": None, "play": False}
    names = ("env", "env_type", "seed", "alg", "network", "gamestate", "reward_scale")
    names += ("save_path", "log_path", "save_video_interval", "save_video_length")
    declared = {**RUN_ARGUMENTS, **BASIC}
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in (*names, *defaults):
        default = defaults.get(name, declared[name].default)
        parser.add_argument(
            f"--{name}",
            type=lambda text, name=name: declared[name].validate(Text(text)),
            default=None if default is REQUIRED else default,
            help=declared[name].meaning,
            **{"nargs": "?", "const": True} if declared[name].type is bool else {},
        )
    return parser


def parse_unknown_args(words) -> dict:
    """Returns a dict of text by name from ``--name=text`` and ``--name text``.

    Raises:
        UserValueError: for words in neither form, and for a name without a value or
            given twice.
    """
    found = cli.read_words(words)
    for name, text in found.items():
        if text is True:
            raise UserValueError(f"--{name} has no value")
    return found
