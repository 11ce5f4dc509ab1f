"""Logs of this library and of others: read, smoothed, drawn by scripts."""

import matplotlib
import numpy as np
import pandas
import pytest
from toy_logs import write_log, write_monitor

from baselines import results_plotter
from baselines.bench import load_results as load_episodes
from baselines.bench.monitor import pack_monitors
from baselines.common import plot_util
from baselines.common.base.errors import UserFileError, UserValueError
from baselines.common.plot_util import (
    load_results,
    one_sided_ema,
    smooth,
    symmetric_ema,
)
from baselines.common.views.results import steps_of, task_name
from baselines.results_plotter import X_EPISODES, X_TIMESTEPS, X_WALLTIME, ts2xy


@pytest.fixture(autouse=True)
def without_a_screen():
    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")


def test_episodes_of_several_files_stand_in_the_order_of_their_ends(tmp_path):
    write_monitor(tmp_path / "0.0.monitor.csv", [1.0, 3.0], t_start=1000.0)
    write_monitor(tmp_path / "0.1.monitor.csv", [2.0, 4.0], t_start=1030.0)
    episodes = load_episodes(tmp_path)
    assert isinstance(episodes, pandas.DataFrame)
    assert episodes.r.tolist() == [1, 2, 3, 4]
    assert episodes["t"].tolist() == [60, 90, 120, 150]
    headers = episodes.attrs["headers"]
    assert [header["t_start"] for header in headers] == [1000, 1030]


def test_agent_steps_of_several_environments_include_unfinished_episodes(tmp_path):
    text = '#{"t_start": 0.0, "env_id": "CartPole-v1"}\nr,l,t\n'
    (tmp_path / "0.0.monitor.csv").write_text(text + "1,10,1.0\n1,20,3.0\n")
    (tmp_path / "0.1.monitor.csv").write_text(text + "1,25,2.5\n")
    (tmp_path / "0.2.monitor.csv").write_text(text)
    episodes = load_episodes(tmp_path)
    assert episodes.agent_steps.tolist() == [30, 75, 90]
    assert ts2xy(episodes, X_TIMESTEPS)[0].tolist() == [30, 75, 90]
    assert steps_of(episodes[["r", "l", "t"]]).tolist() == [10, 35, 55]


def test_agent_steps_of_runs_one_after_the_other(tmp_path):
    write_monitor(tmp_path / "0.monitor.csv", [1.0, 3.0], t_start=1000.0)
    write_monitor(tmp_path / "1.monitor.csv", [2.0, 4.0], t_start=9000.0)
    assert load_episodes(tmp_path).agent_steps.tolist() == [100, 200, 300, 400]


def test_packed_episodes_are_those_of_the_monitor_files(tmp_path):
    (tmp_path / "packed").mkdir()
    for i in range(12):  # 0.1 and 0.10 are not the same environment
        path = tmp_path / f"0.{i}.monitor.csv"
        write_monitor(path, [1.0, i] if i < 11 else [], t_start=50.0 + i)
    packed = pack_monitors(tmp_path)
    assert packed == pack_monitors(tmp_path)
    (tmp_path / "packed" / "games.csv.gz").write_bytes(packed)
    episodes, expected = (load_episodes(x) for x in (tmp_path / "packed", tmp_path))
    pandas.testing.assert_frame_equal(episodes, expected)
    assert len(episodes) == 22 and episodes.agent_steps.iloc[-1] == 12 * 200
    assert [len(result.monitor) for result in load_results(tmp_path)] == [22, 22]


