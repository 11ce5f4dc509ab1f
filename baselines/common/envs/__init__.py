"""Environments by id: found, checked, wrapped for their type and vectorised."""

from typing import TYPE_CHECKING

from baselines.common.base.lazy import exports

if TYPE_CHECKING:
    from baselines.common.envs.make import as_vec_env as as_vec_env
    from baselines.common.envs.make import make_env as make_env
    from baselines.common.envs.make import make_vec_env as make_vec_env
    from baselines.common.envs.registry import find_env_type as find_env_type
    from baselines.common.envs.registry import find_spec as find_spec

# Lazily, because vec_env needs this package's Recorder, and make.py needs vec_env.
__getattr__, __dir__ = exports(
    __name__,
    as_vec_env="make",
    make_env="make",
    make_vec_env="make",
    find_env_type="registry",
    find_spec="registry",
)
