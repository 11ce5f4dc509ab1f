"""What our speed is compared with, on the same work."""

import importlib.util
import json
import subprocess
import sys
import tempfile
from functools import partial

from baselines import logger
from baselines.common.base.errors import MissingDependency, UserValueError, suggest
from baselines.common.base.mpi import available_cores
from benchmarks.rates import rate_of_env


class AlePeer:
    """ALE's own vectorised environment, in C++ threads, one per core.

    It does not stack frames, end episodes at a lost life or write monitor files.
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


class Float32Peer:
    """Our own algorithm on the same work, in float32 for comparison."""

    name = "ours in float32"
    measures = ("act", "train", "loop")

    def __init__(self, bench):
        if bench.learn_arguments["precision"] == "float32":
            raise UserValueError(
                "--compare=float32 is for another --precision, received float32"
            )
        with (
            tempfile.TemporaryDirectory() as folder,
            logger.scoped_configure(folder, []),
        ):
            self.bench = type(bench)(bench.argv, bench.seconds, precision="float32")

    def rate(self, name) -> float:
        """Returns agent steps/s of one of ``measures``."""
        return getattr(self.bench, f"{name}_rate")()

    def close(self):
        self.bench.close()


class PeerProgram:
    """A program in its own process that measures rates on request (``serving.py``).

    Args:
        name: name of the peer.
        module: the program's module.
        work: the work to do, as JSON values.
        measures: names of the rates that it can measure.
    """

    def __init__(self, name, module, work, measures):
        self.name = name
        self.measures = measures
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, json.dumps(work)],
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


def work_of(bench, best) -> dict:
    """Returns our algorithm's work, as a ``PeerProgram`` takes it.

    Args:
        bench: a ``Bench``.
        best: whether the peer should be as fast as its users can make it on a CPU.
    """
    settings = bench.settings
    return {
        "alg": settings.alg,
        "env": settings.env,
        "is_atari": settings.env_type == "atari",
        "num_env": bench.env.num_envs,
        "workers": bool(getattr(bench.env, "worker_pids", [])),
        "settings": bench.learn_arguments,
        "seconds": bench.seconds,
        "best": best,
    }


def sbx_peer(bench) -> PeerProgram:
    """Returns SBX, Stable-Baselines3 in JAX, on the same work as ours."""
    settings = bench.settings
    if settings.alg not in ("sac", "td3", "ddpg"):
        raise UserValueError(
            f"--compare=sbx is for sac, td3 and ddpg, received --alg={settings.alg}"
        )
    check_installed("sbx", "sbx", "sbx-rl")
    check_comparable(settings.alg, bench.learn_arguments, bench.env.num_envs)
    work = work_of(bench, best=False) | {"package": "sbx"}
    return PeerProgram("SBX", "benchmarks.sb3", work, ("loop",))


def stable_baselines3_peer(bench, best=False) -> PeerProgram:
    """Returns Stable-Baselines3 on the same work as ours."""
    check_installed("sb3", "stable_baselines3", "stable-baselines3")
    settings, num_envs = bench.settings, bench.env.num_envs
    check_comparable(settings.alg, bench.learn_arguments, num_envs)
    name = "Stable-Baselines3"
    measures = ("env", "loop")
    if best:
        if bench.learn_arguments["network"] != "cnn":
            raise UserValueError("--compare=sb3_best is for --network=cnn")
        name, measures = f"{name} at its best", ("loop",)
    work = work_of(bench, best) | {"package": "stable_baselines3"}
    return PeerProgram(name, "benchmarks.sb3", work, measures)


def torch_peer(bench, best=False) -> PeerProgram:
    """Returns a single-file PyTorch PPO on the same work as our ppo2."""
    check_installed("torch", "torch", "torch")
    settings, arguments = bench.settings, bench.learn_arguments
    if (settings.alg, settings.env_type) != ("ppo2", "atari"):
        raise UserValueError("--compare=torch is for --alg=ppo2 on Atari games")
    usual = dict(network="cnn", value_network="shared", clip_values=True)
    for name, value in (usual | dict(normalize_observations=False)).items():
        if arguments[name] != value:
            raise UserValueError(
                f"--compare=torch is for --{name}={value}, received {arguments[name]!r}"
            )
    if arguments["max_grad_norm"] is None:
        raise UserValueError("--compare=torch needs a number as --max_grad_norm")
    name = "PyTorch on AtariVectorEnv" + " at its best" * best
    return PeerProgram(name, "benchmarks.torch_ppo", work_of(bench, best), ("loop",))


def check_installed(peer, module, package) -> None:
    """Raises MissingDependency unless a peer's package is installed."""
    if importlib.util.find_spec(module) is None:
        raise MissingDependency(
            f"--compare={peer} needs {module}, which is not installed: "
            f"pip install {package}"
        )


