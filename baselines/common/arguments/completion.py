"""Completion of words in a shell, by argcomplete.

After ``eval "$(register-python-argcomplete baselines)"``, the shell calls the program
to ask what may follow. A command answers as if it were asked for its help.
"""

import ast
import importlib.util
import os
import re
import shlex
from pathlib import Path

from baselines.common.arguments.discovery import find_algorithm

WANTED = "_ARGCOMPLETE" in os.environ


def read_words() -> list:
    """Returns the words of the command line, without the one that is being typed."""
    typed = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])]
    words = shlex.split(typed.rpartition(" ")[0])[1:]
    # The number of words before the first argument, of which the command is one.
    os.environ["_ARGCOMPLETE"] = str(len(words[:1]) + 1)
    return words


def answer(parser, **choices) -> None:
    """Tells the shell what may follow, and ends the program.

    Args:
        parser: of ``argparse``.
        choices: values of its arguments, by name.
    """
    import argcomplete

    for action in parser._actions:
        action.choices = choices.get(action.dest)
    argcomplete.autocomplete(parser)


def names_of_learn(module) -> list:
    """Returns the names of an algorithm's arguments, from its source.

    An import, and with it Keras, takes seconds.
    """
    source = Path(importlib.util.find_spec(module).origin).read_text()
    if base := re.search(r"^learn\b.*preset\(\s*(\w+)\.learn", source, re.M):
        return names_of_learn(find_algorithm(base[1]))
    functions = [x for x in ast.parse(source).body if isinstance(x, ast.FunctionDef)]
    learn = next(function for function in functions if function.name == "learn")
    return [argument.arg for argument in learn.args.kwonlyargs]
