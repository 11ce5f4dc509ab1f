"""Command-line arguments made from a function's signature and docstring."""

import argparse
import ast
import contextlib
import importlib
import inspect
import math
import os
import re
import sys
import tempfile
import types
import typing

from baselines.common import mpi
from baselines.common.errors import UserError, UserValueError

REQUIRED = inspect.Parameter.empty
TYPES_OF_TEXT = {object, type(None), bool, dict, float, int, list, set, str, tuple}


class OneLineErrorParser(argparse.ArgumentParser):
    """An argument parser that takes full names only and raises UserValueError."""

    def __init__(self, **kwargs):
        super().__init__(
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **kwargs,
        )

    def error(self, message):
        raise UserValueError(message)


@contextlib.contextmanager
def one_line_errors():
    """Ends the program with status 2 and one line on stderr for a user's mistake.

    With several MPI ranks it ends all of them.
    """
    try:
        yield
    except UserError as error:
        mpi.end(2, f"error: {error}")
    except KeyboardInterrupt:
        mpi.end(130)


def function_arguments(fn, leave_out=()) -> dict:
    """Returns the parameters of ``fn`` that can be given as text, by name."""
    return {
        name: parameter
        for name, parameter in inspect.signature(fn, eval_str=True).parameters.items()
        if name not in leave_out
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and text_types(parameter.annotation)
    }


def signature_defaults(arguments) -> dict:
    """Returns the defaults of ``arguments``, from ``function_arguments``, by name."""
    return {
        name: parameter.default
        for name, parameter in arguments.items()
        if parameter.default is not REQUIRED
    }


def add_function_arguments(parser, title, arguments, fn, defaults) -> None:
    """Adds ``arguments`` of ``fn`` to a parser, as a group of its own.

    Args:
        parser: an ArgumentParser.
        title: of the group in the help.
        arguments: from ``function_arguments``.
        fn: its docstring gives their meaning.
        defaults: values that stand before those of the signature, in the help.
    """
    group = parser.add_argument_group(title)
    meanings = argument_meanings(fn)
    for name, parameter in arguments.items():
        default = defaults.get(name, parameter.default)
        meaning = meanings.get(name, "")
        if default is not REQUIRED:
            meaning = f"{meaning} (default: {default})".strip()
        bare_flag = (
            {"nargs": "?", "const": True} if parameter.annotation is bool else {}
        )
        group.add_argument(
            f"--{name}",
            type=value_parser(parameter.annotation),
            default=argparse.SUPPRESS,
            metavar=name.upper(),
            help=meaning.replace("%", "%%"),
            **bare_flag,
        )


def text_types(annotation) -> list:
    """Returns the types that a command-line value for ``annotation`` may have."""
    if annotation is REQUIRED:
        return [object]
    if isinstance(annotation, types.UnionType) or (
        typing.get_origin(annotation) is typing.Union
    ):
        members = typing.get_args(annotation)
    else:
        members = (annotation,)
    members = [typing.get_origin(member) or member for member in members]
    members = [member for member in members if member in TYPES_OF_TEXT]
    # None alone is no value to give, only a way to say "nothing".
    return members if set(members) - {type(None)} else []


def value_parser(annotation):
    """Returns a function from text to a value of the annotated type."""
    types_allowed = text_types(annotation)
    # Text fits whatever else does not.
    types_allowed.sort(key=lambda member: member is str)

    def parse(text):
        for member in types_allowed:
            try:
                return PARSERS.get(member, parse_literal_of(member))(text)
            except (ValueError, SyntaxError):
                continue
        names = " or ".join(
            NAMES.get(member, member.__name__) for member in types_allowed
        )
        raise argparse.ArgumentTypeError(f"expected {names}, received {text!r}")

    return parse


def parse_integer(text):
    """Returns a whole number, also from text like 1e6."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer():
            raise
        return int(number)


def parse_number(text):
    """Returns a finite number."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def parse_boolean(text):
    """Returns True or False from text like true, no or 1."""
    if text.lower() in ("true", "yes", "1"):
        return True
    if text.lower() in ("false", "no", "0"):
        return False
    raise ValueError(text)


def parse_none(text):
    if text.lower() == "none":
        return None
    raise ValueError(text)


def parse_anything(text):
    """Returns a Python literal, or the text itself if it is none."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def parse_literal_of(member):
    """Returns a parser of Python literals of one type, such as list."""

    def parse(text):
        value = ast.literal_eval(text)
        if member in (list, tuple) and isinstance(value, (list, tuple)):
            return member(value)
        if not isinstance(value, member):
            raise ValueError(text)
        return value

    return parse


PARSERS = {
    int: parse_integer,
    float: parse_number,
    bool: parse_boolean,
    str: str,
    type(None): parse_none,
    object: parse_anything,
}
NAMES = {
    int: "a whole number",
    float: "a finite number",
    bool: "true or false",
    str: "text",
    type(None): "none",
}


def import_quietly(module):
    """Imports a module; what it writes to stderr is shown only if it fails.

    TensorFlow's notes on the processor pass by every setting that should
    silence them.
    """
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as notes:
        os.dup2(notes.fileno(), 2)
        try:
            importlib.import_module(module)
        except UserError:
            raise
        except BaseException:
            notes.seek(0)
            os.write(stderr, notes.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def argument_meanings(fn) -> dict:
    """Returns the text of each argument in the ``Args`` section of a docstring."""
    docstring = inspect.getdoc(fn) or ""
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)+)", docstring, re.MULTILINE)
    if not section:
        return {}
    entries = re.findall(
        r"^ {4}(\w[\w, ]*):((?:.*\n?)(?:(?: {5,}.*)?\n?)*)", section[1], re.MULTILINE
    )
    return {
        name: " ".join(text.split())
        for names, text in entries
        for name in names.split(", ")
    }
