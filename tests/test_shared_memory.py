"""The memory that observations go through, and what is done where it is full."""

import errno
import os
import shutil
import signal
import subprocess
import tempfile
from functools import partial

import numpy as np
import psutil
import pytest
from gymnasium import spaces
from toy_envs import CounterEnv, RandomEnv

from baselines.common.base.errors import WriteError
from baselines.common.vec_env import SubprocVecEnv, shared_memory, subproc_vec_env


@pytest.fixture
def full(monkeypatch):
    """Makes so many attempts to reserve memory find no space."""
    original = shared_memory.fill

    def set_full(times):
        left = [times]

        def fill(file, size):
            left[0] -= 1
            if left[0] >= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            original(file, size)

        monkeypatch.setattr(shared_memory, "fill", fill)
        monkeypatch.setattr(shared_memory, "shared_memory_folder", lambda: "/dev/shm")

    return set_full


def test_full_memory_gives_way_to_a_file(full, capfd):
    full(1)
    before = set(psutil.Process().children())
    with SubprocVecEnv([CounterEnv] * 3, num_workers=3) as venv:
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith("warning: /dev/shm has no 12 bytes for observations: ")
        assert line.endswith(f"; they go through a file in {tempfile.gettempdir()}")
        assert len(set(psutil.Process().children()) - before) == 3
        venv.reset()
        assert venv.step([0, 0, 0])[0].tolist() == [[1], [1], [1]]
        os.kill(venv.worker_pids[0], signal.SIGKILL)
        venv.step([0, 0, 0])
        # A worker that takes over shares the same file.
        assert venv.step([0, 0, 0])[0].tolist() == [[1], [3], [3]]


def test_no_space_for_observations_is_an_error(full):
    full(2)
    before = set(psutil.Process().children())
    with pytest.raises(WriteError, match="/dev/shm has no 4 bytes .*; nor has /"):
        SubprocVecEnv([CounterEnv])
    assert set(psutil.Process().children()) <= before


def test_file_system_that_is_full(tmp_path, monkeypatch, capfd):
    """One of its own, where this process may mount it."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path]
    if shutil.which("mount") is None or subprocess.run(mount).returncode:
        pytest.skip("no file system can be mounted")
    try:
        for module in shared_memory, subproc_vec_env:
            monkeypatch.setattr(module, "shared_memory_folder", lambda: tmp_path)
        space = spaces.Box(0, 255, (300, 300), np.uint8)
        make = partial(RandomEnv, space, spaces.Discrete(2), 0)
        with SubprocVecEnv([make]) as venv:
            error = capfd.readouterr().err
            assert f"{tmp_path} has no 90,000 bytes" in error
            assert "No space left on device; they go" in error
            assert venv.reset().any()
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_folder_without_memory(monkeypatch):
    monkeypatch.setattr(shared_memory.tempfile, "TemporaryFile", refuse)
    assert shared_memory.shared_memory_folder() is None


def refuse(dir=None):
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), dir)
