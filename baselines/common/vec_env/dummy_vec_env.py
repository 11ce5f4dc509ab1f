"""Environments in the caller's own process, one after another."""

from collections.abc import Callable, Iterable

import numpy as np

from baselines.common.base.errors import UserValueError
from baselines.common.saving.states import check_like
from baselines.common.vec_env.serial_envs import SerialEnvs
from baselines.common.vec_env.vec_env import (
    VecEnv,
    check_actions,
    check_equal_spaces,
    list_indices,
)


class DummyVecEnv(VecEnv):
    """Runs environments in series in this process.

    The right choice for one environment, for debugging, and where a step takes only
    microseconds, so that workers would cost more time than they save.

    Args:
        env_fns: functions without arguments, each of which makes a Gymnasium
            environment.

    Attributes:
        envs: the environments.

    Raises:
        UserTypeError: if observations are dicts or tuples.
        UserValueError: if spaces differ, or an environment is returned twice.
    """

    def __init__(self, env_fns: Iterable[Callable]):
        self._serial = SerialEnvs()
        self.envs = self._serial.envs
        self._actions = None
        try:
            spaces, resumable = zip(*self._serial.make(env_fns))
            check_equal_spaces(spaces)
            if len({id(env.unwrapped) for env in self.envs}) < len(self.envs):
                raise UserValueError(
                    "each of env_fns has to make an environment of its own, but two "
                    "returned the same one"
                )
        except BaseException:
            self.close()
            raise
        self.spec = self.envs[0].spec
        self.resumable = all(resumable)
        super().__init__(len(self.envs), *spaces[0])
        space = self.observation_space
        self._obs = np.zeros((self.num_envs, *space.shape), space.dtype)
        self._serial.obs = self._obs

    def reset(self):
        self._serial.reset()
        self._actions = None
        return self._obs.copy()

    def step_async(self, actions):
        # A copy, as environments may write into their actions.
        self._actions = check_actions(actions, self.num_envs).copy()

    def step_wait(self):
        if self._actions is None:
            raise RuntimeError("step_wait() needs a step_async() before it")
        actions, self._actions = self._actions, None
        rewards, dones, infos = self._serial.step(actions)
        return self._obs.copy(), rewards, dones, infos

    def for_each(self, fn, indices=None):
        numbers = list_indices(indices, self.num_envs)
        found = self._serial.for_each(fn, numbers)
        return [found[n] for n in numbers]

    def local_env(self):
        """Returns an environment in this process, to compute the rewards of goals."""
        return self.envs[0]

    def get_images(self):
        return self._serial.render()

    def get_state(self):
        return self._serial.get_state()

    def set_state(self, state):
        check_like(state["obs"], self._obs, "the environments' state")
        self._serial.set_state(state)

    def close(self):
        self._serial.close()
