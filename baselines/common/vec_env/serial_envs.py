"""Environments that one process steps one after another, here or in a worker."""

import numpy as np

from baselines.common.envs.nests import flatten_env
from baselines.common.envs.recorder import (
    get_env_state,
    has_generator,
    is_resumable,
    set_env_state,
    stateful_wrappers,
    with_recorder,
)


class SerialEnvs:
    """Gymnasium environments, each of which is reset in the step that ends its episode.

    ``make`` has to be called first, and ``obs`` has to be set.

    Attributes:
        envs: the environments.
        first: number of the first among those of all workers.
        obs: [n, *observation shape], the array that observations are written to.
        lost: last observations, by index, of episodes that a dead worker took with it:
            they end in the next step.
        current: index of the environment that is being run, for error messages.
    """

    def __init__(self):
        self.envs = []
        self.first = 0
        self.obs = None
        self.lost = {}
        self.current = 0

    def each(self):
        """Yields (index, environment), and keeps track of which one is being run."""
        for i, env in enumerate(self.envs):
            self.current = i
            yield i, env

    def make(self, env_fns) -> list:
        """Returns ((observation space, action space), resumable) of each."""
        for self.current, env_fn in enumerate(env_fns):
            self.envs.append(with_recorder(flatten_env(env_fn())))
        return [
            ((env.observation_space, env.action_space), is_resumable(env))
            for env in self.envs
        ]

    def reset(self) -> None:
        for i, env in self.each():
            self.obs[i], _ = env.reset()
        self.lost = {}

    def step(self, actions):
        """Returns rewards [n], dones [n] and infos."""
        rewards = np.zeros(len(self.envs), np.float32)
        dones = np.zeros(len(self.envs), bool)
        infos = []
        for i, env in self.each():
            if i in self.lost:
                dones[i] = True
                info = {
                    "TimeLimit.truncated": True,
                    "terminal_observation": self.lost[i],
                    "worker_lost": True,  # The episode has no result.
                }
            else:
                result = step_and_reset(env, actions[i])
                self.obs[i], rewards[i], dones[i], info = result
            infos.append(info)
        self.lost = {}
        return rewards, dones, infos

    def for_each(self, fn, numbers) -> dict:
        """Returns ``fn(env)`` of those environments whose number is in a list."""
        envs = ((self.first + i, env) for i, env in self.each())
        return {number: fn(env) for number, env in envs if number in numbers}

    def render(self) -> list:
        return [env.render() for _, env in self.each()]

    def get_state(self) -> dict:
        states = [get_env_state(env) for _, env in self.each()]
        last_obs, lost = np.array(self.obs), np.zeros(len(self.envs), bool)
        for i, obs in self.lost.items():
            last_obs[i], lost[i] = obs, True
        obs = np.array(self.obs)
        return {"envs": states, "obs": obs, "last_obs": last_obs, "lost": lost}

    def set_state(self, state) -> None:
        for (_, env), env_state in zip(self.each(), state["envs"], strict=True):
            set_env_state(env, env_state)
        self.obs[:] = state["obs"]
        lost = np.flatnonzero(state["lost"])
        self.lost = {int(i): state["last_obs"][i].copy() for i in lost}

    def take_over(self, last_obs) -> None:
        """Begins episodes in place of those of a worker that died.

        Args:
            last_obs: [n, *observation shape], the last ones of the lost episodes.
        """
        for i, env in self.each():
            for wrapper in stateful_wrappers(env):
                if hasattr(wrapper, "take_over"):
                    wrapper.take_over()
            if has_generator(env):
                # Otherwise it would repeat the first episodes of the dead worker.
                env.unwrapped.np_random = np.random.default_rng()
            self.obs[i], _ = env.reset()
        self.lost = dict(enumerate(last_obs))

    def close(self) -> None:
        for env in self.envs:
            env.close()


def step_and_reset(env, action):
    """Steps one Gymnasium environment, and resets it at once if its episode ended.

    Returns:
        obs, reward, done, info, as one row of ``VecEnv.step_wait``.
    """
    obs, reward, terminated, truncated, info = env.step(action)
    done = bool(terminated or truncated)
    if done:
        info = {
            **info,
            # A copy, as the environment may reuse the array.
            "terminal_observation": np.array(obs),
            "TimeLimit.truncated": bool(truncated and not terminated),
        }
        obs, _ = env.reset()
    return obs, reward, done, info
