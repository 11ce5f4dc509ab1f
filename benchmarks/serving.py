"""The other side of ``peers.PeerProgram``: a program that is asked for rates."""

import json
import sys


def serve(make_measures) -> None:
    """Answers each line of stdin with agent steps a second, until it closes.

    Args:
        make_measures: function of the work, which is the program's argument as JSON;
            returns a function for each name that a line may have.
    """
    measures = make_measures(json.loads(sys.argv[1]))
    for line in sys.stdin:
        print(measures[line.strip()](), flush=True)
