"""Command-line arguments, built from what a signature declares."""

import argparse
import ast
import contextlib
import inspect
import math
import os
import re
import signal
import sys
from typing import Literal

from baselines.common.arguments.checked import takes_anything
from baselines.common.arguments.declarations import (
    REQUIRED,
    choices_of,
    declared_arguments,
    names_of,
)
from baselines.common.base import mpi
from baselines.common.base.errors import (
    TRACEBACK,
    RaisedInWorker,
    UserError,
    UserValueError,
    one_line,
    shown,
    suggest_name,
)
from baselines.common.base.user_code import own_traceback

DASHES = "-‐‑‒–—―−﹣－"  # as keyboards, word processors and web pages have them
BOOLEANS = dict.fromkeys(("true", "yes", "1"), True)
BOOLEANS |= dict.fromkeys(("false", "no", "0"), False)
POWERS = {"k": 3, "m": 6}  # of ten
NAMED_PART = re.compile(r"--(\w+)=([\w.]+:\w+)")  # of an algorithm
LITERAL_ERRORS = ValueError, SyntaxError, TypeError, MemoryError, RecursionError


class OneLineErrorParser(argparse.ArgumentParser):
    """A parser that takes full names only, each once, and raises UserValueError."""

    def __init__(self, **kwargs):
        super().__init__(
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **kwargs,
        )
        self.register("action", None, StoreOnce)

    def parse_known_args(self, args=None, namespace=None):
        words = sys.argv[1:] if args is None else list(args)
        for word in words:
            check_word(word)
        for action in self._actions:
            action.given = False
        return super().parse_known_args(self.complete(words), namespace)

    def complete(self, words) -> list:
        """Adds =True to a flag before a path, which argparse would take as its value.

        Args:
            words: of the command line.
        """
        if all(action.option_strings for action in self._actions):
            return words
        booleans = [x for x in self._actions if x.nargs == "?" and x.const is True]
        flags = {flag for action in booleans for flag in action.option_strings}
        return [
            f"{word}=True" if word in flags and after.lower() not in BOOLEANS else word
            for word, after in zip(words, [*words[1:], ""])
        ]

    def parse_args(self, args=None, namespace=None):
        given, others = self.parse_known_args(args, namespace)
        self.check_known(others)
        return given

    def check_known(self, others) -> None:
        """Raises UserValueError if there are words that are no argument."""
        if others:
            flags = [flag for x in self._actions for flag in x.option_strings]
            raise unknown_argument(others[0], [x.removeprefix("--") for x in flags])

    def error(self, message):
        raise UserValueError(message)


class StoreOnce(argparse.Action):
    """Stores a value; a second one is an error, as argparse would drop the first."""

    def __call__(self, parser, namespace, values, option_string=None):
        if self.given:
            parser.error(
                f"{option_string} is given twice, the second time as {values!r}; leave "
                "one out"
            )
        self.given = True
        setattr(namespace, self.dest, values)


def check_word(word) -> None:
    """Raises UserValueError for a word that cannot be a path or a name."""
    try:
        word.encode()
    except UnicodeEncodeError:  # bytes that Python could not decode
        raise UserValueError(f"{word!r} is not text in UTF-8") from None
    if "\0" in word:
        raise UserValueError(f"{word!r} has a null byte in it; leave it out")


@contextlib.contextmanager
def one_line_errors():
    """Ends the program with one line on stderr and its status for a ``UserError``.

    With several MPI ranks, it ends all of them. An exception from the user's own code
    ends the program with status 1 and the traceback from that code on. If the
    environment variable ``BASELINES_TRACEBACK`` is set, the whole traceback is printed
    instead.
    """
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as during imports
            signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
    except UserError as error:
        if os.environ.get(TRACEBACK):
            raise
        mpi.end(error.status, f"error: {one_line(error)}")
    except KeyboardInterrupt:
        mpi.end(130)
    except SystemExit as error:
        mpi.end(error.code)
    except Exception as error:
        is_told = isinstance(error, RaisedInWorker)
        text = f"error: {error}" if is_told else own_traceback(error)
        if text is None or os.environ.get(TRACEBACK):
            raise
        mpi.end(1, f"{text.rstrip()}\n({TRACEBACK}=1 shows all of the traceback)")


def command(fn, argv=None):
    """Calls a function with the arguments of a command line, and returns its result.

    Args:
        fn: the function, whose arguments are declared as ``arguments.py`` describes.
            Those without a default are positional, the others are ``--name`` options.
            If it takes ``**parts``, these are other words that name code, such as
            ``--critic_network=my_networks:wide``. It runs in one process.
        argv: the words; None for those of this process.
    """
    declared = declared_arguments(fn)
    options = {k: v for k, v in declared.items() if v.default is not REQUIRED}
    spec = sys.modules[fn.__module__].__spec__  # None for a file by its path
    program = spec.name if spec else fn.__module__
    parser = OneLineErrorParser(
        prog=f"python -m {program}", description=inspect.getdoc(fn)
    )
    for name in (name for name in declared if name not in options):
        parser.add_argument(
            name,
            type=parser_of(declared[name].annotation),
            metavar=name.upper(),
            help=declared[name].meaning,
        )
    add_arguments(parser, options)
    with one_line_errors():
        given, others = parser.parse_known_args(argv)
        given, parts = vars(given), {}
        for word in list(others) if takes_anything(fn) else ():
            if named := NAMED_PART.fullmatch(word):
                name, value = named.groups()
                if name in parts:
                    raise UserValueError(f"--{name} is given twice; leave one out")
                parts[name] = value
                others.remove(word)
        parser.check_known(others)
        if mpi.size > 1:
            raise UserValueError(f"{program} is one process: start it without mpiexec")
        for name, value in given.items():
            declared[name].check(value)
        return fn(**given, **parts)


