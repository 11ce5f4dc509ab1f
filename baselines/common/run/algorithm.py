"""Turns functions into the ``learn()`` of algorithms and presets."""

import contextlib
import functools
import inspect
import os
from collections.abc import Callable
from inspect import Parameter
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from baselines import logger
from baselines.common.arguments.arguments import gather
from baselines.common.arguments.declaration import Argument, describe_arguments
from baselines.common.arguments.discovery import find_layers
from baselines.common.arguments.parts import Builder
from baselines.common.arguments.types import NETWORK, SHARED_ARGUMENTS
from baselines.common.backend.precision import choose_precision, computing_in
from baselines.common.base.errors import UserTypeError
from baselines.common.envs.nests import network_for
from baselines.common.envs.registry import find_env_type
from baselines.common.networks.distributions import DISTRIBUTIONS
from baselines.common.run.run import Run
from baselines.common.run.settings import RUN_ARGUMENTS
from baselines.common.saving.config import check_trust, external_code, read_config

P = ParamSpec("P")
Model = TypeVar("Model", covariant=True)


class Learn(Protocol[P, Model]):
    """A ``learn()``, with what is known about its algorithm.

    Attributes:
        declared: an ``Argument`` for each of its arguments, by name.
        names: of the arguments that the algorithm itself uses.
        actions: classes of the action spaces that it supports.
        mpi: whether several MPI ranks can train one model.
        preset_of: the ``learn`` that it is a preset of, or None.
        settings: defaults that differ from those of ``preset_of``.
    """

    declared: dict[str, Argument]
    names: list[str]
    actions: tuple[type, ...]
    mpi: bool
    preset_of: "Learn | None"
    settings: dict[str, Any]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Model: ...


