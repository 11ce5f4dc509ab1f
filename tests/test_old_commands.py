"""Command lines of OpenAI Baselines, as the table of docs/old_commands.md has them."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from test_readme import skip_without_packages

from baselines.common.run.command_line import read_arguments

PAGE = Path(__file__).parent.parent / "docs" / "old_commands.md"
TABLE = re.findall(r"^\| `(.*?)` \| (.*) \|$", PAGE.read_text(), re.M)
LINES = [(old, here) for old, here in TABLE if re.search("python|tensorboard", old)]
RUN = re.compile(r"(?:\w+=\S+ |mpirun -np \d+ )?python -m baselines\.run (.*)")


def find_commands():
    """Yields the arguments of each line of ``baselines.run`` that is typed here."""
    for old, here in LINES:
        same = here.startswith("the same")
        for line in [old] if same else re.findall("`(.*?)`", here):
            if match := RUN.fullmatch(line):
                yield match[1].replace("$seed", "0")


COMMANDS = list(dict.fromkeys(find_commands()))


@pytest.fixture(autouse=True)
def home(empty_folder, monkeypatch):
    """Somebody's home folder, with a screen."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("HOME", str(empty_folder))


def test_lines_are_understood():
    assert len(COMMANDS) > 25
    of_openai = "a2c acer acktr ddpg deepq gail her ppo1 ppo2 trpo_mpi"
    found = {re.search(r"--alg=(\w+)", command)[1] for command in COMMANDS}
    assert found == {*of_openai.split()}
    skipped = 0
    for command in COMMANDS:
        try:
            skip_without_packages(command)
        except pytest.skip.Exception:
            skipped += 1
        else:
            read_arguments(shlex.split(command))
    assert skipped < len(COMMANDS)


def test_command_of_a_module_that_moved_is_answered_in_one_line():
    command = [sys.executable, "-m", "baselines.deepq.experiments.train_cartpole"]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode and finished.stderr.count("\n") == 1
    assert "from_openai_baselines.md" in finished.stderr
