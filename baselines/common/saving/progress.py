"""How far the run in a log folder is, for those that continue it."""

import csv
import os

from baselines.common.base.errors import UserValueError
from baselines.common.saving.log_folder import MODEL_FILE, find_run_files


def has_update_left(config, steps) -> bool:
    """Whether a whole update fits into the agent steps that a run has left.

    Args:
        config: the content of its ``config.json``.
        steps: agent steps so far.
    """
    total, size = planned_timesteps(config), config.get("update_size")
    return None in (steps, total, size) or steps + size <= total


def planned_timesteps(config):
    """Returns the agent steps that a run is to have; None if that is unknown.

    Args:
        config: the content of its ``config.json``, or {}.
    """
    arguments = config.get("arguments", {})
    # By its earlier name in files of a format below 7.
    return arguments.get("total_timesteps") or arguments.get("num_timesteps")


def check_may_restart(folder, first_lost) -> None:
    """Raises UserValueError if a run without a checkpoint would lose much by a restart.

    Args:
        folder: its log folder.
        first_lost: agent steps by which it has written a checkpoint; 0 if it writes
            none.
    """
    has_model = find_run_files(folder, [MODEL_FILE])
    if not first_lost or has_model or last_timestep(folder) >= first_lost:
        raise UserValueError(
            f"cannot resume {folder}: it has no checkpoints, and a start from its "
            "beginning would replace its log; that needs its first command with "
            "--overwrite"
        )


def last_timestep(folder) -> int:
    """Returns the agent steps in the last row of ``progress.csv``; 0 without a row."""
    path = os.path.join(folder, "progress.csv")
    if not os.path.exists(path):
        return 0
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return int(rows[-1]["total_timesteps"]) if rows else 0
