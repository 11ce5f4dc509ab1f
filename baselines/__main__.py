"""Runs any command: ``python -m baselines``, or ``baselines`` once installed."""

import argparse
import ast
import importlib
import os
import sys
from pathlib import Path

import baselines
from baselines.common.arguments import cli, completion
from baselines.common.base.errors import UserValueError, suggest

COMMANDS = "run", "evaluate", "play", "plot", "report", "runs", "tune", "export"


def main(argv=None):
    """Runs ``baselines COMMAND ...``; without a command, lists all of them."""
    words = sys.argv[1:] if argv is None else argv
    if os.getcwd() not in sys.path:  # As python -m has it; scripts have their own.
        sys.path.insert(0, os.getcwd())
    if completion.WANTED:
        argv = words = [*completion.read_words(), "--help"]
        if words == ["--help"]:
            parser = argparse.ArgumentParser(add_help=False)
            parser.add_argument("command")
            completion.answer(parser, command=COMMANDS)
    command = words[0] if words else "--help"
    if command in ("--help", "-h"):
        print(overview())
    elif command == "--version":
        print(f"baselines {baselines.__version__}")
    else:
        with cli.one_line_errors():
            if command not in COMMANDS:
                raise UserValueError(
                    f"unknown command {command!r}{suggest(command, COMMANDS)} (known: "
                    f"{', '.join(COMMANDS)})"
                )
        run_command = importlib.import_module(f"baselines.{command}").main
        if argv is None:
            del sys.argv[1]  # Commands read it themselves, as they do on their own.
        run_command(None if argv is None else words[1:])


def overview() -> str:
    """Returns the help text, one line per command, without importing the commands."""
    lines = [
        "Reinforcement learning: python -m baselines.COMMAND --help says more.",
        "",
    ]
    for command in COMMANDS:
        source = Path(baselines.__file__).with_name(f"{command}.py").read_text()
        line = ast.get_docstring(ast.parse(source)).splitlines()[0]
        lines.append(f"  {command:<9} {line.replace('``', '')}")
    return "\n".join([*lines, "", "  --version"])


if __name__ == "__main__":
    main()
