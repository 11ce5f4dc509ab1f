"""Modules of the user's own that fail: one line, with their file and line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import baselines
from baselines import run
from baselines.common.base.user_code import is_own

CODE = {
    "raises.py": "import json\n\njson.loads('{')\n",
    "syntax.py": "x = 1\ndef f(:\n",
    "exits.py": "import sys\nsys.exit(3)\n",
    "needs.py": "\n\nimport nothing_here\n",
    "no_extension.so": "not a shared library",
    "null_byte.py": "x = 1\n\0\n",
    "imports_null_byte.py": "\nimport null_byte\n",
    "raises_syntax.py": "\nraise SyntaxError('mine')\n",
    "evaluates.py": "\neval('1+')\n",
    "base_exception.py": "class Halt(BaseException): ...\n\n\nraise Halt('now')\n",
    "null_package/__init__.py": "\0",
    "null_package/alg/alg.py": "",
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
        ("--env=no_extension:X-v0", "no_extension.so: ImportError: "),
        ("--env=null_byte:X-v0", "null_byte.py:2: SyntaxError: source code string"),
        ("--env=imports_null_byte:X-v0", "imports_null_byte.py:2: SyntaxError: source"),
        ("--env=raises_syntax:X-v0", "raises_syntax.py:2: SyntaxError: mine"),
        ("--env=evaluates:X-v0", "evaluates.py:2: SyntaxError: "),
        ("--env=base_exception:X-v0", "base_exception.py:4: Halt: now"),
        ("--env=nowhere:X-v0", "environment 'nowhere:X-v0': there is no module"),
        ("--env=..raises:X-v0", "'..raises' is not the name of a module"),
        ("--network=raises:f", "raises.py:3: JSONDecodeError: Expecting property"),
        ("--network=", "--network: expected text, received ''"),
        ("--alg=bad_package.alg", "__init__.py:1: ZeroDivisionError: division by"),
        ("--alg=null_package.alg", "null_package/__init__.py:1: SyntaxError: source"),
        ("--alg=bad_module.alg", "alg.py:2: ZeroDivisionError: division by zero"),
        ("--alg=bad_defaults.alg", "defaults.py:1: ValueError: no numbers"),
        ("--save_path=folder/", "--save_path has to name a file"),
    ],
)
def test_module_that_fails_is_named_in_one_line(capsys, words, expected):
    with pytest.raises(SystemExit) as ended:
        valid = ["--alg=a2c", "--env=CartPole-v1", "--num_timesteps=40"]
        name = words.partition("=")[0]
        run.main([*(word for word in valid if not word.startswith(name)), words])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and expected in line
    if "Error: " in expected:
        assert line.endswith("(BASELINES_TRACEBACK=1 shows the traceback)")


def test_traceback_is_shown_when_asked_for(monkeypatch):
    monkeypatch.setenv("BASELINES_TRACEBACK", "1")
    with pytest.raises(Exception, match="SyntaxError") as raised:
        run.main(["--alg=a2c", "--env=syntax:X-v0"])
    assert isinstance(raised.value.__cause__, SyntaxError)


@pytest.mark.parametrize("name", ["baselines_mine.py", "baselines_mine/__init__.py"])
def test_a_module_beside_the_package_that_begins_like_it_is_the_users(tmp_path, name):
    copy = tmp_path / "copy"
    shutil.copytree(Path(baselines.__file__).parent, copy / "baselines")
    (copy / name).parent.mkdir(exist_ok=True)
    (copy / name).write_text("\n1 / 0\n")
    words = ["--alg=a2c", "--env=baselines_mine:X-v0", "--num_timesteps=10"]
    ended = subprocess.run(
        [sys.executable, "-m", "baselines.run", *words],
        cwd=copy,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 2, ended.stderr
    assert f"{name}:2: ZeroDivisionError: division by zero" in ended.stderr


@pytest.mark.parametrize("packages", ["site-packages", "dist-packages"])
def test_installed_packages_are_not_the_users_own(packages):
    assert not is_own(f"/usr/local/lib/python3.11/{packages}/numpy/core.py")
    assert is_own("/home/me/numpy/core.py")


def test_a_command_outside_the_virtual_environment_says_so_in_one_line(tmp_path):
    shutil.copytree(Path(baselines.__file__).parent, tmp_path / "baselines")
    ended = subprocess.run(
        [sys.executable, "-S", "-m", "baselines.run"],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )
    expected = (
        f"error: gymnasium is not installed for {sys.executable}; is the virtual "
        "environment active?\n"
    )
    assert (ended.returncode, ended.stderr) == (2, expected)
