"""Pages about runs: what they show, that they are whole, what they never replace."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import conftest
import cv2
import numpy as np
import pytest
from toy_logs import write_log

from baselines import report as command
from baselines import run
from baselines.common.saving import log_folder
from baselines.common.views.curves import find_runs
from baselines.common.views.run_folder import describe_run
from baselines.report import commands, draw_histogram, report

BROWSERS = "chromium", "chromium-browser", "google-chrome", "chrome"


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


class Page(HTMLParser):
    """What a page says and holds; asserts that each element is closed.

    Attributes:
        text: outside pictures.
        rows: cells of tables.
        tags: names and attributes of all elements.
    """

    def __init__(self, path):
        super().__init__()
        self.source = Path(path).read_text()
        self.text, self.rows, self.tags, self.opened = "", [], [], []
        self.feed(self.source)
        self.close()
        assert not self.opened

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag != "meta":
            self.opened.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_data(self, data):
        if "svg" not in self.opened:
            self.text += data
        if self.opened and self.opened[-1] in ("th", "td"):
            self.rows[-1][-1] += data


def pictures(page):
    return re.findall(r"<svg.*?</svg>", page.source, re.S)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The page of a short run."""
    folder = tmp_path_factory.mktemp("my run")
    words = "--alg=a2c --env=CartPole-v1 --num_timesteps=400 --seed=3 --lr 1e-3"
    run.main([*words.split(), f"--log_path={folder}"])
    report([str(folder)])
    return folder, Page(folder / "report.html")


def test_page_of_a_run_says_all_about_it(trained):
    folder, page = trained
    assert "a2c on CartPole-v1, seed 3" in page.text
    assert re.search(
        r"400 of 400 agent steps · \d+ s · [\d,]+ agent steps/s", page.text
    )
    episodes = sum(x.read_text().count("\n") - 2 for x in folder.glob("*.monitor.csv"))
    assert f"mean return of the last {episodes} episodes " in page.text
    assert re.search(r"time: \w+ \d+%, \w+ \d+%, .*other \d+%", page.text)
    assert " · finished" in page.text
    config = json.loads((folder / "config.json").read_text())
    given = [name for name, *_ in page.rows[:6]]
    assert given == ["alg", "env", "seed", "num_timesteps", "log_path", "lr"]
    assert ["gamma", str(config["settings"]["gamma"])] in page.rows[6:]
    for name in ("commit", "platform", "tensorflow"):
        assert [name, str(config["versions"][name])] in page.rows
    (device,) = (value for name, value in page.rows if name == "trained on")
    assert re.fullmatch(r"a GPU|\d+ CPU cores?", device)


def test_functions_are_among_the_settings():
    write_log(Path("log"), [1.0, 2.0], described={"lr": "my_module.falling"})
    report(["log"])
    assert ["lr", "my_module.falling"] in Page("log/report.html").rows


def test_page_is_whole_by_itself(trained):
    _, page = trained
    assert len(pictures(page)) == 3
    for picture in pictures(page):
        ElementTree.fromstring(picture)
    ids = [values["id"] for _, values in page.tags if "id" in values]
    assert ids and len(ids) == len(set(ids))
    used = re.findall(r"url\((.*?)\)", page.source)
    for tag, values in page.tags:
        assert tag not in ("script", "link", "img", "iframe", "object")
        used += [v for k, v in values.items() if k in ("href", "src", "xlink:href")]
    assert {name.removeprefix("#") for name in used} == set(ids)
    assert 'name="viewport"' in page.source and "@import" not in page.source


def test_commands_are_those_that_work(trained):
    folder, page = trained
    found = re.findall(r"<pre>(.*?)</pre>", page.source)
    assert [shlex.split(words.replace("&#x27;", "'"))[2:] for words in found] == [
        ["baselines.run", f"--resume={folder}", "--num_timesteps=800"],
        ["baselines.evaluate", str(folder)],
        ["baselines.play", str(folder)],
        ["baselines.plot", str(folder), "-o", "curve.png"],
    ]


