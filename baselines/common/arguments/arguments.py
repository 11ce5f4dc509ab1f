"""The arguments of a run: gathered from their layers, checked once, read-only."""

import json
from collections import ChainMap
from collections.abc import Mapping
from types import MappingProxyType

from baselines.common.arguments.declaration import (
    REQUIRED,
    Argument,
    Text,
    declared_arguments,
    takes_anything,
)
from baselines.common.arguments.parts import Builder, Part
from baselines.common.arguments.types import MayChange, Needs, NeedsNo, ReadPath
from baselines.common.base.errors import UserTypeError, suggest

MISSING = "not in this file"  # cannot be the name of an argument


class Arguments(Mapping):
    """Values by name, of ``learn()``, of its parts, and of a command.

    Args:
        learn: the ``learn()`` of an algorithm.
        values: all values by name, checked.
        declared: an ``Argument`` for each of them that is declared.
        sources: the layer that each value came from, by name.
        functions: of each part, by the name of its argument.
        of_command: names of those that are not for ``learn()``.

    Attributes:
        command: the words of the command line that they come from; None in Python.
    """

    command = None

    def __init__(self, learn, values, declared, sources, functions, of_command=()):
        self.learn, self.declared, self.sources = learn, declared, sources
        self.functions, self.of_command = functions, of_command
        self._values = values

    def __getitem__(self, name):
        return self._values[name]

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def replace(self, **values):
        """Returns a copy with other values."""
        values = self._values | values
        others = self.declared, self.sources, self.functions, self.of_command
        copy = Arguments(self.learn, values, *others)
        copy.command = self.command
        return copy

    def for_learn(self) -> dict:
        """Returns the arguments of the function, with a ``Builder`` for each part."""
        values = {name: self[name] for name in declared_arguments(self.learn)}
        for name, function in self.functions.items():
            part = self.declared[name].marker(Part)
            names = self.names_of(name, function)
            set_above = {k: self[k] for k in names if self.sources[k] != "signature"}
            values[name] = Builder(part, self[name], set_above)
        return values

    @property
    def learn_arguments(self) -> dict:
        """The keywords of a call to ``learn()``, those of its parts included."""
        return {k: x for k, x in self.items() if k not in self.of_command}

    def names_of(self, part, function) -> set:
        """Returns the names of the arguments that go to the function of a part."""
        names = {*self.declared[part].marker(Part).arguments(function)}
        undeclared = self.keys() - self.declared.keys()
        return names | undeclared if takes_anything(function) else names

    @property
    def stored(self) -> dict:
        """All values that JSON can hold, by name: what ``config.json`` has."""
        return {k: x for k, x in self.items() if is_json(x) and k not in NEVER_STORED}

    @property
    def fixed(self) -> dict:
        """What has to stay the same when the run is resumed, as JSON values."""
        left_out = {*movable(self.declared), *self.of_command}
        fixed = {k: x for k, x in self.stored.items() if k not in left_out}
        return json.loads(json.dumps(fixed))  # As in files, where tuples are lists.

    @property
    def for_model(self) -> dict:
        """What a saved model is built from, as JSON values.

        Parts that are only for training are left out, with their arguments. Under
        ``MISSING``, it has the names of values that JSON cannot hold.
        """
        of_model, of_training = self.of_parts(True), self.of_parts(False)
        fixed = {k: x for k, x in self.fixed.items() if k not in of_training - of_model}
        missing = sorted(of_model - self.stored.keys())
        return fixed | ({MISSING: missing} if missing else {})

    @property
    def of_model_parts(self) -> dict:
        """The arguments of the parts that a model is made of, as JSON values."""
        names = self.of_parts(True) - self.functions.keys()
        return {k: x for k, x in self.fixed.items() if k in names}

    def of_parts(self, in_model) -> set:
        """Returns the names of parts and of their arguments.

        Args:
            in_model: for the parts that models are made of, or for the others.
        """
        names = set()
        for name, function in self.functions.items():
            if self.declared[name].marker(Part).in_model == in_model:
                names |= {name, *self.names_of(name, function)}
        return names

    def without_effect(self) -> list:
        """Returns a sentence for each argument that was given and changes nothing."""
        sentences = []
        for name, argument in self.declared.items():
            needs, needs_no = argument.marker(Needs), argument.marker(NeedsNo)
            if self.sources.get(name) != "given" or self[name] == argument.default:
                continue
            if needs and not self[needs.switch]:
                reason = f"without {needs.switch}"
            elif needs_no and self.get(needs_no.switch):
                reason = f"with {needs_no.switch}"
            else:
                continue
            sentences.append(f"{name} is {self[name]}, which has no effect {reason}")
        return sentences


NEVER_STORED = {"defaults", "resume", "trust", "play", "overwrite"}


