"""Keeps the weights with which a policy did best in training."""

import os

from baselines.common.base.errors import UserFileError
from baselines.common.saving.files import check_writable


class BestWeights:
    """The weights with which the last 100 episodes had the highest mean return.

    Args:
        run: a ``Run``, which may replace a file if resumed or with ``overwrite``.
        model: a ``Model``.
        folder: where to save it as ``best.safetensors``; None for memory only.

    Raises:
        UserFileError: if an existing file may not be replaced, or cannot be written.
    """

    def __init__(self, run, model, folder=None):
        self.model, self.path = model, None
        self.mean, self.variables = None, {}
        if folder is not None and run.total_timesteps:
            folder = os.path.abspath(os.path.expanduser(folder))
            self.path = os.path.join(folder, "best.safetensors")
            check_writable(folder)
            replaces = run.resume is not None or run.arguments["overwrite"]
            if os.path.lexists(self.path) and not replaces:
                raise UserFileError(
                    f"checkpoint_path has the best model of another run, {self.path}: "
                    "give another path, or replace it with overwrite"
                )

    def update_best(self, episodes) -> None:
        """Stores the current weights if ``episodes`` have the best mean return so far.

        Args:
            episodes: ``EpisodeResults``; fewer than 100 are not compared.
        """
        mean = episodes.mean("r")
        if episodes.count < 100 or (self.mean is not None and mean <= self.mean):
            return
        self.mean = mean
        self.variables = self.model.get_state()["variables"]
        if self.path is not None:
            self.model.save(self.path)

    def restore(self) -> None:
        """Restores the best weights in the model, if any were stored."""
        for name, value in self.variables.items():
            self.model.named_variables[name].assign(value)

    def get_state(self) -> dict:
        return {"mean": self.mean, "variables": self.variables}

    def set_state(self, state) -> None:
        self.mean, self.variables = state["mean"], state["variables"]