def read(arguments, words):
    """Parses words; returns the values of arguments, by name, and the unknown words.

    Args:
        arguments: as returned by ``declared_arguments``.
        words: the words of a command line.

    Raises:
        UserValueError: for text that is not a value of the declared type.
    """
    parser = OneLineErrorParser(add_help=False)
    add_arguments(parser, arguments)
    given, others = parser.parse_known_args(words)
    return vars(given), others


def unknown_argument(word, names) -> UserValueError:
    """Returns the error for a command-line word that is not a known argument."""
    flag = word.split("=")[0] or repr(word)
    hint = suggest_flag(word, names) or "; --help lists those that exist"
    return UserValueError(f"unknown argument {flag}{hint}")


def suggest_flag(word, names) -> str:
    """Returns ``; did you mean '--x'?`` for the nearest of ``names``, or ''."""
    flag, flags = word.split("=")[0], [f"--{name}" for name in names]
    right = f"--{flag.strip(DASHES).replace('-', '_').lower()}"
    if right == "--":
        return ""
    return f"; did you mean {right!r}?" if right in flags else suggest_name(flag, flags)


def add_arguments(parser, arguments, defaults=None, title=None) -> None:
    """Adds arguments to a parser, whose result omits those that are not given.

    Args:
        parser: an ArgumentParser.
        arguments: as returned by ``declared_arguments``.
        defaults: values that the help shows instead of the signature's defaults.
        title: title of their group in the help; None for no group.
    """
    group = parser.add_argument_group(title) if title else parser
    for name, argument in arguments.items():
        only_bool = [choice.kind for choice in argument.choices] == [bool]
        group.add_argument(
            f"--{name}",
            type=parser_of(argument.annotation),
            default=argparse.SUPPRESS,
            metavar=name.upper(),
            help=help_of(argument, defaults) if parser.add_help else None,
            **{"nargs": "?", "const": True} if only_bool else {},
        )


def help_of(argument, defaults=None) -> str:
    """Returns an argument's meaning and default, as help text for a parser."""
    default = (defaults or {}).get(argument.name, argument.default)
    text = argument.meaning
    if argument.name in (defaults or {}):  # It may say where the default comes from.
        text = re.sub(r" \(default: [^)]*\)$", "", text)
    words = [x for c in argument.choices if c.kind is Literal for x in c.items if x]
    if words and not all(str(word) in text for word in words):
        text = f"{text}: {', '.join(map(str, words))}"
    if default is REQUIRED:
        text += " (required)"
    elif default is not None:
        text = f"{text} (default: {default})".strip()
    return text.replace("%", "%%")


def of_text(arguments) -> dict:
    """Returns those of ``declared_arguments`` that can be given as text."""
    # None does not count: it only says that there is no value.
    kinds = PARSERS.keys() - {type(None)}
    return {k: v for k, v in arguments.items() if kinds & {c.kind for c in v.choices}}


def parser_of(annotation):
    """Returns a function that parses text as one of the annotated types."""
    choices = [c for c in choices_of(annotation) if c.kind in PARSERS]
    # Text comes last, as it fits anything.
    choices.sort(key=lambda choice: choice.kind is str)

    def parse(text):
        for choice in choices:
            try:
                return PARSERS[choice.kind](text)
            except LITERAL_ERRORS:
                continue
        kinds, hint = {choice.kind for choice in choices}, ""
        abbreviated = re.fullmatch(r"([\d.]+)([km])", text.lower())
        if kinds & {list, tuple} and text.isdigit():
            hint = f"; write [{text}]"
        elif kinds & {int, float} and abbreviated:
            hint = f"; write {abbreviated[1]}e{POWERS[abbreviated[2]]}"
        raise argparse.ArgumentTypeError(
            f"expected {names_of(choices)}, received {shown(text)}{hint}"
        )

    return parse


def parse_text(text):
    """Returns text, which must not be empty, as no name or path is."""
    if not text:
        raise ValueError(text)
    return text


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
    if text.lower() in BOOLEANS:
        return BOOLEANS[text.lower()]
    raise ValueError(text)


def parse_none(text):
    if text.lower() == "none":
        return None
    raise ValueError(text)


def parse_anything(text):
    """Returns a Python literal, or the text itself if it is not one."""
    try:
        return ast.literal_eval(text)
    except LITERAL_ERRORS:
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
    str: parse_text,
    Literal: str,
    type(None): parse_none,
    object: parse_anything,
    REQUIRED: parse_anything,
    list: parse_list,
    tuple: parse_list,
    dict: parse_dict,
}
