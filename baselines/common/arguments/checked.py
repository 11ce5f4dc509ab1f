"""The arguments of a call to ``learn()`` and of its parts, checked and complete."""

import inspect
import itertools
import json
from types import MappingProxyType
from typing import NamedTuple

from baselines.common.arguments.declarations import REQUIRED, declared_arguments
from baselines.common.arguments.parts import Builder, Part
from baselines.common.arguments.types import ReadPath
from baselines.common.base.errors import UserTypeError, suggest_name

NOT_IN_FILE = "not in this file"  # cannot be the name of an argument


class Arguments(NamedTuple):
    """The arguments of a call to ``learn()``, checked and complete.

    Attributes:
        values: values by name, with a Builder in place of each ``Part``.
        given: all of them, including those of parts, as given or by default.
        declared: an ``Argument`` for each, by name.
        preset: other defaults, of a preset, by name.
    """

    values: dict
    given: dict
    declared: dict
    preset: dict

    @property
    def fixed(self) -> dict:
        """What has to stay the same when the run is resumed, as JSON values."""
        paths = {n for n, x in self.declared.items() if ReadPath in x.markers}
        return {k: v for k, v in self.stored.items() if k not in paths}

    @property
    def stored(self) -> dict:
        """All that may not change, and paths that are read, as JSON values."""
        plain = {
            name: value
            for name, value in self.given.items()
            if name in self.declared
            and not self.declared[name].may_change
            and is_json(value)
        }
        # As in a checkpoint, where tuples are lists.
        return json.loads(json.dumps(plain))

    @property
    def for_model(self) -> dict:
        """Arguments saved with a model, as JSON values, and names of those left out.

        Parts that are only for training, and their arguments, are in neither.
        """
        in_model, only_training = self.parts(True), self.parts(False)
        of_parts = {*in_model, *itertools.chain(*in_model.values())}
        unused = {*only_training, *itertools.chain(*only_training.values())} - of_parts
        stored = {k: x for k, x in self.stored.items() if k not in unused}
        left_out = sorted(of_parts - stored.keys())
        return stored | ({NOT_IN_FILE: left_out} if left_out else {})

    @property
    def of_model_parts(self) -> dict:
        """The arguments of the parts that a model is made of, as JSON values."""
        names = {*itertools.chain(*self.parts(True).values())}
        return {name: value for name, value in self.fixed.items() if name in names}

    def parts(self, in_model) -> dict:
        """Returns the names of the arguments of each part, by its own name.

        Args:
            in_model: for the parts that models are made of, or for the others.
        """
        found = {}
        for name, argument in self.declared.items():
            part = argument.marker(Part)
            if part and (part.when_loaded is None) == in_model:
                own = declared_arguments(part.find(self.given[name]))
                named = self.values[name].build.keywords.keys() & self.given.keys()
                found[name] = {*own, *named}
        return found

    def without_effect(self) -> list:
        """Returns a sentence for each argument that was set and changes nothing."""
        sentences = []
        for name, argument in self.declared.items():
            why, value = argument.why_unused(self.given), self.given[name]
            if why and value != self.preset.get(name, argument.default):
                sentences.append(f"{name} is {value}, which has no effect {why}")
        return sentences


def check_arguments(fn, given, preset=MappingProxyType({})) -> Arguments:
    """Returns the arguments of a call to ``fn``, checked and complete.

    Args:
        fn: a function whose arguments are declared as in ``arguments.py``.
        given: the keyword arguments; those that are not its own are for its parts.
        preset: other defaults, by name.

    Raises:
        UserTypeError: for an unknown or a missing argument.
        UserValueError: for a value of the wrong type or outside its range.
    """
    given = {**preset, **given}
    own = declared_arguments(fn)
    parts = {name: part for name, x in own.items() if (part := x.marker(Part))}
    functions = {
        name: part.find(given.get(name, own[name].default))
        for name, part in parts.items()
    }
    for name, part in parts.items():
        check_part(f"the {part.kind} {given.get(name)!r}", part, functions[name], fn)
    declared = dict(own)
    for function in functions.values():
        declared = declared_arguments(function) | declared
    complete = {name: argument.default for name, argument in declared.items()} | given
    # The functions that take arguments, as a message names them.
    takers = {f"{fn.__name__}()": fn} | {
        f"the {parts[name].kind} {complete[name]!r}": function
        for name, function in functions.items()
        if complete[name] is not REQUIRED
    }
    free = [name for name, function in functions.items() if takes_anything(function)]
    # Unknown names first: one may be another library's name for a missing argument.
    for name in complete:
        if name not in declared and not free:
            neither = f"neither {' nor '.join(takers)} has an"
            no_taker = neither if len(takers) > 1 else f"{fn.__name__}() has no"
            raise UserTypeError(
                f"{no_taker} argument {name!r}{suggest_name(name, declared)}"
            )
    for name, value in complete.items():
        if name not in declared:
            continue
        if value is REQUIRED:
            raise missing(declared[name], takers)
        declared[name].check(value)
        complete[name] = declared[name].convert(value)
    values = {name: complete[name] for name in own}
    for name, function in functions.items():
        its_own = declared_arguments(function)
        keywords = {
            key: complete[key]
            for key in given
            if key in its_own or (name in free and key not in declared)
        }
        values[name] = Builder(parts[name], values[name], keywords)
    return Arguments(values, complete, declared, dict(preset))


def check_part(name, part, function, fn) -> None:
    """Raises UserTypeError if the arguments of a part's function clash with others.

    Args:
        name: what the message calls it.
        part: the ``Part``.
        function: the part's own function.
        fn: the function that takes the part.
    """
    takes = declared_arguments(function)
    if takes.keys() & set(part.positional):
        raise UserTypeError(
            f"{name} has to take {' and '.join(part.positional)} by position only: put "
            f"a / behind them, ({', '.join(part.positional)}, /)"
        )
    for both in takes.keys() & declared_arguments(fn).keys():
        raise UserTypeError(
            f"{name} has an argument {both!r}, but that is an argument of "
            f"{fn.__name__}(); rename it"
        )


def missing(argument, takers) -> UserTypeError:
    """Returns the error for an argument that was not given.

    Args:
        argument: its declaration.
        takers: the functions that take arguments, by what the message calls them.
    """
    name = argument.name
    *_, taker = [x for x, fn in takers.items() if name in declared_arguments(fn)]
    explained = f", {argument.meaning}" if argument.meaning else ""
    return UserTypeError(f"{taker} needs the argument {name!r}{explained}")


def is_json(value) -> bool:
    """Whether a value can be stored as JSON."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def takes_anything(function) -> bool:
    """Whether a function has ``**kwargs``."""
    parameters = inspect.signature(function).parameters.values()
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
