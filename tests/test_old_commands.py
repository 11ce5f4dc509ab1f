"""Command lines of OpenAI Baselines, as the table of docs/old_commands.md has them."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_algorithms import flags
from test_readme import skip_without_packages

from baselines import run
from baselines.common.arguments.discovery import find_algorithm, find_defaults
from baselines.common.run.command_line import read_arguments
from baselines.gail.expert import Expert, write_expert

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


def alg_of(command):
    return re.search(r"--alg=(\w+)", command)[1]


COMMANDS = list(dict.fromkeys(find_commands()))


@pytest.fixture(autouse=True)
def home(empty_folder, monkeypatch):
    """Somebody's home folder, with a screen."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("HOME", str(empty_folder))


def test_lines_are_understood():
    assert len(COMMANDS) > 25
    of_openai = {"a2c", "acer", "acktr", "ddpg", "deepq", "gail", "her", "ppo1", "ppo2"}
    assert {alg_of(command) for command in COMMANDS} == {*of_openai, "trpo_mpi"}
    skipped = 0
    for command in COMMANDS:
        try:
            skip_without_packages(command)
        except pytest.skip.Exception:
            skipped += 1
        else:
            read_arguments(shlex.split(command))
    assert skipped < len(COMMANDS)


def run_shortened(command):
    """Runs a line with few steps and environments, and its algorithm's small sizes."""
    alg = alg_of(command)
    command = re.sub(r"--num_timesteps=[1-9]\S*|--num_env=\S+|--play", "", command)
    small = find_defaults(find_algorithm(alg), "small")
    for name in "env", "reward":
        small.pop(name, None)
    words = [*command.split(), "--num_env=2", *flags(small)]
    if "--num_timesteps=0" not in words:
        words.append("--num_timesteps=200")
    names = [word.partition("=")[0] for word in words]
    run.main([x for i, x in enumerate(words) if names[i] not in names[i + 1 :]])


@pytest.mark.long
@pytest.mark.parametrize("command", [x for x in COMMANDS if "_path=" in x])
def test_line_with_a_path_trains(command):
    skip_without_packages(command)
    if path := re.search(r"--load_path=(\S+)", command):
        (saving,) = (x for x in COMMANDS if x.endswith(f"--save_path={path[1]}"))
        run_shortened(saving)
    if path := re.search(r"--expert_path=(\S+)", command):
        Path(path[1]).parent.mkdir()
        samples = np.zeros((8, 11)), np.zeros((8, 3), np.float32)  # of Hopper
        write_expert(os.path.abspath(path[1]), Expert(*samples, np.array([8]), None))
    run_shortened(command)
    if path := re.search(r"--save_path=(\S+)", command):
        assert Path(path[1]).expanduser().is_file()
    if path := re.search(r"--log_path=(\S+)", command):
        assert Path(path[1], "model.safetensors").expanduser().is_file()


def test_command_of_a_module_that_moved_is_answered_in_one_line():
    command = [sys.executable, "-m", "baselines.deepq.experiments.train_cartpole"]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode and finished.stderr.count("\n") == 1
    assert "from_openai_baselines.md" in finished.stderr
