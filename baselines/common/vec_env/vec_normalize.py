"""Observations and rewards, normalised by their running statistics."""

import numpy as np
from gymnasium import spaces

from baselines.common.base.errors import UserTypeError
from baselines.common.base.running_moments import RunningMoments
from baselines.common.saving.states import check_like
from baselines.common.vec_env.vec_env import VecEnv, VecEnvWrapper, venvs_of


class VecNormalize(VecEnvWrapper):
    """Normalises observations, and rewards by the standard deviation of the return.

    The running mean is subtracted from observations, which are then divided by their
    running standard deviation; rewards are divided by that of the discounted return,
    without subtracting a mean. Algorithms here normalise observations in the model
    itself (``normalize_observations``), so that a saved model needs no wrapper: use
    ``ob=False`` with them. With several MPI ranks, every step exchanges statistics, so
    all ranks have to step together, except while ``training`` is off.

    Args:
        venv: a VecEnv.
        ob: whether to normalise observations, which have to be a Box.
        ret: whether to scale rewards.
        clipob: largest absolute value of a normalised observation.
        cliprew: largest absolute value of a scaled reward.
        gamma: discount factor per agent step, for the return.
        epsilon: added to variances.

    Raises:
        UserTypeError: if observations are to be normalised and are not a Box.

    Attributes:
        training: whether the statistics are updated; set it to False to evaluate.
    """

    def __init__(
        self,
        venv: VecEnv,
        ob: bool = True,
        ret: bool = True,
        clipob: float = 10.0,
        cliprew: float = 10.0,
        gamma: float = 0.99,
        epsilon: float = 1e-8,
    ):
        space = venv.observation_space
        if ob and not isinstance(space, spaces.Box):
            raise UserTypeError(
                f"VecNormalize needs observations in a Box, received {space}; with "
                "ob=False, it scales rewards alone"
            )
        if ob:
            space = spaces.Box(-clipob, clipob, space.shape, np.float32)
        super().__init__(venv, observation_space=space)
        self.keeps_observations = not ob
        self.ob_rms = RunningMoments(space.shape) if ob else None
        self.ret_rms = RunningMoments() if ret else None
        self.clipob = clipob
        self.cliprew = cliprew
        self.gamma = gamma
        self.epsilon = epsilon
        self.training = True
        self.returns = np.zeros(self.num_envs)

    def reset(self):
        self.returns[:] = 0
        return self._observe(self.venv.reset())

    def step_wait(self):
        obs, rewards, dones, infos = self.venv.step_wait()
        obs = self._observe(obs)
        if self.ob_rms:
            for i in np.flatnonzero(dones):
                last = infos[i]["terminal_observation"]
                infos[i]["terminal_observation"] = self._normalize(last)
        if self.ret_rms:
            self.returns = self.returns * self.gamma + rewards
            if self.training:
                self.ret_rms.update(self.returns)
            rewards = rewards / np.sqrt(self.ret_rms.var + self.epsilon)
            rewards = np.clip(rewards, -self.cliprew, self.cliprew).astype(np.float32)
            self.returns[dones] = 0
        return obs, rewards, dones, infos

    def _observe(self, obs):
        if not self.ob_rms:
            return obs
        if self.training:
            self.ob_rms.update(obs)
        return self._normalize(obs)

    def _normalize(self, obs):
        scaled = (obs - self.ob_rms.mean) / np.sqrt(self.ob_rms.var + self.epsilon)
        return np.clip(scaled, -self.clipob, self.clipob).astype(np.float32)

    def get_state(self) -> dict:
        return {
            "venv": self.venv.get_state(),
            "obs": self.ob_rms and self.ob_rms.get_state(),
            "return": self.ret_rms and self.ret_rms.get_state(),
            "returns": self.returns,
        }

    def set_state(self, state) -> None:
        self.venv.set_state(state["venv"])
        for moments, key in ((self.ob_rms, "obs"), (self.ret_rms, "return")):
            check_like(state[key], moments and moments.get_state(), f"{key} statistics")
            if moments:
                moments.set_state(state[key])
        self.returns = state["returns"].copy()


# Attributes of VecNormalize, and of Gymnasium's NormalizeObservation and
# NormalizeReward. (Those around a VectorEnv refuse same-step resets.)
STATISTICS = {
    "observations": ("ob_rms", "obs_rms"),
    "rewards": ("ret_rms", "return_rms"),
}


def normalizes(env: VecEnv, what: str) -> bool:
    """Whether a wrapper at any level normalises ``observations`` or ``rewards``.

    Rewards that a VecNormalize divides by a number that stays the same do not count.
    """
    ours, others = STATISTICS[what]
    *wrappers, env = venvs_of(env)
    found = [x for x in wrappers if getattr(x, ours, None)]
    if any(what == "observations" or x.training for x in found):
        return True
    find = getattr(env, "env_method", None)  # not of every library's VecEnv
    try:
        return find is not None and any(find("has_wrapper_attr", others))
    except UserTypeError:  # of a VecEnv without access to its environments
        return False
