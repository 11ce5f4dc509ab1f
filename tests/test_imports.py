"""Who may import whom, by folder, so that the house keeps its shape."""

import ast
import subprocess
import sys
from pathlib import Path

from conftest import is_preset

import baselines
from baselines.common.arguments.discovery import list_algorithms

PACKAGE = Path(baselines.__file__).parent
FRAMEWORKS = {"tensorflow", "jax", "torch"}
# Each room of common/ imports those before it; envs and vec_env also each other.
ROOMS = (
    "base",
    "arguments",
    "saving",
    "backend",
    "logs",
    "envs",
    "vec_env",
    "networks",
    "updates",
    "data",
    "run",
    "views",
)
LIGHT = "base", "arguments", "saving", "logs", "envs", "vec_env", "views"


def imports_of(path):
    """Dotted names of all modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE), set(imports_of(path))


def is_in(path, room):
    return path == Path(room) or Path(room) in path.parents


def test_frameworks_are_imported_in_the_backend_only():
    for path, imported in modules():
        frameworks = FRAMEWORKS & {name.split(".")[0] for name in imported}
        assert not frameworks or is_in(path, "common/backend"), path


def test_algorithms_do_not_import_each_other_and_nothing_imports_them():
    """Except presets, and acktr, which has the loss of a2c."""
    algorithms = list_algorithms()
    assert algorithms
    presets = [name for name in algorithms if is_preset(name)]
    for path, imported in modules():
        for name in algorithms:
            if path.parts[0] not in (name, *presets) and not (
                path.parts[0] == "acktr" and name == "a2c"
            ):
                package = f"baselines.{name}."
                assert not any(f"{x}.".startswith(package) for x in imported), path


def test_run_and_common_name_no_algorithm_and_common_does_not_import_run():
    for path, imported in modules():
        assert path.parts[0] != "common" or "baselines.run" not in imported, path
        if path.name == "run.py" or path.parts[0] == "common":
            words = {
                node.value
                for node in ast.walk(ast.parse((PACKAGE / path).read_text()))
                if isinstance(node, ast.Constant)
            }
            assert not words & set(list_algorithms()), path


def room_of(module):
    """The index in ROOMS of a module's room, by its dotted name; None if in none."""
    words = module.split(".")
    if words[:2] != ["baselines", "common"] or len(words) < 3:
        return None
    room = "envs" if words[2] == "vec_env" else words[2]  # They import each other.
    return ROOMS.index(room) if room in ROOMS else None


def test_rooms_import_only_rooms_before_them():
    for path, imported in modules():
        room = room_of(".".join(("baselines", *path.with_suffix("").parts)))
        for name in imported:
            other = room_of(name)
            if None not in (room, other):
                assert other <= room, f"{path} imports {name}"
    folders = {path.name for path in (PACKAGE / "common").iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == set(ROOMS)


def test_only_rooms_of_tensors_import_keras():
    """By what Python imports, so that no import in between can bring it in."""
    script = ["import sys"]
    for path, imported in modules():
        if path.parts[0] in (*list_algorithms(), "common"):
            light = path.parts[0] == "common" and path.parts[1] in LIGHT
        else:
            light = True
        if light and path.name != "retro_wrappers.py":  # It needs stable-retro.
            words = "baselines", *path.with_suffix("").parts
            script.append(f"import {'.'.join(words).removesuffix('.__init__')}")
            assert "keras" not in {name.split(".")[0] for name in imported}, path
    script.append("assert not {'keras', 'tensorflow'} & set(sys.modules)")
    subprocess.run([sys.executable, "-c", "\n".join(script)], check=True)


def test_a_checkout_in_the_current_folder_does_not_hide_the_package(tmp_path):
    (tmp_path / "baselines").mkdir()  # Of an installation, this tests pyproject.toml.
    code = "import baselines; baselines.load"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
