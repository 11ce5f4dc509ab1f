"""Expert data: observations and actions, in one ``.npz`` file without pickles.

    obs      [n, *observation shape], or [episodes, steps, *observation shape]
    acs      [n, *action shape], or [episodes, steps, *action shape]
    ep_lens  [episodes] steps of each; optional, and implied by [episodes, steps, ...]
    ep_rets  [episodes] returns; optional

Transitions are in the order in which they happened. The names are those of OpenAI
Baselines.
"""

import io
import os
import zlib
from typing import NamedTuple

import numpy as np
from gymnasium import spaces

from baselines.common.base.errors import UserFileError, UserValueError, first_line
from baselines.common.envs.spaces import clip_actions
from baselines.common.saving.files import replace_file


class Expert(NamedTuple):
    """Transitions of an expert, with its episodes one after the other."""

    obs: np.ndarray  # [n, *observation shape], in the space's own dtype
    acs: np.ndarray  # [n, *action shape], clipped to a Box, in the space's own dtype
    ep_lens: np.ndarray | None  # [episodes], None if unknown
    ep_rets: np.ndarray | None  # [episodes], None if unknown

    @property
    def checksum(self) -> int:
        """Identifies the transitions, so that a run is not resumed with others."""
        return zlib.crc32(self.acs, zlib.crc32(self.obs))

    def __str__(self):
        parts = [f"{len(self.obs):,} transitions"]
        if self.ep_lens is not None:
            count = len(self.ep_lens)
            parts.append(f"{count:,} episode{'s' * (count != 1)}")
        if self.ep_rets is not None:
            parts.append(f"mean return {np.mean(self.ep_rets):g}")
        return ", ".join(parts)


def write_expert(path, expert) -> None:
    """Writes an ``Expert`` to a file, atomically.

    Raises:
        UserFileError: if it cannot be written.
    """
    buffer = io.BytesIO()
    arrays = {k: v for k, v in expert._asdict().items() if v is not None}
    np.savez_compressed(buffer, **arrays)
    replace_file(path, buffer.getvalue())


def read_expert(path, observation_space, action_space, episodes=None) -> Expert:
    """Reads a file of expert data for an environment with these spaces.

    Args:
        path: of the file.
        observation_space, action_space: of the environment.
        episodes: how many episodes to keep, from the first on; None for all.

    Raises:
        UserFileError: if it cannot be read.
        UserValueError: if it is damaged, contains pickles or transitions of another
            environment, or has too few episodes.
    """
    path = os.path.expanduser(path)
    if not os.path.isfile(path):
        raise UserFileError(
            f"there is no expert data at {path}; python -m baselines.gail.record "
            "LOGDIR records that of a trained model"
        )
    try:
        arrays = read_arrays(path)
        expert = check_transitions(arrays, observation_space, action_space)
        return expert if episodes is None else first_episodes(expert, episodes)
    except UserValueError as error:
        raise UserValueError(f"the expert data {path} {error}") from None


def read_arrays(path) -> dict:
    """Returns the arrays in a file by name; any of the four may be missing."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in Expert._fields if name in file}
    except Exception as error:  # NumPy raises many kinds for a damaged file.
        raise UserValueError(
            f"cannot be read as an .npz file: {first_line(error)}"
        ) from None


def check_transitions(arrays, observation_space, action_space) -> Expert:
    """Returns an Expert; raises UserValueError unless the arrays fit these spaces."""
    for name in "obs", "acs":
        if name not in arrays:
            raise UserValueError(f"has no array {name!r}")
    obs, acs, ep_lens, ep_rets = map(arrays.get, Expert._fields)
    steps = obs.shape[: max(1, obs.ndim - len(observation_space.shape))]
    if len(steps) == 2 and ep_lens is None:
        ep_lens = np.full(steps[0], steps[1])
    obs = check_samples("obs", obs, steps[:2], observation_space)
    acs = check_samples("acs", acs, steps[:2], action_space)
    # In Python's numbers, as those of a small type could overflow.
    if ep_lens is not None and sum(ep_lens.tolist()) != len(obs):
        raise UserValueError(
            f"has {len(obs):,} transitions, but the lengths ep_lens of its episodes "
            "do not add up to that"
        )
    return Expert(obs, clip_actions(acs, action_space), ep_lens, ep_rets)


def check_samples(name, array, steps, space) -> np.ndarray:
    """Returns samples of a space, [n, *shape] in its dtype.

    Args:
        name: of the array.
        array: [*steps, *shape]
        steps: (n,), or (episodes, steps).
        space: of the environment.

    Raises:
        UserValueError: if they are not samples of it.
    """
    if array.shape != (*steps, *space.shape):
        raise UserValueError(
            f"has {name} of shape {array.shape}, but in this environment it would be "
            f"{(*steps, *space.shape)}"
        )
    if not np.can_cast(array.dtype, space.dtype, "same_kind"):
        raise UserValueError(
            f"has {name} of type {array.dtype}, but in this environment it would be "
            f"{space.dtype}"
        )
    array = array.reshape(-1, *space.shape)
    if not isinstance(space, spaces.Box) and not all(map(space.contains, array)):
        raise UserValueError(f"has {name} that are not in {space}")
    # The checksum needs C order; files may have that of Fortran.
    array = array.astype(space.dtype, order="C")
    if not np.isfinite(array).all():
        raise UserValueError(f"has {name} that are NaN or infinite")
    return array


def first_episodes(expert, episodes) -> Expert:
    """Returns the first episodes of an expert."""
    if expert.ep_lens is None:
        raise UserValueError(
            "does not say where episodes end (ep_lens), which traj_limitation needs"
        )
    if episodes > len(expert.ep_lens):
        raise UserValueError(
            f"has {len(expert.ep_lens)} episodes, fewer than the traj_limitation of "
            f"{episodes}"
        )
    count = sum(expert.ep_lens[:episodes].tolist())
    rets = None if expert.ep_rets is None else expert.ep_rets[:episodes]
    return Expert(
        expert.obs[:count], expert.acs[:count], expert.ep_lens[:episodes], rets
    )
