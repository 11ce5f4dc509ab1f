"""The algorithms that are found, as parameters of tests."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from baselines.run import find_algorithm, list_algorithms


def is_preset(name):
    """Whether an algorithm's ``learn`` is another's with other defaults."""
    return "preset(" in Path(find_spec(find_algorithm(name)).origin).read_text()


def algorithms():
    """All algorithms, the presets among the slow tests."""
    return [
        pytest.param(name, marks=pytest.mark.slow) if is_preset(name) else name
        for name in list_algorithms()
    ]
