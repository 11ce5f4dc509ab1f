"""Reads declarations of a signature (``arguments.py``); checks values against them."""

import inspect
import math
import numbers
import operator
import os
import textwrap
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from annotated_types import BaseMetadata, GroupedMetadata

from baselines.common.arguments.types import MayChange, Needs, NeedsNo
from baselines.common.base.errors import (
    UserTypeError,
    UserValueError,
    first_line,
    shown,
    suggest,
)

REQUIRED = inspect.Parameter.empty


class Choice(NamedTuple):
    """One of the types that an argument may have."""

    kind: Any
    items: tuple  # the type of a list's items, or the values of a Literal
    constraints: tuple

    def fits(self, value) -> bool:
        """Whether a value has this type, whatever its range."""
        if self.kind is Literal:
            return isinstance(value, str) and value in self.items
        if self.kind is int:
            whole = isinstance(value, numbers.Integral) or is_whole(value)
            return whole and type(value) is not bool
        if self.kind is float:
            right = isinstance(value, numbers.Real) and type(value) is not bool
            return right and is_finite(value)
        kind = CLASSES.get(self.kind, self.kind)
        # Other annotations, such as those of typing, cannot be checked.
        return not isinstance(kind, (type, tuple)) or isinstance(value, kind)

    def check_range(self, name, value) -> None:
        """Raises UserValueError unless a value of this type is in its range."""
        for constraint in self.constraints:
            for attribute, (words, holds) in LIMITS.items():
                limit = getattr(constraint, attribute, None)
                if limit is not None and not holds(value, limit):
                    raise UserValueError(
                        f"{name} has to {words.format(limit)}, received {shown(value)}"
                    )
        for item in value if self.kind is list and self.items else ():
            each = f"each of {name.removeprefix('each of ')}"
            check_choices(each, choices_of(self.items[0]), item)

    @property
    def names(self) -> list:
        """Names of this type's values, for messages."""
        if self.kind is Literal:
            return list(map(repr, self.items))
        return [NAMES.get(self.kind) or self.kind.__name__]


CLASSES = {  # of values, where they differ from the annotated type
    Any: object,
    REQUIRED: object,
    bool: (bool, np.bool_),
    list: (list, tuple),
    tuple: (list, tuple),  # JSON only has lists.
}
OF_DEFAULTS = {bool: bool, int: int | float, float: float}
NAMES = {
    types.NoneType: "None",
    bool: "True or False",
    int: "an integer",
    float: "a finite number",
    str: "text",
    list: "a list",
    tuple: "a list",
    dict: "a dict",
    os.PathLike: "a path",
    Callable: "a function",
}
LIMITS = {  # by the attributes of the constraints of annotated_types
    "ge": ("be at least {}", operator.ge),
    "gt": ("be above {}", operator.gt),
    "le": ("be at most {}", operator.le),
    "lt": ("be below {}", operator.lt),
    "max_length": ("have at most {} items", lambda value, limit: len(value) <= limit),
}


class Argument:
    """What a function's signature declares about an argument.

    Args:
        name: its name.
        annotation: its annotation, see ``arguments.py``.
        default: its default; REQUIRED if it has none.

    Attributes:
        choices: the types that it may have, each as a ``Choice``.
        markers: what its ``Annotated`` contains besides the type.
    """

    def __init__(self, name, annotation, default=REQUIRED):
        self.name = name
        self.annotation = annotation
        self.default = default
        self.markers = getattr(annotation, "__metadata__", ())
        self.choices = choices_of(annotation)
        for constraint in (c for choice in self.choices for c in choice.constraints):
            if isinstance(constraint, (BaseMetadata, GroupedMetadata)):
                limits = [getattr(constraint, x, None) for x in LIMITS]
                if limits == [None] * len(LIMITS):
                    raise TypeError(f"{name}: {constraint} is not checked here")

    @classmethod
    def of(cls, parameter):
        """Returns the Argument for a parameter of a signature.

        Without an annotation, a number has to be a number, and a bool a bool.
        """
        annotation, default = parameter.annotation, parameter.default
        if annotation is REQUIRED:
            annotation = OF_DEFAULTS.get(type(default), REQUIRED)
        return cls(parameter.name, annotation, default)

    @property
    def plain_type(self):
        """The annotation without ranges and meanings."""
        return plain_type(self.annotation)

    @property
    def meaning(self) -> str:
        texts = [marker for marker in self.markers if isinstance(marker, str)]
        return ": ".join(reversed(texts))

    def marker(self, kind):
        """Returns the marker of that class, or None."""
        return next((m for m in self.markers if isinstance(m, kind)), None)

    def convert(self, value):
        """Converts a checked value: 1e6 becomes an integer where one is expected.

        NumPy numbers become Python numbers, which can be stored in files.
        """
        return convert(self.choices, value)

    def why_unused(self, values) -> str | None:
        """Returns why it has no effect, given the values of all arguments, or None."""
        needs, needs_no = self.marker(Needs), self.marker(NeedsNo)
        if needs and not values[needs.switch]:
            return f"without {needs.switch}"
        if needs_no and values[needs_no.switch]:
            return f"with {needs_no.switch}"
        return None

    @property
    def may_change(self) -> bool:
        return MayChange in self.markers

    def check(self, value) -> None:
        """Raises UserValueError unless ``value`` has a declared type and range.

        None is valid where it is the default.
        """
        if value is not None or self.default is not None:
            check_choices(self.name, self.choices, value)
        for marker in self.markers:
            if inspect.isfunction(marker):
                marker(value, self.name)


