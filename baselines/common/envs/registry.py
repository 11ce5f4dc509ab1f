"""Environments by id: which ones there are, and what type they are."""

import contextlib
import importlib.util
import re

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from baselines.common.base.errors import UserValueError, install_command, suggest
from baselines.common.base.lazy import import_module

# Packages with emulators, and the environment types of their games.
EMULATORS = {"ale_py": "atari", "stable_retro": "retro"}
GAMES = set(EMULATORS.values())  # types whose observations are always images
OPTIONAL = {"gymnasium_robotics": "robotics", "stable_retro": "retro"}  # and extras


def find_spec(env_id) -> EnvSpec:
    """Returns the Gymnasium spec of ``env_id``.

    Args:
        env_id: a registered id, one of gymnasium-robotics, a game of stable-retro, or
            ``module:EnvId``, which imports the module first; or a spec already.

    Raises:
        UserValueError: if there is no such environment or module; the message says
            which optional packages may have it.
    """
    if isinstance(env_id, EnvSpec):
        return env_id
    module, colon, name = env_id.rpartition(":")
    if colon:
        import_module(module)
    for register in quiet_emulator, register_robotics:
        if name not in gym.registry:
            register()
    if name in gym.registry:
        return gym.spec(name)
    games = list_retro_games()
    if name in games:
        return EnvSpec(name, entry_point="stable_retro:make", kwargs={"game": name})
    known = [*gym.registry, *games]
    base = re.sub(r"(NoFrameskip|Deterministic)?-v\d+$", "", name)
    game = f"{base[:1].upper()}{base[1:]}NoFrameskip-v4"
    hint = suggest(game if game in known else name, known, module + colon)
    missing = [
        x for name, x in OPTIONAL.items() if importlib.util.find_spec(name) is None
    ]
    others = f"; more come with {install_command(','.join(missing))}" if missing else ""
    raise UserValueError(
        f"unknown environment {name!r}{hint} "
        f"(an environment of your own: --env=module:EnvId{others})"
    )


def quiet_emulator() -> None:
    """Registers Atari games, and silences the banner of their emulator."""
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)


@contextlib.contextmanager
def quiet_mujoco():
    """Silences what MuJoCo tells the authors of models that are loaded in a block.

    Otherwise, it also writes that to a file in the current folder, MUJOCO_LOG.TXT.
    """
    import mujoco  # Only here, because it is optional.

    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def register_robotics() -> None:
    """Registers the environments of gymnasium-robotics, if it is installed."""
    with contextlib.suppress(ImportError):
        # Only here, because it takes a second.
        import gymnasium_robotics  # noqa: F401


def list_retro_games() -> list:
    """Returns the ids of stable-retro's games; none if it is not installed.

    An id does not mean that the game's ROM is installed.
    """
    try:
        # Only here, because Gymnasium's own ids need no emulator.
        import stable_retro
    except ImportError:
        return []
    return stable_retro.data.list_games()


def find_env_type(spec) -> str:
    """Returns the type of an environment, which says where its code comes from.

    One of ``atari``, ``retro``, ``classic_control``, ``box2d``, ``mujoco`` and
    ``toy_text``, or else the name of the package that contains its entry point.
    """
    entry_point = spec.entry_point
    if not isinstance(entry_point, str):
        entry_point = entry_point.__module__
    package, *path = entry_point.split(":")[0].split(".")
    if package == "gymnasium" and len(path) > 1:
        return path[1]
    return EMULATORS.get(package, package)


def check_env_type(env_type) -> None:
    """Raises UserValueError if no registered environment is of that type."""
    specs = [spec for spec in gym.registry.values() if spec.entry_point is not None]
    known = GAMES.union(map(find_env_type, specs))
    if env_type not in known:
        raise UserValueError(
            f"unknown env_type {env_type!r}{suggest(str(env_type), known)} "
            f"(known: {', '.join(sorted(known))})"
        )
