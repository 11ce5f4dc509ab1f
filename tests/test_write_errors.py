"""A file that cannot be written ends the run in one line; its checkpoint is intact."""

import contextlib
import os
import resource
import shutil
from pathlib import Path

import pytest

from baselines import logger, run
from baselines.common.base.errors import WriteError
from baselines.common.run.run import Run
from baselines.common.saving.tensors import load_tensors

A2C = "--alg=a2c --env=CartPole-v1 --num_env=2 --seed=1 --log_interval=5 "
A2C += "--num_timesteps=600 --checkpoint_interval=200 --log_path="


@contextlib.contextmanager
def in_mid_run(action):
    """Does something once a run has made 300 agent steps."""
    original = Run.end_update

    def end_update(self):
        original(self)
        if self.num_timesteps == 300:
            action()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "end_update", end_update)
        yield


@contextlib.contextmanager
def small_files(size):
    """Lets no file grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def error_of(capsys, words):
    """Returns the line on stderr of a run that a file ends."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        run.main(words.split())
    (line,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 1 and line.startswith("error: cannot write ")
    return line


def test_log_that_cannot_be_written_ends_a_run_that_can_be_resumed(
    empty_folder, capsys
):
    def block():
        log = logger.current.outputs["log"].file
        os.dup2(os.open("/dev/full", os.O_WRONLY), log.fileno())

    run.main(f"{A2C}whole".split())
    with in_mid_run(block):
        line = error_of(capsys, f"{A2C}log")
    assert "No space left" in line
    assert line.endswith("checkpoints/000000000200.json")
    run.main(["--resume=log"])
    tensors = [load_tensors(f"{x}/model.safetensors")[0] for x in ("log", "whole")]
    assert tensors[0].keys() == tensors[1].keys()
    assert all((tensors[0][name] == x).all() for name, x in tensors[1].items())
    steps = [
        logger.read_csv(f"{x}/progress.csv").total_timesteps for x in ("log", "whole")
    ]
    assert steps[0].tolist() == steps[1].tolist()


def block_checkpoints():
    shutil.rmtree("log/checkpoints")
    Path("log/checkpoints").write_text("")


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda: shutil.rmtree("log"), ": No such file or directory; there is no"),
        (block_checkpoints, "400.safetensors: File exists"),
        (
            lambda: os.mkdir("log/model.safetensors"),
            "model.safetensors: Is a directory",
        ),
    ],
)
def test_what_stands_in_the_way_is_named(action, words, empty_folder, capsys):
    with in_mid_run(action):
        assert words in error_of(capsys, f"{A2C}log")


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
