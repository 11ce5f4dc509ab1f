"""Plots of episodes under OpenAI Baselines' names; see also ``baselines.plot``."""

import numpy as np

from baselines.common.views import results as plot_util

X_TIMESTEPS = "timesteps"
X_EPISODES = "episodes"
X_WALLTIME = "walltime_hrs"
POSSIBLE_X_AXES = [X_TIMESTEPS, X_EPISODES, X_WALLTIME]
Y_REWARD = "reward"
Y_TIMESTEPS = "timesteps"
EPISODES_WINDOW = 100


def ts2xy(ts, xaxis, yaxis=Y_REWARD):
    """Returns x and y of a run's episodes, [n] each.

    Args:
        ts: from ``baselines.bench.load_results``.
        xaxis: ``X_TIMESTEPS`` (agent steps), ``X_EPISODES`` or ``X_WALLTIME`` (hours).
        yaxis: ``Y_REWARD`` (returns) or ``Y_TIMESTEPS`` (lengths in agent steps).
    """
    xs = {
        X_TIMESTEPS: plot_util.steps_of(ts),
        X_EPISODES: np.arange(len(ts)),
        X_WALLTIME: ts.t.to_numpy() / 3600,
    }
    ys = {Y_REWARD: ts.r.to_numpy(), Y_TIMESTEPS: ts.l.to_numpy()}
    return xs[xaxis], ys[yaxis]


def plot_results(
    dirs,
    num_timesteps=10e6,
    xaxis=X_TIMESTEPS,
    yaxis=Y_REWARD,
    title="",
    split_fn=plot_util.default_split_fn,
):
    """Draws the moving mean over 100 episodes of each run, in one panel per task.

    Args:
        dirs: log folders, or folders above them.
        num_timesteps: agent steps of each run to draw.
        xaxis: as in ``ts2xy``.
        yaxis: as in ``ts2xy``.
        title: of the figure.
        split_fn: function from a ``plot_util.Result`` to the title of its panel.

    Returns:
        the figure, and its axes, [panels, 1].
    """

    def mean_curve(result):
        x, y = ts2xy(result.monitor, xaxis, yaxis)
        drawn = plot_util.steps_of(result.monitor) <= num_timesteps
        return x[drawn], plot_util.smooth(y[drawn], EPISODES_WINDOW, mode="causal")

    figure, axes = plot_util.plot_results(
        plot_util.load_results(dirs, enable_progress=False),
        xy_fn=mean_curve,
        split_fn=split_fn,
        group_fn=lambda result: result.dirname,
        xlabel=xaxis,
        ylabel=yaxis,
    )
    figure.suptitle(title)
    return figure, axes
