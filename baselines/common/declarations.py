"""Reads what ``arguments.py`` lets a signature declare, and checks values by it."""

import functools
import inspect
import math
import numbers
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from annotated_types import Ge, GroupedMetadata, Gt, Le, Lt

from baselines.common.arguments import Builder, MayChange, Needs, Part
from baselines.common.errors import UserTypeError, UserValueError, suggest

REQUIRED = inspect.Parameter.empty


class Choice(NamedTuple):
    """One of the types that an argument may have."""

    kind: Any
    items: Any  # what a list is of, or the values of a Literal
    constraints: list


class Argument(NamedTuple):
    """What a function's signature declares of an argument."""

    name: str
    default: Any
    choices: list
    markers: list

    @property
    def meaning(self) -> str:
        texts = [marker for marker in self.markers if isinstance(marker, str)]
        return ": ".join(reversed(texts))

    def marker(self, kind):
        """Returns the marker of that class, or None."""
        return next((m for m in self.markers if isinstance(m, kind)), None)

    @property
    def may_change(self) -> bool:
        return MayChange in self.markers

    def check(self, value) -> None:
        """Raises UserValueError unless ``value`` has a declared type and range.

        None is right where it is the default.
        """
        if value is None and self.default is None:
            return
        check_choices(self.name, self.choices, value)
        for marker in self.markers:
            if inspect.isfunction(marker):
                marker(value, self.name)


@functools.lru_cache(maxsize=64)
def declared_arguments(fn) -> dict:
    """Returns the arguments of a function that can be given by keyword, by name."""
    parameters = inspect.signature(fn, eval_str=True).parameters.values()
    return {
        p.name: Argument(
            p.name,
            p.default,
            choices_of(p.annotation),
            list(getattr(p.annotation, "__metadata__", ())),
        )
        for p in parameters
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }


def choices_of(annotation) -> list:
    """Returns the types that an annotation allows, each with its constraints."""
    annotation, outer = without_metadata(annotation)
    members = (annotation,)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = typing.get_args(annotation)
    choices = []
    for member in members:
        member, inner = without_metadata(member)
        kind = typing.get_origin(member) or member
        constraints = []
        for constraint in (*inner, *outer):
            grouped = isinstance(constraint, GroupedMetadata)
            constraints += constraint if grouped else [constraint]
        choices.append(Choice(kind, typing.get_args(member), constraints))
    return choices


def without_metadata(annotation):
    """Returns what an ``Annotated`` annotates, and with what."""
    if typing.get_origin(annotation) is Annotated:
        return annotation.__origin__, annotation.__metadata__
    return annotation, ()


KINDS = {  # what a value of each type is called, and how it is recognised
    Any: ("anything", lambda value: True),
    REQUIRED: ("anything", lambda value: True),
    object: ("anything", lambda value: True),
    types.NoneType: ("None", lambda value: value is None),
    bool: ("True or False", lambda value: isinstance(value, (bool, np.bool_))),
    int: (
        "an integer",
        lambda value: isinstance(value, numbers.Integral) and type(value) is not bool,
    ),
    float: (
        "a finite number",
        lambda value: (
            isinstance(value, numbers.Real)
            and type(value) is not bool
            and math.isfinite(value)
        ),
    ),
    str: ("text", lambda value: isinstance(value, str)),
    list: ("a list", lambda value: isinstance(value, (list, tuple))),
    Callable: ("a function", callable),
}
LIMITS = {  # of a range, by the name of the constraint's attribute
    Ge: ("ge", "at least", lambda value, limit: value >= limit),
    Gt: ("gt", "above", lambda value, limit: value > limit),
    Le: ("le", "at most", lambda value, limit: value <= limit),
    Lt: ("lt", "below", lambda value, limit: value < limit),
}


