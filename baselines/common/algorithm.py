"""What makes a function the ``learn()`` of an algorithm."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from gymnasium import spaces

from baselines.common.arguments import run_arguments
from baselines.common.declarations import (
    Argument,
    check_arguments,
    declared_arguments,
    describe_arguments,
)
from baselines.common.errors import UserTypeError
from baselines.common.precision import choose_precision, computing_in
from baselines.common.training import Run

BY_POSITION = "env", "network"  # All other arguments are keywords.
ACTIONS = spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box


Own = ParamSpec("Own")
Model = TypeVar("Model", covariant=True)


class Learn(Protocol[Own, Model]):
    """The type of a ``learn()``, for editors: its own arguments, or any others.

    The others are those of its network, which depend on its name, and those of ``Run``.
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
    with arguments annotated as ``arguments.py`` says. Its callers give them without
    ``run``, and may give ``env`` and ``network`` by position. What it gets are

        run         a new ``Run``
        env         a VecEnv, whatever the caller gave
        seed        of this MPI rank, a random one for None; Keras is seeded
        network     and every other ``Part``: a function without arguments that builds
                    one; arguments of the part were among the caller's keywords

    and everything else as it was given, checked. Its callers can also give the
    ``run_arguments`` of ``arguments.py``, which ``Run`` looks after. ``help(learn)``
    lists the meanings.

    Args:
        actions: classes of the action spaces that it can be trained in.
        mpi: whether several MPI ranks can train one model.
        preset_of: the ``learn`` of another algorithm, if the function does no more
            than call what that decorates, ``preset_of.__wrapped__``, with its own
            arguments by other names.
    """

    def decorate(fn):
        def train(module, given):
            arguments = check_arguments(learn, given)
            # As what it means here, so that a run is not resumed in another.
            precision = choose_precision(arguments.given["precision"])
            arguments.given["precision"] = precision
            run = Run(learn, arguments, module)
            values = {**arguments.values, "env": run.env, "seed": run.seed}
            values["network"].context = functools.partial(computing_in, precision)
            return fn(run, **{name: values[name] for name in own})

        @functools.wraps(fn)
        def learn(*positional, **keywords):
            return train(learn.__module__, by_name(positional, keywords))

        learn.train = train  # for presets, which are other modules

        learn.actions = tuple(actions)
        learn.mpi = mpi
        learn.preset_of = preset_of
        learn.settings = {}
        _, *parameters = inspect.signature(fn, eval_str=True).parameters.values()
        own = {parameter.name: Argument.of(parameter) for parameter in parameters}
        shared = declared_arguments(run_arguments)
        others = [x for name, x in shared.items() if name not in own]
        return declare(learn, [*own.values(), *others])

    return decorate


def preset(base: Learn[Own, Model], **settings) -> Learn[Own, Model]:
    """Returns an algorithm's ``learn`` with other defaults.

    A function of a module, such as ``values=quantiles``, becomes the text that names
    it, because a run's settings are stored as text.
    """
    for name, value in settings.items():
        if callable(value):
            settings[name] = f"{value.__module__}:{value.__qualname__}"
            if "<" in value.__qualname__:
                raise TypeError(f"{name} has to be a function of a module, or text")

    def train(module, given):
        return base.train(module, settings | given)

    @functools.wraps(base)
    def learn(*positional, **keywords):
        return train(learn.__module__, by_name(positional, keywords))

    changed = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    learn.__doc__ = f"Preset of {base.__module__}{changed and f' with {changed}'}."
    # The module of the preset, so that its learn can be pickled.
    learn.__module__ = inspect.currentframe().f_back.f_globals["__name__"]
    learn.train = train
    learn.preset_of = base
    learn.settings = settings
    return declare(
        learn,
        [
            Argument(name, x.annotation, settings.get(name, x.default))
            for name, x in base.declared.items()
        ],
    )


def by_name(positional, keywords) -> dict:
    """Returns the arguments of a call of ``learn()``, all by name.

    Raises:
        UserTypeError: for more by position than ``env`` and ``network``, for one that
            is given twice, and for text where the environment has to be.
    """
    given = dict(zip(BY_POSITION, positional))
    if len(positional) > len(given):
        raise UserTypeError(
            "learn() takes env and network by position and all else by keyword, "
            f"received {len(positional)} by position"
        )
    for name in given.keys() & keywords.keys():
        raise UserTypeError(f"learn() received {name} by position and by keyword")
    if isinstance(given.get("env"), str):
        raise UserTypeError(
            "learn() takes the environment first and the network second, received "
            f"the text {given['env']!r} first"
        )
    return given | keywords


def declare(learn, arguments):
    """Gives a function its signature, with plain types, and explains its arguments.

    Args:
        learn: the function.
        arguments: a list of ``Argument``, which ``declared_arguments`` finds in
            ``learn.declared``.
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
        "Raises:\n    UserError: see ``common/errors.py``; before anything is written"
    )
    return learn
