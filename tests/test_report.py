"""Pages about runs: what they show, that they are whole, what they never replace."""

import base64
import html
import json
import re
import shlex
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas
import pytest
from conftest import error_of
from toy_logs import write_log

from baselines import report as command
from baselines import run
from baselines.common.base.errors import UserError
from baselines.common.views.curves import find_runs
from baselines.common.views.drawing import draw_histogram
from baselines.common.views.run_folder import describe_run
from baselines.report import list_commands, report

pytestmark = pytest.mark.usefixtures("empty_folder")


class Page:
    """The source of a page, and the cells of its tables."""

    def __init__(self, path):
        self.source = Path(path).read_text()
        rows = re.findall(r"<tr>(.*?)</tr>", self.source, re.S)
        cells = [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in rows]
        self.rows = [list(map(html.unescape, row)) for row in cells]


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
    assert "a2c on CartPole-v1" in page.source
    names, cells = page.rows[:2]
    shown = dict(zip(names, cells))
    assert shown["folder"] == str(folder) and shown["seed"] == "3"
    assert shown["agent steps"] == "400 of 400" and shown["state"] == "finished"
    assert float(shown["last"]) > 1 and shown["best"] == "–"
    config = json.loads((folder / "config.json").read_text())
    assert ["gamma", str(config["arguments"]["gamma"])] in page.rows
    assert ["tensorflow", config["versions"]["tensorflow"]] in page.rows


def captions(page):
    return re.findall(r'aria-label="(.*?)"', page.source)


def test_page_is_whole_by_itself(trained):
    _, page = trained
    assert len(pictures(page)) == len(captions(page)) > 3
    for picture in pictures(page):
        ElementTree.fromstring(picture)
    ids = re.findall(r' id="(.*?)"', page.source)
    assert ids and len(ids) == len(set(ids))
    used = re.findall(r"url\((.*?)\)", page.source)
    used += re.findall(r' (?:xlink:href|href|src)="(.*?)"', page.source)
    assert {name.removeprefix("#") for name in used} == set(ids)
    assert not re.search("<(script|link|img|iframe|object)|@import", page.source)


def test_a_run_with_checkpoints_is_resumed_with_its_code():
    own = {"alg": "my_pkg.my_alg", "env": "my_envs:Sign-v0", "network": "my:wide"}
    write_log(Path("log"), [1.0], num_timesteps=1000, **own)
    manifest = Path("log/checkpoints/000000000100.json")
    manifest.parent.mkdir()
    manifest.touch()
    (result,) = find_runs("log")
    config = result.metadata | {"ranks": 2, "command": "x"}
    _, (_, resume), (_, evaluate), *_ = list_commands(describe_run(result), config)
    folder = str(Path("log").absolute())
    start = ["mpiexec", "-n", "2", sys.executable, "-m", "baselines.run"]
    assert shlex.split(resume) == [*start, f"--resume={folder}", "--trust"]
    assert shlex.split(evaluate)[2:] == ["baselines.evaluate", folder, "--trust"]
    running = describe_run(result) | {"state": "running"}
    names = [name for name, _ in list_commands(running, config)]
    assert names == ["Begun with", "Evaluate", "Play", "Plot"]


def test_runs_side_by_side():
    write_log(Path("logs/a"), [1.0, 3.0], lr=0.1, gamma=0.9, num_timesteps=1000)
    write_log(Path("logs/b"), [], lr=0.2, gamma=0.9, num_timesteps=1000, seed=1)
    assert report(["logs", "logs/a"]) == "report.html"
    page = Page("report.html")
    assert "2 runs" in page.source and len(pictures(page)) == 3
    header, a, b, *differences = page.rows
    assert header == [
        *("folder", "algorithm", "environment", "seed", "agent steps", "last", "best"),
        *("time", "last change", "state"),
    ]
    assert a[:6] == ["logs/a", "dqn", "Pong", "0", "200 of 1,000", "2"]
    assert b[3:8] == ["1", "0 of 1,000", "–", "–", "–"] and b[-1] == "stopped"
    assert differences == [["folder", "lr"], ["logs/a", "0.1"], ["logs/b", "0.2"]]


def legends(page):
    """Returns the name and the color of each line, for each environment."""
    lists = re.findall(r"<h2>(.*?)</h2>\n<ul.*?>(.*?)</ul>", page.source, re.S)
    line = r"border-top-color: (#\w+).*?</span>(.*?)</li>"
    return {
        env: {name: color for color, name in re.findall(line, text, re.S)}
        for env, text in lists
    }


