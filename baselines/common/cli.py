"""Command-line arguments made from what a signature declares."""

import argparse
import ast
import contextlib
import inspect
import math
import os
import signal
import sys
from typing import Literal

from baselines.common import mpi
from baselines.common.declarations import REQUIRED, declared_arguments, names_of
from baselines.common.errors import TRACEBACK, UserError, UserValueError, suggest_name


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

    With several MPI ranks it ends all of them. If the environment variable
    ``BASELINES_TRACEBACK`` is set, the traceback is printed instead.
    """
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as during imports
            signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
    except UserError as error:
        if os.environ.get(TRACEBACK):
            raise
        mpi.end(2, f"error: {error}")
    except KeyboardInterrupt:
        mpi.end(130)
    except SystemExit as error:
        mpi.end(error.code)


def command(fn, argv=None):
    """Calls a function with the arguments of a command line, and returns its result.

    Args:
        fn: whose arguments are declared as ``arguments.py`` says. Those without a
            default are given by their position, the others by ``--name``.
        argv: the words; None for those of this process.
    """
    declared = declared_arguments(fn)
    options = {k: v for k, v in declared.items() if v.default is not REQUIRED}
    spec = sys.modules[fn.__module__].__spec__  # None for a file by its path
    program = spec.name if spec else fn.__module__
    parser = OneLineErrorParser(
        prog=f"python -m {program}", description=inspect.getdoc(fn)
    )
    for name in declared.keys() - options.keys():
        parser.add_argument(name, metavar=name.upper(), help=declared[name].meaning)
    add_arguments(parser, options)
    with one_line_errors():
        given, others = parser.parse_known_args(argv)
        if others:
            flag, flags = others[0].split("=")[0], [f"--{name}" for name in options]
            raise UserValueError(f"unknown argument {flag}{suggest_name(flag, flags)}")
        given = vars(given)
        for name, value in given.items():
            declared[name].check(value)
        return fn(**given)


def read(arguments, words):
    """Returns the values that words give to arguments, by name, and the other words.

    Args:
        arguments: of ``declared_arguments``.
        words: of a command line.

    Raises:
        UserValueError: for text that is no value of the declared type.
    """
    parser = OneLineErrorParser(add_help=False)
    add_arguments(parser, arguments)
    given, others = parser.parse_known_args(words)
    return vars(given), others


def add_arguments(parser, arguments, defaults=None, title=None) -> None:
    """Adds arguments to a parser; those that are not given stay out of its result.

    Args:
        parser: an ArgumentParser.
        arguments: of ``declared_arguments``.
        defaults: values that the help shows in place of those of the signature.
        title: of their group in the help; None for no group.
    """
    group = parser.add_argument_group(title) if title else parser
    for name, argument in arguments.items():
        only_bool = [choice.kind for choice in argument.choices] == [bool]
        group.add_argument(
            f"--{name}",
            type=value_parser(argument.choices),
            default=argparse.SUPPRESS,
            metavar=name.upper(),
            help=help_of(argument, defaults) if parser.add_help else None,
            **{"nargs": "?", "const": True} if only_bool else {},
        )


def help_of(argument, defaults=None) -> str:
    """Returns an argument's meaning and default, for a parser."""
    default = (defaults or {}).get(argument.name, argument.default)
    text = argument.meaning
    if default is not REQUIRED and default is not None:
        text = f"{text} (default: {default})".strip()
    return text.replace("%", "%%")


def of_text(arguments) -> dict:
    """Returns those of ``declared_arguments`` that can be given as text."""
    # None alone is no value to give, only a way to say "nothing".
    kinds = PARSERS.keys() - {type(None)}
    return {k: v for k, v in arguments.items() if kinds & {c.kind for c in v.choices}}


def value_parser(choices):
    """Returns a function from text to a value of one of the types."""
    choices = [choice for choice in choices if choice.kind in PARSERS]
    # Text fits whatever else does not.
    choices.sort(key=lambda choice: choice.kind is str)

    def parse(text):
        for choice in choices:
            try:
                return PARSERS[choice.kind](text)
            except (ValueError, SyntaxError):
                continue
        lists = {list, tuple} & {choice.kind for choice in choices}
        hint = f"; write [{text}]" if lists and "[" not in text else ""
        raise argparse.ArgumentTypeError(
            f"expected {names_of(choices)}, received {text!r}{hint}"
        )

    return parse


def parse_integer(text):
    """Returns an integer, also from text like 1e6."""
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


def parse_list(text):
    value = ast.literal_eval(text)
    if not isinstance(value, (list, tuple)):
        raise ValueError(text)
    return list(value)


def parse_dict(text):
    value = ast.literal_eval(text)
    if not isinstance(value, dict):
        raise ValueError(text)
    return value


PARSERS = {
    int: parse_integer,
    float: parse_number,
    bool: parse_boolean,
    str: str,
    Literal: str,
    type(None): parse_none,
    object: parse_anything,
    REQUIRED: parse_anything,
    list: parse_list,
    tuple: parse_list,
    dict: parse_dict,
}
