"""Modules of the user's own that fail: one line, with their file and line."""

import sys
from pathlib import Path

import pytest

from baselines import run

CODE = {
    "raises.py": "import json\n\njson.loads('{')\n",
    "syntax.py": "x = 1\ndef f(:\n",
    "exits.py": "import sys\nsys.exit(3)\n",
    "needs.py": "\n\nimport nothing_here\n",
    "bad_package/__init__.py": "1 / 0\n",
    "bad_package/alg/alg.py": "",
    "bad_module/alg/__init__.py": "",
    "bad_module/alg/alg.py": "\n1 / 0\n",
    "bad_defaults/alg/alg.py": "",
    "bad_defaults/alg/defaults.py": "raise ValueError('no numbers')\n",
}


@pytest.fixture(autouse=True)
def code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    for name, text in CODE.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in {
            Path(x).parts[0].removesuffix(".py") for x in CODE
        }:
            del sys.modules[name]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--env=raises:X-v0", "raises.py:3: JSONDecodeError: Expecting property name"),
        ("--env=syntax:X-v0", "syntax.py:2: SyntaxError: "),
        ("--env=exits:X-v0", "exits.py:2: SystemExit: 3"),
        ("--env=needs:X-v0", "needs.py:3: ModuleNotFoundError: No module named"),
        ("--env=nowhere:X-v0", "environment 'nowhere:X-v0': there is no module"),
        ("--env=..raises:X-v0", "'..raises' is not the name of a module"),
        ("--network=raises:f", "network 'raises:f': "),
        ("--network=", "--network: expected text, received ''"),
        ("--alg=bad_package.alg", "__init__.py:1: ZeroDivisionError: division by"),
        ("--alg=bad_module.alg", "alg.py:2: ZeroDivisionError: division by zero"),
        ("--alg=bad_defaults.alg", "defaults.py:1: ValueError: no numbers"),
        ("--save_path=folder/", "--save_path has to name a file"),
    ],
)
def test_module_that_fails_is_named_in_one_line(capsys, words, expected):
    with pytest.raises(SystemExit) as ended:
        valid = ["--alg=a2c", "--env=CartPole-v1", "--num_timesteps=10"]
        name = words.partition("=")[0]
        run.main([*(word for word in valid if not word.startswith(name)), words])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and expected in line
    if ".py:" in expected:
        assert line.endswith("(BASELINES_TRACEBACK=1 shows the traceback)")


def test_traceback_is_shown_when_asked_for(monkeypatch):
    monkeypatch.setenv("BASELINES_TRACEBACK", "1")
    with pytest.raises(Exception, match="SyntaxError") as raised:
        run.main(["--alg=a2c", "--env=syntax:X-v0"])
    assert isinstance(raised.value.__cause__, SyntaxError)