def algorithm(
    actions=tuple(DISTRIBUTIONS), mpi=True, preset_of=None
) -> Callable[[Callable[Concatenate[Any, P], Model]], Learn[P, Model]]:
    """Returns a decorator that makes a function the ``learn()`` of an algorithm.

    The function is written as ``def learn(run, env: Env, network: Network = "mlp", *,
    ...)``, with arguments annotated as described in ``types.py``; ``**others:
    Unpack[Others]`` tells type checkers of the rest. Callers leave out ``run``. The
    function receives

        run         a new ``Run``
        env         a VecEnv, whatever kind of environment the caller gave
        seed        the seed of this MPI rank, random for None; Keras is seeded already
        network     and every other ``Part``: a ``Builder``, called to build one; it
                    has the part's own arguments from the caller's keywords

    and all other arguments as given, after checking them. Callers can also give the
    ``SharedArguments`` of ``types.py``, which ``Run`` handles. ``help(learn)``
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
        own = [x for x in parameters if x.kind is not x.VAR_KEYWORD]
        declared = {x.name: Argument(x.name, x.annotation, x.default) for x in own}
        learn = make_learn(fn, declared | SHARED_ARGUMENTS | declared)
        learn.actions, learn.mpi, learn.preset_of = tuple(actions), mpi, preset_of
        learn.settings, learn.names = {}, [*declared]
        return learn

    return decorate


def preset(base: Learn[P, Model], **settings) -> Learn[P, Model]:
    """Returns an algorithm's ``learn`` with other defaults.

    A function of a module, such as ``values=quantiles``, is replaced by its name as
    text, ``module:function``, because a run's settings are stored as text.
    """
    for name, value in settings.items():
        if callable(value):
            settings[name] = f"{value.__module__}:{value.__qualname__}"
            if "<" in value.__qualname__:
                raise TypeError(f"{name} has to be a function of a module, or text")
    declared = {
        name: Argument(name, x.annotation, settings.get(name, x.default))
        for name, x in base.declared.items()
    }
    changed = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    doc = f"Preset of {base.__module__}{changed and f' with {changed}'}."
    learn = make_learn(base.__wrapped__, declared, doc)
    # The module of the preset, so that its learn can be pickled.
    learn.__module__ = inspect.currentframe().f_back.f_globals["__name__"]
    learn.actions, learn.mpi, learn.preset_of = base.actions, base.mpi, base
    learn.settings, learn.names = base.settings | settings, base.names
    return learn


def make_learn(fn, declared, doc=None):
    """Returns the ``learn()`` that callers see, with its signature and docstring.

    Args:
        fn: the function of the algorithm, which takes a ``Run`` first.
        declared: an ``Argument`` for each argument, by name.
        doc: its docstring, without the arguments; None for that of ``fn``.
    """
    positional = dict.fromkeys(("env", "network"), Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [
        Parameter(
            x.name,
            positional.get(x.name, Parameter.KEYWORD_ONLY),
            default=x.default,
            annotation=x.type,
        )
        for x in declared.values()
    ]
    parameters.append(Parameter("part_kwargs", Parameter.VAR_KEYWORD))
    returns = fn.__annotations__.get("return", inspect.Signature.empty)
    signature = inspect.Signature(parameters, return_annotation=returns)

    @functools.wraps(fn)
    def learn(*args, **kwargs):
        given = signature.bind_partial(*args, **kwargs).arguments
        given |= given.pop("part_kwargs", {})
        return train(gather(learn, layers_of_call(learn, given)))

    learn.declared, learn.__signature__ = declared, signature
    learn.__doc__ = (
        f"{doc or inspect.getdoc(fn) or ''}\n\n{describe_arguments(learn)}\n"
        "    part_kwargs: arguments of the network, and of whatever else is built\n\n"
        "Raises:\n"
        "    UserError: for a mistake of the caller, before anything is written;\n"
        "        during training, DivergedError, WriteError or WorkerDied, see\n"
        "        ``common/base/errors.py``"
    )
    return learn


def layers_of_call(learn, given) -> dict:
    """Returns the layers of the arguments of a call to ``learn()``.

    They are those of the command line, for the same kind of environment.
    """
    env = given.get("env")
    spec, space = getattr(env, "spec", None), getattr(env, "observation_space", None)
    space = getattr(env, "single_observation_space", space)  # of a VectorEnv
    env = dict(env_type="", network=network_for(space))
    if spec:
        env |= dict(env_type=find_env_type(spec), env_id=spec.id)
    layers = find_layers(learn.__module__, env, given.get("defaults", True))
    for name in layers["defaults.py"].keys() & RUN_ARGUMENTS.keys():
        del layers["defaults.py"][name]  # such as num_env
    return layers | {"preset": learn.settings, "given": given}


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
    with logging_of(arguments):
        run = Run(learn, arguments, arguments["env"] if env is None else env)
        values = arguments.for_learn() | {"env": run.env, "seed": run.seed}
        for value in values.values():
            if isinstance(value, Builder) and value.part.kind == NETWORK.kind:
                value.context = functools.partial(computing_in, precision)
        model = learn.__wrapped__(run, **{name: values[name] for name in learn.names})
    if model is None:
        raise UserTypeError(f"learn() of {learn.__module__} has to return its model")
    return model


def logging_of(arguments):
    """Returns a context in which a resumed run logs to its folder.

    If the caller has configured that folder, it is in the caller's formats, otherwise
    in those of the run. Where a model is only loaded, no file is written.

    Args:
        arguments: of the run.

    Raises:
        UserError: if there is no run to resume, or its formats are not trusted.
    """
    resumed, current = arguments["resume"], logger.current
    if resumed is None:
        if arguments["total_timesteps"]:
            return contextlib.nullcontext()
        formats = {"stdout"} & {*current.formats}
        return logger.scoped(logger.Logger(None, [*formats]))
    folder = os.path.expanduser(resumed)
    configured = current.folder and os.path.realpath(current.folder)
    if configured != os.path.realpath(folder):
        formats = read_config(folder)["log_formats"]
        check_trust(folder, external_code({}, (), formats), arguments["trust"])
        return logger.scoped_configure(folder, formats)
    if current.outputs is not None:  # of a run that has ended
        logger.configure(folder, current.formats)
    return contextlib.nullcontext()