def test_commands_of_a_run_with_code_of_ones_own():
    own = {"alg": "my_pkg.my_alg", "env": "my_envs:Sign-v0", "network": "my:wide"}
    write_log(Path("log"), [1.0], num_timesteps=1000, **own)
    (result,) = find_runs("log")
    stopped = describe_run(result)
    assert [name for name, _ in commands(stopped, result.metadata)] == [
        "Start again",
        "Plot",
    ]
    config = result.metadata | {"ranks": 2}
    begin_checkpoint("log")
    resume, evaluate, *_ = commands(stopped._replace(state="resumable"), config)
    folder = str(Path("log").absolute())
    flags = ["--alg=my_pkg.my_alg", "--env=my_envs:Sign-v0", "--network=my:wide"]
    start = ["mpiexec", "-n", "2", "python", "-m", "baselines.run"]
    assert resume == ("Resume", [*start, f"--resume={folder}", *flags])
    assert evaluate[1][4:] == flags


def test_run_that_is_going_on_is_not_resumed_and_paths_outside_are_named_again():
    write_log(Path("log"), [1.0], num_timesteps=1000)
    (result,) = find_runs("log")
    begin_checkpoint("log")
    run = describe_run(result)
    going_on = commands(run._replace(state="running"), result.metadata)
    assert [name for name, _ in going_on] == ["Evaluate", "Play", "Plot"]
    arguments = result.metadata["arguments"] | {"save_path": "/elsewhere/model"}
    config = result.metadata | {"arguments": arguments}
    (_, resume), *_ = commands(run._replace(state="resumable"), config)
    assert resume[-1] == "--save_path=/elsewhere/model"


def begin_checkpoint(folder):
    manifest = Path(folder, "checkpoints", "000000000100.json")
    manifest.parent.mkdir()
    manifest.touch()


def test_finished_run_trains_longer_from_a_checkpoint_if_it_would_not_end_at_once():
    write_log(Path("log"), [1.0], num_timesteps=1000)
    (result,) = find_runs("log")
    config = result.metadata | {"update_size": 100}
    finished = describe_run(result)._replace(state="finished", num_timesteps=1000)
    assert [name for name, _ in commands(finished, config)] == ["Plot"]
    begin_checkpoint("log")
    (longer, words), (_, evaluate), *_ = commands(finished, config)
    assert longer == "Train longer" and words[4:] == ["--num_timesteps=2000"]
    assert evaluate[3:] == [str(Path("log").absolute())]
    stopped_early = finished._replace(num_timesteps=100)  # by stop_at
    assert [name for name, _ in commands(stopped_early, config)][0] == "Evaluate"


@pytest.mark.parametrize("settings", [{}, {"checkpoint_interval": 0}])
def test_run_that_cannot_begin_again_has_no_command_for_it(settings):
    write_log(Path("log"), [1.0], num_timesteps=1000)
    (result,) = find_runs("log")
    config = result.metadata | {"settings": settings}
    config |= {} if settings else {"command": None}  # from Python
    assert [name for name, _ in commands(describe_run(result), config)] == ["Plot"]


def test_config_without_settings_is_enough_for_commands():
    write_log(Path("log"), [1.0], num_timesteps=1000)
    (result,) = find_runs("log")
    del result.metadata["settings"]
    found = commands(describe_run(result), result.metadata)
    assert [name for name, _ in found] == ["Start again", "Plot"]


def test_runs_side_by_side():
    write_log(Path("logs/a"), [1.0, 3.0], lr=0.1, gamma=0.9, num_timesteps=1000)
    write_log(Path("logs/b"), [4.0], lr=0.2, gamma=0.9, num_timesteps=1000, seed=1)
    assert report(["logs", "logs/a"]) == "report.html"
    page = Page("report.html")
    assert "2 runs" in page.text and len(pictures(page)) == 2
    header, a, b, names, *differences = page.rows
    assert header == [
        *("run", "algorithm", "environment", "seed", "agent steps", "last", "best"),
        *("time", "state"),
    ]
    assert a[:6] == ["logs/a", "dqn", "Pong", "0", "200 of 1,000", "2"]
    assert b[3:] == ["1", "100 of 1,000", "4", "–", "1 min", "stopped"]
    assert names == ["setting", "logs/a", "logs/b"]
    assert differences == [["lr", "0.1", "0.2"]]


