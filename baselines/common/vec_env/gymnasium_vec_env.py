"""A Gymnasium VectorEnv with the interface of a VecEnv."""

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

from baselines.common.base.errors import UserTypeError, UserValueError
from baselines.common.envs.nests import (
    FlatBox,
    flat_actions,
    flat_observations,
    flatten,
)
from baselines.common.vec_env.vec_env import VecEnv, check_actions


class GymnasiumVecEnv(VecEnv):
    """Adapts a VectorEnv that resets in the step in which an episode ends.

    Args:
        vector_env: a ``gymnasium.vector.VectorEnv``.
        seed: for its first reset.

    Raises:
        UserTypeError: for another reset mode, in which the step after the end of an
            episode belongs to no episode.
        UserValueError: from ``reset`` and ``step_wait``, for numbers that are not
            finite.
        DivergedError: from ``step_async``, for an action that is NaN.
    """

    def __init__(self, vector_env, seed=None):
        mode = vector_env.metadata.get("autoreset_mode")
        if mode != AutoresetMode.SAME_STEP:
            raise UserTypeError(
                "a VectorEnv has to reset in the step in which an episode ends, but "
                f"its autoreset_mode is {mode}; make it with gymnasium.make_vec(ID, N, "
                'vectorization_mode="async", vector_kwargs={"autoreset_mode": '
                "gymnasium.vector.AutoresetMode.SAME_STEP})"
            )
        observation_space = flat_observations(vector_env.single_observation_space)
        action_space = flat_actions(vector_env.single_action_space)
        super().__init__(vector_env.num_envs, observation_space, action_space)
        self.vector_env = vector_env
        self._seed = seed

    def env_method(self, name, *args, indices=None, **kwargs):
        vector_env = self.vector_env.unwrapped
        if indices is not None:
            return super().env_method(name, *args, indices=indices, **kwargs)
        if not hasattr(vector_env, "call"):  # such as one that is not made of Envs
            return []
        return list(vector_env.call(name, *args, **kwargs))

    def reset(self):
        obs, _ = self.vector_env.reset(seed=self._seed)
        self._seed = None
        return self._flatten(obs)

    def _flatten(self, obs):
        if isinstance(self.observation_space, FlatBox):
            each = iterate(self.vector_env.observation_space, obs)
            obs = np.stack([self.observation_space.flatten(x) for x in each])
        check_finite("an observation", obs)
        return np.array(obs)

    def step_async(self, actions):
        self._actions = check_actions(actions, self.num_envs)
        if hasattr(self.action_space, "unflatten"):
            space = self.vector_env.single_action_space
            each = [self.action_space.unflatten(action) for action in self._actions]
            out = create_empty_array(space, self.num_envs)
            self._actions = concatenate(space, each, out)

    def step_wait(self):
        obs, rewards, terminated, truncated, info = self.vector_env.step(self._actions)
        check_finite("a reward", rewards)
        obs = self._flatten(obs)
        dones = terminated | truncated
        infos = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(dones):
            last_obs = flatten(self.observation_space, info["final_obs"][i])
            infos[i] = info_of(info.get("final_info", {}), i) | {
                "terminal_observation": last_obs,
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
            }
        return obs, rewards.astype(np.float32), dones, infos

    def get_images(self):
        images = self.vector_env.render()
        return [None] * self.num_envs if images is None else list(images)

    def close(self):
        self.vector_env.close()


def info_of(infos, i) -> dict:
    """Returns the info of environment ``i``.

    Args:
        infos: those of all, as a Gymnasium ``VectorEnv`` returns them: for each key an
            array [N] or another such dict, and under ``_key`` who has it, [N] bool;
            keys without the latter are left out.
    """
    return {
        key: info_of(values, i) if isinstance(values, dict) else values[i]
        for key, values in infos.items()
        if f"_{key}" in infos and infos[f"_{key}"][i]
    }


def check_finite(what, values) -> None:
    """Raises UserValueError unless all values [N, ...] are finite."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise UserValueError(f"the VectorEnv returned {what} that is not finite")
