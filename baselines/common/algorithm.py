"""What makes a function the ``learn()`` of an algorithm."""

import functools
import inspect

from gymnasium import spaces

from baselines.common.arguments import run_arguments
from baselines.common.declarations import (
    Argument,
    check_arguments,
    declared_arguments,
    describe_arguments,
)
from baselines.common.precision import choose_precision, computing_in
from baselines.common.training import Run

KEYWORD = inspect.Parameter.KEYWORD_ONLY
ACTIONS = spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box


def algorithm(actions=ACTIONS, mpi=True):
    """Returns a decorator that makes a function the ``learn()`` of an algorithm.

    The function is written as ``def learn(run, *, env: Env, network: Network, ...)``,
    with arguments annotated as ``arguments.py`` says. Its callers give the keywords
    alone. What it gets are

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
    """

    def decorate(fn):
        @functools.wraps(fn)
        def learn(**given):
            arguments = check_arguments(learn, given)
            # As what it means here, so that a run is not resumed in another.
            precision = choose_precision(arguments.given["precision"])
            arguments.given["precision"] = precision
            run = Run(learn, arguments)
            values = {**arguments.values, "env": run.env, "seed": run.seed}
            values["network"].context = functools.partial(computing_in, precision)
            return fn(run, **{name: values[name] for name in own})

        learn.actions = tuple(actions)
        learn.mpi = mpi
        learn.preset_of = None
        learn.settings = {}
        _, *parameters = inspect.signature(fn, eval_str=True).parameters.values()
        own = {parameter.name: Argument.of(parameter) for parameter in parameters}
        shared = declared_arguments(run_arguments)
        others = [x for name, x in shared.items() if name not in own]
        return declare(learn, [*own.values(), *others])

    return decorate


def preset(base, **settings):
    """Returns an algorithm's ``learn`` with other defaults.

    A function of a module, such as ``values=quantiles``, becomes the text that names
    it, because a run's settings are stored as text.
    """
    for name, value in settings.items():
        if callable(value):
            settings[name] = f"{value.__module__}:{value.__qualname__}"
            if "<" in value.__qualname__:
                raise TypeError(f"{name} has to be a function of a module, or text")

    @functools.wraps(base)
    def learn(**given):
        return base(**{**settings, **given})

    changed = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    learn.__doc__ = f"Preset of {base.__module__} with {changed}."
    # The module of the preset, so that its learn can be pickled.
    learn.__module__ = inspect.currentframe().f_back.f_globals["__name__"]
    learn.preset_of = base
    learn.settings = settings
    return declare(
        learn,
        [
            Argument(name, x.annotation, settings.get(name, x.default))
            for name, x in base.declared.items()
        ],
    )


def declare(learn, arguments):
    """Gives a function its signature, with plain types, and explains its arguments.

    Args:
        learn: the function.
        arguments: a list of ``Argument``, which ``declared_arguments`` finds in
            ``learn.declared``.
    """
    learn.declared = {argument.name: argument for argument in arguments}
    parameters = [
        inspect.Parameter(x.name, KEYWORD, default=x.default, annotation=x.plain_type)
        for x in arguments
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
