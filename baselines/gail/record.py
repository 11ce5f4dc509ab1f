"""Records a trained model as an expert: ``python -m baselines.gail.record LOGDIR``."""

import os
from typing import Annotated

import numpy as np

from baselines.common.arguments import cli
from baselines.common.arguments import types as arg
from baselines.common.base.errors import UserFileError
from baselines.common.envs.spaces import check_spaces, clip_actions
from baselines.common.run.evaluation import evaluate, summary
from baselines.common.run.loading import find_env, load
from baselines.common.saving.files import check_writable
from baselines.common.vec_env.vec_env import VecEnvWrapper
from baselines.gail.expert import Expert, write_expert


def record(
    path: Annotated[str, "log folder of a run, or a saved model"],
    episodes: Annotated[arg.Count, "number of episodes"] = 50,
    output: Annotated[
        str | None, "file to write (default: PATH.npz, beside the folder or model)"
    ] = None,
    deterministic: Annotated[
        bool, "whether to act deterministically: take the most likely or best actions"
    ] = False,
    seed: arg.Seed = None,
    env: arg.PlayedEnv = None,
    trust: arg.Trust = False,
):
    """Plays full episodes with a trained model and writes them as expert data."""
    trained_env = find_env(path, env, trust)
    place = os.path.abspath(os.path.expanduser(path))
    output = output or f"{place.removesuffix('.safetensors')}.npz"
    output = os.path.abspath(os.path.expanduser(output))
    if os.path.lexists(output):
        raise UserFileError(
            f"there is a file {output} already; remove it, or give another --output"
        )
    check_writable(*os.path.split(output))
    model = load(path, trust, seed=seed)
    with RecordingVecEnv(trained_env.make(1, seed)) as vec_env:
        check_spaces(model, vec_env)
        results = evaluate(model, vec_env, episodes, deterministic)
        expert = vec_env.expert(results)
    write_expert(output, expert)
    returns = summary(results)
    print(
        f"wrote {output}: {len(expert.obs):,} transitions of {episodes} episodes of "
        f"{trained_env.spec.id}, mean return {returns['mean']:g} (standard deviation "
        f"{returns['std']:.3g}, {returns['min']:g} to {returns['max']:g})"
    )
    return expert


class RecordingVecEnv(VecEnvWrapper):
    """Keeps the observations of its one environment and the actions given to it."""

    def __init__(self, venv):
        super().__init__(venv)
        self.obs, self.acs = [], []
        self.ends = [0]  # number of transitions at each end of an episode or whole game

    def reset(self):
        self.last_obs = super().reset()
        return self.last_obs

    def step_async(self, actions):
        self.obs.append(self.last_obs[0])
        self.acs.append(clip_actions(actions, self.action_space)[0])
        super().step_async(actions)

    def step_wait(self):
        self.last_obs, *others, infos = super().step_wait()
        if "episode" in infos[0]:
            self.ends.append(len(self.obs))
        return self.last_obs, *others, infos

    def expert(self, results) -> Expert:
        """Returns the recorded episodes; ``results`` has the result of each."""
        returns = np.array([result["r"] for result in results])
        acs = np.array(self.acs, self.action_space.dtype)
        return Expert(np.stack(self.obs), acs, np.diff(self.ends), returns)


def main(argv=None):
    """Runs the command line."""
    return cli.command(record, argv)


if __name__ == "__main__":
    main()
