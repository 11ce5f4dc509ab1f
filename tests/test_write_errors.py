"""A file that cannot be written ends the run in one line; its checkpoint is intact."""

import contextlib
import os
import resource
from pathlib import Path

import pytest
from conftest import after_updates
from test_algorithms import results

from baselines import logger, run
from baselines.common.base.errors import WriteError

A2C = "--alg=a2c --env=CartPole-v1 --num_env=2 --seed=1 --log_interval=5 "
A2C += "--num_timesteps=600 --checkpoint_interval=200 --log_path="


@contextlib.contextmanager
def small_files(size):
    """Lets no file grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_log_that_cannot_be_written_ends_a_run_that_can_be_resumed(
    empty_folder, capsys
):
    def block(run, number):
        if number == 30:  # after 300 agent steps
            log = logger.current.outputs["log"].file
            os.dup2(os.open("/dev/full", os.O_WRONLY), log.fileno())

    run.main(f"{A2C}whole".split())
    capsys.readouterr()
    with after_updates(block), pytest.raises(SystemExit, match="^1$"):
        run.main(f"{A2C}log".split())
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: cannot write ") and "No space left" in line
    assert line.endswith("checkpoints/000000000200.json")
    run.main(["--resume=log"])
    assert results("log") == results("whole")


@pytest.mark.parametrize("name", ["log", "csv", "json", "tensorboard"])
def test_output_that_fails_continues_from_the_last_checkpoint(name, empty_folder):
    def write(step):
        logger.logkvs({"total_timesteps": step})
        logger.dumpkvs()

    if name == "tensorboard":
        pytest.importorskip("tensorboardX")
    logger.configure("log", [name])
    write(1)
    state = logger.get_state()
    with small_files(30), pytest.raises(WriteError, match="File too large"):
        for step in range(2, 20):
            write(step)
    logger.configure("log", [name])
    logger.set_state(state)
    write(21)
    logger.close()
    if name == "csv":
        assert Path("log/progress.csv").read_text() == "total_timesteps\n1\n21\n"
