"""What test files share: the algorithms, an empty folder to run in."""

import contextlib
import importlib
import itertools
import os
import re
import shutil

import pytest

from baselines import logger, run
from baselines.common.arguments.declaration import declared_arguments
from baselines.common.arguments.discovery import (
    find_algorithm,
    find_defaults,
    list_algorithms,
)
from baselines.common.base.errors import UserTypeError
from baselines.common.envs import make_vec_env
from baselines.common.run.run import Run


def pytest_addoption(parser):
    parser.addoption(
        "--alg",
        action="append",
        help="algorithm of your own, my_pkg.my_alg, to test in place of those of this "
        "package",
    )


def pytest_generate_tests(metafunc):
    """Runs tests that take ``alg`` for each algorithm; presets only with -m long."""
    marks = metafunc.definition.iter_markers("parametrize")
    by_itself = any("alg" in re.findall(r"\w+", str(mark.args[0])) for mark in marks)
    if "alg" in metafunc.fixturenames and not by_itself:
        names = metafunc.config.getoption("--alg") or [
            long(name) if is_preset(name) else name for name in list_algorithms()
        ]
        metafunc.parametrize("alg", names, scope="module")


def slow(*values):
    """Returns a parameter of tests that run with -m slow only."""
    return pytest.param(*values, marks=pytest.mark.slow)


def long(*values):
    """Returns a parameter of tests that run with -m long only."""
    return pytest.param(*values, marks=pytest.mark.long)


def is_preset(name):
    """Whether an algorithm is another one with other defaults."""
    return import_learn(name).preset_of is not None


def import_learn(name):
    return importlib.import_module(find_algorithm(name)).learn


@contextlib.contextmanager
def new_logger():
    """Logs to the terminal, whatever was configured before, and puts that back."""
    before, logger.current = logger.current, logger.Logger(None, ["stdout"])
    try:
        yield
    finally:
        logger.current.close()
        logger.current = before


@pytest.fixture(scope="module", autouse=True)
def logger_of_module():
    with new_logger():
        yield


@pytest.fixture(autouse=True)
def logger_of_test():
    with new_logger():
        yield


@pytest.fixture(scope="module")
def learn(alg):
    return import_learn(alg)


@pytest.fixture(scope="module")
def small(alg):
    """Settings with which an update takes few agent steps, and rows come often."""
    return find_defaults(find_algorithm(alg), "small")


@pytest.fixture(scope="module")
def env_id(alg, learn):
    """An environment that the algorithm can be trained in."""
    kinds = {kind.__name__ for kind in learn.actions}
    return "CartPole-v1" if "Discrete" in kinds else "Pendulum-v1"


def cartpoles(num_env=2):
    return make_vec_env("CartPole-v1", num_env=num_env, seed=0)


@contextlib.contextmanager
def skipped_if_refused(learn):
    """Skips a test of networks that a replay memory or K-FAC rules out."""
    try:
        yield
    except UserTypeError as error:
        never = "value_network" not in declared_arguments(learn)
        if "K-FAC" not in str(error) and not (never and "recurrent" in str(error)):
            raise
        pytest.skip(str(error))


class Killed(BaseException):
    """As SIGKILL, this ends a run without a word on why."""


@contextlib.contextmanager
def after_updates(act):
    """Calls a function with the Run and the number of each update that has ended."""
    original, numbers = Run.end_update, itertools.count(1)

    def end_update(self):
        original(self)
        act(self, next(numbers))

    Run.end_update = end_update
    try:
        yield
    finally:
        Run.end_update = original


@contextlib.contextmanager
def killed_after(updates):
    """Makes every training loop raise after so many updates, saving nothing more."""

    def act(run, number):
        if number == updates:
            raise Killed

    with after_updates(act), pytest.raises(Killed):
        yield


def copied_after(*updates, to="cut"):
    """Copies a run's folder after so many updates, to cut1, cut2 and so on.

    It is what a SIGKILL at that moment would have left.
    """

    def act(run, number):
        if number in updates:
            place = f"{to}{updates.index(number) + 1}"
            shutil.copytree(logger.get_dir(), place)

    return after_updates(act)


def error_of(capsys, words, main=run.main):
    """Returns the one line that a wrong command gives; nothing is written."""
    capsys.readouterr()
    before = sorted(os.listdir())
    with pytest.raises(SystemExit) as stop:
        main(words.split())
    out, err = capsys.readouterr()
    assert (stop.value.code, out) == (2, "")
    assert err.startswith("error: ") and err.count("\n") == 1
    assert sorted(os.listdir()) == before
    return err


@pytest.fixture
def log_folder(tmp_path):
    """Logs to a folder as CSV; without it, what a test trains leaves no files."""
    with logger.scoped_configure(str(tmp_path / "log"), ["csv"]):
        yield tmp_path / "log"


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """Runs a test in an empty folder, and logs below it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_LOGDIR", str(tmp_path / "log"))
    monkeypatch.delenv("OPENAI_LOG_FORMAT", raising=False)
    with logger.scoped_configure(str(tmp_path / "unused"), []):
        yield tmp_path