def test_runs_of_two_commits_differ():
    for name in "ab":
        write_log(Path("logs", name), [1.0], versions={"commit": f"{name}123"})
    report(["logs"])
    assert Page("report.html").rows[-1] == ["commit", "a123", "b123"]


def test_run_without_an_episode_has_no_curve():
    write_log(Path("logs/a"), [1.0, 3.0])
    write_log(Path("logs/b"), [], num_timesteps=1000, lr=0.5)
    report(["logs"])
    page = Page("report.html")
    assert len(pictures(page)) == 2 and ">dqn</text>" in page.source
    assert page.rows[2][4:7] == ["0 of 1,000", "–", "–"]
    report(["logs/b"])
    page = Page("logs/b/report.html")
    assert not pictures(page) and "0 of 1,000 agent steps" in page.text


def test_logs_without_times_have_one_picture():
    Path("log").mkdir()
    Path("log/progress.csv").write_text("total_timesteps,eprewmean\n10,1\n20,2\n")
    report(["log"])
    page = Page("log/report.html")
    assert len(pictures(page)) == 1
    assert "run on –" in page.text and "20 agent steps" in page.text


def test_histogram_has_all_and_the_last_episodes():
    returns = np.array([0.0] * 300 + [30.0] * 100)
    last, every = draw_histogram(returns).axes[0].containers[::-1]
    assert [bar.get_height() for bar in every if bar.get_height()] == [75, 25]
    assert [bar.get_height() for bar in last if bar.get_height()] == [100]
    assert last[-1].get_height() == 100
    assert {round(bar.get_width(), 6) for bar in every} == {1}  # for each whole score
    (only,) = draw_histogram(np.array([0.5, 1, 100])).axes[0].containers
    assert len(only) == 30


def test_nothing_in_a_file_becomes_html():
    evil = "<script>alert(1)</script>&\"'$x_$$"
    returns = [1.0, float("nan"), 2.0]
    write_log(Path("log"), returns, env=evil, alg=evil, num_timesteps=9, lr=evil)
    config = json.loads(Path("log/config.json").read_text())
    config |= {"command": shlex.quote(f"--lr={evil}"), "versions": {evil: evil}}
    Path("log/config.json").write_text(json.dumps(config))
    Path("log/log.txt").write_text(f"training a on {evil}; log folder: x\n")
    report(["log"])
    page = Page("log/report.html")
    assert not [tag for tag, _ in page.tags if tag == "script"]
    assert [evil, evil] in page.rows and ["trained on", evil] in page.rows
    assert ["lr", evil] in page.rows
    legend = pictures(page)[0]
    assert evil in "".join(ElementTree.fromstring(legend).itertext())


def test_log_is_read_up_to_its_last_words():
    write_log(Path("log"), [1.0])
    lines = ["training a on one; log folder: x", "time: once", "a time: no", "b"]
    lines += ["training a on a on two; log folder: x; log folder: y", "time: twice"]
    Path("log/log.txt").write_text("\n".join(lines))
    report(["log"])
    page = Page("log/report.html")
    assert ["trained on", "two"] in page.rows and "time: twice" in page.text
    # Lines that patterns would take hours for, or memory for.
    Path("log/log.txt").write_text(f"training {' on ' * 100_000}")
    with open("log/log.txt", "a") as file:
        file.truncate(2**40)
    report(["log"])
    assert Page("log/report.html").rows


