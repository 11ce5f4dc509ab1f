"""Models play episodes in environments of their own, which they do not learn from."""

import numpy as np


def play_steps(model, env, deterministic=False):
    """Yields the infos of each step of a VecEnv, after a reset.

    Args:
        model: has ``step`` and ``initial_state``.
        env: a VecEnv.
        deterministic: whether the model takes the most likely or best actions.
    """
    obs, states = env.reset(), model.initial_state
    dones = np.zeros(env.num_envs, bool)
    while True:
        actions, _, states, _ = model.step(
            obs, S=states, M=dones, deterministic=deterministic
        )
        obs, _, dones, infos = env.step(actions)
        yield infos


def evaluate(model, env, episodes, deterministic=False) -> list:
    """Returns the results (``info["episode"]``) of episodes, in the order they ended.

    Each environment plays as many as the others, or one more: those that end first are
    not counted more often.

    Args:
        model, env, deterministic: as in ``play_steps``; the VecEnv, or the environments
            in it, have a monitor.
        episodes: how many.
    """
    left = [len(range(i, episodes, env.num_envs)) for i in range(env.num_envs)]
    results = []
    for infos in play_steps(model, env, deterministic):
        for i, info in enumerate(infos):
            if left[i] and "episode" in info:
                left[i] -= 1
                results.append(info["episode"])
        if not any(left):
            return results


def summary(results) -> dict:
    """Returns mean, deviation, minimum and maximum of the returns, and mean length."""
    returns = [result["r"] for result in results]
    return {
        "episodes": len(results),
        "mean": float(np.mean(returns)),
        "std": float(np.std(returns)),
        "min": float(np.min(returns)),
        "max": float(np.max(returns)),
        "mean_length": float(np.mean([result["l"] for result in results])),
    }
