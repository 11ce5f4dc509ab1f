"""Environments by id: found, checked, wrapped for their kind, vectorised."""

from baselines.common.lazy import exports

# Lazily, because vec_env needs the Recorder of this room, and make.py needs vec_env.
__getattr__, __dir__ = exports(
    __name__,
    as_vec_env="make",
    make_env="make",
    make_vec_env="make",
    find_env_type="registry",
    find_spec="registry",
)
