"""The command ``baselines``: completion in a shell, code in the current folder."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "line, expected",
    [
        ("baselines ev", "evaluate"),
        ("baselines run --alg=acer --repl", "--replay_ratio --replay_start"),
        ("baselines run --alg=deepq --double", "--double_q"),
        ("baselines run --alg tr", "trpo trpo_mpi"),
        ("baselines run --on_worker_failure ra", "raise"),
        ("baselines run --env=CartPole", "--env=CartPole-v0 --env=CartPole-v1"),
        ("baselines tune --pruner M", "Median"),
        ("baselines play log --det", "--deterministic"),
    ],
)
def test_words_that_may_follow(line, expected, tmp_path):
    answer = tmp_path / "answer"
    asked = dict(COMP_LINE=line, COMP_POINT=str(len(line)), _ARGCOMPLETE="1")
    asked |= dict(_ARGCOMPLETE_STDOUT_FILENAME=str(answer), IFS="\n")
    asked |= dict(_ARGCOMPLETE_IFS="\n", _ARGCOMPLETE_SUPPRESS_SPACE="1")
    subprocess.run(
        [sys.executable, "-m", "baselines"],
        env={**os.environ, **asked},
        check=True,
        capture_output=True,
    )
    assert sorted(answer.read_text().split("\n")) == expected.split()


def test_code_in_the_current_folder_is_found(tmp_path):
    (tmp_path / "my_envs.py").write_text("raise SystemExit(7)")
    script = Path(sysconfig.get_path("scripts"), "baselines")
    words = [script, "run", "--alg=a2c", "--env=my_envs:Mine-v0"]
    assert subprocess.run(words, cwd=tmp_path).returncode == 7
