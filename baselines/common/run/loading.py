"""Rebuilds trained models and their environments from what their files say."""

import contextlib
import os
import pathlib
import shlex
from typing import Any, NamedTuple

from baselines.common.arguments.checked import NOT_IN_FILE
from baselines.common.arguments.declarations import declared_arguments
from baselines.common.arguments.discovery import (
    find_algorithm,
    import_learn,
    list_algorithms,
)
from baselines.common.arguments.parts import Part
from baselines.common.base import mpi
from baselines.common.base.errors import UserFileError, UserTypeError, UserValueError
from baselines.common.envs.make import build_env, make_env
from baselines.common.envs.registry import GAMES, find_env_type, find_spec
from baselines.common.envs.spaces import space_from_json
from baselines.common.run.python_config import describe_kwargs
from baselines.common.run.settings import OWN
from baselines.common.saving.config import (
    CODE_OF_MODEL,
    FORMAT,
    foreign_values,
    read_config,
)
from baselines.common.saving.files import read_json
from baselines.common.saving.log_folder import is_config
from baselines.common.saving.models import find_model, read_model
from baselines.common.vec_env.vec_env import VecEnv

SPACES = "observation_space", "action_space"


def load(path, **given):
    """Returns a trained model, ready for ``predict`` and ``step``.

    Args:
        path: a log folder, a saved model or a checkpoint.
        given: arguments of ``learn()`` that are not in the file, such as a ``network``
            that was a function of a script. Code outside this package is imported only
            if it is named here again: ``alg="my_pkg.my_alg"``,
            ``network="my_module:my_function"``.

    Like ``learn()``, it seeds the global random generators of Python, NumPy and Keras.

    Raises:
        UserFileError: if there is no such file.
        UserTypeError: for ``env``, ``load_path`` or ``total_timesteps``, and for
            arguments that ``learn()`` does not take.
        UserValueError: if the file is damaged, does not say how its model was made,
            lacks an argument that is not given, or names code outside this package
            that is not named here again.
    """
    for name in given.keys() & {"env", "load_path", "total_timesteps"}:
        raise UserTypeError(f"load() takes no {name}: the model is only loaded")
    path = find_model(path)
    _, metadata = read_model(path)
    arguments = metadata.get("arguments")
    if not isinstance(arguments, dict):
        raise UserValueError(
            f"{path} does not say how its model was made; load it by the learn() that "
            "trained it, with load_path and total_timesteps=0"
        )
    module, alg = metadata.get("algorithm"), given.pop("alg", None)
    if alg is None and not is_own(module):
        stored = arguments | {"alg": str(module).rpartition(".")[0]}
        raise foreign(path, "alg", stored, given)
    learn = import_learn(module if alg is None else find_algorithm(alg))
    for name, argument in declared_arguments(learn).items():
        part, value = argument.marker(Part), arguments.get(name)
        trusted = name in given or value == learn.settings.get(name)
        if part and not part.when_loaded and ":" in str(value) and not trusted:
            raise foreign(path, name, arguments, given)
    left_out = arguments.pop(NOT_IN_FILE, [])
    check_metadata(path, learn, arguments, left_out)
    arguments |= only_for_training(learn)
    for name in left_out:
        if name not in given:
            raise UserValueError(
                f"{path} has no {name}, which was not text or a number; give it again "
                f"in Python, {name}=..."
            )
    env = NoEnv(1, *(read_space(path, metadata, name) for name in SPACES))
    return learn(env=env, **{**arguments, **given}, total_timesteps=0, load_path=path)


def load_given(path, **given):
    """Calls ``load`` with the arguments that are not None."""
    return load(path, **{k: v for k, v in given.items() if v is not None})


def read_space(path, metadata, name):
    """Returns a space of a model; raises UserValueError if its description is wrong.

    Args:
        path, metadata: path and metadata of the model's file.
        name: name of the space.
    """
    try:
        return space_from_json(metadata.get(name))
    except UserValueError as error:
        raise UserValueError(f"{path} is damaged: its {name}: {error}") from error


def check_metadata(path, learn, arguments, left_out) -> None:
    """Raises UserValueError for settings that no model's file has.

    Args:
        path: path of the file.
        learn: the ``learn()`` of its algorithm.
        arguments, left_out: arguments in the file, and names of those not stored.
    """
    declared, damaged = declared_arguments(learn), []
    if not isinstance(left_out, list) or not all(isinstance(x, str) for x in left_out):
        damaged.append(NOT_IN_FILE)
    never = {"env", *only_for_training(learn)}
    never |= {name for name, argument in declared.items() if argument.may_change}
    damaged += [name for name in arguments if name in never]
    if damaged:
        raise UserValueError(f"{path} is damaged: models have no settings {damaged}")