@pytest.mark.parametrize("returns", [[1e308, -1e308, 1.0], [1e16, 1e16]])
def test_numbers_that_cannot_be_drawn_give_one_line(returns, capsys):
    write_log(Path("log"), returns)
    with pytest.raises(SystemExit) as stop:
        command.main(["log"])
    err = capsys.readouterr().err
    assert stop.value.code == 2 and err.count("\n") == 1
    assert "the numbers of the log cannot be drawn: " in err


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)]
)
def test_what_is_no_file_is_no_report(make, capsys):
    """Opening a pipe would wait for a writer."""
    write_log(Path("log"), [1.0])
    make("log/report.html")
    with pytest.raises(SystemExit):
        command.main(["log"])
    assert "log/report.html: it exists and is not a report" in capsys.readouterr().err
    log_folder.remove_run_files("log")
    assert os.listdir("log") == ["report.html"]


def test_only_a_report_is_replaced(capsys):
    write_log(Path("log"), [1.0])
    report(["log"])
    write_log(Path("log"), [1.0, 2.0])
    report(["log"])
    assert "200 agent steps" in Page("log/report.html").text
    Path("log/report.html").write_text("<!DOCTYPE html>\nmine")
    with pytest.raises(SystemExit):
        command.main(["log"])
    assert "log/report.html: it exists and is not a report" in capsys.readouterr().err
    assert Path("log/report.html").read_text().endswith("mine")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("", "required: LOGDIR"),
        ("nowhere", "there is no folder nowhere"),
        ("empty", "there is no log in empty"),
        ("log -o log/progress.csv", "has to end in .html"),
        ("log -o nowhere/x.html", "there is no folder nowhere"),
        (
            "log -o folder.html",
            "cannot write folder.html: it exists and is not a report",
        ),
        ("damaged", "damaged/config.json is damaged"),
    ],
)
def test_mistake_gives_one_line_and_no_page(words, error, capsys):
    write_log(Path("log"), [1.0])
    Path("empty").mkdir()
    Path("folder.html").mkdir()
    write_log(Path("damaged"), [1.0])
    Path("damaged/config.json").write_text('{"arguments": {"alg": ["<b>"]}}')
    with pytest.raises(SystemExit) as stop:
        command.main(words.split())
    err = capsys.readouterr().err
    assert stop.value.code == 2 and error in err and err.count("\n") == 1
    assert not [path for path in Path().rglob("*.html") if path.is_file()]


def test_matplotlib_that_is_missing_is_asked_for(monkeypatch, capsys):
    write_log(Path("log"), [1.0])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit):
        command.main(["log"])
    err = capsys.readouterr().err
    assert err.startswith("error: plots need matplotlib: ")
    assert err.endswith("[plot]'\n") and err.count("\n") == 1


@pytest.mark.slow
def test_browser_finds_no_error(trained):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("no chromium is installed")
    write_log(Path("logs/a"), [1.0, 3.0])
    write_log(Path("logs/b"), [4.0], alg="a2c")
    report(["logs"])
    options = "--headless --no-sandbox --disable-gpu --enable-logging=stderr --dump-dom"
    options += " --window-size=1200,900 --screenshot=shown.png"
    for path, count in (trained[0] / "report.html", 3), (Path("report.html"), 2):
        shown = subprocess.run(
            [browser, *options.split(), path.absolute().as_uri()],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        assert "CONSOLE" not in shown.stderr
        assert "parsererror" not in shown.stdout
        assert (shown.stdout.count("<svg"), "<table" in shown.stdout) == (count, True)
        blue = np.array([178, 114, 0])  # of the first curve; OpenCV has BGR
        assert np.all(cv2.imread("shown.png") == blue, axis=-1).sum() > 100


def test_each_run_ends_with_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "write_report", conftest.write_report)
    words = "--alg=a2c --env=CartPole-v1 --num_timesteps=500"
    write_log(tmp_path / "log" / "older", [1.0])
    run.main([*words.split(), f"--log_path={tmp_path / 'log'}"])
    assert "a2c on CartPole-v1" in (tmp_path / "log" / "report.html").read_text()
    # A page of the user's own is left alone.
    (tmp_path / "log" / "report.html").write_text("mine")
    run.main(["--resume=log", "--num_timesteps=1000"])
    assert "no report was written: " in capsys.readouterr().out
    assert (tmp_path / "log" / "report.html").read_text() == "mine"
