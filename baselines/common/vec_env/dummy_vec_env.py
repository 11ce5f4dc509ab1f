"""Environments in the caller's own process, one after another."""

import contextlib

import numpy as np

from baselines.bench.monitor import Monitor
from baselines.common.base.errors import UserValueError
from baselines.common.envs.recorder import (
    get_env_state,
    is_resumable,
    set_env_state,
    with_recorder,
)
from baselines.common.saving.states import check_like
from baselines.common.vec_env.vec_env import (
    VecEnv,
    check_actions,
    check_env_fns,
    check_equal_spaces,
    lost_info,
    make_state,
    step_and_reset,
)


class DummyVecEnv(VecEnv):
    """Runs environments in series in this process.

    The right choice for one environment, for debugging, and where a step takes only
    microseconds, so that workers would cost more time than they save.

    Args:
        env_fns: functions without arguments, each of which makes a Gymnasium
            environment.
    """

    def __init__(self, env_fns):
        env_fns = check_env_fns(env_fns, type(self).__name__)
        self.envs, made = [], []
        try:
            with self._named(len(env_fns)):
                for self._current, env_fn in enumerate(env_fns):
                    with Monitor.without_files():  # if it is reset, to seed it
                        made.append(env_fn())
                        self.envs.append(with_recorder(made[-1]))
            if len(set(map(id, made))) < len(made):
                raise UserValueError(
                    "each of env_fns has to make an environment of its own, but two "
                    "returned the same one"
                )
            check_equal_spaces(
                [(env.observation_space, env.action_space) for env in self.envs]
            )
        except BaseException:
            self.close()
            raise
        env = self.envs[0]
        self.spec = env.spec
        self.resumable = all(is_resumable(env) for env in self.envs)
        super().__init__(len(self.envs), env.observation_space, env.action_space)
        space = self.observation_space
        self._obs = np.zeros((self.num_envs, *space.shape), space.dtype)
        self._rewards = np.zeros(self.num_envs, np.float32)
        self._dones = np.zeros(self.num_envs, bool)
        self._actions = None
        self._lost = {}  # last observations of episodes that a lost worker had, by i

    @contextlib.contextmanager
    def _named(self, num_envs):
        """Adds the number of the environment to any exception that it raises."""
        try:
            yield
        except SystemExit as error:  # which would end the caller silently
            raise RuntimeError(
                f"environment {self._current} of {num_envs} called "
                f"sys.exit({error.code!r})"
            ) from error
        except Exception as error:
            if hasattr(error, "add_note"):  # since Python 3.11
                error.add_note(f"This was environment {self._current} of {num_envs}.")
            raise

    def _each(self):
        """Yields (i, environment), and keeps track of which one is being run."""
        for i, env in enumerate(self.envs):
            self._current = i
            yield i, env

    def reset(self):
        with self._named(self.num_envs):
            for i, env in self._each():
                self._obs[i], _ = env.reset()
        self._lost, self._actions = {}, None
        return self._obs.copy()

    def step_async(self, actions):
        # A copy, as environments may write into their actions.
        self._actions = check_actions(actions, self.num_envs).copy()

    def step_wait(self):
        if self._actions is None:
            raise RuntimeError("step_wait() needs a step_async() before it")
        actions, self._actions = self._actions, None
        infos = []
        with self._named(self.num_envs):
            for i, env in self._each():
                if i in self._lost:
                    result = self._obs[i], 0.0, True, lost_info(self._lost[i])
                else:
                    result = step_and_reset(env, actions[i])
                obs, reward, done, info = result
                self._obs[i], self._rewards[i], self._dones[i] = obs, reward, done
                infos.append(info)
        self._lost = {}
        return self._obs.copy(), self._rewards.copy(), self._dones.copy(), infos

    def local_env(self):
        """Returns an environment in this process, to compute the rewards of goals."""
        return self.envs[0]

    def get_images(self):
        return [env.render() for env in self.envs]

    def get_state(self):
        states = [get_env_state(env) for env in self.envs]
        last_obs, lost = self._obs.copy(), np.zeros(self.num_envs, bool)
        for i, obs in self._lost.items():
            last_obs[i], lost[i] = obs, True
        return make_state(states, self._obs, last_obs, lost)

    def set_state(self, state):
        check_like(state["obs"], self._obs, "observations")
        for env, env_state in zip(self.envs, state["envs"], strict=True):
            set_env_state(env, env_state)
        self._obs[:] = state["obs"]
        lost = np.flatnonzero(state["lost"])
        self._lost = {int(i): state["last_obs"][i].copy() for i in lost}

    def close(self):
        for env in self.envs:
            env.close()
