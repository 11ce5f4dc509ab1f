"""Command lines: read into words by name, and shown as help."""

import argparse
import contextlib
import inspect
import os
import sys
import typing
from types import MappingProxyType

from baselines.common.arguments import completion
from baselines.common.arguments.declaration import REQUIRED, Text, declared_arguments
from baselines.common.base import mpi
from baselines.common.base.errors import TRACEBACK, UserError, UserValueError, suggest


@contextlib.contextmanager
def one_line_errors():
    """Ends the program with one line on stderr for a user's mistake.

    With several MPI ranks, it ends all of them. If the environment variable
    ``BASELINES_TRACEBACK`` is set, the traceback is printed instead.
    """
    try:
        yield
    except UserError as error:
        if os.environ.get(TRACEBACK):
            raise
        mpi.end(error.status, f"error: {error}")
    except KeyboardInterrupt:
        mpi.end(130)
    except SystemExit as error:
        mpi.end(error.code)


def read_words(argv, positional=(), flags=(), repeated=()) -> dict:
    """Returns the arguments of a command line, ``Text`` or True, by name.

    Args:
        argv: words such as ``--lr=1e-3``, ``--lr 1e-3`` and, for true, ``--play``.
        positional: names of the words without a name, in order; the last takes all
            that are left, as a list, if it ends in ``...``.
        flags: names of truth values, which do not take the word behind them.
        repeated: names that may be given several times, for a list.

    Raises:
        UserValueError: for a word without a name, and for a name without a value or
            with two.
    """
    given, unnamed, words = {}, [], list(argv)
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            unnamed.append(Text(word))
            continue
        name, equals, text = word.removeprefix("--").partition("=")
        if not equals:
            alone = name in flags or not words or words[0].startswith("--")
            text = True if alone else words.pop(0)
        if text == "":
            raise UserValueError(f"--{name} has no value")
        value = True if text is True else Text(text)
        if name in repeated:
            given.setdefault(name, []).append(value)
        elif name in given:
            raise UserValueError(f"--{name} is given twice")
        else:
            given[name] = value
    for name in positional:
        if name.endswith("...") and unnamed:
            given[name.removesuffix("...")], unnamed = unnamed, []
        elif unnamed:
            given[name] = unnamed.pop(0)
    if unnamed:
        raise UserValueError(
            f"unknown argument {str(unnamed[0])!r}; write --name=value"
        )
    return given


def unknown_argument(name, known) -> UserValueError:
    """Returns the error for the name of an argument that does not exist."""
    return UserValueError(f"unknown argument --{name}{suggest(name, known, '--')}")


def command(fn, argv=None, short=MappingProxyType({})):
    """Calls a function with the arguments of a command line, and returns its result.

    Args:
        fn: the function, whose arguments are declared as in ``types.py``. Those
            without a default are positional; a list takes several words.
        argv: the words; None for those of this process.
        short: other names of arguments, such as ``-o`` for ``--output``.
    """
    declared = declared_arguments(fn)
    lists = [k for k, x in declared.items() if typing.get_origin(x.type) is list]
    positional = [
        f"{name}..." if name in lists else name
        for name, argument in declared.items()
        if argument.default is REQUIRED
    ]
    flags = [name for name, argument in declared.items() if argument.type is bool]
    words = sys.argv[1:] if argv is None else argv
    parts = [word.partition("=") for word in words]
    words = ["".join((short.get(name, name), *value)) for name, *value in parts]
    if {"--help", "-h"} & {*words}:
        print_help(fn, declared, [x.removeprefix("--") for x in short.values()])
        raise SystemExit(0)
    with one_line_errors():
        given = read_words(words, positional, flags, lists)
        for name in given.keys() - declared.keys():
            raise unknown_argument(name, declared)
        for name in declared.keys() - given.keys():
            if declared[name].default is REQUIRED:
                raise UserValueError(f"{name} is missing: {declared[name].meaning}")
        if mpi.size > 1:
            raise UserValueError(
                "this command is one process: start it without mpiexec"
            )
        return fn(**{name: declared[name].validate(x) for name, x in given.items()})


def print_help(fn, declared, named=()) -> None:
    """Prints the help of a command: the function's docstring and its arguments.

    Args:
        named: names of arguments that are not positional, though required.
    """
    spec = sys.modules[fn.__module__].__spec__  # None for a file by its path
    parser = argparse.ArgumentParser(
        prog=f"python -m {spec.name if spec else fn.__module__}",
        description=inspect.getdoc(fn).partition("\n\nArgs:")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    required = [k for k, x in declared.items() if x.default is REQUIRED]
    add_arguments(parser, declared, positional=[x for x in required if x not in named])
    if completion.WANTED:
        completion.answer(parser, **{k: x.choices for k, x in declared.items()})
    parser.print_help()


def add_arguments(parser, declared, defaults=None, positional=()) -> None:
    """Adds arguments to the help of an ``argparse`` parser, or of a group of it.

    Args:
        declared: an ``Argument`` for each, by name.
        defaults: values that the help shows instead of the signature's defaults.
        positional: names of those that are given without their name.
    """
    for name, argument in declared.items():
        default = (defaults or {}).get(name, argument.default)
        text = argument.meaning
        if argument.choices:
            text += f": {', '.join(argument.choices)}"
        if default not in (REQUIRED, None):
            text += f" (default: {default})"
        elif default is REQUIRED and name not in positional:
            text += " (required)"
        parser.add_argument(
            name if name in positional else f"--{name}",
            metavar=name.upper(),
            help=text.replace("%", "%%"),
        )
