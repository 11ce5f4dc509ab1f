"""Tuning: ranges, and trials that are pruned, go on, and survive kills."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import optuna
import psutil
import pytest
from conftest import error_of
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState
from test_algorithms import results

from baselines import run, tune
from baselines.common.base.errors import UserFileError, UserValueError
from baselines.common.run.tuning import (
    Search,
    SuccessiveHalving,
    Tuner,
    read_range,
)

A2C = ["--alg=a2c", "--env=CartPole-v1", "--num_timesteps=2000", "--seed=1"]
PAGE = Path(__file__).parent.parent / "docs" / "tuning.md"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("0..0.05", FloatDistribution(0, 0.05)),
        ("1..8", IntDistribution(1, 8)),
        ("log:1e-5..1e-2", FloatDistribution(1e-5, 1e-2, log=True)),
        ("log:16..1024", IntDistribution(16, 1024, log=True)),
        ("[128,256]", CategoricalDistribution((128, 256))),
        ("[mlp,lstm]", CategoricalDistribution(("mlp", "lstm"))),
        ("[[64,64],[256]]", CategoricalDistribution(("[64, 64]", "[256]"))),
    ],
)
def test_ranges_are_read(text, expected):
    assert read_range("x", text) == expected


@pytest.mark.parametrize("text", ["", "3", "2..1", "log:0..1", "a..b", "1..2..3"])
def test_other_ranges_are_refused(text):
    with pytest.raises(UserValueError):
        read_range("x", text)


@pytest.mark.parametrize(
    "words, named",
    [
        ("lrr=0..1", "lrr"),
        ("gamma=0.9..2", "gamma"),
        ("network=[mlp,cnnn]", "cnnn"),
        ("lr=0..1 --pruner=Medan", "Median"),
        ("lr=0..1 --trials=0", "trials"),
        ("lr=0..1 --gama=3", "gamma"),
        ("", "ranges"),  # a2c suggests none
    ],
)
def test_mistakes_end_before_anything_runs(words, named, empty_folder, capsys):
    line = " ".join([*A2C, "--log_path=log", words])
    assert named in error_of(capsys, line, tune.main)


def test_commands_of_the_docs_are_understood(empty_folder):
    pytest.importorskip("Box2D")
    commands = re.findall(r"^python -m baselines.tune (.*)", PAGE.read_text(), re.M)
    assert commands
    commands += [f"--alg=ppo2 --env=CartPole-v1 --log_path={x}" for x in "ab"]
    commands += ["--alg=sac --env=Pendulum-v1 --log_path=c"]
    for command in commands:
        own, ranges, words = tune.read_command(shlex.split(command))
        wanted = {name: read_range(name, text) for name, text in ranges.items()}
        Search(own["log_path"], words, own["seeds"]).check(wanted)


class Curves:
    """In place of runs: evaluation k of four has the score k * x, without training."""

    trained = []

    def __init__(self, search, trial, settings):
        self.trial, self.x = trial, trial.params["x"]
        self.scores = []

    def unlock(self):
        pass

    def advance(self, stopped):
        while len(self.scores) < 4:
            self.trained.append((self.trial.number, len(self.scores) + 1))
            self.scores.append((len(self.scores) + 1) * self.x)
            self.trial.report(self.scores[-1], len(self.scores))
            if len(self.scores) < 4 and self.trial.should_prune():
                return False
        return True


def test_paused_trials_are_promoted_and_nothing_is_trained_twice(
    tmp_path, monkeypatch, capsys
):
    """Golden: of four, the upper two pass evaluation 1, and the upper one 2 and 4."""
    monkeypatch.setattr("baselines.common.run.tuning.Runs", Curves)
    monkeypatch.setattr(Curves, "trained", [])
    study = optuna.create_study(direction="maximize", pruner=SuccessiveHalving(2))
    for x in 4, 3, 2, 1:
        study.enqueue_trial({"x": x})
    search = Search(str(tmp_path), A2C, 1)
    Tuner(search, {"x": IntDistribution(1, 9)}, study, 4).run(1)
    # (trial, evaluation): the second trial is paused until there are four.
    first = [(0, 1), (0, 2), (0, 3), (0, 4)]
    assert Curves.trained == [*first, (1, 1), (2, 1), (3, 1), (1, 2)]
    states = [trial.state for trial in study.trials]
    assert states == [TrialState.COMPLETE] + 3 * [TrialState.PRUNED]
    assert study.best_value == 16


def test_only_the_highest_rung_that_was_reached_counts():
    study = optuna.create_study(direction="maximize")
    for values in {1: 1.0, 3: 9.0}, {1: 5.0, 3: 2.0}, {1: 6.0}, {1: 4.0}:
        trial = optuna.trial.create_trial(value=0.0, intermediate_values=values)
        study.add_trial(trial)
    halving = SuccessiveHalving(3)
    pruned = [halving.prune(study, trial) for trial in study.trials]
    assert pruned == [False, True, False, True]


def test_a_folder_is_of_one_search(tmp_path, monkeypatch):
    monkeypatch.setattr("baselines.common.run.tuning.Runs", Curves)

    def search():
        study = optuna.create_study(direction="maximize")
        of_a2c = Search(str(tmp_path), A2C, 1)
        Tuner(of_a2c, {"x": IntDistribution(1, 9)}, study, 3).run(2)

    search()
    with pytest.raises(UserFileError):
        search()


class Patience:
    """In place of a trial of Optuna: it is to be pruned at its first evaluation."""

    number, reported = 0, ()

    def report(self, score, step):
        self.reported = *self.reported, step

    def should_prune(self):
        return self.reported == (1,)


@pytest.mark.slow
def test_a_paused_trial_goes_on_as_if_it_had_not_been(tmp_path):
    command = [x.replace("2000", "40_000") for x in A2C]
    command.append("--lr=1e-3")
    run.main([*command, "--eval_interval=4000", f"--log_path={tmp_path / 'whole'}"])
    runs = Search(str(tmp_path), command, 1).new_runs(Patience(), {})
    assert not runs.advance()
    assert not (tmp_path / "0000" / "1" / "model.safetensors").exists()
    assert runs.advance()
    assert results(tmp_path / "0000" / "1") == results(tmp_path / "whole")
    assert runs.trial.reported == tuple(range(1, 11))


@pytest.mark.slow
def test_a_search_goes_on_after_kills(tmp_path):
    words = [sys.executable, "-m", "baselines.tune"]
    command = [x.replace("2000", "20_000") for x in A2C]
    ranges = ["lr=log:1e-4..1e-2", f"--log_path={tmp_path}", "--trials=3", "--jobs=2"]
    process = subprocess.Popen([*words, *command, *ranges])
    while not [*tmp_path.glob("*/*/progress.csv")]:
        assert process.poll() is None
        time.sleep(0.1)
    psutil.Process(process.pid).children()[0].kill()
    time.sleep(2)
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = subprocess.run(
        [*words, f"--resume={tmp_path}", "--trials=4"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert len([*tmp_path.glob("*/*/model.safetensors")]) == 4
    study = optuna.load_study(study_name=None, storage=f"sqlite:///{tmp_path}/study.db")
    assert [x.state for x in study.trials] == [TrialState.COMPLETE] * 4
    best = study.best_params["lr"]
    assert f"--lr={best}" in done.stdout
    assert os.path.getsize(tmp_path / "tune.html") > 10_000
