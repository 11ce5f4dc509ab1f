"""A config.json that was changed: one line, whatever command reads it."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from baselines import evaluate, logger, play, run, runs
from baselines.common.base.errors import LONGEST, first_line, one_line

RESUME = "--resume=log", "--num_timesteps=400"
COMMANDS = {
    "resume": lambda: run.main(RESUME),
    "evaluate": lambda: evaluate.main(["log", "--episodes=1"]),
    "play": lambda: play.main(["log", "--episodes=1", "--video=x.mp4"]),
}
WIDE = 10**18  # more than any memory has


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "log"
    words = "--alg=a2c --env=CartPole-v1 --num_timesteps=200 --checkpoint_interval=100"
    with logger.scoped_configure(None, []):
        run.main([*words.split(), f"--log_path={folder}"])
    return folder


@pytest.fixture(autouse=True)
def log(trained, empty_folder):
    shutil.copytree(trained, "log")


def edit(change, **settings):
    """Applies a function to config.json, and sets arguments of ``baselines.run``."""
    path = Path("log/config.json")
    config = json.loads(path.read_text())
    config["arguments"] |= settings
    change(config)
    path.write_text(json.dumps(config))


def error_of(capsys, command):
    """Returns the one line that a command is refused with, without a traceback."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        COMMANDS[command]()
    out, err = capsys.readouterr()
    assert stop.value.code == 2 and out == ""
    (line,) = err.splitlines()
    assert line.isprintable() and len(line) < 3000
    return line


def contents():
    files = (path for path in Path("log").rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files}


# Changes that no command accepts, and words of the error.
DAMAGED = {
    "quote": (lambda c: c.update(command="a2c '"), "command .*No closing quotation"),
    "command": (lambda c: c.update(command=["a2c"]), "command has to be text or None"),
    "formats": (lambda c: c.update(log_formats=[5]), "each of log_formats has to be"),
    "ranks": (lambda c: c.update(ranks=10**20), "ranks has to be at most"),
    "update size": (
        lambda c: c.update(update_size=[1]),
        "update_size has to be an int",
    ),
    "described": (lambda c: c.update(described=5), "described has to be a dict"),
    "environments": (
        lambda c: (
            c["arguments"].update(num_env=WIDE) or c["settings"].update(nsteps="x")
        ),
        "num_env has to be at most",
    ),
    "path": (lambda c: c["arguments"].update(save_path=5), "save_path has to be text"),
    "settings": (lambda c: c.update(settings=[]), "settings has to be a dict"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", DAMAGED)
def test_value_of_another_kind(kind, command, capsys):
    change, words = DAMAGED[kind]
    edit(change)
    before = contents()
    error = error_of(capsys, command)
    assert "log/config.json is damaged: " in error
    assert re.search(words, error) and contents() == before


def test_list_in_place_of_a_name_of_code(capsys):
    edit(lambda c: c["settings"].update(values=["a:b"]))
    assert "values" in error_of(capsys, "resume")


# What is in the file twice, or has to be there to resume the run.
DISAGREEING = {
    "no steps": lambda c: c["arguments"].update(num_timesteps=0),
    "no steps at all": lambda c: (
        c["arguments"].update(num_timesteps=0)
        or c["settings"].update(total_timesteps=0)
    ),
    "total": lambda c: c["settings"].update(total_timesteps=300),
    "type of the total": lambda c: c["settings"].update(total_timesteps=200.0),
    "network": lambda c: c["settings"].update(network="lstm"),
    "model": lambda c: c["settings"].update(load_path="x"),
    "no total": lambda c: c["settings"].pop("total_timesteps"),
    "a setting that is none": lambda c: c["arguments"].update(x=1),
    "seed of learn()": lambda c: c["settings"].update(seed=1),
    "no algorithm": lambda c: c["arguments"].pop("alg"),
    "no command": lambda c: c.pop("command"),
}


@pytest.mark.parametrize("kind", DISAGREEING)
def test_values_that_do_not_agree(kind, capsys):
    edit(DISAGREEING[kind])
    for command in "resume", "evaluate":
        error = error_of(capsys, command)
        assert "log/config.json is damaged: " in error


def test_steps_of_an_update_that_are_no_number(capsys):
    edit(lambda c: c["settings"].update(nsteps=[1]), num_env=10**10)
    runs.main(["log"])
    assert "finished" in capsys.readouterr().out


def test_command_that_ends_before_a_value(capsys):
    edit(lambda c: c.update(command="python -m baselines.run --load_path"))
    COMMANDS["resume"]()
    assert "baselines.run --load_path=" in capsys.readouterr().out


EVIL = "x\x1b[2J\nerror: fake; $(touch y)"


def test_printed_values_cannot_move_the_cursor(capsys):
    command = shlex.join(["python", "-m", "baselines.run", EVIL])
    edit(lambda c: c.update(command=command), save_path=f"../{EVIL}")
    COMMANDS["resume"]()
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\nerror" not in out
    flag = shlex.quote(f"--save_path=../{EVIL}").encode("unicode_escape").decode()
    assert f"without {flag}\n" in out
    assert "Start again from this model: " in out


def test_commands_to_repeat_are_quoted(capsys, monkeypatch):
    edit(lambda c: None, env="m:$(touch y)")
    assert "again '--env=m:$(touch y)'" in error_of(capsys, "evaluate")
    assert "'--env=m:$(touch y)'" in error_of(capsys, "resume")
    edit(lambda c: c.update(log_formats=["m:$(touch y)"]), env="CartPole-v1")
    error = error_of(capsys, "resume")
    assert "set OPENAI_LOG_FORMAT='m:$(touch y)'" in error


def test_long_values_are_shortened(capsys):
    edit(lambda c: None, env="m:" + "x y " * 500_000)
    for command in "evaluate", "resume":
        assert "m:x y x y" in error_of(capsys, command)


def test_message_of_any_length():
    text = "a" * 300 + "\n" + "b c " * 10**6
    for shown in one_line(text), first_line(text):
        assert len(shown) < LONGEST + 10 and shown.isprintable()
        assert shown.startswith("aaa") and shown.rstrip().endswith("b c")
