"""Notebooks of docs: their cells run in order, and what they train has learned."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import slow

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"


def run_cells(name) -> dict:
    """Runs all cells of a notebook, and returns their variables."""
    text, variables = (FOLDER / f"{name}.md").read_text(), {"__name__": "__main__"}
    for kind, code in re.findall(r"^```(python|bash)\n(.*?)^```", text, re.M | re.S):
        first, _, rest = code.partition("\n")
        if kind == "bash":
            subprocess.run(["bash", "-euc", code], check=True)
        elif first.startswith("%%writefile "):
            Path(first.split()[1]).write_text(rest)
        else:
            exec(compile(code, f"{name}.md", "exec"), variables)
    return variables


def agent_learned(scores, **_):
    """Of at most 500."""
    assert scores["untrained"]["mean"] < 50
    assert scores["25,000 steps"]["mean"] > 100
    assert scores["50,000 steps"]["mean"] > 200


def battery_earns_more_than_the_rule(scores, **_):
    assert scores["ppo2"] > scores["rule"] > 0


def algorithm_beats_random_actions(scores, **_):
    """They score about 20."""
    assert min(scores) > 60


def results_were_read(runs, table, **_):
    assert runs.score.notna().all()
    assert {*runs.env} == {*re.findall(r"^\| (\w+-v\d) \|", table, re.M)}


CHECKS = {
    "first_agent": agent_learned,
    "own_environment": battery_earns_more_than_the_rule,
    "new_algorithm": algorithm_beats_random_actions,
    "reading_results": results_were_read,
}
TRAINING = "first_agent", "own_environment", "new_algorithm"


def test_every_notebook_is_checked():
    assert {path.stem for path in FOLDER.glob("*.md")} == {*CHECKS}


@pytest.mark.parametrize(
    "name", [slow(name) if name in TRAINING else name for name in CHECKS]
)
def test_cells_run(name, empty_folder, monkeypatch):
    monkeypatch.syspath_prepend(empty_folder)  # as Jupyter does
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=os.pathsep)
    CHECKS[name](**run_cells(name))
    assert {path.name for path in empty_folder.iterdir()} <= {"logs", "battery.py"}
