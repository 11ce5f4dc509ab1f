"""Rebuilds trained models and their environments from what their files say."""

import contextlib
import os
import pathlib
from typing import TYPE_CHECKING, Any, NamedTuple

from baselines.common.arguments.arguments import MISSING, movable
from baselines.common.arguments.discovery import (
    find_algorithm,
    import_learn,
    list_algorithms,
)
from baselines.common.arguments.parts import Part, changed_parts
from baselines.common.base import mpi
from baselines.common.base.errors import UserFileError, UserValueError
from baselines.common.envs.make import build_env, make_env
from baselines.common.envs.nests import flat_actions, flat_observations, space_from_json
from baselines.common.envs.registry import GAMES, find_env_type, find_spec
from baselines.common.saving.config import check_trust, external_code, read_config
from baselines.common.saving.models import find_model, read_model
from baselines.common.vec_env.vec_env import VecEnv

if TYPE_CHECKING:  # as it imports Keras
    from baselines.common.networks.model import Model

SPACES = "observation_space", "action_space"


def load(path: str | os.PathLike, trust: bool = False, **given) -> "Model":
    """Returns a trained model, ready for ``predict`` and ``step``.

    Args:
        path: a log folder, a saved model or a checkpoint.
        trust: whether to import code outside this package that the file names.
        given: arguments of ``learn()`` that are not in the file, such as a ``network``
            that was a function of a script; or others, such as ``precision``. None
            stands for what the file has.

    Like ``learn()``, it seeds the global random generators of Python, NumPy and Keras.

    Raises:
        UserFileError: if there is no such file.
        UserValueError: if the file is damaged, does not say how its model was made,
            lacks an argument that is not given, or names code that is not trusted.
    """
    path = find_model(path)
    given = {name: value for name, value in given.items() if value is not None}
    _, metadata = read_model(path)
    stored, module = metadata.get("arguments"), metadata.get("algorithm")
    if stored is None:
        raise UserValueError(
            f"{path} does not say how its model was made; load it by the learn() that "
            "trained it, with load_path and total_timesteps=0"
        )
    if module not in map(find_algorithm, list_algorithms()):
        check_trust(path, {"alg": module}, trust)
    learn = import_learn(module)
    parts = {n: x.marker(Part) for n, x in learn.declared.items() if x.marker(Part)}
    stored |= {n: part.when_loaded for n, part in parts.items() if not part.in_model}
    check_trust(path, external_code(stored, changed_parts(learn, stored)), trust)
    # A file that names another run, or says that it is trusted, was not written here.
    stored = {k: x for k, x in stored.items() if k not in movable(learn.declared)}
    for name in stored.pop(MISSING, []):
        if name not in given:
            raise UserValueError(
                f"{path} has no {name}, which was not text or a number; give it again "
                f"in Python, {name}=..."
            )
    obs, actions = (metadata[name] for name in SPACES)
    obs = flat_observations(space_from_json(obs), obs.get("stack", 1))
    spaces = obs, flat_actions(space_from_json(actions))
    loaded = dict(env=NoEnv(1, *spaces), total_timesteps=0, load_path=path)
    return learn(**{**stored, **given}, **loaded, defaults=False)


class NoEnv(VecEnv):
    """Only the spaces of an environment, for a model that is not trained further."""

    def reset(self):
        raise NotImplementedError

    step_async = step_wait = get_images = reset

    def close(self):
        pass


class TrainedEnv(NamedTuple):
    """The environment that a run was trained in."""

    spec: Any
    env_type: str
    gamestate: str | None
    env_kwargs: dict  # that it was made with, in Python

    @property
    def deterministic(self) -> bool:
        """Whether models take the most likely actions in it, if nobody says.

        As papers and RL Zoo report scores: they sample only in games, where Mnih et al.
        2015 and 2016 sampled and a deterministic policy can be stuck for ever.
        """
        return self.env_type not in GAMES

    @property
    def steps_per_second(self) -> float:
        """Agent steps per second of the environment's own time."""
        if self.env_type in GAMES:
            return 60 / 4  # frames per second / frames per agent step
        made = make_env(self.spec, self.env_type, env_kwargs=self.env_kwargs)
        with contextlib.closing(made) as env:
            return env.metadata.get("render_fps", 30)

    def make(self, num_env=1, seed=None, render_mode=None, **settings):
        """Returns a VecEnv of it, rendered or not.

        In one process, TensorFlow and graphics drivers crash, so environments that are
        rendered run in workers.

        Args:
            num_env, seed: as in ``make_vec_env``.
            render_mode: ``human``, ``rgb_array``, or None for no rendering.
            settings: other arguments of ``make_vec_env``, such as ``log_dir``.
        """
        env_kwargs = dict(self.env_kwargs)
        if render_mode is not None:
            # stable-retro can run one emulator per process.
            most = num_env if self.env_type == "retro" else mpi.available_cores()
            settings["num_workers"] = min(num_env, most)
            env_kwargs["render_mode"] = render_mode
        return build_env(
            self.spec,
            self.env_type,
            num_env=num_env,
            seed=seed,
            gamestate=self.gamestate,
            env_kwargs=env_kwargs,
            **settings,
        )


def find_env(path, env=None, trust=False) -> TrainedEnv:
    """Finds the environment that a model was trained in.

    Args:
        path: a log folder, or a model or checkpoint in one.
        env: id of the environment, in place of the one that it was trained in.
        trust: whether to import the algorithm and the module of a ``module:EnvId`` that
            the folder names.

    Raises:
        UserFileError: if ``path`` does not exist, or neither a log folder nor ``env``
            names the environment.
        UserValueError: if there is no such environment, or it is code that is not
            trusted.
    """
    place = pathlib.Path(path).expanduser().absolute()
    if not place.exists():
        raise UserFileError(f"there is no log folder and no saved model at {path}")
    if env is not None:
        spec = find_spec(env)
        return TrainedEnv(spec, find_env_type(spec), None, {})
    folders = [x for x in (place, *place.parents[:2]) if (x / "config.json").exists()]
    config = read_config(folders[0]) if folders else {"arguments": {}}
    stored = config["arguments"]
    if stored.get("env") is None:
        raise UserFileError(
            f"{path} names no environment: it has no config.json, or that of a run "
            "from Python; give --env"
        )
    code = external_code(stored, ())
    check_trust(path, code, trust)
    if "alg" in code:
        import_learn(find_algorithm(code["alg"]))  # It may register environments.
    return TrainedEnv(
        find_spec(stored["env"]),
        stored["env_type"],
        stored.get("gamestate"),
        config["env_kwargs"],
    )
