"""Environments by id: wrapped for their type, vectorised."""

import contextlib
import copy
import functools
import os
import sys
from ctypes.util import find_library
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from baselines.bench.monitor import Monitor
from baselines.common.base import mpi
from baselines.common.base.errors import (
    MissingDependency,
    UserTypeError,
    UserValueError,
    first_line,
    install_command,
    shown,
)
from baselines.common.envs.checked import CheckedEnv
from baselines.common.envs.nests import flatten_env
from baselines.common.envs.recorder import Recorder, has_wrapper
from baselines.common.envs.registry import (
    GAMES,
    check_env_type,
    find_env_type,
    find_spec,
    quiet_mujoco,
)
from baselines.common.saving.video import TerminalFrame
from baselines.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecEnv,
    VecFrameStack,
    VecMonitor,
)
from baselines.common.vec_env.gymnasium_vec_env import GymnasiumVecEnv
from baselines.common.vec_env.subproc_vec_env import WORKER_TIMEOUT

FRAME_STACK = 4  # of games
EXTRAS = {  # that install what an environment type needs
    "box2d": "box2d",
    "classic_control": "play",
    "mujoco": "mujoco",
    "toy_text": "play",
}
# Time of one step, for types of environment with fast steps; others count as slow.
STEP_SECONDS = {"classic_control": 20e-6, "toy_text": 20e-6, "mujoco": 50e-6}
# Time for workers to wake up and answer, as their cores have become idle.
WAKE_UP_SECONDS = 300e-6


def make_env(
    env_id: str | EnvSpec,
    env_type: str | None = None,
    seed: int | None = None,
    monitor_file: str | None = None,
    reward_scale: float = 1.0,
    wrapper_kwargs: dict | None = None,
    env_kwargs: dict | None = None,
    gamestate: str | None = None,
) -> gym.Env:
    """Returns one environment, wrapped for its type, with a Monitor.

    Args:
        env_id: an id or a Gymnasium spec.
        env_type: its type; found by ``find_env_type`` if None.
        seed: for the environment's random generator; None for a random one.
        monitor_file: path without ``.monitor.csv``, or None for no file.
        reward_scale: factor for the rewards, applied above the Monitor.
        wrapper_kwargs: for ``wrap_deepmind`` if the type is ``atari``, and for
            ``wrap_deepmind_retro`` if it is ``retro``.
        env_kwargs: for the environment's own constructor.
        gamestate: name of the state that a retro game starts in; None for the
            game's default.

    Raises:
        MissingDependency: if the environment needs a package that is missing.
        UserValueError: if arguments do not suit the environment, or Gymnasium refuses
            to make it.
    """
    spec, env_kwargs = find_spec(env_id), env_kwargs or {}
    env_type = env_type or find_env_type(spec)
    if wrapper_kwargs and env_type not in GAMES:
        raise UserValueError(f"wrapper_kwargs are for games; {spec.id} is {env_type}")
    if gamestate is not None and env_type != "retro":
        raise UserValueError(f"gamestate is for retro games; {spec.id} is {env_type}")
    drawn = env_kwargs.get("render_mode") == "rgb_array"
    with explained(spec, env_type):
        if drawn:
            prepare_drawing()
        env = make_base_env(spec, env_type, gamestate, env_kwargs)
        # Flattened below the Recorder, as checkpoints need arrays.
        env = CheckedEnv(flatten_env(env))
        env.reset(seed=seed)
        if drawn:
            env.render()  # Only this shows whether a package for it is missing.
    env.action_space.seed(seed)
    env = Recorder(env)
    env = Monitor(env, monitor_file, allow_early_resets=True)
    # Only here, because OpenCV is only for games.
    if env_type == "atari":
        from baselines.common.envs.atari_wrappers import wrap_deepmind

        env = wrap_deepmind(env, **wrapper_kwargs or {})
    elif env_type == "retro":
        from baselines.common.envs.retro_wrappers import wrap_deepmind_retro

        env = wrap_deepmind_retro(env, **wrapper_kwargs or {})
    if reward_scale != 1.0:
        env = gym.wrappers.TransformReward(env, lambda reward: reward_scale * reward)
    return TerminalFrame(env) if drawn else env


def make_base_env(spec, env_type, gamestate, env_kwargs) -> gym.Env:
    """Returns an environment as its type makes it, with arguments of ``make_env``."""
    # Only here, because the emulators are only for games.
    if env_type == "atari":
        from baselines.common.envs.atari_wrappers import make_atari

        return make_atari(spec, **env_kwargs)
    if env_type == "retro":
        from baselines.common.envs.retro_wrappers import make_retro

        return make_retro(spec, gamestate, **env_kwargs)
    with quiet_mujoco() if env_type == "mujoco" else contextlib.nullcontext():
        return gym.make(spec, disable_env_checker=True, **env_kwargs)


@contextlib.contextmanager
def explained(spec, env_type):
    """Turns errors of a block into one line: missing packages, Gymnasium's refusals.

    Raises:
        MissingDependency: if a package is missing.
        UserValueError: for other errors of Gymnasium.
    """
    name = f"environment {spec.id!r}"
    try:
        yield
    except (ImportError, gym.error.DependencyNotInstalled) as error:
        reason = first_line(error)
        if spec.version in (2, 3) and f"{spec.name}-v4" in gym.registry:  # of MuJoCo
            reason = f"did you mean '{spec.name}-v4'? ({reason})"
        elif env_type in EXTRAS:
            reason = f"{install_command(EXTRAS[env_type])} first ({reason})"
        raise MissingDependency(f"{name} cannot be used: {reason}") from error
    except gym.error.Error as error:
        raise UserValueError(f"{name} cannot be made: {first_line(error)}") from error


