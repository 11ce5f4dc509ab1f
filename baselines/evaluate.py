"""Evaluates a trained model: ``python -m baselines.evaluate LOGDIR``."""

import json as json_text
from typing import Annotated

from baselines.common.arguments import cli
from baselines.common.arguments import types as arg
from baselines.common.envs.spaces import check_spaces
from baselines.common.run.evaluation import evaluate, how_to_act, summary
from baselines.common.run.loading import find_env, load


def evaluate_run(
    path: Annotated[str, "log folder of a run, or a saved model"],
    episodes: Annotated[arg.Count, "number of episodes"] = 100,
    num_env: Annotated[arg.Count, "environments that run in parallel"] = 8,
    deterministic: arg.Deterministic = None,
    seed: arg.Seed = None,
    precision: arg.ActingPrecision = None,
    json: Annotated[
        bool, "whether to print one JSON object, with the return of each episode"
    ] = False,
    env: arg.PlayedEnv = None,
    trust: arg.Trust = False,
):
    """Plays full episodes with a trained model and prints their raw scores."""
    trained_env = find_env(path, env, trust)
    if deterministic is None:
        deterministic = trained_env.deterministic
    model = load(path, trust, seed=seed, precision=precision)
    with trained_env.make(min(num_env, episodes), seed) as vec_env:
        check_spaces(model, vec_env)
        results = evaluate(model, vec_env, episodes, deterministic)
    found = {
        "env": trained_env.spec.id,
        **summary(results),
        "deterministic": deterministic,
        "seed": seed,
        "returns": [result["r"] for result in results],
    }
    if json:
        print(json_text.dumps(found))
    else:
        rate = found.get("success_rate")
        successes = "" if rate is None else f", success rate {rate:g}"
        print(
            f"{trained_env.spec.id}: mean score {found['mean']:g} (standard deviation "
            f"{found['std']:.3g}, {found['min']:g} to {found['max']:g}) of "
            f"{episodes} episode{'s' * (episodes > 1)}, mean length "
            f"{found['mean_length']:g} agent steps{successes}"
        )
        print(how_to_act(deterministic))
    return found


def main(argv=None):
    """Runs the command line."""
    return cli.command(evaluate_run, argv)


if __name__ == "__main__":
    main()
