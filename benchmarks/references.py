"""Records short runs of every algorithm, and compares them with an earlier record.

    python -m benchmarks.references FOLDER                   trains and records
    python -m benchmarks.references FOLDER --compare=OLDER   and compares bit for bit

A change that is not meant to change any number has to give the same rows, games,
evaluations and weights on the same machine. To record an earlier commit, run this file
in a checkout of it: ``cd CHECKOUT && python PATH/references.py FOLDER``. The status is
1 if anything differs. Runs in FOLDER that are finished are not repeated; one with
``REFERENCE_RUNS`` in the environment is limited to those names.
"""

import argparse
import csv
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from safetensors.numpy import load_file

PONG = "--env=PongNoFrameskip-v4"
CARTPOLE = "--env=CartPole-v1"
PENDULUM = "--env=Pendulum-v1"
OFF_POLICY = "--learning_starts=200 --print_freq=1 --num_timesteps=900 --num_hidden=32"
GAIL = f"--alg=gail {PENDULUM} --timesteps_per_batch=256 --num_timesteps=1500"
RUNS = {
    "a2c_pong": f"--alg=a2c {PONG} --num_timesteps=2000 --log_interval=20",
    "a2c_ranks": f"--alg=a2c {CARTPOLE} --num_timesteps=3000 --log_interval=50",
    "a2c_lstm": f"--alg=a2c {CARTPOLE} --network=lstm --value_network=shared "
    "--num_timesteps=3000 --log_interval=50",
    "a2c_dict": "--alg=a2c --env=references:DictCartPole-v0 --num_timesteps=3000 "
    "--log_interval=50",
    "ppo2_pong": f"--alg=ppo2 {PONG} --num_env=4 --nsteps=32 --num_timesteps=1024",
    "ppo2_cartpole": f"--alg=ppo2 {CARTPOLE} --num_timesteps=8000 "
    "--eval_interval=4000 --eval_episodes=3",
    "ppo2_lstm": f"--alg=ppo2 {CARTPOLE} --network=lstm "
    "--value_network=shared --num_timesteps=4000",
    "ppo2_halfcheetah": "--alg=ppo2 --env=HalfCheetah-v4 --num_timesteps=6144 "
    "--checkpoint_interval=2048",
    "ppo1": f"--alg=ppo1 {PENDULUM} --num_timesteps=3000",
    "trpo": f"--alg=trpo {CARTPOLE} --num_timesteps=8000",
    "trpo_mpi": f"--alg=trpo_mpi {PENDULUM} --num_timesteps=4096",
    "acktr": f"--alg=acktr {CARTPOLE} --num_timesteps=5000",
    "acer": f"--alg=acer {CARTPOLE} --num_timesteps=4000 --replay_start=500",
    "gail": GAIL,
    "dqn_pong": f"--alg=dqn {PONG} --buffer_size=2000 --learning_starts=500 "
    "--num_timesteps=1000 --print_freq=1",
    "dqn_all": f"--alg=dqn {CARTPOLE} --num_timesteps=1500 --learning_starts=500 "
    "--prioritized_replay --dueling --double_q --n_step=3 --noisy --print_freq=5",
    "deepq": f"--alg=deepq {CARTPOLE} --num_timesteps=1500 --print_freq=5",
    "rainbow": f"--alg=rainbow {CARTPOLE} --num_timesteps=1500 --print_freq=5",
    "sac": f"--alg=sac {PENDULUM} {OFF_POLICY}",
    "td3": f"--alg=td3 {PENDULUM} {OFF_POLICY} --n_step=3",
    "ddpg": f"--alg=ddpg {PENDULUM} {OFF_POLICY} --prioritized_replay",
    "her": "--alg=her --env=references:Reach-v0 --learning_starts=200 --print_freq=1 "
    "--num_timesteps=900 --num_hidden=32",
    "loaded": f"--alg=ppo2 {CARTPOLE} --num_timesteps=4000 --load_path={{folder}}/"
    "ppo2_cartpole",
}
RESUMED = {"ppo2_halfcheetah": 4096, "dqn_all": 1000, "sac": 600, "a2c_lstm": 1500}
EXTRA = {"gail": "--expert_path={folder}/expert.npz"}
WALL_TIME = {"time_elapsed", "fps"}  # columns that no two runs share


class Dicts(gym.ObservationWrapper):
    """Puts observations into a Dict of two vectors."""

    def __init__(self, env):
        super().__init__(env)
        low, high = env.observation_space.low, env.observation_space.high
        self.observation_space = spaces.Dict(
            {
                "position": spaces.Box(low[::2], high[::2]),
                "velocity": spaces.Box(low[1::2], high[1::2]),
            }
        )

    def observation(self, obs):
        return {"position": obs[::2], "velocity": obs[1::2]}