def check_choices(name, choices, value) -> None:
    """Raises UserValueError unless ``value`` has one of the types and its range."""
    for choice in choices:
        if not fits(choice, value):
            continue
        if choice.kind is list and choice.items:
            for item in value:
                check_choices(f"each of {name}", choices_of(choice.items[0]), item)
        for constraint in () if value is None else choice.constraints:
            if type(constraint) in LIMITS:
                attribute, words, holds = LIMITS[type(constraint)]
                limit = getattr(constraint, attribute)
                if not holds(value, limit):
                    raise UserValueError(
                        f"{name} has to be {words} {limit}, received {value!r}"
                    )
        return
    literals = [item for c in choices if c.kind is Literal for item in c.items]
    raise UserValueError(
        f"{name} has to be {names_of(choices)}, received {value!r}"
        f"{suggest(str(value), literals)}"
    )


def fits(choice, value) -> bool:
    """Whether a value has that type."""
    if choice.kind is Literal:
        return isinstance(value, str) and value in choice.items
    if choice.kind in KINDS:
        return KINDS[choice.kind][1](value)
    return isinstance(value, choice.kind)


def names_of(choices) -> str:
    """Returns what the types of a value are called in a sentence."""
    names = []
    for choice in choices:
        if choice.kind is Literal:
            names += map(repr, choice.items)
        else:
            names.append(KINDS.get(choice.kind, (choice.kind.__name__,))[0])
    return " or ".join(dict.fromkeys(names))


class Arguments(NamedTuple):
    """The arguments of a call of ``learn()``, checked and complete.

    Attributes:
        values: by name, with a Builder in place of each ``Part``.
        given: all of them as they were given or are by default, those of parts too.
        declared: what the signatures say of them.
    """

    values: dict
    given: dict
    declared: dict

    @property
    def fixed(self) -> dict:
        """What has to be the same when the run is resumed, as JSON values."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self.given.items()
            if not self.declared[name].may_change
            and isinstance(value, (int, float, str, list, tuple, types.NoneType))
        }

    def without_effect(self) -> list:
        """Returns a sentence for each argument that was set and whose switch is off."""
        return [
            f"{name} is {self.given[name]}, which has no effect without {needs.switch}"
            for name, argument in self.declared.items()
            if (needs := argument.marker(Needs))
            and not self.given[needs.switch]
            and self.given[name] != argument.default
        ]


def check_arguments(fn, given) -> Arguments:
    """Returns the arguments of a call of ``fn``, complete.

    Args:
        fn: a function whose arguments are declared as above.
        given: its keywords, by name; those that are not its own are for its parts.

    Raises:
        UserTypeError: for a keyword that nothing takes, or one that is missing.
        UserValueError: for a value of another type or outside its range.
    """
    declared = declared_arguments(fn)
    values = {name: argument.default for name, argument in declared.items()}
    values |= {name: value for name, value in given.items() if name in declared}
    for name, argument in declared.items():
        if values[name] is REQUIRED:
            raise UserTypeError(f"{fn.__name__}() needs the argument {name!r}")
        argument.check(values[name])
    extra = {name: value for name, value in given.items() if name not in declared}
    of_parts, complete = {}, dict(values)
    for name, argument in declared.items():
        if part := argument.marker(Part):
            function = part.find(values[name])
            takes = declared_arguments(function)
            keywords = {k: v for k, v in extra.items() if k in takes}
            for keyword, value in keywords.items():
                takes[keyword].check(value)
            of_parts |= takes
            complete |= {
                k: keywords.get(k, argument.default) for k, argument in takes.items()
            }
            values[name] = Builder(part, values[name], keywords)
    for keyword in extra:
        if keyword not in of_parts:
            parts = [a for a in declared.values() if a.marker(Part)]
            takers = [f"the {a.marker(Part).kind} {values[a.name]!r}" for a in parts]
            takers = " nor ".join([f"{fn.__name__}()", *takers])
            raise UserTypeError(
                f"neither {takers} has an argument {keyword!r}"
                f"{suggest(keyword, [*declared, *of_parts])}"
            )
    return Arguments(values, complete, {**of_parts, **declared})


def describe_arguments(fn) -> str:
    """Returns a section ``Args`` for the docstring of a function."""
    lines = [f"    {name}: {a.meaning}" for name, a in declared_arguments(fn).items()]
    return "\n".join(["Args:", *lines])