def movable(declared) -> set:
    """Returns the names of arguments that may change when a run is resumed."""
    markers = MayChange, ReadPath
    return {n for n, x in declared.items() if any(map(x.marker, markers))}


def gather(learn, layers, of_command=MappingProxyType({})) -> Arguments:
    """Returns the arguments of a run, checked and complete.

    Args:
        learn: the ``learn()`` of an algorithm, whose signature is the lowest layer.
        layers: dicts of values by name, by the name of the layer, lowest first; the
            last is ``given``. Each overrides those before.
        of_command: declarations of arguments that are not for ``learn()``.

    Raises:
        UserTypeError: for an unknown or a missing argument.
        UserValueError: for a value of the wrong type or outside its range.
    """
    layers = {name: dict(values) for name, values in layers.items()}
    declared, functions = declare(learn, layers, of_command)
    signature = {name: argument.default for name, argument in declared.items()}
    layers = {"signature": signature, **layers}
    values = ChainMap(*reversed(layers.values()))
    sources = {name: layer for layer, those in layers.items() for name in those}
    anything = any(map(takes_anything, functions.values()))
    checked = {}
    taken = {k for x in functions for k in declared[x].marker(Part).by_algorithm}
    for name in [*layers["given"], *values]:  # A misspelt name explains a missing one.
        if name not in declared and (name in taken or not anything):
            raise unknown(learn, name, sources[name], declared)
    for name, value in values.items():
        argument = declared.get(name) or Argument(name, REQUIRED)
        if value is REQUIRED:
            meaning = argument.meaning
            raise UserTypeError(
                f"learn() of {learn.__module__} needs the argument {name!r}"
                f"{meaning and f', {meaning}'}"
            )
        checked[name] = argument.validate(value)
    return Arguments(learn, checked, declared, sources, functions, {*of_command})


def declare(learn, layers, of_command) -> tuple:
    """Returns the declarations of all arguments, and the function of each part.

    Args:
        learn, of_command: as in ``gather``.
        layers: as in ``gather``; they lose the arguments of parts that are not used.

    Raises:
        UserTypeError: if names clash.
    """
    of_learn = declared_arguments(learn)
    functions = find_functions(of_learn, layers)
    check_names(functions, of_learn, of_command)
    of_parts = ChainMap(
        *(of_learn[k].marker(Part).arguments(x) for k, x in functions.items())
    )
    return {**of_parts, **of_learn, **of_command}, functions


def find_functions(declared, layers) -> dict:
    """Returns the function of each part, by the name of its argument.

    Lower layers lose the arguments that they have for another function.

    Args:
        declared: declarations of the arguments of ``learn()``.
        layers: as in ``gather``; changed in place.
    """
    functions = {}
    for name, argument in declared.items():
        if part := argument.marker(Part):
            values = [layer.get(name) for layer in reversed(layers.values())]
            chosen, *lower = [*(x for x in values if x is not None), argument.default]
            if chosen is REQUIRED or chosen in (None, *part.without):
                continue
            chosen = str(chosen) if isinstance(chosen, Text) else chosen
            functions[name] = part.find(chosen)
            for other in {*lower} - {REQUIRED, None, chosen, *part.without}:
                dropped = part.arguments(part.find(other)).keys() - declared.keys()
                for layer in list(layers.values())[:-1]:
                    if layer.get(name) != chosen:
                        for key in dropped & layer.keys():
                            del layer[key]
    return functions


def check_names(functions, of_learn, of_command) -> None:
    """Raises UserTypeError if a part's arguments clash with others.

    Args:
        functions: of each part, by the name of its argument.
        of_learn, of_command: declared arguments by name.
    """
    for name, function in functions.items():
        part = of_learn[name].marker(Part)
        for both in part.arguments(function).keys() & {*of_learn, *of_command}:
            raise UserTypeError(
                f"the {part.kind} {function.__name__} has an argument {both!r}, which "
                "is an argument of learn() or of the command line; rename it"
            )


def unknown(learn, name, source, declared) -> UserTypeError:
    """Returns the error for the name of an argument that does not exist."""
    place = "" if source == "given" else f"{source} sets it, but "
    hint = choice_with(name, declared) or suggest(name, declared)
    return UserTypeError(
        f"unknown argument {name!r}{hint} ({place}learn() of "
        f"{learn.__module__} does not take it)"
    )


def choice_with(name, declared) -> str:
    """Returns a hint at a choice of a part that takes an argument, or empty text."""
    for key, argument in declared.items():
        part = argument.marker(Part)
        for choice, function in part.known().items() if part else ():
            if name in part.arguments(function):
                return f"; {key}={choice} has it"
    return ""


def is_json(value) -> bool:
    """Whether a value can be stored as JSON."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
