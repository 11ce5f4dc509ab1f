"""OpenAI Baselines' name for a VecEnv whose observations are in shared memory."""

from baselines.common.vec_env.subproc_vec_env import SubprocVecEnv as ShmemVecEnv

__all__ = ["ShmemVecEnv"]
