"""Modules of the user's own that fail: one line, with their file and line."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest

import baselines
from baselines import run
from baselines.common.base.errors import UserValueError
from baselines.common.base.user_code import is_own
from baselines.common.envs import make_env, make_vec_env

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
    "envs.py": """
from gymnasium.envs.classic_control import CartPoleEnv


class Raises(CartPoleEnv):
    def __init__(self, **kwargs):
        open("level.txt")


class NeedsLevel(CartPoleEnv):
    def __init__(self, level):
        super().__init__()


class WrongType(CartPoleEnv):
    def __init__(self, **kwargs):
        len(5)


class RaisesInReset(CartPoleEnv):
    def reset(self, **kwargs):
        raise KeyError("level")
""",
}
ENTRY_POINTS = {  # and what is said of them
    "syntax:Env": "syntax.py:2: SyntaxError: ",
    "raises:Env": "raises.py:3: JSONDecodeError: Expecting property name",
    "exits:Env": "exits.py:2: SystemExit: 3",
    "null_byte:Env": "null_byte.py:2: SyntaxError: source code",
    "no_extension:Env": "no_extension.so: ",
    "base_exception:Env": "base_exception.py:4: Halt: now",
    "needs:Env": "needs.py:3: No module named 'nothing_here'",
    "nowhere:Env": "cannot be used: No module named 'nowhere'",
    "envs:Nothing": "envs.py:1: AttributeError: module 'envs' has no attribute",
    "envs:Raises": "envs.py:7: FileNotFoundError: ",
    "envs:NeedsLevel": "envs.py:10: TypeError: NeedsLevel.__init__() missing 1",
    "envs:WrongType": "envs.py:17: TypeError: object of type 'int' has no len()",
    "envs:RaisesInReset": "envs.py:22: KeyError: 'level'",
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


@pytest.fixture
def registered():
    """Returns a function that registers an entry point and returns its id."""
    ids = []

    def register(entry_point):
        ids.append(f"Mine{len(ids)}-v0")
        gym.register(ids[-1], entry_point=entry_point)
        return ids[-1]

    yield register
    for env_id in ids:
        del gym.registry[env_id]


@pytest.mark.parametrize(("entry_point", "expected"), ENTRY_POINTS.items())
def test_entry_point_that_fails_is_named_in_one_line(
    capsys, registered, entry_point, expected
):
    env_id = registered(entry_point)
    with pytest.raises(SystemExit) as ended:
        run.main(["--alg=a2c", f"--env={env_id}", "--num_timesteps=10"])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: environment {env_id!r} ") and expected in line


@pytest.mark.parametrize("entry_point", ["syntax:Env", "envs:Raises", "exits:Env"])
def test_a_worker_says_the_same_of_an_entry_point_once(capfd, registered, entry_point):
    env_id = registered(entry_point)
    with pytest.raises(UserValueError) as here:
        make_env(env_id)
    with pytest.raises(UserValueError) as there:
        make_vec_env(env_id, num_env=2, num_workers=2)
    assert str(there.value) == str(here.value)
    assert ENTRY_POINTS[entry_point] in str(here.value)
    assert capfd.readouterr().err == ""
    # For BASELINES_TRACEBACK=1.
    cause = str(there.value.__cause__)
    assert re.match("environment [01] raised\nTraceback .*\n  File ", cause)


def test_an_unknown_keyword_for_an_environment_of_gymnasium_is_a_type_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'level'"):
        make_env("CartPole-v1", env_kwargs={"level": 3})


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
