"""Parts of an algorithm: functions that an argument of ``learn()`` names.

Examples are ``--network=mlp``, and ``--network=my_module:my_function``. ``learn()``
takes the arguments of such a function as well.
"""

import contextlib
import functools
import importlib
import inspect
from typing import NamedTuple

from baselines.common.arguments.declaration import declared_arguments
from baselines.common.base.errors import UserTypeError, UserValueError, suggest
from baselines.common.base.lazy import import_module


class Part(NamedTuple):
    """Marks an argument that names a function, whose arguments ``learn()`` takes too.

    Args:
        kind: a word for what the function builds, for messages.
        module: the module whose functions can be given by name alone.
        attributes: attributes that the result must have; "or" separates alternatives.
        by_algorithm: names of arguments that the algorithm gives, not the user.
        without: values that name no function: the algorithm knows what they stand for.
        prefix: of the names of the function's arguments, as arguments of ``learn()``.
        in_model: whether models are made of the part, and so of its arguments.
        when_loaded: the value used where a model is only loaded, if it is not in it.
    """

    kind: str
    module: str
    attributes: tuple = ()
    by_algorithm: tuple = ()
    without: tuple = ()
    prefix: str = ""
    in_model: bool = True
    when_loaded: str | None = None

    def known(self) -> dict:
        """Returns the public functions that the module defines, by name."""
        module = importlib.import_module(self.module)
        return {
            name: value
            for name, value in vars(module).items()
            if inspect.isfunction(value)
            and value.__module__ == self.module
            and not name.startswith("_")
        }

    def arguments(self, function) -> dict:
        """Returns what ``learn()`` takes for a function of this part, by name."""
        return {
            self.prefix + name: argument
            for name, argument in declared_arguments(function).items()
            if name not in self.by_algorithm
        }

    def find(self, value):
        """Returns the function that ``value`` names, or ``value`` if it is one.

        Raises:
            UserValueError: if there is no such name or module.
            UserTypeError: if it is neither text nor a function, but such as a layer
                that is built already.
        """
        if callable(value) and (isinstance(value, type) or self.missing(value)):
            return value
        if not isinstance(value, str):
            raise UserTypeError(
                f"{self.kind} has to be a name, 'module:function' or a function that "
                f"returns a new one at each call, received {value!r:.200}"
            )
        module, colon, name = value.rpartition(":")
        functions = vars(import_module(module)) if colon else self.known()
        if name not in functions:
            known = [*filter(None, self.without), *self.known()]
            raise UserValueError(
                f"unknown {self.kind} {value!r}{suggest(name, known)} (known: "
                f"{', '.join(known)}; one of your own: module:function)"
            )
        return functions[name]

    def missing(self, built) -> list:
        """Returns those of ``attributes`` that an object lacks."""
        return [
            names
            for names in self.attributes
            if not any(hasattr(built, name) for name in names.split(" or "))
        ]


def changed_parts(learn, stored) -> list:
    """Returns the names of the parts that a file sets, not the algorithm itself.

    Args:
        learn: the ``learn()`` of the algorithm.
        stored: arguments of a run or model, by name.
    """
    parts = [name for name, x in learn.declared.items() if x.marker(Part)]
    return [x for x in parts if stored.get(x) != learn.settings.get(x)]


class Builder:
    """A ``Part`` with its arguments: each call builds a new one.

    Arguments of the call itself go to the function, too.

    Args:
        part: the Part.
        value: name or function, as given to ``learn()``.
        keywords: arguments of the function, as ``learn()`` takes them.
    """

    def __init__(self, part, value, keywords):
        self.part, self.value = part, value
        keywords = {k.removeprefix(part.prefix): x for k, x in keywords.items()}
        self.build = functools.partial(part.find(value), **keywords)
        self.context = contextlib.nullcontext  # entered while building

    def __repr__(self):
        return repr(self.value)

    def __call__(self, *positional, **keywords):
        with self.context():
            built = self.build(*positional, **keywords)
        for names in self.part.missing(built):
            raise UserTypeError(
                f"the {self.part.kind} {self} has to return an object with {names}, "
                f"returned {built!r:.200}"
            )
        return built
