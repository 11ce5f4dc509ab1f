"""Pages of docs: complete, linked, and right about what algorithms do and log.

Each algorithm in ``baselines/`` has a page ``docs/algorithms/<name>.md``.
"""

import ast
import csv
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import gymnasium as gym
import pytest

from baselines.common.arguments.discovery import (
    find_algorithm,
    find_defaults,
    list_algorithms,
)
from baselines.common.envs.nests import MixedActions

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob(".github/**/*.md"), *ROOT.glob("results/*.md")]
DOCS = sorted(ROOT.glob("docs/**/*.md"))
ALGORITHMS = list_algorithms()

each_algorithm = pytest.mark.parametrize("alg", ALGORITHMS, scope="module")


def read_page(alg):
    return (ROOT / "docs" / "algorithms" / f"{alg}.md").read_text()


def read_section(text, heading):
    """Returns what is below a heading, or before the first one for None."""
    first, *sections = text.split("\n## ")
    if heading is None:
        return first
    return next(x for x in sections if x.startswith(f"{heading}\n"))


def read_table(text, heading):
    """Returns the rows of the first table in a section, lists of cells."""
    lines = re.search(r"(\|.*\n)+", read_section(text, heading))[0].splitlines()
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    return [[cell.strip() for cell in row] for row in rows if "---" not in row[0]]


def base_of(learn):
    """Returns the folder of the algorithm that a preset is made of, or None."""
    return learn.preset_of and learn.preset_of.__module__.split(".")[1]


def find_links(page):
    """Yields the path, absolute, and heading of each link to a file of the project."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        path, _, heading = link.partition("#")
        if not path.startswith("https:"):
            yield (page.parent / path).resolve() if path else page, heading


@pytest.mark.parametrize("page", [*PAGES, *DOCS], ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target, heading in find_links(page):
        assert target.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)", target.read_text(), re.M)
            anchors = [re.sub(r"[^\w\- ]", "", title.lower()) for title in titles]
            assert heading in [anchor.replace(" ", "-") for anchor in anchors], target


def test_readme_links_every_page():
    linked = {target for target, _ in find_links(ROOT / "README.md")}
    pages = [ROOT / "docs" / "algorithms" / f"{alg}.md" for alg in ALGORITHMS]
    # The API page is made of docstrings, on the site only.
    assert {*DOCS, *pages} - {ROOT / "docs" / "api.md"} <= linked


def test_site_has_every_page_once():
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    pages = [ROOT / "docs" / path for path in re.findall(r"[\w/]+\.md", nav)]
    assert sorted(page for page in pages if page.exists()) == DOCS


@each_algorithm
def test_page_has_the_facts(alg, learn):
    facts = dict(read_table(read_page(alg), None)[1:])
    names = {MixedActions: "Tuple or Dict of these"}
    actions = {names.get(kind, kind.__name__) for kind in learn.actions}
    assert set(facts["Actions"].split(", ")) == actions
    assert facts["MPI"] == ("yes" if learn.mpi else "no")
    # Replay memories and K-FAC rule it out.
    recurrent = "value_network" in learn.declared and "kfac_clip" not in learn.declared
    assert facts["Recurrent"] == ("yes" if recurrent else "no")


@pytest.mark.slow
@each_algorithm
def test_page_explains_the_columns_of_the_log(alg, learn, small, env_id, log_folder):
    learn(**small, env=gym.make(env_id), network="mlp", seed=0, total_timesteps=400)
    with open(log_folder / "progress.csv", newline="") as file:
        logged = set(next(csv.reader(file)))
    _, *rows = read_table(read_page(base_of(learn) or alg), "What is logged")
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row[0])} == logged


@each_algorithm
def test_preset_links_the_page_of_its_algorithm(alg, learn):
    assert learn.preset_of is None or f"]({base_of(learn)}.md#" in read_page(alg)


def read_value(cell):
    """Returns the number, list or text of a cell."""
    try:
        return ast.literal_eval(cell)
    except (ValueError, SyntaxError):
        return cell


@each_algorithm
def test_defaults_are_those_of_the_code(alg, learn):
    """A column for learn(), and for each function of defaults.py."""
    header, *rows = read_table(read_page(alg), "Defaults")
    module = find_algorithm(alg)
    columns = {
        kind: {row[0].strip("`"): read_value(row[i]) for row in rows if row[i]}
        for i, title in enumerate(header)
        for kind in re.findall(r"`([\w-]+)", title)
    }
    of_learn = columns.pop("learn")
    signature = {name: x.default for name, x in learn.declared.items()} | learn.settings
    assert of_learn == {name: signature[name] for name in of_learn}
    assert learn.settings.items() <= of_learn.items()
    package = importlib.import_module(module.rpartition(".")[0])
    code, files = None, pkgutil.iter_modules(package.__path__)
    if "defaults" in {file.name for file in files}:
        code = importlib.import_module(f"{package.__name__}.defaults")
    functions = dict(inspect.getmembers(code, inspect.isfunction))
    tasks = getattr(code, "TASKS", {})
    assert set(columns) == (functions | tasks).keys() - {"small", "tune"}
    for kind, shown in columns.items():
        defaults = tasks.get(kind) or find_defaults(module, kind)
        if base := base_of(learn):  # A preset's page shows what it changes.
            of_base = importlib.import_module(f"baselines.{base}.defaults")
            tasks_of_base = getattr(of_base, "TASKS", {})
            same = tasks_of_base.get(kind) or getattr(of_base, kind, dict)()
            defaults = {k: v for k, v in defaults.items() if same.get(k) != v}
        assert shown == defaults, kind
