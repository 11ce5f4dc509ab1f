"""README's commands and its Python run as they stand there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from baselines import run
from baselines.bench import chaos, throughput
from baselines.common.errors import UserFileError

README = (Path(__file__).parent.parent / "README.md").read_text()
COMMANDS = re.findall(
    r"^(?:mpiexec .*)?(?:\S*/)?python -m baselines\.run (.*)$", README, re.M
)
BENCH_COMMANDS = re.findall(
    r"^python -m baselines\.bench\.throughput (.*)$", README, re.M
)
CHAOS_COMMANDS = re.findall(r"python -m baselines\.bench\.chaos (.*?)`", README)
SOURCES = "".join(
    path.read_text()
    for path in sorted(Path(run.__file__).parent.rglob("*.py"))
    if path.parent.name != "bench"  # which reads what the others write
)
SNIPPETS = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)


def test_the_two_commands_stand_first():
    blocks = re.findall(r"^```bash\n(.*?)^```", README, re.M | re.S)
    first, second = (block.strip() for block in blocks[:2])
    install = "python3 -m venv .venv && .venv/bin/pip install -e "
    train = ".venv/bin/python -m baselines.run --alg=a2c --env=PongNoFrameskip-v4 "
    assert first == f"{install}. && {train}--num_timesteps=2e4"
    assert second == f"{install}'.[test]' && .venv/bin/pytest"


@pytest.mark.parametrize("command", COMMANDS)
def test_command_line_is_understood(command, monkeypatch, tmp_path):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in re.findall(r"(\w+):\w+", command):
        if name.startswith("my_"):
            pytest.importorskip(name, reason="a placeholder for the reader's module")
    if "-Genesis-" in command:
        pytest.importorskip("stable_retro")
    if "--help" in command:
        with pytest.raises(SystemExit) as stop:
            run.main(shlex.split(command))
        assert stop.value.code == 0
    elif "--resume" in command:
        # There is no such run here: the mistake found must be that one alone.
        with pytest.raises(UserFileError, match="there is no run to resume"):
            run.run(shlex.split(command))
    else:
        run.parse(shlex.split(command))


def test_messages_are_what_the_code_says():
    section = README.partition("## If something goes wrong")[2].partition("\n## ")[0]
    table = re.findall(r"^\| (`.*?) \|", section, re.M)
    messages = [message for cell in table for message in re.findall(r"`(.*?)`", cell)]
    assert len(messages) > 10
    # Without the ends and beginnings of strings that go on in the next line.
    text = re.sub(r'"\s*f?"', "", SOURCES)
    for message in messages:
        pattern = re.sub(r"\d+", "{[^}]*}", re.escape(message))
        assert re.search(pattern, text), message


@pytest.mark.parametrize("command", BENCH_COMMANDS)
def test_bench_command_line_is_understood(command):
    args, others = throughput.make_parser().parse_known_args(shlex.split(command))
    run.parse([f"--alg={args.alg}", f"--env={args.env}", *others])


@pytest.mark.parametrize("command", CHAOS_COMMANDS)
def test_chaos_command_line_is_understood(command):
    args, others = chaos.make_parser().parse_known_args(shlex.split(command))
    run.parse([f"--alg={args.alg}", f"--env={args.env}", *others])


def test_there_are_commands_and_snippets():
    assert len(BENCH_COMMANDS) >= 2
    assert len(COMMANDS) >= 5
    assert len(SNIPPETS) >= 1


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippet_runs_as_a_script(snippet, tmp_path):
    """Also without a __main__ guard, though it starts worker processes."""
    assert "__main__" not in snippet
    # Fewer steps, so that the test ends; all else as it stands.
    short, count = re.subn(r"total_timesteps=[\d_]+", "total_timesteps=400", snippet)
    assert count == 1
    (tmp_path / "script.py").write_text(short)
    subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=120,
    )
