"""Pictures of learning curves: what is drawn, how it is named, what is refused."""

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import error_of, slow
from toy_logs import write_log, write_monitor

from baselines import plot as command
from baselines.common.base.errors import MissingDependency
from baselines.common.views.curves import read_points
from baselines.common.views.results import load_results
from baselines.plot import plot

ROOT = Path(__file__).parent.parent
RESULTS = (ROOT / "results" / "README.md").read_text()


pytestmark = pytest.mark.usefixtures("empty_folder")


def lines(figure, panel=0):
    """Label, xs and ys of the lines of a panel."""
    return [
        (line.get_label(), list(line.get_xdata()), list(line.get_ydata()))
        for line in figure.axes[panel].get_lines()
    ]


def labels(figure):
    """Labels of the legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


def table(path, text):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def test_single_seed_is_a_smoothed_line_before_its_episodes():
    write_log(Path("log"), [1.0, 3.0, 8.0], env="Pong")
    figure = plot("log", "curve.svg", smooth=2)
    raw, smoothed = lines(figure)
    assert raw[1:] == ([100, 200, 300], [1, 3, 8])
    assert smoothed == ("dqn", [100, 200, 300], [1, 2, 5.5])
    axis = figure.axes[0]
    assert axis.get_xlabel() == "agent steps"
    assert axis.get_ylabel() == "mean return of 2 episodes"
    assert figure.get_suptitle() == "Pong" and labels(figure) == ["dqn"]
    assert "<svg" in Path("curve.svg").read_text()


def test_seeds_are_a_mean_and_a_band_as_far_as_all_go():
    write_log(Path("logs/a"), [1.0, 1.0, 1.0], seed=0)
    write_log(Path("logs/b"), [3.0, 5.0], seed=1, log_path="logs/b")
    figure = plot(["logs", Path("logs/a")], "curve.png", smooth=1)
    ((_, xs, ys),) = lines(figure)
    assert (xs[0], xs[-1]) == (100, 200)
    assert (ys[0], ys[-1]) == (2, 3)
    (band,) = figure.axes[0].collections
    corners = band.get_paths()[0].vertices
    assert {tuple(corner) for corner in corners} >= {(200, 1), (200, 5), (100, 3)}
    assert labels(figure) == ["dqn (2 runs, lowest to highest)"]


def test_mean_of_seeds_begins_where_all_have_begun():
    table("a.csv", "eprewmean,total_timesteps\n1,100\n3,300\n")
    table("b.csv", "eprewmean,total_timesteps\n5,200\n7,300\n")
    ((_, xs, ys),) = lines(plot(["c=a.csv", "c=b.csv"], "curve.png"))
    assert (xs[0], ys[0]) == (200, 3.5)
    table("b.csv", "eprewmean,total_timesteps\n5,400\n7,500\n")
    figure = plot(["c=a.csv", "c=b.csv"], "curve.png")
    assert [xs for _, xs, _ in lines(figure)] == [[100, 300], [400, 500]]
    assert labels(figure) == ["c"]


def bounds(figure):
    """The lowest and the highest y of the band at the left end of its only curve."""
    (band,) = figure.axes[0].collections
    corners = band.get_paths()[0].vertices
    ys = corners[corners[:, 0] == corners[:, 0].min(), 1]
    return min(ys), max(ys)


def test_bands():
    for i in range(5):  # mean 3, deviation sqrt(2.5)
        write_log(Path(f"logs/{i}"), [1.0 + i, 1.0 + i], seed=i)
    figure = plot(["logs"], "curve.png", band="std")
    assert labels(figure) == ["dqn (5 runs, standard deviation)"]
    assert bounds(figure) == pytest.approx((3 - 2.5**0.5, 3 + 2.5**0.5))
    figure = plot(["logs"], "curve.png", band="ci95")
    # Of 5 ** 5 equally likely resamples, the outer 2.5 % have means up to 1.8.
    assert bounds(figure) == pytest.approx((1.8, 4.2), abs=0.01)
    assert lines(figure)[0][2][0] == pytest.approx(3)


@pytest.mark.parametrize(
    ("changes", "expected", "title"),
    [
        ({"seed": 1, "save_path": "x"}, ["dqn (2 runs, lowest to highest)"], "Pong"),
        ({"lr": 0.5}, ["dqn, lr=0.1", "dqn, lr=0.5"], "Pong"),
        (
            {"described": {"network": "my.wide"}},
            ["dqn, network=None", "dqn, network=my.wide"],
            "Pong",
        ),
        ({"alg": "a2c"}, ["dqn", "a2c"], "Pong"),
        ({"env": "Breakout"}, ["dqn, Pong", "dqn, Breakout"], ""),
    ],
)
def test_runs_are_told_apart_by_what_differs(changes, expected, title):
    write_log(Path("logs/0"), [1.0], lr=0.1, network=None)
    write_log(Path("logs/1"), [1.0], **{"lr": 0.1, "network": None, **changes})
    figure = plot(["logs"], "curve.png")
    assert labels(figure) == expected
    assert figure.get_suptitle() == title


def test_logs_without_config_are_told_apart_by_their_folders():
    for name in ("ppo/seed_0", "ppo/seed_1", "a2c-0"):
        Path(name).mkdir(parents=True)
        write_monitor(Path(name, "0.monitor.csv"), [1.0], env="CartPole-v1")
    figure = plot(["ppo", "a2c-0"], "curve.png")
    assert labels(figure) == ["ppo (2 runs, lowest to highest)", "a2c"]
    assert figure.get_suptitle() == "CartPole-v1"
    table("mine/progress.csv", "eprewmean,total_timesteps\n7,100\n")
    assert labels(plot(["mine/progress.csv"], "curve.png")) == ["mine"]


def test_label_names_a_curve_and_joins_runs():
    write_log(Path("lr=1"), [1.0], lr=1)
    write_log(Path("lr=2"), [1.0], lr=2)
    table("a.csv", "eprewmean,total_timesteps\n7,100\n")
    write_monitor(Path("b.monitor.csv"), [2.0])
    logs = ["a=b=lr=1", "a=b=lr=2", "file=a.csv", "episodes=b.monitor.csv", "lr=1"]
    expected = ["a=b (2 runs, lowest to highest)", "file", "episodes", "dqn"]
    figure = plot(logs, "curve.png", title="Mine")
    assert labels(figure) == expected
    assert figure.get_suptitle() == "Mine"


def test_each_x_has_a_panel():
    write_log(Path("log"), [5.0, 7.0], env_type="atari")
    figure = plot(["log"], "curve.png", x="steps,frames,episodes,minutes")
    xs = [lines(figure, i)[-1][1] for i in range(4)]
    assert xs == [[100, 200], [400, 800], [1, 2], [1, 2]]
    names = [axis.get_xlabel() for axis in figure.axes]
    assert names == ["agent steps", "frames", "episodes", "minutes"]


@pytest.mark.parametrize(
    ("header", "x", "xs"),
    [
        ("total_timesteps,eprewmean,fps", "minutes", [5, 5 / 3]),
        ("misc/total_timesteps,eprewmean,misc/time_elapsed", "minutes", [2 / 60, 0.2]),
        ("steps,mean 100 episode reward,episodes", "episodes", [2, 12]),
        ("time/total_timesteps,rollout/ep_rew_mean,time/fps", "frames", [2400, 4800]),
    ],
)
def test_rows_of_other_libraries(header, x, xs):
    table("log/progress.csv", f"{header}\n300,,1\n600,-3.5,2\n1200,4,12\n")
    (result,) = load_results("log")
    points, ys, _ = read_points(result, x, y=None, window=None)
    assert ys.tolist() == [-3.5, 4]
    np.testing.assert_allclose(points, xs)


def test_column_of_the_rows():
    write_log(Path("log"), [10.0, 30.0])
    figure = plot(["log"], "curve.png", y="loss", smooth=2)
    assert lines(figure)[0][2] == [1, 3] and lines(figure)[-1][2] == [1, 2]
    assert figure.axes[0].get_ylabel() == "loss, mean of 2 rows"


def test_references():
    table("p.csv", "total_timesteps,eprewmean,fps\n0,1,100\n1000000,2,100\n")
    table(
        "r.csv",
        "game,alg,x,y\nPong,dqn,5e5,3\nPong,dqn,0,2\nPong,a2c,0,0\nPong,dqn,9e9,9",
    )
    table("plain.csv", "1,2\n3,4\n")
    references = ["r.csv:Pong:dqn", "theirs=plain.csv", "solved=18", 19]
    figure = plot(["p.csv"], "c.png", x="steps,minutes", references=references)
    curve, dashed, plain, level, number = lines(figure)
    assert curve == ("p", [0, 1e6], [1, 2])
    assert dashed == ("r Pong dqn", [0, 5e5], [2, 3])  # as far as the runs go
    assert plain == ("theirs", [1, 3], [2, 4])
    assert level[0] == "solved" and level[2] == [18, 18]
    assert number[2] == [19, 19]
    assert [label for label, *_ in lines(figure, 1)][:2] == ["p", "solved"]
    assert labels(figure) == ["p", "r Pong dqn", "theirs", "solved"]


def test_nothing_is_cut_off_and_curves_are_told_apart():
    logs = []
    for i in range(9):
        write_log(Path(f"log{i}"), [1.0, 2.0, 30_000.0])
        logs.append(f"{'a rather long name, as names go' * (i % 3)}{i}=log{i}")
    title = "a title that does not fit into one line of a picture of seven inches " * 2
    figure = plot(logs, "curve.png", x="steps,minutes", title=title)
    drawn = figure.get_tightbbox()
    assert 0 <= drawn.x0 < drawn.x1 <= figure.get_figwidth()
    assert 0 <= drawn.y0 < drawn.y1 <= figure.get_figheight()
    styles = {(x.get_color(), x.get_linestyle()) for x in figure.axes[0].get_lines()}
    assert len(styles) == 9
    assert len(lines(figure)) == 9  # Their episodes would hide them.


def test_jupyter_shows_the_figure():
    write_log(Path("log"), [1.0, 2.0])
    figure = plot(["log"], "curve.png")
    assert figure._repr_png_() == Path("curve.png").read_bytes()


def test_run_that_has_just_begun_is_left_out(capsys):
    write_log(Path("logs/a"), [1.0, 3.0])
    write_log(Path("logs/b"), [])
    table("logs/c/progress.csv", "")
    assert labels(plot(["logs"], "curve.png")) == ["dqn"]
    assert capsys.readouterr().err.count("has no returns yet") == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("nothing -o c.png", "there is no log in nothing: no such file"),
        ("log -o c.gif", "unknown suffix '.gif'"),
        ("log -o c.png --y=los", "did you mean 'loss'?"),
        ("log -o c.png --x=frames", "--x=steps"),
        ("log -o c.png --band=ci", "ci95"),
        ("log -o c.png --reference=r.csv:Png", "did you mean 'Pong'?"),
        ("twice.csv -o c.png", "rows of several runs"),
        ("log", "--table"),
        ("log -o c.png --table", ".tex"),
        ("log --table --x=steps,minutes", "one --x"),
        ("log --table --reference=18", "--reference"),
        ("log --table --band=std", "--band"),
    ],
)
def test_mistake_gives_one_line_and_no_picture(arguments, words, capsys):
    write_log(Path("log"), [1.0, 2.0], env_type="mujoco")
    table("r.csv", "game,x,y\nPong,1,2\n")
    table("twice.csv", "eprewmean,total_timesteps\n1,100\n2,200\n3,100\n4,200\n")
    assert words in error_of(capsys, arguments, command.main)


def test_table_has_the_ends_of_the_curves(capsys):
    write_log(Path("logs/0"), [0.0, 4.0, 8.0], seed=0)
    write_log(Path("logs/1"), [1.0, 5.0], seed=1)
    write_log(Path("logs/2"), [1000.0, 12345.6], alg="a|c", env="Ant-v5")
    figure = plot(["logs"], "curve.png", smooth=2)
    assert [ys[-1] for label, _, ys in lines(figure) if "(2 runs" in label] == [2.5]
    capsys.readouterr()
    command.main(["--table", "logs", "--smooth=2"])
    assert capsys.readouterr().out.splitlines()[:5] == [
        "| environment | dqn | a\\|c |",
        "| --- | --- | --- |",
        "| Pong | 2.5 [2, 3] (2) | – |",  # where the shorter run ends
        "| Ant-v5 | – | 6,673 (1) |",
        "",
    ]


def test_table_of_runs_that_do_not_overlap_has_their_ends():
    table("a.csv", "eprewmean,total_timesteps\n1,100\n3,300\n")
    table("b.csv", "eprewmean,total_timesteps\n5,400\n7,500\n")
    assert "| – | 5 [3, 7] (2) |" in plot(["c=a.csv", "c=b.csv"], table=True)


def test_table_has_interquartile_means_of_four_runs_and_more():
    """Intervals as rliable 1.2 has them; means of all runs and of the middle half."""
    scores = {"few": [1.0, 2.0, 9.0], "four": [20.0, 12.0, 10.0, 13.0]}
    scores["five"] = [1.0, 2.0, 3.0, 4.0, 5.0]
    for label, returns in scores.items():
        for i, value in enumerate(returns):
            write_log(Path(label, str(i)), [value], seed=i)
    rows = plot([f"{label}={label}" for label in scores], table=True).splitlines()
    assert rows[2] == (
        "| Pong | 4 [1, 9] (3) | 13.75 [10.75, 18] (4) | 3 [1.8, 4.2] (5) |"
    )
    assert rows[3] == ("| Pong, IQM | – | 12.5 [10, 20] (4) | 3 [1.333, 4.667] (5) |")


def test_table_is_written_as_markdown_and_latex():
    write_log(Path("log"), [1.5], alg="my_dqn")
    assert plot("log", "new/table.md", table=True) == Path("new/table.md").read_text()
    plot("log", "table.tex", table=True)
    text = Path("table.tex").read_text()
    assert text.startswith("% ") and r"environment & my\_dqn \\" in text
    assert r"Pong & 1.5 (1) \\" in text and text.endswith("\\end{tabular}\n")


@pytest.mark.parametrize("package", ["matplotlib.figure", "pandas"])
def test_package_that_is_missing_is_asked_for(package, monkeypatch):
    write_log(Path("log"), [1.0])
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"{package}: .*\[plot\]"):
        plot("log", "c.png")


# (arguments, picture)
PICTURES = re.findall(r"^python -m baselines\.plot (.*) -o (\S+)$", RESULTS, re.M)


@pytest.mark.parametrize("words", [PICTURES[0], *map(slow, PICTURES[1:])])
def test_picture_of_results_can_be_made(words, tmp_path, monkeypatch):
    arguments, picture = words
    monkeypatch.chdir(ROOT)
    command.main([*shlex.split(arguments), "-o", str(tmp_path / "picture.png")])
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    shown = picture.removeprefix("results/")
    assert f"]({shown})\n\n```bash\npython -m baselines.plot {arguments}" in RESULTS


def test_every_curve_of_results_has_its_command():
    pictures = set(re.findall(r"!\[.*?\]\((.*?\.png)\)", RESULTS))
    assert {f"results/{name}" for name in pictures} == {name for _, name in PICTURES}
