"""The commands in results/README.md: they are accepted, and what they name exists."""

import fnmatch
import re
import shlex
from pathlib import Path

import pytest
from test_readme import skip_without_packages

from baselines.common.run.parsing import parse
from benchmarks.study import RUNS

RESULTS = Path(__file__).parent.parent / "results"
BLOCKS = re.findall(
    r"^```bash\n(.*?)^```", (RESULTS / "README.md").read_text(), re.M | re.S
)
COMMANDS = [
    shlex.split(line.replace("SEED", "0"), comments=True)
    for line in "".join(BLOCKS).splitlines()
]


def words_of(module):
    """Returns the arguments of all commands that run a module."""
    found = [words[3:] for words in COMMANDS if words[1:3] == ["-m", module]]
    assert found
    return found


@pytest.mark.parametrize("words", words_of("baselines.run"), ids=" ".join)
def test_command_line_is_understood(words, empty_folder):
    skip_without_packages(" ".join(words))
    parse(words)


@pytest.mark.parametrize("words", words_of("baselines.plot"), ids=lambda x: x[-1])
def test_logs_and_picture_are_there(words):
    paths = re.findall(r"=(results/[^ :]+)", " ".join(words))
    picture = words[words.index("-o") + 1]
    for path in [*paths, picture]:
        assert (RESULTS.parent / path).exists(), path
    assert paths


@pytest.mark.parametrize("words", words_of("benchmarks.study"), ids=" ".join)
def test_runs_are_in_the_study(words):
    names = [word for word in words[1:] if not word.startswith("--")]
    assert names and all(fnmatch.filter(RUNS, name) for name in names)
