"""Draws mean returns from progress.csv files against agent steps.

    python -m benchmarks.plot_curves [--minutes] PICTURE TITLE LABEL=progress.csv ...

With --minutes also against the time since training began, which is steps / fps: that is
right only for runs that were never resumed. Needs pip install -e '.[plot]'.
"""

import argparse
import csv

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", action="store_true")
    for name in ("picture", "title"):
        parser.add_argument(name)
    parser.add_argument("curves", nargs="+", metavar="LABEL=FILE")
    args = parser.parse_args()
    columns = 2 if args.minutes else 1
    figure, axes = plt.subplots(
        1, columns, figsize=(7, 4), layout="constrained", sharey=True, squeeze=False
    )
    for curve in args.curves:
        label, path = curve.split("=", 1)
        steps, minutes, returns = read(path)
        for panel, x in zip(axes[0], (steps, minutes)):
            panel.plot(x, returns, label=label)
    for panel, label in zip(axes[0], ("million agent steps", "minutes")):
        panel.set(xlabel=label)
        panel.grid(alpha=0.3)
    axes[0, 0].set(ylabel="mean of 100 games")
    axes[0, 0].legend()
    figure.suptitle(args.title)
    figure.savefig(args.picture, dpi=110)


if __name__ == "__main__":
    main()
