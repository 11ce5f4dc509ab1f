"""Parts of an algorithm: functions that an argument of ``learn()`` names.

Examples are ``--network=mlp``, and ``--network=my_module:my_function``. ``learn()``
takes the arguments of such a function as well.
"""

import contextlib
import functools
import importlib
import inspect
from typing import NamedTuple

from baselines.common.base.errors import UserTypeError, UserValueError, suggest
from baselines.common.base.lazy import import_module


class Part(NamedTuple):
    """Marks an argument that names a function, whose arguments ``learn()`` takes too.

    Args:
        kind: a word for what the function builds, for messages.
        module: the module whose functions can be given by name alone.
        attributes: attributes that the result must have; "or" separates alternatives.
        positional: names of what the function is given by position.
        when_loaded: the function used where a model is only loaded, by name; None if
            models are made of the part, and so of its arguments.
    """

    kind: str
    module: str
    attributes: tuple = ()
    positional: tuple = ()
    when_loaded: str | None = None

    def known(self) -> dict:
        """Returns the functions that the module defines, by name."""
        module = importlib.import_module(self.module)
        return {
            name: value
            for name, value in vars(module).items()
            if inspect.isfunction(value) and value.__module__ == self.module
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
            raise UserValueError(
                f"unknown {self.kind} {value!r}{suggest(name, functions)} (known: "
                f"{', '.join(self.known())}; one of your own: module:function)"
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

    Arguments of the call itself go to the function's positional-only parameters.

    Args:
        part: the Part.
        value: name or function, as given to ``learn()``.
        keywords: arguments of the function.
    """

    def __init__(self, part, value, keywords):
        self.part, self.value = part, value
        self.build = functools.partial(part.find(value), **keywords)
        self.context = contextlib.nullcontext  # entered while building

    def __repr__(self):
        return repr(self.value)

    def __call__(self, *positional):
        with self.context():
            built = self.build(*positional)
        for names in self.part.missing(built):
            raise UserTypeError(
                f"the {self.part.kind} {self} has to return an object with {names}, "
                f"returned {built!r:.200}"
            )
        return built
