"""The other side of ``peers.PeerProgram``: a program that measures on request."""

import json
import sys


def serve(make_measures) -> None:
    """Prints agent steps a second for each name on a line of stdin, until it closes.

    Args:
        make_measures: function that takes the work, which is the program's argument in
            JSON, and returns a dict of functions that measure, by name.
    """
    measures = make_measures(json.loads(sys.argv[1]))
    for line in sys.stdin:
        print(measures[line.strip()](), flush=True)
