"""Commands and Python of README and docs run as they stand there.

Notebooks, whose cells share their variables, are in test_notebooks.py.
"""

import gc
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import import_learn
from gymnasium import spaces
from toy_logs import write_log

from baselines import evaluate, export, logger, play, plot, report, run, runs
from baselines.common.arguments import cli
from baselines.common.arguments.declaration import declared_arguments
from baselines.common.arguments.discovery import list_algorithms
from baselines.common.arguments.types import NETWORK
from baselines.common.base.errors import OUR_NAMES, UserFileError
from baselines.common.base.tables import read_table
from baselines.common.run.command_line import read_arguments
from baselines.common.run.settings import RUN_ARGUMENTS
from baselines.gail.record import record

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted({*ROOT.glob("docs/**/*.md")} - {*ROOT.glob("docs/notebooks/*")}),
]
README = PAGES[0].read_text()
TEXT = "\n".join(page.read_text() for page in PAGES)
LINES = "".join(re.findall(r"^```bash\n(.*?)^```", TEXT, re.M | re.S)).splitlines()


def find_commands(module):
    """Returns the arguments of all commands that run a module, without repetitions."""
    short = module.replace(".", " ")
    pattern = rf"(?:mpiexec .* )?(?:python -m {re.escape(module)}|{short}) (.*)"
    matches = [re.fullmatch(pattern, line) for line in LINES]
    return list(dict.fromkeys(match[1] for match in matches if match))


def find_snippets():
    """Returns files that a reader is asked to make, and Python that stands alone."""
    files, scripts = {}, []
    pattern = r"^([^\n]+)\n+```python\n(.*?)^```"  # with the line before it
    for before, code in re.findall(pattern, TEXT, re.M | re.S):
        if file := re.search(r"[Ii]n `(\S+\.py)`:$", before):
            assert file[1] not in files
            files[file[1]] = code
        elif not before.startswith("<!-- not run"):
            scripts.append(code)
    assert len(files) + len(scripts) == TEXT.count("```python") - TEXT.count(
        "<!-- not run"
    )
    return files, scripts


COMMANDS = find_commands("baselines.run")
PLOTS = find_commands("baselines.plot")
REPORTS = find_commands("baselines.report")
LISTS = find_commands("baselines.runs")
TRAINED = [
    (program, command)
    for program in (evaluate.evaluate_run, play.play_run, record, export.export)
    for command in find_commands(program.__module__)
]
FILES, SCRIPTS = find_snippets()
ALGORITHMS = [
    f"{path.parts[0]}.{path.parts[1]}"
    for path in map(Path, [*FILES, "my_pkg/my_alg/my_alg.py"])
    if path.parts[-2:-1] == (path.stem,)
]


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """A folder, importable, with the files that a reader is asked to make."""
    folder = tmp_path_factory.mktemp("examples")
    for name, code in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    (folder / "baselines").symlink_to(ROOT / "baselines")
    for line in dict.fromkeys(LINES):
        if line.startswith(("cp ", "mv ")):
            subprocess.run(shlex.split(line), check=True, cwd=folder)
    modules = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield folder
    for name in set(sys.modules) - modules:
        if name.startswith("my_"):
            del sys.modules[name]


