"""What makes a function the ``learn()`` of an algorithm."""

import functools
import inspect

from gymnasium import spaces

from baselines.common.declarations import check_arguments, describe_arguments
from baselines.common.training import Run

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

    and everything else as it was given, checked. ``help(learn)`` lists the meanings.

    Args:
        actions: classes of the action spaces that it can be trained in.
        mpi: whether several MPI ranks can train one model.
    """

    def decorate(fn):
        @functools.wraps(fn)
        def learn(**given):
            arguments = check_arguments(learn, given)
            run = Run(learn, arguments)
            values = {**arguments.values, "env": run.env, "seed": run.seed}
            return fn(run, **values)

        learn.actions = tuple(actions)
        learn.mpi = mpi
        learn.preset_of = None
        _, *parameters = inspect.signature(fn, eval_str=True).parameters.values()
        return declare(learn, parameters)

    return decorate


def preset(base, **settings):
    """Returns an algorithm's ``learn`` with other defaults.

    A function of a module, such as ``values=quantiles``, becomes the text that names
    it, because a run's settings are stored as text.
    """
    for name, value in settings.items():
        if inspect.isfunction(value):
            settings[name] = f"{value.__module__}:{value.__qualname__}"

    @functools.wraps(base)
    def learn(**given):
        return base(**{**settings, **given})

    changed = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    learn.__doc__ = f"Preset of {base.__module__} with {changed}."
    learn.preset_of = base
    learn.settings = settings
    parameters = inspect.signature(base).parameters.values()
    return declare(
        learn,
        [p.replace(default=settings.get(p.name, p.default)) for p in parameters],
    )


def declare(learn, parameters):
    """Gives a function its signature, and a docstring that explains it."""
    kinds = [p for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]
    others = inspect.Parameter("part_kwargs", inspect.Parameter.VAR_KEYWORD)
    learn.__signature__ = inspect.Signature([*kinds, others])
    head = (inspect.getdoc(learn) or "").partition("\n\nArgs:")[0]
    learn.__doc__ = (
        f"{head}\n\n{describe_arguments(learn)}\n"
        "    part_kwargs: arguments of the network, and of whatever else is built\n\n"
        "Raises:\n    UserError: see ``common/errors.py``; before anything is written"
    )
    return learn
