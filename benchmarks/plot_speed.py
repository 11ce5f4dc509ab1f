"""Draws results/performance/speed.png from the figures next to it.

``python -m benchmarks.plot_speed``; needs ``pip install -e '.[plot]'``. The left plot
shows where an agent step's time goes, measured by ``throughput``; the right one shows
how speed grows with the number of environments, measured by ``scaling``.
"""

import json
import statistics
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parents[1] / "results" / "performance"
PARTS = {"env": "environments", "act": "acting", "train": "training"}


def read(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


def main():
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.7), layout="constrained")
    algorithms = "a2c", "ppo2", "dqn"
    rates = [read(name)["agent_steps_per_second"] for name in algorithms]
    start = [0.0] * len(algorithms)
    for part, label in PARTS.items():
        widths = [1e3 / statistics.median(found[part]) for found in rates]
        left.barh(algorithms, widths, left=start, label=label)
        start = [a + b for a, b in zip(start, widths)]
    loops = [1e3 / statistics.median(found["loop"]) for found in rates]
    left.plot(loops, range(len(algorithms)), "k|", ms=20)
    left.plot([], [], "k|", ms=8, label="the loop")  # a mark that fits into the legend
    left.invert_yaxis()
    figure.suptitle("Pong in float32 on two cores (Intel Xeon)")
    left.set(xlabel="milliseconds per agent step")
    left.legend()
    by_num_env = read("num_env")["num_env"]
    numbers = [int(n) for n in by_num_env]
    for part, label in {**PARTS, "loop": "the loop"}.items():
        style = "k" if part == "loop" else "--"
        values = [found[part] for found in by_num_env.values()]
        right.plot(numbers, values, style, marker=".", label=label)
    right.set_xscale("log", base=2)
    right.set(xlabel="number of environments (a2c)", ylabel="agent steps/s", ylim=0)
    right.set_xticks(numbers, [str(n) for n in numbers])
    right.grid(alpha=0.3)
    right.legend()
    figure.savefig(FOLDER / "speed.png", dpi=110)


if __name__ == "__main__":
    main()
