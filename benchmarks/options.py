"""Command lines of benchmarks, declared like those of ``baselines.run``."""

from baselines.common.arguments import cli
from baselines.common.arguments.declaration import REQUIRED, declared_arguments
from baselines.common.base.errors import UserValueError


def parse_options(declared, argv, program, description):
    """Reads a benchmark's own arguments; all others are for ``baselines.run``.

    Args:
        declared: a dataclass whose fields are declared as in ``arguments/types.py``.
        argv: the words of the command line.
        program: the command, for the help.
        description: what it does, for the help.

    Returns:
        an instance of the dataclass, and the other words.

    Raises:
        UserValueError: if a required argument is missing, or a value has the wrong type
            or is out of range.
        SystemExit: after ``--help``.
    """
    parser = cli.OneLineErrorParser(prog=program, description=description)
    arguments = declared_arguments(declared)
    cli.add_arguments(parser, arguments)
    given, others = parser.parse_known_args(argv)
    given = vars(given)
    for name, argument in arguments.items():
        value = given.get(name, argument.default)
        if value is REQUIRED:
            raise UserValueError(f"--{name} is required; see --help")
        argument.check(value)
    return declared(**given), others
