"""Signals: a run notes them, and ends after its update."""

import signal

import pytest
from toy_envs import CounterEnv

from baselines.a2c import learn
from baselines.common.base import mpi
from baselines.common.base.signals import StopSignals, stop_number


def test_handlers_are_restored():
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    signals = StopSignals()
    signals.catch()
    signal.raise_signal(signal.SIGTERM)
    assert stop_number() == signals.number == signal.SIGTERM
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    signals.release()
    assert stop_number() == 0
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_signal_between_two_updates_is_noted(empty_folder, monkeypatch):
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

    with pytest.raises(SystemExit, match="143"):
        learn(
            env=CounterEnv(),
            network="mlp",
            total_timesteps=1000,
            checkpoint_interval=500,
            on_update=on_update,
        )
    assert updates == [1, 2]
