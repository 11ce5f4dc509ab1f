"""Parts of an algorithm: functions that an argument of ``learn()`` names.

Examples are ``--network=mlp``, and ``--network=my_module:my_function``. ``learn()``
takes the arguments of such a function as well.
"""

import contextlib
import functools
import importlib
import inspect
from typing import NamedTuple

from baselines.common.base.errors import (
    UserError,
    UserTypeError,
    UserValueError,
    first_line,
    suggest_name,
)
from baselines.common.base.user_code import import_named


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
            UserValueError: if there is no such name, or its module cannot be imported.
            UserTypeError: if it is neither text nor callable.
        """
        if callable(value):
            if not isinstance(value, type) and self.is_built(value):
                raise UserTypeError(
                    f"{self.kind} has to be a function that returns a new one at each "
                    f"call, received one that is built already: {value!r:.200}"
                )
            return value
        if not isinstance(value, str):
            raise UserTypeError(
                f"{self.kind} has to be a name, 'module:function' or a function, "
                f"received {value!r}"
            )
        module, colon, name = value.rpartition(":")
        if not colon:
            known = self.known()
            if value in known:
                return known[value]
            raise UserValueError(
                f"unknown {self.kind} {value!r}{suggest_name(value, known)} (known: "
                f"{', '.join(known)}; one of your own: module:function)"
            )
        home = import_named(module, f"{self.kind} {value!r}")
        if not hasattr(home, name):
            raise UserValueError(
                f"{self.kind} {value!r}: the module {module!r} has no {name!r}"
            )
        found = getattr(home, name)
        if not callable(found):
            raise UserTypeError(f"{self.kind} {value!r} is not a function but {found}")
        return found

    def is_built(self, value) -> bool:
        """Whether a value is what the functions return, instead of a function."""
        return bool(self.attributes) and not self.missing(value)

    def missing(self, built) -> list:
        """Returns those of ``attributes`` that an object lacks."""
        return [
            names
            for names in self.attributes
            if not any(hasattr(built, name) for name in names.split(" or "))
        ]


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

    def __call__(self, *given):
        try:
            with self.context():
                built = self.build(*given)
        except UserError:
            raise
        except Exception as error:
            raise UserValueError(
                f"the {self.part.kind} {self} cannot be built: {first_line(error)}"
            ) from error
        for names in self.part.missing(built):
            raise UserTypeError(
                f"the {self.part.kind} {self} has to return an object with {names}, "
                f"returned {built!r:.200}"
            )
        return built