def test_monitor_file_of_stable_baselines3_with_more_columns(tmp_path):
    text = '#{"t_start": 5.5, "env_id": "CartPole-v1"}\nr,l,t,lives\n20.0,20,2.5,3\n'
    (tmp_path / "0.monitor.csv").write_text(text)
    write_monitor(tmp_path / "1.monitor.csv", [7.0], t_start=5.5)
    episodes = load_episodes(tmp_path)
    assert episodes.r.tolist() == [20, 7] and episodes.t.tolist() == [2.5, 60]
    np.testing.assert_array_equal(episodes.lives, [3, np.nan])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("progress.csv", "a,b\n1,2\n1,2,3\n"),
        ("0.monitor.csv", ""),
        ("0.monitor.csv", '# {"t_start": 1}\nr,l,t\n1,x,3\n'),
        ("games.csv.gz", "not compressed"),
        ("config.json", "{"),
    ],
)
def test_damaged_file_is_named(tmp_path, name, content):
    write_log(tmp_path, [])
    (tmp_path / "0.0.monitor.csv").unlink()
    (tmp_path / name).write_text(content)
    with pytest.raises((UserValueError, UserFileError)) as caught:
        load_results(tmp_path)
    assert str(tmp_path / name) in str(caught.value)


def test_log_folders_are_found_at_any_depth(tmp_path, capsys):
    write_log(tmp_path / "b" / "seed_1", [1.0, 2.0], seed=1)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "progress.csv").write_text("steps,x\n1,2\n")
    (tmp_path / "notes.txt").write_text("not a log\n")
    first, second = load_results(str(tmp_path), verbose=True)
    assert first.dirname == str(tmp_path / "a")
    assert first.monitor is None and first.metadata is None
    assert second.metadata["arguments"]["seed"] == 1
    assert second.monitor.r.tolist() == second.progress.eprewmean.tolist() == [1, 2]
    assert capsys.readouterr().out.count("read ") == 2
    (only,) = load_results([tmp_path / "b"], enable_progress=False)
    assert only.progress is None and len(only.monitor) == 2
    with pytest.raises(UserFileError, match="there is no folder"):
        load_results(tmp_path / "c")


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("logs/pong/seed_0", "pong"),
        ("logs/fast-1/", "fast"),
        ("logs/num_env_8", "num_env_8"),  # no seed
        ("logs/CartPole-v1", "CartPole-v1"),
        ("logs/pong/progress.csv", "pong"),
    ],
)
def test_seeds_are_told_from_names(folder, name):
    assert task_name(folder) == name


def test_smooth_takes_means_over_windows():
    y = np.array([1.0, 2.0, 6.0, 3.0, 8.0])
    np.testing.assert_allclose(smooth(y, 1), [1.5, 3, 11 / 3, 17 / 3, 5.5])
    np.testing.assert_allclose(smooth(y, 2, mode="causal"), [1, 1.5, 4, 4.5, 5.5])
    valid = smooth(y, 2, mode="causal", valid_only=True)
    np.testing.assert_allclose(valid, [np.nan, 1.5, 4, 4.5, 5.5])
    np.testing.assert_allclose(smooth(y, 100), [4] * 5)
    assert len(smooth(y[:0], 3)) == 0
    with pytest.raises(UserValueError, match="received 'one_sided'"):
        smooth(y, 1, mode="one_sided")


def test_exponential_moving_averages():
    """Weights at distance 0, 1 and 2 are 1, 0.367879 and 0.135335."""
    x, y = [0, 1, 2], [1, 2, 4]
    xs, ys, counts = one_sided_ema(x, y, n=3)
    assert xs.tolist() == [0, 1, 2]
    np.testing.assert_allclose(ys, [1, 1.731059, 3.240451], atol=1e-6)
    np.testing.assert_allclose(counts, [1, 1.367879, 1.503215], atol=1e-6)
    xs, ys, counts = symmetric_ema(x, y, n=3)
    assert xs.tolist() == [0, 1, 2]
    np.testing.assert_allclose(ys, [1.309156, 2.134471, 3.543881], atol=1e-6)
    np.testing.assert_allclose(counts, [2.503215, 2.735759, 2.503215], atol=1e-6)


