"""Prints the config.json that a command line of ``baselines.run`` would have.

For programs that cannot import TensorFlow, such as those with PyTorch.
"""

import json
import sys

from baselines.common.arguments import cli
from baselines.common.run.parsing import parse


def main(argv):
    """Prints the configuration as JSON, or exits with status 2 after one line."""
    with cli.one_line_errors():
        print(json.dumps(parse(argv).config))


if __name__ == "__main__":
    main(sys.argv[1:])