def test_environments_have_pictures_and_legends_of_their_own():
    for i in range(2):
        write_log(Path(f"logs/{i}"), [1.0, 2.0], seed=i)
    write_log(Path("logs/2"), [1.0, 2.0], alg="a2c")
    write_log(Path("logs/3"), [1.0, 2.0], alg="a2c", env="Ant-v5")
    report(["logs"])
    page = Page("report.html")
    curves = legends(page)
    assert {env: list(names) for env, names in curves.items()} == {
        "Pong": ["dqn (2 runs)", "a2c"],
        "Ant-v5": ["a2c"],
    }
    for picture in pictures(page)[:3]:
        assert all(x.lower() in picture for x in curves["Pong"].values())
    assert captions(page)[:4] == [
        *("Returns against agent steps", "Returns against minutes"),
        *("loss against agent steps", "Returns against agent steps"),
    ]


def test_what_was_learned_is_drawn_beside_the_returns():
    write_log(Path("log"), [1.0, 2.0, 3.0])
    Path("log/progress.csv").write_text(
        "total_timesteps,fps,value_loss,policy_entropy,approxkl,eval_eprewmean,q_loss\n"
        "100,5,1,2,nan,,\n200,5,1,2,3,7,\n300,5,1,2,3,,\n"
    )
    report(["log"])
    drawn = [x.split(" against ")[0] for x in captions(Page("log/report.html"))]
    names = ["eval_eprewmean", "value_loss", "policy_entropy", "approxkl"]
    assert drawn == ["Returns", "Returns", *names, "Returns of episodes"]


def test_last_complete_video_is_in_the_page():
    write_log(Path("log"), [1.0])
    videos = Path("log/videos")
    videos.mkdir()
    for step, content in [(1, b"moov 1"), (20, b"moov 20"), (300, b"ftyp")]:
        (videos / f"video{step:08}.mp4").write_bytes(content)
    report(["log"])
    (video,) = re.findall(r"<video.*?base64,(.*?)\"", Page("log/report.html").source)
    assert base64.b64decode(video) == b"moov 20"


def test_log_of_another_library_without_times_has_one_picture():
    Path("log").mkdir()
    Path("log/progress.csv").write_text("total_timesteps,eprewmean\n10,1\n20,2\n")
    report(["log"])
    page = Page("log/report.html")
    assert len(pictures(page)) == 1 and page.rows[1][4] == "20"


def test_histogram_has_all_and_the_last_episodes():
    returns = np.array([0.0] * 300 + [30.0] * 100)
    last, every = draw_histogram(returns, (5, 3)).axes[0].containers[::-1]
    assert [bar.get_height() for bar in every if bar.get_height()] == [75, 25]
    assert [bar.get_height() for bar in last if bar.get_height()] == [100]
    assert {round(bar.get_width(), 6) for bar in every} == {1}  # for each whole score
    (only,) = draw_histogram(np.array([0.5, 1, 100]), (5, 3)).axes[0].containers
    assert len(only) == 30


def test_nothing_in_a_file_becomes_html():
    evil = "<script>alert(1)</script>&\"'$x_$$"
    write_log(Path("log"), [1.0, 2.0], env=evil, alg=evil, num_timesteps=9, lr=evil)
    Path("log/log.txt").write_text(f"training a on {evil}; log folder: x\n")
    rows = pandas.DataFrame({"total_timesteps": [1, 2], f"loss{evil}": [1, 2]})
    rows.to_csv("log/progress.csv", index=False)
    report(["log"])
    page = Page("log/report.html")
    assert "<script" not in page.source and ["lr", evil] in page.rows
    texts = ["".join(ElementTree.fromstring(x).itertext()) for x in pictures(page)]
    assert any(f"loss{evil}" in text for text in texts)
    write_log(Path("other"), [1.0, 2.0], env=evil)
    report(["log", "other"])
    page = Page("report.html")
    assert "<script" not in page.source
    (curves,) = legends(page).values()
    assert list(map(html.unescape, curves)) == [evil, "dqn"]


def test_only_a_report_is_replaced():
    write_log(Path("log"), [1.0])
    report(["log"])
    write_log(Path("log"), [1.0, 2.0])
    report(["log"])
    assert Page("log/report.html").rows[1][4] == "200"
    Path("log/report.html").write_text("<!DOCTYPE html>\nmine")
    with pytest.raises(UserError):
        report(["log"])
    assert Path("log/report.html").read_text().endswith("mine")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("nowhere", "there is no folder nowhere"),
        ("log -o log/progress.csv", "has to end in .html"),
    ],
)
def test_mistake_gives_one_line_and_no_page(words, error, capsys):
    write_log(Path("log"), [1.0])
    assert error in error_of(capsys, words, command.main)
    assert not list(Path().rglob("*.html"))
