"""How far the run in a log folder is, for those that continue it."""

import csv
import os

from baselines.common.base.errors import UserValueError
from baselines.common.saving.json_values import read_json
from baselines.common.saving.log_folder import MODEL_FILE, find_run_files


def has_update_left(config, steps) -> bool:
    """Whether a whole update fits into the agent steps that a run has left.

    Args:
        config: the content of its ``config.json``.
        steps: agent steps so far.
    """
    try:
        return steps + config["update_size"] <= config["arguments"]["num_timesteps"]
    except (KeyError, TypeError):
        return True


def check_may_restart(folder, checkpoint_interval, update_size) -> None:
    """Raises UserValueError if a run that has no checkpoint would lose much by that.

    Args:
        folder: its log folder.
        checkpoint_interval: agent steps between its checkpoints, for a config.json that
            does not say it; 0 for none.
        update_size: agent steps of an update.
    """
    settings = read_json(os.path.join(folder, "config.json")).get("settings", {})
    checkpoint_interval = settings.get("checkpoint_interval", checkpoint_interval)
    if not checkpoint_interval:
        raise UserValueError(
            f"cannot resume {folder}: it was run without checkpoints "
            "(checkpoint_interval=0)"
        )
    # The newest row may be of the update whose checkpoint was not written any more.
    first_lost = checkpoint_interval + update_size
    has_model = find_run_files(folder, [MODEL_FILE])
    if has_model or last_timestep(folder) >= first_lost:
        raise UserValueError(
            f"cannot resume {folder}: its checkpoints are gone, and a start from its "
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
