"""Reads what a signature declares about its arguments (``types.py``); checks values."""

import ast
import functools
import inspect
import textwrap
import types
import typing
from typing import Any

import numpy as np

from baselines.common.base.errors import UserTypeError, UserValueError, shown, suggest

REQUIRED = inspect.Parameter.empty
# No number from text, no integer from a bool, no NaN.
STRICT = dict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
BOOLEANS = dict.fromkeys(("true", "yes", "1"), True)
BOOLEANS |= dict.fromkeys(("false", "no", "0"), False)


class Text(str):
    """A value as it was typed on the command line, whose type is not known yet."""


class Argument:
    """What a function's signature declares about an argument.

    Args:
        name: its name.
        annotation: its annotation, see ``types.py``; REQUIRED for none.
        default: its default; REQUIRED if it has none.

    Attributes:
        type: the annotation without ranges, meanings and markers.
        markers: what its ``Annotated`` contains besides the type.
    """

    def __init__(self, name, annotation, default=REQUIRED):
        self.name = name
        self.annotation = Any if annotation is REQUIRED else annotation
        self.default = default
        holder = types.SimpleNamespace(__annotations__={name: self.annotation})
        self.type = typing.get_type_hints(holder)[name]
        self.markers = getattr(self.annotation, "__metadata__", ())

    @functools.cached_property
    def adapter(self):
        from pydantic import TypeAdapter  # Only here, as --help needs no checks.

        return TypeAdapter(self.annotation, config=STRICT)

    @property
    def meaning(self) -> str:
        texts = [marker for marker in self.markers if isinstance(marker, str)]
        return ": ".join(reversed(texts))

    @property
    def choices(self) -> tuple:
        """The words of which it is one; empty if it is anything else."""
        is_one = typing.get_origin(self.type) is typing.Literal
        return typing.get_args(self.type) if is_one else ()

    def marker(self, kind):
        """Returns the marker of that class, or the class itself, or None."""
        for marker in self.markers:
            if marker is kind or isinstance(marker, kind):
                return marker
        return None

    def validate(self, value):
        """Returns a value in the declared type; 1e6 is also an integer.

        ``Text`` is read as a Python literal, else as text. NumPy numbers become
        Python's, tuples lists. None is valid where it is the default.

        Raises:
            UserValueError: unless it has a declared type and range.
        """
        from pydantic import ValidationError

        first, candidates = None, [value, plain(value)]
        if isinstance(value, Text):
            parsed = literal(value), BOOLEANS.get(value.lower())
            candidates = [y for x in parsed if x is not None for y in (x, plain(x))]
            candidates.append(str(value))
        for value in candidates:
            value = None if value is NONE else value
            if value is None and self.default is None:
                return None
            try:
                value = self.adapter.validate_python(value)
            except ValidationError as error:
                first = first or error
                continue
            for check in filter(inspect.isfunction, self.markers):
                check(value, self.name)
            return value
        raise UserValueError(self._complaint(first, candidates[-1]))

    def _complaint(self, error, value) -> str:
        reasons = dict.fromkeys(x["msg"] for x in error.errors(include_url=False))
        prefix = "Input should be "
        expected = [x.removeprefix(prefix) for x in reasons if x.startswith(prefix)]
        text = f"has to be {' or '.join(expected)}" if expected else "; ".join(reasons)
        words = [x for x in typing.get_args(self.type) if isinstance(x, str)]
        hint = suggest(value, words) if isinstance(value, str) else ""
        return f"{self.name} {text}, received {shown(value)}{hint}"


NONE = object()  # what the text "none" stands for


def plain(value):
    """Returns a value with lists for tuples, and Python's numbers for NumPy's.

    A float without a fraction, such as 1e6, becomes an integer.
    """
    if isinstance(value, (list, tuple)):
        return [plain(x) for x in value]
    if isinstance(value, np.generic):
        value = value.item()
    whole = isinstance(value, float) and value.is_integer()
    return int(value) if whole else value


def literal(text):
    """Returns the value of a Python literal or of ``none``, else None."""
    if text.lower() == "none":
        return NONE
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def declared_arguments(fn) -> dict:
    """Returns the arguments of a function that can be given by keyword, by name.

    Raises:
        UserTypeError: if it has no signature.
    """
    if hasattr(fn, "declared"):
        return fn.declared
    try:
        parameters = inspect.signature(fn, eval_str=True).parameters.values()
    except ValueError:  # such as of some functions that are written in C
        raise UserTypeError(f"the arguments of {shown(fn)} cannot be read") from None
    by_keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return {
        p.name: Argument(p.name, p.annotation, p.default)
        for p in parameters
        if p.kind in by_keyword
    }


def takes_anything(fn) -> bool:
    """Whether a function has ``**kwargs``."""
    parameters = inspect.signature(fn).parameters.values()
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def describe_arguments(fn) -> str:
    """Returns an ``Args`` section for the docstring of a function."""
    lines = ["Args:"]
    for name, argument in declared_arguments(fn).items():
        lines += textwrap.wrap(
            f"{name}: {argument.meaning}",
            width=80,
            initial_indent=4 * " ",
            subsequent_indent=8 * " ",
            break_on_hyphens=False,
        )
    return "\n".join(lines)
