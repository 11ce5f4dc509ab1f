"""Several environments stepped as one."""

from baselines.common.base.errors import WorkerError as WorkerError
from baselines.common.vec_env.dummy_vec_env import DummyVecEnv as DummyVecEnv
from baselines.common.vec_env.shmem_vec_env import ShmemVecEnv as ShmemVecEnv
from baselines.common.vec_env.subproc_vec_env import SubprocVecEnv as SubprocVecEnv
from baselines.common.vec_env.vec_env import VecEnv as VecEnv
from baselines.common.vec_env.vec_env import VecEnvWrapper as VecEnvWrapper
from baselines.common.vec_env.vec_frame_stack import VecFrameStack as VecFrameStack
from baselines.common.vec_env.vec_monitor import VecMonitor as VecMonitor
from baselines.common.vec_env.vec_normalize import VecNormalize as VecNormalize
from baselines.common.vec_env.vec_remove_dict_obs import (
    VecExtractDictObs as VecExtractDictObs,
)
