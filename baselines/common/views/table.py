"""Tables of final scores: a row for each environment, a column for each curve."""

import numpy as np

from baselines.common.base.amounts import four_digits
from baselines.common.base.lazy import import_extra
from baselines.common.views.curves import (
    common_range,
    find_interval,
    group_by_env,
    read_points,
)
from baselines.common.views.drawing import name_y

FEWEST = 4  # runs whose interquartile mean leaves any of them out


def make_table(runs, x="steps", y=None, smooth=None, latex=False) -> str:
    """Returns a table of the final scores of runs, as Markdown or LaTeX.

    Interquartile means have rows of their own, one for each environment, as scores of
    different environments have no common scale.

    Args:
        runs: (label or None, ``Result``) pairs.
        x, y, smooth: as in ``plot``.
        latex: whether it is LaTeX, for the package booktabs.
    """
    means, middles = {}, {}
    for env, curves in group_by_env(runs).items():
        for label, results in curves.items():
            ys = find_scores([read_points(run, x, y, smooth) for run in results])
            means.setdefault(env, {})[label] = describe(ys)
            if len(ys) >= FEWEST:
                cells = middles.setdefault(f"{env}, IQM", {})
                cells[label] = describe(ys, cut=len(ys) // 4)
    labels = dict.fromkeys(label for cells in means.values() for label in cells)
    header = ["environment", *labels]
    rows = [
        [name, *(cells.get(label, "–") for label in labels)]
        for name, cells in (means | middles).items()
    ]
    name = name_y({None: [run for _, run in runs]}, y, smooth)
    note = f"Final {name}: mean over runs [95 % interval] (runs)."
    note += " IQM: interquartile mean." if middles else ""
    return (to_latex if latex else to_markdown)(header, rows, note)


def find_scores(seeds) -> np.ndarray:
    """Returns where the curve of each run is at the right end of their mean, [runs].

    Args:
        seeds: what ``read_points`` returned for each.
    """
    first, last = common_range(seeds)
    end = last if first <= last else np.inf  # Without a mean, each curve has its end.
    return np.array([np.interp(end, xs, smoothed) for xs, _, smoothed in seeds])


def describe(ys, cut=0) -> str:
    """Returns a cell about runs, of which ``cut`` are left out at each end."""
    text = four_digits(np.sort(ys)[cut : len(ys) - cut].mean())
    if len(ys) > 1:
        low, high = find_interval(ys, cut)
        text += f" [{four_digits(low)}, {four_digits(high)}]"
    return f"{text} ({len(ys)})"


def to_markdown(header, rows, note) -> str:
    lines = [" | ".join(x.replace("|", r"\|") for x in row) for row in [header, *rows]]
    lines.insert(1, " | ".join("---" for _ in header))
    return "\n".join([*(f"| {line} |" for line in lines), "", note, ""])


def to_latex(header, rows, note) -> str:
    import_extra("jinja2")  # by pandas
    frame = import_extra("pandas").DataFrame(rows, columns=header)
    return f"% {note}\n{frame.to_latex(index=False, escape=True).rstrip()}\n"
