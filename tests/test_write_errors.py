"""A file that cannot be written ends the run in one line; its checkpoint is intact."""

import contextlib
import os
import resource
from pathlib import Path

import pytest
from conftest import after_updates

from baselines import logger, run
from baselines.common.base.errors import WriteError
from baselines.common.saving.tensors import load_tensors

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
    tensors = [load_tensors(f"{x}/model.safetensors")[0] for x in ("log", "whole")]
    assert tensors[0].keys() == tensors[1].keys()
    assert all((tensors[0][name] == x).all() for name, x in tensors[1].items())
    steps = [
        logger.read_csv(f"{x}/progress.csv").total_timesteps for x in ("log", "whole")
    ]
    assert steps[0].tolist() == steps[1].tolist()


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