def prepare_drawing() -> None:
    """Keeps pygame from looking for a screen, and MuJoCo where there is none."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    no_screen = not {"DISPLAY", "WAYLAND_DISPLAY"} & {*os.environ}
    if sys.platform == "linux" and no_screen and find_library("EGL"):
        os.environ.setdefault("MUJOCO_GL", "egl")


def make_vec_env(
    env_id: str | EnvSpec,
    env_type: str | None = None,
    num_env: int = 1,
    seed: int | None = None,
    wrapper_kwargs: dict | None = None,
    env_kwargs: dict | None = None,
    start_index: int = 0,
    reward_scale: float = 1.0,
    gamestate: str | None = None,
    log_dir: str | None = None,
    num_workers: int | None = None,
    on_worker_failure: str = "replace",
    worker_timeout: float | None = WORKER_TIMEOUT,
) -> VecEnv:
    """Returns ``num_env`` environments as one VecEnv, with different seeds.

    Atari games are wrapped by ``wrap_deepmind``, and retro games by
    ``wrap_deepmind_retro``, without a frame stack: put them into a ``VecFrameStack``.

    Args:
        env_id: an id, ``module:EnvId``, or a Gymnasium spec.
        env_type: its type; found by ``find_env_type`` if None.
        num_env: how many environments. A single one runs in this process, and so do
            several if they are fast; others run in workers. Each retro game has its own
            worker: stable-retro can run only one emulator per process.
        seed: environment i of MPI rank r gets ``seed + 10_000 * r + i``, where r is
            0 without MPI; None for random seeds.
        wrapper_kwargs: see ``make_env``.
        env_kwargs: for the environment's own constructor.
        start_index: number of the first environment, for seeds and file names.
        reward_scale: factor for the rewards that the algorithm gets.
        gamestate: see ``make_env``.
        log_dir: folder for the files ``<r>.<i>.monitor.csv``; None for no files.
        num_workers: how many worker processes, see ``SubprocVecEnv``; None chooses
            what is likely to be fastest.
        on_worker_failure, worker_timeout: see ``SubprocVecEnv``. A run warns if they
            are set but there are no workers.

    Raises:
        UserValueError: if there is no such environment or ``env_type``.
    """
    spec = find_spec(env_id)
    if env_type is not None:
        check_env_type(env_type)
    env_type = env_type or find_env_type(spec)
    # Read here, because worker processes are not MPI ranks.
    seed, rank = mpi.seed_of_rank(seed), mpi.rank

    def env_fn(index):
        return functools.partial(
            make_env,
            spec,
            env_type,
            seed=None if seed is None else seed + index,
            monitor_file=log_dir and os.path.join(log_dir, f"{rank}.{index}"),
            reward_scale=reward_scale,
            wrapper_kwargs=wrapper_kwargs,
            env_kwargs=env_kwargs,
            gamestate=gamestate,
        )

    env_fns = [env_fn(start_index + i) for i in range(num_env)]
    if env_type == "retro" and num_workers is None:
        num_workers = num_env
    if num_workers is None and not use_workers(env_type, num_env):
        venv = DummyVecEnv(env_fns)
        if (on_worker_failure, worker_timeout) != ("replace", WORKER_TIMEOUT):
            venv.ignored = [
                "on_worker_failure and worker_timeout have no effect: the environments "
                "run in this process, without workers"
            ]
    else:
        venv = SubprocVecEnv(env_fns, num_workers, on_worker_failure, worker_timeout)
    venv.spec = copy.copy(spec)
    venv.spec.kwargs = {**spec.kwargs, **(env_kwargs or {})}
    return venv


def use_workers(env_type, num_env) -> bool:
    """Whether workers save more time in a step than it takes to wake them up."""
    in_parallel = min(num_env, mpi.available_cores())
    seconds = STEP_SECONDS.get(env_type, 1.0)
    return num_env > 1 and num_env * seconds * (1 - 1 / in_parallel) > WAKE_UP_SECONDS


def build_env(spec, env_type, **arguments) -> VecEnv:
    """Returns the environments of a run, in the VecEnv wrappers of their type.

    Args:
        spec, env_type: as in ``make_env``.
        arguments: further arguments of ``make_vec_env``.
    """
    env = make_vec_env(spec, env_type, **arguments)
    return VecFrameStack(env, FRAME_STACK) if env_type in GAMES else env


def as_vec_env(env: Any, seed: int | None = None) -> VecEnv:
    """Returns a VecEnv for the environment that an algorithm was given.

    Args:
        env: a VecEnv (ours or one with the same interface), a Gymnasium Env, or a
            Gymnasium VectorEnv with same-step resets. The last two get no game
            wrappers, but a VecMonitor, unless an Env has a Monitor already.
        seed: for a Gymnasium environment; a VecEnv has its seeds already.

    Raises:
        UserTypeError: for anything else; the message says what to do.
    """
    if isinstance(env, gym.vector.VectorEnv):
        return VecMonitor(GymnasiumVecEnv(env, seed))
    if isinstance(env, gym.Env):
        venv = DummyVecEnv([lambda: env])
        with Monitor.without_files():  # which allows a reset during an episode
            venv.envs[0].reset(seed=seed)
        # A Monitor inside records more: raw rewards, and full games of several lives.
        return venv if has_wrapper(env, Monitor) else VecMonitor(venv)
    needed = "num_envs", "step_async", "step_wait"
    if isinstance(env, type) or not all(hasattr(env, name) for name in needed):
        raise UserTypeError(
            f"env has to be a VecEnv or a gymnasium.Env, received {shown(env)}; "
            "make_vec_env makes one by its id, and shimmy "
            "(shimmy.GymV21CompatibilityV0(env=env)) converts one of the old gym API"
        )
    return env
