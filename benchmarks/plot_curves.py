"""Draws mean returns from progress.csv files against agent steps.

    python -m benchmarks.plot_curves [--minutes] [--original=Pong:a2c] PICTURE TITLE LABEL=progress.csv ...

With --minutes also against the time since training began, which is steps / fps: that is
right only for runs that were never resumed. With --original the curve of OpenAI
Baselines on that game stands beside, as far as ours go. Needs pip install -e '.[plot]'.
"""  # noqa: E501

import argparse
import csv
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def read(path):
    """Returns million agent steps, minutes, and mean returns of 100 games."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    steps = [int(row["total_timesteps"]) for row in rows]
    minutes = [n / float(row["fps"]) / 60 for n, row in zip(steps, rows)]
    returns = [float(row["eprewmean"] or "nan") for row in rows]
    return [step / 1e6 for step in steps], minutes, returns


def read_original(game, alg):
    """Returns million agent steps and mean returns of OpenAI Baselines."""
    path = Path(__file__).parents[1] / "results" / "original_curves.csv"
    with open(path, newline="") as file:
        rows = [
            (int(row["agent_steps"]) / 1e6, float(row["return"]))
            for row in csv.DictReader(file)
            if (row["game"], row["algorithm"]) == (game, alg)
        ]
    if not rows:
        raise SystemExit(f"{path} has no curve of {alg} on {game}")
    return zip(*sorted(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", action="store_true")
    parser.add_argument("--original", metavar="GAME:ALG")
    for name in ("picture", "title"):
        parser.add_argument(name)
    parser.add_argument("curves", nargs="+", metavar="LABEL=FILE")
    args = parser.parse_args()
    columns = 2 if args.minutes else 1
    figure, axes = plt.subplots(
        1, columns, figsize=(7, 4), layout="constrained", sharey=True, squeeze=False
    )
    longest = 0
    for curve in args.curves:
        label, path = curve.split("=", 1)
        steps, minutes, returns = read(path)
        longest = max(longest, steps[-1])
        for panel, x in zip(axes[0], (steps, minutes)):
            panel.plot(x, returns, label=label)
    if args.original:
        game, _, alg = args.original.partition(":")
        steps, returns = read_original(game, alg)
        axes[0, 0].plot(steps, returns, "k--", lw=1, label="OpenAI Baselines")
        axes[0, 0].set(xlim=(0, 1.02 * longest))
    for panel, label in zip(axes[0], ("million agent steps", "minutes")):
        panel.set(xlabel=label)
        panel.grid(alpha=0.3)
    axes[0, 0].set(ylabel="mean of 100 games")
    axes[0, 0].legend()
    figure.suptitle(args.title)
    figure.savefig(args.picture, dpi=110)


if __name__ == "__main__":
    main()
