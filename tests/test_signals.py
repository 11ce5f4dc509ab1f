"""Signals: a run notes them, and ends after its update."""

import signal
from pathlib import Path

import pytest
from toy_envs import CounterEnv

from baselines import logger
from baselines.a2c import learn
from baselines.common.base import mpi
from baselines.common.base.signals import StopSignals
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.saving.log_folder import checkpoint_steps


def test_handlers_are_restored():
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    signals = StopSignals()
    signals.catch()
    signal.raise_signal(signal.SIGTERM)
    assert signals.number == signal.SIGTERM
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    signals.release()
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_signal_between_two_updates_saves_a_checkpoint_and_stops(
    empty_folder, monkeypatch
):
    """It comes when the ranks have just told each other that none has one."""
    updates = []

    def gather(value):
        if updates == [1]:
            signal.raise_signal(signal.SIGTERM)
        return [value]

    def on_update(run):
        updates.append(len(updates) + 1)
        if updates == [1]:
            monkeypatch.setattr(mpi, "gather", gather)

    env, given = CounterEnv(), dict(total_timesteps=1000, checkpoint_interval=500)
    with (
        logger.scoped_configure("log", ["log"]),
        pytest.raises(SystemExit, match="143"),
    ):
        learn(env, "mlp", on_update=on_update, **given)
    assert updates == [1, 2]
    assert [checkpoint_steps(x) for x in list_manifests("log/checkpoints")] == [10]
    assert "resume" in Path("log/log.txt").read_text().splitlines()[-1]