def test_average_also_counts_what_lies_before_its_first_point():
    xs, ys, _ = one_sided_ema([0, 1.5], [1, 3], low=0.5, high=1.5, n=2, decay_steps=2)
    assert xs.tolist() == [0.5, 1.5]
    # At 1.5 the first number is 1.5 away, and exp(-1.5 / 2) = 0.472367.
    np.testing.assert_allclose(ys, [1, 2.358357], atol=1e-6)
    with pytest.raises(UserValueError, match="the curve goes from 0.0 to 1.5"):
        one_sided_ema([0, 1.5], [1, 3], high=2)


@pytest.fixture
def results(tmp_path):
    write_log(tmp_path / "a-0", [0.0] * 9)
    write_log(tmp_path / "a-1", [4.0] * 9)
    write_log(tmp_path / "b-0", [1.0] * 9)
    write_log(tmp_path / "b-1", [])
    return load_results(tmp_path)


def test_each_task_has_a_panel_and_each_run_a_line(results):
    figure, axes = plot_util.plot_results(results, xlabel="steps", legend_outside=True)
    assert axes.shape == (2, 1) and figure.get_size_inches().tolist() == [6, 12]
    assert [panel.get_title() for panel in axes[:, 0]] == ["a", "b"]
    first, second = axes[0, 0].get_lines()
    assert first.get_xdata().tolist() == list(range(100, 1000, 100))
    np.testing.assert_allclose(second.get_ydata(), 4)
    assert first.get_color() == second.get_color()
    assert axes[0, 0].get_xlabel() == "steps"


def test_groups_are_averaged(results):
    figure, axes = plot_util.plot_results(
        results, split_fn=None, average_group=True, resample=5, smooth_step=1.0
    )
    a, b = axes[0, 0].get_lines()
    assert (a.get_label(), b.get_label()) == ("a", "b")
    np.testing.assert_allclose(a.get_ydata(), [2] * 5)
    assert a.get_xdata().tolist() == [100, 300, 500, 700, 900]
    bands = [band.get_datalim(axes[0, 0].transData) for band in axes[0, 0].collections]
    widths = [[band.y0, band.y1] for band in bands[:2]]
    half = 2 / np.sqrt(2)
    np.testing.assert_allclose(widths, [[0, 4], [2 - half, 2 + half]])


def test_points_of_a_panel_are_what_the_caller_makes_them(results):
    def lengths(result):
        return None, result.monitor.l

    _, axes = plot_util.plot_results(
        results, xy_fn=lengths, split_fn=None, group_fn=None, resample=3
    )
    lines = axes[0, 0].get_lines()
    assert len(lines) == 3 and lines[0].get_xdata().tolist() == [0, 4, 8]
    assert axes[0, 0].get_legend() is None
    with pytest.raises(UserValueError, match="no result"):
        plot_util.plot_results([])


def test_axes_of_the_results_plotter(tmp_path):
    write_monitor(tmp_path / "0.monitor.csv", [5.0, 7.0])
    episodes = load_episodes(tmp_path)
    found = [ts2xy(episodes, axis) for axis in (X_TIMESTEPS, X_EPISODES, X_WALLTIME)]
    assert [x.tolist() for x, _ in found] == [[100, 200], [0, 1], [1 / 60, 2 / 60]]
    assert [y.tolist() for _, y in found] == [[5, 7]] * 3
    assert ts2xy(episodes, X_EPISODES, "timesteps")[1].tolist() == [100, 100]


def test_results_plotter_draws_means_of_100_episodes(tmp_path):
    write_log(tmp_path / "a-0", np.arange(300.0))
    _, axes = results_plotter.plot_results([tmp_path], 20_000, title="all")
    (line,) = axes[0, 0].get_lines()
    assert line.get_xdata()[-1] == 20_000
    assert line.get_ydata()[-1] == pytest.approx(149.5)  # of episodes 100 to 199
    assert line.get_ydata()[9] == pytest.approx(4.5)
