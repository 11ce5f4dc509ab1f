"""Turns functions into the ``learn()`` of algorithms and presets."""

import contextlib
import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from gymnasium import spaces

from baselines import logger
from baselines.common.arguments.checked import check_arguments
from baselines.common.arguments.declarations import (
    Argument,
    declared_arguments,
    describe_arguments,
)
from baselines.common.arguments.parts import Builder
from baselines.common.arguments.types import NETWORK, run_arguments
from baselines.common.backend.precision import choose_precision, computing_in
from baselines.common.base.errors import UserTypeError
from baselines.common.run.run import Run
from baselines.common.run.settings import OWN
from baselines.common.saving.checkpoints import find_run_folder, name_newest
from baselines.common.saving.config import check_formats, read_config

BY_POSITION = "env", "network"  # All other arguments are keywords.
ACTIONS = spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box


Own = ParamSpec("Own")
Model = TypeVar("Model", covariant=True)


class Learn(Protocol[Own, Model]):
    """The type of a ``learn()``, for editors: its own arguments, or any others.

    The others are those of ``Run``, and those of the network, which differ by network.
    """

    @overload
    def __call__(self, *args: Own.args, **kwargs: Own.kwargs) -> Model: ...
    @overload
    def __call__(self, env: Any, network: Any, **kwargs: Any) -> Model: ...


def algorithm(
    actions=ACTIONS, mpi=True, preset_of=None
) -> Callable[[Callable[Concatenate[Any, Own], Model]], Learn[Own, Model]]:
    """Returns a decorator that makes a function the ``learn()`` of an algorithm.

    The function is written as ``def learn(run, *, env: Env, network: Network, ...)``,
    with arguments annotated as described in ``arguments.py``. Callers leave out
    ``run``, and may give ``env`` and ``network`` by position. The function receives

        run         a new ``Run``
        env         a VecEnv, whatever kind of environment the caller gave
        seed        the seed of this MPI rank, random for None; Keras is seeded already
        network     and every other ``Part``: a ``Builder``, called to build one; it
                    has the part's own arguments from the caller's keywords

    and all other arguments as given, after checking them. Callers can also give the
    ``run_arguments`` of ``arguments.py``, which ``Run`` handles. ``help(learn)``
    describes all arguments.

    Args:
        actions: classes of the action spaces that the algorithm supports.
        mpi: whether several MPI ranks can train one model.
        preset_of: the ``learn`` of another algorithm, if the function only calls
            ``preset_of.__wrapped__``, with its arguments under other names.
    """

    def decorate(fn):
        def train(module, given, preset):
            arguments = check_arguments(learn, given, preset)
            # Resolves auto before it is stored: a run is not resumed in another one.
            precision = choose_precision(arguments.given["precision"])
            arguments.given["precision"] = precision
            with logging_to(arguments.given["resume"]):
                run = Run(learn, arguments, module)
                values = {**arguments.values, "env": run.env, "seed": run.seed}
                for value in values.values():
                    if isinstance(value, Builder) and value.part == NETWORK:
                        value.context = functools.partial(computing_in, precision)
                model = fn(run, **{name: values[name] for name in own})
            if model is None:
                raise UserTypeError(
                    f"learn() of {module} has to return its model; "
                    f"{name_newest(run.checkpoint_folder)}"
                )
            return model

        @functools.wraps(fn)
        def learn(*positional, **keywords):
            return train(learn.__module__, by_name(positional, keywords), {})

        learn.train = train  # for presets, which are other modules

        learn.actions = tuple(actions)
        learn.mpi = mpi
        learn.preset_of = preset_of
        learn.settings = {}
        first, *parameters = inspect.signature(fn, eval_str=True).parameters.values()
        if first.name != "run":
            raise UserTypeError(
                f"the first argument of learn() of {fn.__module__} has to be run, "
                f"received {first.name}"
            )
        own = {parameter.name: Argument.of(parameter) for parameter in parameters}
        shared = declared_arguments(run_arguments)
        others = [x for name, x in shared.items() if name not in own]
        return declare(learn, [*own.values(), *others])

    return decorate