class Reach(gym.Env):
    """A point in a plane is to reach a goal; it moves by its action."""

    action_space = spaces.Box(-0.1, 0.1, (2,), np.float32)
    observation_space = spaces.Dict(
        {
            name: spaces.Box(-2.0, 2.0, (2,), np.float32)
            for name in ("observation", "achieved_goal", "desired_goal")
        }
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.point = np.zeros(2, np.float32)
        self.goal = self.np_random.uniform(-0.5, 0.5, 2).astype(np.float32)
        return self.observe(), {}

    def step(self, action):
        self.point = np.clip(self.point + action, -2, 2).astype(np.float32)
        reward = self.compute_reward(self.point, self.goal, {})
        return self.observe(), float(reward), False, False, {}

    def compute_reward(self, achieved_goal, desired_goal, info):
        distance = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
        return -(distance > 0.1).astype(np.float64)

    def observe(self):
        return dict(
            observation=self.point, achieved_goal=self.point, desired_goal=self.goal
        )


gym.register(
    "DictCartPole-v0",
    lambda: Dicts(gym.make("CartPole-v1").unwrapped),
    max_episode_steps=200,
)
gym.register("Reach-v0", Reach, max_episode_steps=30)


def train(name, folder) -> None:
    """Trains one run, resumed half way if it is in ``RESUMED``."""
    words = RUNS[name].format(folder=folder).split()
    words += EXTRA.get(name, "").format(folder=folder).split()
    run = [sys.executable, "-m", "baselines.run"]
    if name.endswith("_ranks"):
        run = [str(Path(sys.executable).with_name("mpiexec")), "-n", "2", *run]
    log_path = folder / name
    if half := RESUMED.get(name):
        steps = next(word for word in words if word.startswith("--num_timesteps"))
        words[words.index(steps)] = f"--num_timesteps={half}"
        call([*run, *words, "--seed=3", f"--log_path={log_path}"])
        call([*run, f"--resume={log_path}", steps])
    else:
        call([*run, *words, "--seed=3", f"--log_path={log_path}"])
    if "references:" not in RUNS[name]:
        evaluate = [sys.executable, "-m", "baselines.evaluate", str(log_path)]
        words = "--episodes=2", "--seed=5", "--deterministic=False"
        printed = call([*evaluate, *words])
        (log_path / "evaluated.txt").write_text(printed)


def call(words) -> str:
    """Runs a command and returns what it prints."""
    paths = [os.getcwd(), str(Path(__file__).parent)]
    variables = {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        words, env=os.environ | variables, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def write_expert(folder) -> None:
    """Writes the expert of gail: games of the run ``sac``."""
    if not (folder / "expert.npz").exists():
        record = [sys.executable, "-m", "baselines.gail.record", str(folder / "sac")]
        call([*record, "--episodes=3", "--seed=7", f"--output={folder}/expert.npz"])


def read(log_path) -> dict:
    """Returns what a run has to have in common with its reference."""
    rows = [
        {k: v for k, v in sorted(row.items()) if k not in WALL_TIME}
        for row in csv.DictReader((log_path / "progress.csv").open())
    ]
    games = [
        [line.rpartition(",")[0] for line in path.read_text().splitlines()[2:]]
        for path in sorted(log_path.glob("*monitor.csv"))
    ]
    tensors = load_file(log_path / "model.safetensors").values()
    weights = sorted(hashlib.sha256(x.tobytes()).hexdigest()[:16] for x in tensors)
    path = log_path / "evaluated.txt"
    scores = re.findall(r"-?\d+\.?\d*", path.read_text()) if path.exists() else []
    return dict(rows=rows, games=games, weights=weights, scores=scores)


def main():
    """Trains, records and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compare", type=Path)
    args = parser.parse_args()
    folder = args.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    chosen = os.environ.get("REFERENCE_RUNS", "").split() or [*RUNS]
    differ = 0
    # gail's expert is the run sac, so it comes last.
    for name in sorted(chosen, key=lambda name: name in ("gail", "loaded")):
        path = folder / f"{name}.json"
        if not path.exists():
            if name == "gail":
                write_expert(folder)
            train(name, folder)
            path.write_text(json.dumps(read(folder / name), indent=1))
        if args.compare:
            new = json.loads(path.read_text())
            old = json.loads((args.compare / path.name).read_text())
            wrong = [key for key in old if old[key] != new[key]]
            differ += bool(wrong)
            print(f"{name}: {', '.join(wrong) + ' differ' if wrong else 'the same'}")
        else:
            print(name, flush=True)
    raise SystemExit(differ > 0)


if __name__ == "__main__":
    main()
