"""Turns functions into the ``learn()`` of algorithms and presets."""

import contextlib
import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from gymnasium import spaces

from baselines import logger
from baselines.common.arguments.arguments import gather
from baselines.common.arguments.declaration import (
    Argument,
    declared_arguments,
    describe_arguments,
)
from baselines.common.arguments.parts import Builder
from baselines.common.arguments.types import NETWORK, shared_arguments
from baselines.common.backend.precision import choose_precision, computing_in
from baselines.common.base.errors import UserTypeError
from baselines.common.run.run import Run
from baselines.common.saving.checkpoints import find_run_folder
from baselines.common.saving.config import (
    check_trust,
    foreign_code,
    read_config,
)

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
    with arguments annotated as described in ``types.py``. Callers leave out
    ``run``, and may give ``env`` and ``network`` by position. The function receives

        run         a new ``Run``
        env         a VecEnv, whatever kind of environment the caller gave
        seed        the seed of this MPI rank, random for None; Keras is seeded already
        network     and every other ``Part``: a ``Builder``, called to build one; it
                    has the part's own arguments from the caller's keywords

    and all other arguments as given, after checking them. Callers can also give the
    ``shared_arguments`` of ``types.py``, which ``Run`` handles. ``help(learn)``
    describes all arguments.

    Args:
        actions: classes of the action spaces that the algorithm supports.
        mpi: whether several MPI ranks can train one model.
        preset_of: the ``learn`` of another algorithm, if the function only calls
            ``preset_of.__wrapped__``, with its arguments under other names.
    """

    def decorate(fn):
        first, *parameters = inspect.signature(fn, eval_str=True).parameters.values()
        if first.name != "run":
            raise UserTypeError(
                f"the first argument of learn() of {fn.__module__} has to be run, "
                f"received {first.name}"
            )
        own = [Argument(x.name, x.annotation, x.default) for x in parameters]
        names = [argument.name for argument in own]
        shared = declared_arguments(shared_arguments).values()
        learn = make_learn(fn, [*own, *(x for x in shared if x.name not in names)])
        learn.actions, learn.mpi, learn.preset_of = tuple(actions), mpi, preset_of
        learn.settings, learn.names = {}, names
        return learn

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
    arguments = [
        Argument(name, x.annotation, settings.get(name, x.default))
        for name, x in base.declared.items()
    ]
    changed = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    doc = f"Preset of {base.__module__}{changed and f' with {changed}'}."
    learn = make_learn(base.__wrapped__, arguments, doc)
    # The module of the preset, so that its learn can be pickled.
    learn.__module__ = inspect.currentframe().f_back.f_globals["__name__"]
    learn.actions, learn.mpi, learn.preset_of = base.actions, base.mpi, base
    learn.settings, learn.names = base.settings | settings, base.names
    return learn


def make_learn(fn, arguments, doc=None):
    """Returns the ``learn()`` that callers see.

    Args:
        fn: the function of the algorithm, which takes a ``Run`` first.
        arguments: a list of ``Argument``.
        doc: its docstring, without the arguments; None for that of ``fn``.
    """

    @functools.wraps(fn)
    def learn(*positional, **keywords):
        given = by_name(positional, keywords)
        return train(gather(learn, {"preset": learn.settings, "given": given}))

    learn.__doc__ = doc or inspect.getdoc(fn) or ""
    return declare(learn, arguments)


def train(arguments, env=None):
    """Calls the function of an algorithm, and returns its model.

    Args:
        arguments: checked ``Arguments``.
        env: the environment, if ``arguments`` has only its id.
    """
    learn = arguments.learn
    # Resolves auto before it is stored: a run is not resumed in another one.
    precision = choose_precision(arguments["precision"])
    arguments = arguments.replace(precision=precision)
    with logging_to(arguments["resume"], arguments["trust"]):
        run = Run(learn, arguments, arguments["env"] if env is None else env)
        values = arguments.for_learn() | {"env": run.env, "seed": run.seed}
        for value in values.values():
            if isinstance(value, Builder) and value.part == NETWORK:
                value.context = functools.partial(computing_in, precision)
        model = learn.__wrapped__(run, **{name: values[name] for name in learn.names})
    if model is None:
        raise UserTypeError(f"learn() of {learn.__module__} has to return its model")
    return model


@contextlib.contextmanager
def logging_to(resumed, trust):
    """Lets a resumed run log to its folder inside a ``with`` block.

    If the caller has configured that folder, it is in the caller's formats, otherwise
    in those of the run.

    Args:
        resumed: the folder, or None.
        trust: whether to import formats of the caller's own.
    """
    if resumed is None:
        yield
        return
    folder, current = find_run_folder(resumed), logger.current
    configured = current.folder and os.path.realpath(current.folder)
    if configured != os.path.realpath(folder):
        formats = read_config(folder)["log_formats"]
        check_trust(folder, foreign_code({}, (), formats), trust)
        with logger.scoped_configure(folder, formats):
            yield
        return
    if current.outputs is not None:  # of a run that has ended
        logger.configure(folder, current.formats)
    yield


def by_name(positional, keywords) -> dict:
    """Returns the arguments of a call to ``learn()``, all by name.

    Raises:
        UserTypeError: if more than ``env`` and ``network`` are given by position, or if
            an argument is given twice.
    """
    if len(positional) > len(BY_POSITION):
        raise UserTypeError(
            "learn() takes env and network by position and all else by keyword, "
            f"received {len(positional)} by position"
        )
    given = dict(zip(BY_POSITION, positional))
    for name in given.keys() & keywords.keys():
        raise UserTypeError(f"learn() received {name} by position and by keyword")
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
            annotation=x.type,
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
