"""Records a trained model as an expert: ``python -m baselines.gail.record LOGDIR``."""

import os
from typing import Annotated

import numpy as np

from baselines.common.arguments import cli
from baselines.common.arguments import types as arg
from baselines.common.base.errors import UserFileError
from baselines.common.data.episodes import result_of
from baselines.common.envs.spaces import check_spaces
from baselines.common.run.evaluation import play_steps, summary
from baselines.common.run.loading import find_env, load
from baselines.common.saving.files import check_writable
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
    with trained_env.make(1, seed) as vec_env:
        check_spaces(model, vec_env)
        expert, results = play_episodes(model, vec_env, episodes, deterministic)
    write_expert(output, expert)
    returns = summary(results)
    print(
        f"wrote {output}: {len(expert.obs):,} transitions of {episodes} episodes of "
        f"{trained_env.spec.id}, mean return {returns['mean']:g} (standard deviation "
        f"{returns['std']:.3g}, {returns['min']:g} to {returns['max']:g})"
    )
    return expert


def play_episodes(model, env, episodes, deterministic):
    """Returns an Expert and the results of the episodes of a VecEnv of one."""
    obs, acs, ends, results = [], [], [0], []
    for seen, taken, _, infos in play_steps(model, env, deterministic):
        obs.append(seen[0])
        acs.append(taken[0])
        if "episode" in infos[0]:
            ends.append(len(obs))
            results.append(result_of(infos[0]))
            if len(results) == episodes:
                break
    acs = np.array(acs, env.action_space.dtype)
    returns = np.array([result["r"] for result in results])
    return Expert(np.stack(obs), acs, np.diff(ends), returns), results


def main(argv=None):
    """Runs the command line."""
    return cli.command(record, argv)


if __name__ == "__main__":
    main()
