"""The line that says how far a run is, and the seconds it has taken."""

import contextlib
import os
import pty
import sys

import pytest

from baselines import logger
from baselines.common.base.amounts import duration
from baselines.common.base.timing import Clock, timed
from baselines.common.data.episodes import EpisodeResults
from baselines.common.run import status
from baselines.common.run.status import Status


def test_durations_in_two_units():
    texts = {0.2: "0 s", 59.6: "1 min", 7085: "1 h 58 min", 190_860: "2 d 5 h"}
    assert {seconds: duration(seconds) for seconds in texts} == texts


@pytest.fixture
def now(monkeypatch):
    """A list of one number, the seconds of a clock that the test moves."""
    seconds = [100.0]
    monkeypatch.setattr(status.time, "perf_counter", lambda: seconds[0])
    return seconds


def test_clock_goes_on_where_a_run_is_resumed(now):
    with timed("environments"):
        now[0] += 4  # of another run
    clock = Clock()
    clock.begin()
    with timed("environments"):
        now[0] += 4
    now[0] += 2
    state = clock.get_state()
    now[0] = 7.0  # of another process
    clock = Clock()
    clock.set_state(state)
    sleep = timed("updates")(lambda seconds: now.__setitem__(0, now[0] + seconds))
    sleep(1)
    sleep(1)
    assert clock.seconds == 8
    assert clock.shares() == "environments 50%, updates 25%, other 25%"


def test_plain_line_comes_after_a_minute_without_a_row(now, capsys):
    with logger.scoped_configure(None, ["stdout"]):
        shown = Status("ppo2 Pong", 0, 10_000_000)
        episodes = EpisodeResults()
        now[0] += 40
        shown.update(400_000, episodes, wrote_row=True)
        now[0] += 40
        shown.update(800_000, episodes, wrote_row=False)
        assert capsys.readouterr().out == ""
        now[0] += 20
        episodes.extend([{"r": -3, "l": 9}] * 50)
        shown.update(1_000_000, episodes, wrote_row=False)
        episodes.extend([{"r": -1, "l": 9}] * 100)
        now[0] += 60
        shown.update(1_600_000, episodes, wrote_row=False)
    assert capsys.readouterr().out.splitlines() == [
        "ppo2 Pong 1,000,000/10,000,000 10% · 10,000 steps/s · 15 min left · mean -3",
        "ppo2 Pong 1,600,000/10,000,000 16% · 10,000 steps/s · 14 min left · mean -1",
    ]


@contextlib.contextmanager
def open_terminal(monkeypatch):
    """Makes a terminal the standard output; yields its lines, filled at the end."""
    ours, theirs = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    lines, seen = [], b""
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        yield lines
    with contextlib.suppress(OSError):  # Linux has this for the end of a terminal.
        while data := os.read(ours, 4096):
            seen += data
    lines += seen.decode().replace("\r", "\n").splitlines()


def test_live_line_on_a_terminal(monkeypatch):
    """Rows stay, each in one piece."""
    monkeypatch.setattr(status, "LIVE_SECONDS", 0)
    with open_terminal(monkeypatch) as seen, logger.scoped_configure(None, ["stdout"]):
        shown = Status("a2c CartPole-v1", 0, 500)
        shown.update(250, EpisodeResults(), wrote_row=False)
        logger.logkv("a", 1)
        logger.dumpkvs()
        shown.close()
    assert "a2c CartPole-v1 250/500 50%" in "".join(seen)
    assert "| a | 1 |" in seen