def preset(base: Learn[Own, Model], **settings) -> Learn[Own, Model]:
    """Returns an algorithm's ``learn`` with other defaults.

    A function of a module, such as ``values=quantiles``, is replaced by its name as
    text, ``module:function``, because a run's settings are stored as text.
    """
    for name, value in settings.items():
        if callable(value):
            settings[name] = f"{value.__module__}:{value.__qualname__}"
            if "<" in value.__qualname__:
                raise TypeError(f"{name} has to be a function of a module, or text")

    def train(module, given, preset):
        return base.train(module, given, settings | preset)

    @functools.wraps(base)
    def learn(*positional, **keywords):
        return train(learn.__module__, by_name(positional, keywords), {})

    changed = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    learn.__doc__ = f"Preset of {base.__module__}{changed and f' with {changed}'}."
    # The module of the preset, so that its learn can be pickled.
    learn.__module__ = inspect.currentframe().f_back.f_globals["__name__"]
    learn.train = train
    learn.preset_of = base
    learn.settings = base.settings | settings
    return declare(
        learn,
        [
            Argument(name, x.annotation, settings.get(name, x.default))
            for name, x in base.declared.items()
        ],
    )


@contextlib.contextmanager
def logging_to(resumed):
    """Lets a resumed run log to its folder inside a ``with`` block.

    If the caller has configured that folder, it is in the caller's formats, otherwise
    in those of the run.

    Args:
        resumed: the folder, or None.
    """
    if resumed is None:
        yield
        return
    folder, current = find_run_folder(resumed), logger.current
    configured = current.folder and os.path.realpath(current.folder)
    if configured != os.path.realpath(folder):
        formats = read_config(folder, OWN)["log_formats"]
        check_formats(folder, formats)
        with logger.scoped_configure(folder, formats):
            yield
        return
    if current.outputs is not None:  # of a run that has ended
        logger.configure(folder, current.formats)
    yield


def by_name(positional, keywords) -> dict:
    """Returns the arguments of a call to ``learn()``, all by name.

    Raises:
        UserTypeError: if more than ``env`` and ``network`` are given by position, if
            an argument is given twice, or if the two are in the wrong order.
    """
    given = dict(zip(BY_POSITION, positional))
    if len(positional) > len(given):
        raise UserTypeError(
            "learn() takes env and network by position and all else by keyword, "
            f"received {len(positional)} by position"
        )
    for name in given.keys() & keywords.keys():
        raise UserTypeError(f"learn() received {name} by position and by keyword")
    env, network = given.get("env"), given.get("network", "")
    if isinstance(env, str) and not isinstance(network, str):
        raise UserTypeError(
            "learn() takes the environment first and the network second, received "
            f"the text {env!r} first"
        )
    return given | keywords


def declare(learn, arguments):
    """Sets a function's signature, with plain types, and documents its arguments.

    Args:
        learn: the function.
        arguments: a list of ``Argument``, stored in ``learn.declared``, where
            ``declared_arguments`` looks.
    """
    learn.declared = {argument.name: argument for argument in arguments}
    kinds = dict.fromkeys(BY_POSITION, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [
        inspect.Parameter(
            x.name,
            kinds.get(x.name, inspect.Parameter.KEYWORD_ONLY),
            default=x.default,
            annotation=x.plain_type,
        )
        for x in sorted(arguments, key=lambda x: (*BY_POSITION, x.name).index(x.name))
    ]
    others = inspect.Parameter("part_kwargs", inspect.Parameter.VAR_KEYWORD)
    returns = learn.__annotations__.get("return", inspect.Signature.empty)
    learn.__signature__ = inspect.Signature(
        [*parameters, others], return_annotation=returns
    )
    learn.__doc__ = (
        f"{inspect.getdoc(learn) or ''}\n\n{describe_arguments(learn)}\n"
        "    part_kwargs: arguments of the network, and of whatever else is built\n\n"
        "Raises:\n"
        "    UserError: for a mistake of the caller, before anything is written;\n"
        "        during training, DivergedError, WriteError or WorkerDied, see\n"
        "        ``common/base/errors.py``"
    )
    return learn