def only_for_training(learn) -> dict:
    """Returns what replaces the parts that no model is made of, by name."""
    parts = {n: x.marker(Part) for n, x in declared_arguments(learn).items()}
    return {n: x.when_loaded for n, x in parts.items() if x and x.when_loaded}


def is_own(module) -> bool:
    """Whether ``module`` is the module of an algorithm in this package."""
    return module in [find_algorithm(name) for name in list_algorithms()]


def foreign(path, name, stored, given=()) -> UserValueError:
    """Returns the error for a file that names code outside this package.

    Args:
        path: path of the file.
        name: name of the argument that names such code.
        stored: arguments in the file; others of them may name such code as well.
        given: names of the arguments that were given again.
    """
    others = foreign_values(stored, CODE_OF_MODEL)
    again = {name: stored[name]}
    again |= {k: v for k, v in others.items() if k not in given}
    flags = shlex.join(f"--{k}={v}" for k, v in again.items())
    in_python = ", ".join(f"{k}={v!r}" for k, v in again.items())
    return UserValueError(
        f"{path} was trained with the {name} {stored[name]!r}, which is code outside "
        f"this package; to have it imported, give again {flags} (in Python, "
        f"{in_python})"
    )


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

    @property
    def steps_per_second(self) -> float:
        """Agent steps per second of the environment's own time."""
        if self.env_type in GAMES:
            return 60 / 4  # frames per second / frames per agent step
        with contextlib.closing(make_env(self.spec, self.env_type)) as env:
            return env.metadata.get("render_fps", 30)

    def make(self, num_env=1, seed=None, render_mode=None):
        """Returns a VecEnv of it, rendered or not; arguments as in ``make_vec_env``."""
        return build_env(
            self.spec,
            self.env_type,
            num_env=num_env,
            seed=seed,
            gamestate=self.gamestate,
            **rendered(num_env, render_mode, self.env_type) if render_mode else {},
        )


def rendered(num_env, mode, env_type) -> dict:
    """Returns arguments of ``make_vec_env`` for environments that are rendered.

    In one process, TensorFlow and graphics drivers crash, so these run in workers.
    """
    # stable-retro can run one emulator per process.
    most = num_env if env_type == "retro" else mpi.available_cores()
    return dict(env_kwargs={"render_mode": mode}, num_workers=min(num_env, most))


def has_current_config(folder) -> bool:
    """Whether the ``config.json`` in a folder is our logger's, in today's format."""
    path = f"{folder}/config.json"
    return is_config(path) and read_json(path).get("format") == FORMAT


def find_env(path, env=None) -> TrainedEnv:
    """Finds the environment that a model was trained in.

    Args:
        path: a log folder, or a model or checkpoint in one.
        env: id of the environment, for a model without a log folder. If the log folder
            names a ``module:EnvId``, that is imported only if it is given here as well.

    Raises:
        UserFileError: if ``path`` does not exist, or neither a log folder nor ``env``
            names the environment.
        UserValueError: if there is no such environment, if it is code outside this
            package that is not given here, or if Python made it with arguments that it
            is not registered with.
    """
    folder = os.path.abspath(os.path.expanduser(path))
    if not os.path.exists(folder):
        raise UserFileError(f"there is no log folder and no saved model at {path}")
    places = [folder, *list(pathlib.Path(folder).parents)[:2]]
    places = [x for x in places if os.path.isfile(f"{x}/config.json")]
    if env is not None:  # It is enough, so other programs and formats are ignored.
        places = [x for x in places if has_current_config(x)]
    folder = places[0] if places else None
    if folder is None and env is None:
        read_model(find_model(path))  # It may not even be a model.
        raise UserFileError(
            f"there is no config.json beside {path} that names an environment; give "
            "--env"
        )
    config = read_config(folder, OWN) if folder else {}
    settings = config.get("arguments", {})
    if env is None and settings["env"] is None:
        raise UserFileError(
            f"{folder}/config.json names no environment, as Python made one without an "
            "id; register it in a module, and give --env=MODULE:ID"
        )
    if env is None and ":" in settings["env"]:
        raise foreign(path, "env", config["settings"] | settings)
    spec = find_spec(env or settings["env"])
    kwargs = config.get("described", {}).get("env_kwargs")
    usual = describe_kwargs(spec)
    if env is None and isinstance(kwargs, dict) and not kwargs.items() <= usual.items():
        named = ", ".join(f"{name}={value}" for name, value in kwargs.items())
        raise UserValueError(
            f"{path} was trained in {spec.id} made with {named}, which is not how it "
            "is registered; register it so in a module, and give --env=MODULE:ID"
        )
    same = env in (None, settings.get("env"))
    return TrainedEnv(
        spec=spec,
        env_type=(same and settings["env_type"]) or find_env_type(spec),
        gamestate=settings["gamestate"] if same else None,
    )