def check_comparable(alg, settings, num_envs) -> None:
    """Raises UserValueError for work that Stable-Baselines3 cannot do as we do it.

    Args:
        alg: the algorithm.
        settings: keywords for its ``learn()``.
        num_envs: environments that step together.
    """
    if alg not in USUAL:
        raise UserValueError(
            f"--compare=sb3 is for {', '.join(USUAL)}, received --alg={alg}"
        )
    network = settings["network"]
    separate = settings.get("value_network", "copy") == "copy"
    if not (network == "cnn" or (network == "mlp" and separate)):
        raise UserValueError(
            "Stable-Baselines3 has the networks --network=cnn, and --network=mlp "
            f"with --value_network=copy; received {network!r}"
        )
    for name, value in USUAL[alg].items():
        if settings[name] != value:
            raise UserValueError(
                f"Stable-Baselines3's {alg} is compared with --{name}={value}, "
                f"received {settings[name]}"
            )
    if settings.get("noise_type", "").startswith("ou"):
        raise UserValueError(
            "noise_type is compared as normal noise; received "
            f"{settings['noise_type']!r}"
        )
    train_freq = settings.get("train_freq", 1)
    if num_envs % train_freq and train_freq % num_envs:
        raise UserValueError(
            "for Stable-Baselines3 one of train_freq and num_env has to divide the "
            f"other; received {train_freq} and {num_envs}"
        )


# Settings with which Stable-Baselines3 can do the same work, or is asked to.
OFF_POLICY = dict(n_step=1, prioritized_replay=False, replay_k=0)
CONTINUOUS = OFF_POLICY | dict(network="mlp", normalize_observations=False)
USUAL = {
    "a2c": {},
    "ppo2": dict(clip_values=True),
    "dqn": OFF_POLICY
    | dict(values="scalar", large_batch=False, double_q=False, dueling=False)
    | dict(noisy=False),
    "sac": CONTINUOUS | dict(ent_coef=None, target_entropy=None),
    "td3": CONTINUOUS,
    "ddpg": CONTINUOUS
    | dict(nb_rollout_steps=1, nb_train_steps=1, critic_l2_reg=0.0, action_l2=0.0)
    | dict(random_eps=0.0, clip_norm=None, normalize_returns=False),
}

PEERS = {
    "float32": Float32Peer,
    "sb3": stable_baselines3_peer,
    "sbx": sbx_peer,
    "sb3_best": partial(stable_baselines3_peer, best=True),
    "torch": torch_peer,
    "torch_best": partial(torch_peer, best=True),
    "ale": AlePeer,
}


def find_peers(names) -> list:
    """Returns functions that make peers from a ``Bench``.

    Args:
        names: keys of ``PEERS``, separated by commas.

    Raises:
        UserValueError: for an unknown name.
    """
    names = [name.strip() for name in names.split(",")]
    for name in names:
        if name not in PEERS:
            raise UserValueError(
                f"--compare={name} is unknown{suggest(name, PEERS)} "
                f"(known: {', '.join(PEERS)})"
            )
    return [PEERS[name] for name in names]