@pytest.fixture
def home(examples, empty_folder, monkeypatch):
    """Somebody's home folder, with a screen."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("HOME", str(empty_folder))
    return empty_folder


def skip_without_packages(command):
    if "-Genesis-" in command:
        pytest.importorskip("stable_retro")
    if re.search("Ant-|HalfCheetah-|Hopper-|Humanoid-|Reacher-|Walker2d-", command):
        pytest.importorskip("mujoco")
    if "Fetch" in command:
        pytest.importorskip("gymnasium_robotics")


@pytest.mark.slow
def test_contract_tests_take_an_algorithm_outside_the_package(examples):
    top = Path(__file__).parent.parent
    words = ["pytest", "tests/test_algorithms.py", "--alg=my_pkg.vpg", "-n0", "-q"]
    words += ["-k", "interrupted"]
    environ = os.environ | {"PYTHONPATH": f"{top}{os.pathsep}{examples}"}
    subprocess.run([sys.executable, "-m", *words], cwd=top, env=environ, check=True)


def test_the_two_commands_stand_first():
    blocks = re.findall(r"^```bash\n(.*?)^```", README, re.M | re.S)
    first, second = (block.strip() for block in blocks[:2])
    install = "python3 -m venv .venv && .venv/bin/pip install -e "
    train = ".venv/bin/python -m baselines.run --alg=a2c --env=PongNoFrameskip-v4 "
    assert first == f"{install}. && {train}--num_timesteps=2e4"
    assert second == f"{install}'.[test]' && .venv/bin/pytest"


def test_everything_was_found():
    """No command or snippet is written so that it would be left out here."""
    modules = "run", "evaluate", "play", "gail.record", "plot", "report", "runs"
    for name in (*modules, "export"):
        module = f"baselines.{name}"
        found = find_commands(module)
        lines = {x for x in LINES if re.search(rf"baselines[. ]{name} ", x)}
        lines = {line for line in lines if not line.startswith("python3 -m venv")}
        assert len(lines) >= len(found) > (name != "export")
        for line in lines:
            assert any(line.endswith(f"{name} {command}") for command in found)
    assert {"my_envs.py", "my_networks.py"} < set(FILES)
    assert len(ALGORITHMS) > 3
    assert len([code for code in SCRIPTS if code in README]) == 1 < len(SCRIPTS)


@pytest.mark.parametrize("command", COMMANDS)
def test_command_line_is_understood(command, home):
    skip_without_packages(command)
    if "--help" in command:
        with pytest.raises(SystemExit) as stop:
            read_arguments(shlex.split(command))
        assert stop.value.code == 0
    elif "--resume" in command:
        # There is no such run here: the mistake found must be that one alone.
        with pytest.raises(UserFileError, match="there is no run in"):
            read_arguments(shlex.split(command))
    else:
        read_arguments(shlex.split(command))


@pytest.mark.parametrize("command", PLOTS)
def test_picture_is_drawn(command, home, capsys):
    for name in re.findall(r"~/([\w/-]+?)(?:/progress.csv)? ", command):
        write_log(home / name, [1.0, 2.0, 3.0], env_type="atari")
    plot.main(shlex.split(command))
    written = re.search(r"-o (\S+)", command)
    if "--table" in command:
        text = (home / written[1]).read_text() if written else capsys.readouterr().out
        assert "Pong" in text
    else:
        assert (home / written[1]).stat().st_size > 1000


@pytest.mark.parametrize("command", REPORTS)
def test_report_is_written(command, home):
    names = re.findall(r"~/([\w/]+)", command)
    for name in names:
        write_log(home / name, [1.0, 2.0, 3.0])
    report.main(shlex.split(command))
    given = re.search(r"-o (\S+)", command)
    page = given[1] if given else f"{names[0]}/report.html"
    assert (home / page).read_text().count("<svg") > 1


@pytest.mark.parametrize("command", LISTS)
def test_runs_are_listed(command, home, capsys):
    write_log(home / "logs" / "pong", [1.0])
    runs.main(shlex.split(command))
    assert "logs/pong" in capsys.readouterr().out


@pytest.fixture(scope="module")
def short_run(tmp_path_factory):
    """A log folder; of CartPole, whose episodes are short."""
    folder = tmp_path_factory.mktemp("short_run")
    words = "--alg=a2c --env=CartPole-v1 --num_timesteps=200 --seed=0"
    with logger.scoped_configure(None, []):  # which puts back what was there before
        run.main([*words.split(), f"--log_path={folder}"])
    return folder


@pytest.mark.parametrize(("program", "command"), TRAINED)
def test_command_on_a_trained_model_runs(
    program, command, home, empty_folder, short_run
):
    if "--video" in command:
        pytest.importorskip("imageio")
    for name in re.findall(r"~/logs/([\w/-]+)", command):
        log = empty_folder / "logs" / name
        log.parent.mkdir(parents=True, exist_ok=True)
        log.symlink_to(short_run)
    words = shlex.split(command.replace("~", str(empty_folder)))
    words = [word for word in words if not word.startswith("--episodes=")]
    # A window would play until Ctrl-C.
    words += ["--episodes=1"] * (program is not export.export)
    cli.command(program, words, {"-o": "--output"})
    if video := re.search(r"--video=(\S+)", command):
        assert Path(video[1]).stat().st_size > 1000


def test_names_of_stable_baselines3_are_those_that_are_suggested():
    page = (ROOT / "docs" / "from_stable_baselines3.md").read_text()
    table = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", page, re.M)
    assert dict(table) == {k: x for k, x in OUR_NAMES.items() if x.isidentifier()}
    declared = [declared_arguments(import_learn(name)) for name in list_algorithms()]
    known = {
        name for names in [*declared, RUN_ARGUMENTS, NETWORK.known()] for name in names
    }
    assert {ours for _, ours in table} <= known


@pytest.mark.parametrize("alg", [alg for alg in ALGORITHMS if alg != "my_pkg.vpg"])
def test_example_algorithm_trains(alg, home):
    learn = import_learn(alg)
    env = "CartPole-v1" if spaces.Discrete in learn.actions else "Pendulum-v1"
    words = [f"--alg={alg}", f"--env={env}", "--num_timesteps=150"]
    small = dict(learning_starts=100, train_freq=1, gradient_steps=1)
    words += [f"--{k}={x}" for k, x in small.items() if k in declared_arguments(learn)]
    model = run.main(words)
    assert isinstance(model.action_space, learn.actions)


def test_algorithm_of_the_tutorial_learns(home):
    """Games last about 20 steps at random."""
    assert FILES["my_pkg/vpg/vpg.py"].count("\n") < 100
    command = next(x for x in COMMANDS if "my_pkg.vpg" in x)
    short = re.sub(r"num_timesteps=[\d_]+", "num_timesteps=12_000", command)
    run.main([*shlex.split(short), "--seed=0"])
    rows = logger.read_csv(home / "log" / "progress.csv")
    assert rows["eprewmean"].iloc[-1] > 40
    assert {"policy_loss", "value_loss"} < set(rows.columns)


def test_tests_of_the_tutorial_pass(examples):
    files = [file for file in FILES if Path(file).name.startswith("test_")]
    assert files
    for file in files:
        for name, value in runpy.run_path(examples / file).items():
            if name.startswith("test_"):
                value()


def test_example_format_takes_rows_and_histograms(home, monkeypatch):
    monkeypatch.setenv("OPENAI_LOG_FORMAT", "my_formats:Returns")
    words = "--alg=a2c --env=CartPole-v1 --num_env=1 --num_timesteps=100 --seed=0"
    run.main(
        [*words.split(), "--log_path=own", "--eval_interval=100", "--eval_episodes=1"]
    )
    text = (home / "own" / "returns.txt").read_text()
    assert re.search(r"^100 eval_actions [01] to [01]\n100 [\d.]+$", text, re.M), text


@pytest.mark.parametrize("own", ["my_envs:ShortCartPole-v0 --network=my_", "my_goals:"])
def test_environment_and_network_of_ones_own_train(own, home):
    command = next(x for x in COMMANDS if own in x)
    short, count = re.subn(r"num_timesteps=[\d_]+", "num_timesteps=400", command)
    assert count == 1
    run.main(shlex.split(short))


def shortened(code):
    """Returns Python with fewer steps, so that a test ends; all else as it stands."""
    code = re.sub(r"total_timesteps=[\d_]{3,}", "total_timesteps=300", code)
    return code.replace("n_trials=2", "n_trials=1")


@pytest.mark.parametrize("code", [code for code in SCRIPTS if code in README])
def test_readme_snippet_runs_as_a_script(code, tmp_path):
    """Also without a __main__ guard, though it starts worker processes.

    No library writes anything else than our rows.
    """
    assert "__main__" not in code
    (tmp_path / "script.py").write_text(shortened(code))
    command = [sys.executable, "script.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.startswith(b"training a2c for ")


@pytest.mark.parametrize("code", [code for code in SCRIPTS if code not in README])
def test_docs_snippet_runs(code, home):
    exec(compile(shortened(code), "snippet", "exec"), {"__name__": "snippet"})
    gc.collect()  # ends the workers of environments that a snippet does not close


@pytest.mark.slow
def test_scripts_of_experiments_train_and_do_so_only_once(home):
    page = (ROOT / "docs" / "experiments.md").read_text()
    scripts = re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S)[:3]
    for before, after in {
        "for lr in 1e-4 3e-4": "for lr in 1e-4",
        "for seed in 0 100 200 300 400": "for seed in 0 100",
        "--lr=$lr": "--lr=$lr --num_timesteps=500 --nsteps=16",
        "python -m": f"{sys.executable} -m",
    }.items():
        assert any(before in script for script in scripts)
        scripts = [script.replace(before, after) for script in scripts]
    loop, one, several = scripts
    (home / "one.sh").write_text(one)
    for script in several, loop, several:
        subprocess.run(["sh", "-c", script], check=True, timeout=300, cwd=home)
        rows = [read_table(path) for path in home.glob("logs/ppo2/*/*/progress.csv")]
        assert [rows.total_timesteps.iloc[-1] for rows in rows] == [384, 384]
