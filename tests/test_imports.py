"""Who may import whom, so that the house keeps its shape."""

import ast
from pathlib import Path

from discovered import is_preset

import baselines
from baselines.run import list_algorithms

PACKAGE = Path(baselines.__file__).parent
FRAMEWORKS = {"tensorflow", "jax", "torch"}


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


def is_algorithm(name, imported):
    return any(f"{module}.".startswith(f"baselines.{name}.") for module in imported)


def test_frameworks_are_imported_in_the_backend_only():
    for path, imported in modules():
        frameworks = FRAMEWORKS & {name.split(".")[0] for name in imported}
        assert not frameworks or path.parent == Path("common/backend"), path


def test_algorithms_do_not_import_each_other_and_nothing_imports_them():
    algorithms = list_algorithms()
    assert algorithms
    presets = [name for name in algorithms if is_preset(name)]
    for path, imported in modules():
        for name in algorithms:
            if path.parts[0] not in (name, *presets):
                assert not is_algorithm(name, imported), path


def test_run_and_common_name_no_algorithm():
    for path, _ in modules():
        if path.name == "run.py" or path.parts[0] == "common":
            words = {
                node.value
                for node in ast.walk(ast.parse((PACKAGE / path).read_text()))
                if isinstance(node, ast.Constant)
            }
            assert not words & set(list_algorithms()), path


def test_common_imports_neither_run_nor_keras_where_environments_live():
    for path, imported in modules():
        roots = {name.split(".")[0] for name in imported}
        if path.parts[0] == "common":
            assert "baselines.run" not in imported, path
        environments = path.name in ("envs.py", "recorder.py", "monitor.py", "cli.py")
        environments |= path.name.endswith("_wrappers.py")
        if environments or path.parts[:2] == ("common", "vec_env"):
            assert not roots & {"keras"}, path
