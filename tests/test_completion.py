"""Completion in a shell: the words that may follow."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "line, expected",
    [
        ("baselines ev", "evaluate"),
        ("baselines run --alg=acer --repl", "--replay_ratio --replay_start"),
        ("baselines run --alg=deepq --double", "--double_q"),
        ("baselines run --alg tr", "trpo trpo_mpi"),
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
