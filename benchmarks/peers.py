"""What our speed is compared with, at the same work."""

import importlib.util
import json
import subprocess
import sys

from baselines.common.errors import MissingDependency, UserValueError
from baselines.common.mpi import available_cores
from benchmarks.rates import rate_of_env


class AlePeer:
    """ALE's own vectorised environment, in C++ threads, one for each core.

    It stacks no frames, ends no episode at a lost life and writes no monitor files.
    """

    name = "AtariVectorEnv"
    measures = ("env",)

    def __init__(self, bench):
        settings = bench.settings
        if settings.env_type != "atari":
            raise UserValueError(
                f"--compare=ale is for Atari games; {settings.spec.id} is of type "
                f"{settings.env_type}"
            )
        from ale_py.vector_env import AtariVectorEnv

        self.seconds = bench.seconds
        self.env = AtariVectorEnv(
            settings.spec.kwargs["game"],
            num_envs=bench.env.num_envs,
            num_threads=available_cores(),
            stack_num=1,
        )
        self.env.action_space = self.env.single_action_space

    def rate(self, name) -> float:
        """Returns agent steps/s of one of ``measures``."""
        return rate_of_env(self.env, self.seconds)

    def close(self):
        self.env.close()


class StableBaselines3Peer:
    """Stable-Baselines3 in a process of its own (see ``sb3.py``)."""

    name = "Stable-Baselines3"
    measures = ("env", "loop")

    def __init__(self, bench):
        if importlib.util.find_spec("stable_baselines3") is None:
            raise MissingDependency(
                "--compare=sb3 needs Stable-Baselines3, which is not installed: "
                "pip install stable-baselines3"
            )
        settings = bench.settings
        check_comparable(settings.alg, bench.learn_arguments, bench.env.num_envs)
        work = {
            "alg": settings.alg,
            "env": settings.env,
            "is_atari": settings.env_type == "atari",
            "num_env": bench.env.num_envs,
            "workers": bool(getattr(bench.env, "worker_pids", [])),
            "settings": bench.learn_arguments,
            "seconds": bench.seconds,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.sb3", json.dumps(work)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.rate("env")  # Ours is not measured while its processes start.

    def rate(self, name) -> float:
        """Returns agent steps/s of one of ``measures``."""
        print(name, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise UserValueError(
                "Stable-Baselines3 could not be measured; it ended with exit status "
                f"{self.process.wait()}"
            )
        return float(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def check_comparable(alg, settings, num_envs) -> None:
    """Raises UserValueError for work that Stable-Baselines3 cannot do as we do it.

    Args:
        alg: the algorithm.
        settings: keywords for its ``learn()``.
        num_envs: environments that step together.
    """
    if alg not in ("a2c", "ppo2", "dqn"):
        raise UserValueError(
            f"--compare=sb3 is for a2c, ppo2 and dqn, received --alg={alg}"
        )
    network = settings["network"]
    separate = settings.get("value_network", "copy") == "copy"
    if not (network == "cnn" or (network == "mlp" and separate)):
        raise UserValueError(
            "Stable-Baselines3 has the networks --network=cnn, and --network=mlp "
            f"with --value_network=copy; received {network!r}"
        )
    if alg != "dqn":
        return
    usual = dict(values="scalar", n_step=1)
    switches = "large_batch", "double_q", "dueling", "prioritized_replay", "noisy"
    for name, value in (dict.fromkeys(switches, False) | usual).items():
        if settings[name] != value:
            raise UserValueError(
                f"Stable-Baselines3's DQN has no --{name}={settings[name]}; leave it "
                "out to compare"
            )
    train_freq = settings["train_freq"]
    if num_envs % train_freq and train_freq % num_envs:
        raise UserValueError(
            "for Stable-Baselines3 one of train_freq and num_env has to divide the "
            f"other; received {train_freq} and {num_envs}"
        )
