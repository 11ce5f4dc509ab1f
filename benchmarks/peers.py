"""What our speed is compared with, on the same work."""

import json
import os
import subprocess
import sys
from functools import partial

from baselines.common.base.errors import UserValueError
from baselines.common.base.mpi import available_cores
from baselines.common.envs.registry import find_spec
from benchmarks.rates import rate_of_env


class AlePeer:
    """ALE's own vectorised environment, in C++ threads, one per core.

    It does not stack frames, end episodes at a lost life or write monitor files.
    """

    name = "AtariVectorEnv"
    measures = ("env",)

    def __init__(self, bench):
        from ale_py.vector_env import AtariVectorEnv

        self.seconds = bench.seconds
        self.env = AtariVectorEnv(
            find_spec(bench.arguments["env"]).kwargs["game"],
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


class PeerProgram:
    """A program in its own process that measures rates on request (``rates.serve``).

    Args:
        name: name of the peer.
        module: the program's module.
        work: the work to do, as JSON values.
        measures: names of the rates that it can measure.
    """

    def __init__(self, name, module, work, measures):
        import tensorflow as tf

        self.name = name
        self.measures = measures
        # On the device that we have.
        gpus = tf.config.list_physical_devices("GPU")
        environ = {} if gpus else {"CUDA_VISIBLE_DEVICES": ""}
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, json.dumps(work)],
            env=os.environ | environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.rate(measures[0])  # It must not start or compile while we measure ours.

    def rate(self, name) -> float:
        """Returns agent steps/s of one of ``measures``."""
        print(name, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise UserValueError(
                f"{self.name} could not be measured; it ended with exit status "
                f"{self.process.wait()}"
            )
        return float(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# Settings with which others can do the same work, or are asked to.
OFF_POLICY = dict(n_step=1, prioritized_replay=False, replay_k=0)
CONTINUOUS = OFF_POLICY | dict(network="mlp", normalize_observations=False)
STABLE_BASELINES3 = {
    "a2c": {},
    "ppo2": dict(clip_values=True),
    "dqn": OFF_POLICY
    | dict(values="scalar", large_batch=False, double_q=False, dueling=False)
    | dict(noisy=False),
    "sac": CONTINUOUS
    | dict(ent_coef=None, target_entropy=None, policy_delay=1, critic="minimum"),
    "td3": CONTINUOUS,
    "ddpg": CONTINUOUS
    | dict(nb_rollout_steps=1, nb_train_steps=1, critic_l2_reg=0.0, action_l2=0.0)
    | dict(random_eps=0.0, clip_norm=None, normalize_returns=False),
}
SBX = {alg: STABLE_BASELINES3[alg] for alg in ("ppo2", "sac", "td3", "ddpg")}
TORCH = {
    "ppo2": dict(network="cnn", value_network="shared", clip_values=True)
    | dict(normalize_observations=False)
}


def check_comparable(name, comparable, alg, settings) -> None:
    """Raises UserValueError for work that a peer cannot do as we do it.

    Args:
        name: name of the peer.
        comparable: the settings that each algorithm has to have, by its name.
        alg: the algorithm.
        settings: keywords for its ``learn()``.
    """
    if alg not in comparable:
        raise UserValueError(
            f"{name} is compared with {', '.join(comparable)}, received --alg={alg}"
        )
    for key, value in comparable[alg].items():
        if settings[key] != value:
            raise UserValueError(
                f"{name} is compared with --{key}={value}, received {settings[key]}"
            )
    separate = settings.get("value_network", "copy") == "copy"
    if settings["network"] != "cnn" and not (settings["network"] == "mlp" and separate):
        raise UserValueError(
            f"{name} has the networks --network=cnn, and --network=mlp with "
            f"--value_network=copy; received {settings['network']!r}"
        )


def program(
    bench, name, module, comparable, measures=("loop",), best=False, **work
) -> PeerProgram:
    """Returns a program that does the work of a ``Bench``.

    Args:
        bench: the ``Bench``.
        name, module, measures: as for ``PeerProgram``.
        comparable: as for ``check_comparable``.
        best: whether it should be as fast as its users can make it on a CPU.
        work: what else the program has to know.
    """
    arguments = bench.arguments
    check_comparable(name, comparable, arguments["alg"], bench.learn_arguments)
    work |= {
        "alg": arguments["alg"],
        "env": arguments["env"],
        "is_atari": arguments["env_type"] == "atari",
        "num_env": bench.env.num_envs,
        "workers": bool(getattr(bench.env, "worker_pids", [])),
        "settings": bench.learn_arguments,
        "seconds": bench.seconds,
        "best": best,
    }
    return PeerProgram(name + " at its best" * best, module, work, measures)


sb3 = partial(
    program,
    name="Stable-Baselines3",
    module="benchmarks.sb3",
    comparable=STABLE_BASELINES3,
    package="stable_baselines3",
)
torch = partial(
    program,
    name="PyTorch on AtariVectorEnv",
    module="benchmarks.torch_ppo",
    comparable=TORCH,
)
PEERS = {  # functions of a Bench
    "sb3": partial(sb3, measures=("env", "loop")),
    "sbx": partial(sb3, name="SBX", comparable=SBX, package="sbx"),
    "sb3_best": partial(sb3, best=True),
    "torch": torch,
    "torch_best": partial(torch, best=True),
    "ale": AlePeer,
}
