"""Environments by id: found, checked, wrapped for their type and vectorised."""

from baselines.common.base.lazy import exports

# Lazily, because vec_env needs this package's Recorder, and make.py needs vec_env.
__getattr__, __dir__ = exports(
    __name__,
    as_vec_env="make",
    make_env="make",
    make_vec_env="make",
    find_env_type="registry",
    find_spec="registry",
)
