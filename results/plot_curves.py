"""Draws mean returns from progress.csv files against agent steps.

python results/plot_curves.py PICTURE TITLE LABEL=progress.csv ...
"""

import csv
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def read(path):
    """Returns agent steps and the mean return of the last 100 games."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    steps = [int(row["total_timesteps"]) for row in rows]
    return steps, [float(row["eprewmean"] or "nan") for row in rows]


def main(picture, title, *curves):
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for curve in curves:
        label, path = curve.split("=", 1)
        steps, returns = read(path)
        axes.plot([step / 1e6 for step in steps], returns, label=label)
    axes.set(title=title, xlabel="million agent steps", ylabel="mean of 100 games")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