def declared_arguments(fn) -> dict:
    """Returns the arguments of a function that can be given by keyword, by name.

    Raises:
        UserTypeError: if it has no signature, or one with an annotation that cannot be
            evaluated.
    """
    if hasattr(fn, "declared"):
        return fn.declared
    try:
        parameters = inspect.signature(fn, eval_str=True).parameters.values()
    except Exception as error:  # Evaluating an annotation may raise anything.
        raise UserTypeError(
            f"the arguments of {shown(fn)} cannot be read: {first_line(error)}"
        ) from None
    named = [
        p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    return {parameter.name: Argument.of(parameter) for parameter in named}


def convert(choices, value):
    """Converts a value, and the items of a list, as ``Argument.convert`` does."""
    if isinstance(value, np.generic):
        value = value.item()
    kinds = {choice.kind: choice for choice in choices}
    if isinstance(value, (list, tuple)) and list in kinds and kinds[list].items:
        items = choices_of(kinds[list].items[0])
        return type(value)(convert(items, item) for item in value)
    whole = int in kinds and float not in kinds and is_whole(value)
    return int(value) if whole else value


def choices_of(annotation) -> list:
    """Returns the types that an annotation allows, each as a ``Choice``."""
    annotation, outer = without_metadata(annotation)
    members = (annotation,)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = typing.get_args(annotation)
    choices = []
    for member, inner in map(without_metadata, members):
        kind = typing.get_origin(member) or member
        choices.append(Choice(kind, typing.get_args(member), (*inner, *outer)))
    return choices


def without_metadata(annotation):
    """Splits an annotation into its type and its ``Annotated`` metadata, () if none."""
    if typing.get_origin(annotation) is Annotated:
        return annotation.__origin__, annotation.__metadata__
    return annotation, ()


def is_whole(value) -> bool:
    """Whether a value is a float without a fraction, such as 1e6."""
    return isinstance(value, (float, np.floating)) and float(value).is_integer()


def is_finite(number) -> bool:
    """Whether a number is neither infinite, nor NaN, nor too large for a float."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def plain_type(annotation):
    """Returns an annotation without its ``Annotated`` metadata, at any depth."""
    annotation, _ = without_metadata(annotation)
    members = tuple(map(plain_type, typing.get_args(annotation)))
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.Union[members]  # noqa: UP007, as there is no operator for tuples
    if typing.get_origin(annotation) is list:
        return list[members]
    return annotation


def check_choices(name, choices, value) -> None:
    """Raises UserValueError unless ``value`` has one of the types and its range."""
    for choice in choices:
        if choice.fits(value):
            return choice.check_range(name, value) if value is not None else None
    literals = [item for c in choices if c.kind is Literal for item in c.items]
    raise UserValueError(
        f"{name} has to be {names_of(choices)}, received {shown(value)}"
        f"{suggest(value, literals) if isinstance(value, str) else ''}"
    )


def names_of(choices) -> str:
    """Returns the names of the types that a value may have, for messages."""
    names = [name for choice in choices for name in choice.names]
    return " or ".join(dict.fromkeys(names))


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
