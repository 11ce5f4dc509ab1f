"""OpenAI Baselines' name for environments and command lines of scripts."""

from baselines.common.run.cmd_util import (
    common_arg_parser,
    make_env,
    make_vec_env,
    parse_unknown_args,
)

__all__ = [
    "common_arg_parser",
    "make_env",
    "make_vec_env",
    "parse_unknown_args",
]
