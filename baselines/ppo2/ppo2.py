"""Proximal policy optimisation (PPO), with the clipped surrogate objective.

Schulman et al. 2017, "Proximal Policy Optimization Algorithms".
"""

from typing import Annotated

import numpy as np
from keras import ops

from baselines.common.arguments import types as arg
from baselines.common.arguments.schedules import make_schedule
from baselines.common.base.errors import UserValueError
from baselines.common.data.returns import explained_variance, gae
from baselines.common.data.runners import (
    Runner,
    Shuffler,
    check_epochs,
    flatten,
    minibatch,
)
from baselines.common.networks.policies import Policy
from baselines.common.run.algorithm import algorithm
from baselines.common.updates.optimizers import Adam
from baselines.common.updates.update import Step, make_update


def ppo2_loss(
    params,
    values,
    actions,
    old_neglogps,
    old_values,
    advantages,
    returns,
    cliprange,
    *,
    distribution,
    c_v,
    c_e,
    clip_values=True,
):
    """Returns the loss of a minibatch and a dict of metrics.

    L = mean[max(-A r, -A clip(r, 1 - ε, 1 + ε))] - c_e mean[H(π)]
        + c_v ½ mean[max((v - R)², (v_old + clip(v - v_old, -ε, ε) - R)²)]

    with the ratio r = π(a|s) / π_old(a|s) and A normalised over the minibatch.
    Schulman et al. 2017, equations 7 and 9. OpenAI Baselines added the clipped value
    loss.

    Args:
        params: [B, P] parameters of π(·|s)
        values: [B] v(s)
        actions: [B, ...]
        old_neglogps: [B] -log π_old(a|s), at the time of acting
        old_values: [B] v_old(s), at the time of acting
        advantages: [B], constants
        returns: [B] R, constants
        cliprange: ε
        distribution: the one that ``params`` parameterise
        c_v, c_e: weights of the value loss and the entropy
        clip_values: False for c_v ½ mean[(v - R)²]
    """
    advantages = advantages - ops.mean(advantages)
    advantages = advantages / (ops.std(advantages) + 1e-8)
    log_ratio = old_neglogps - distribution.neglogp(params, actions)
    # Where exp overflows, the gradient would be NaN even for a clipped ratio: 0 · ∞.
    ratio = ops.exp(ops.minimum(log_ratio, 20.0))
    clipped_ratio = ops.clip(ratio, 1.0 - cliprange, 1.0 + cliprange)
    policy_loss = ops.mean(
        ops.maximum(-advantages * ratio, -advantages * clipped_ratio)
    )
    squares = ops.square(values - returns)
    if clip_values:
        moves = ops.clip(values - old_values, -cliprange, cliprange)
        squares = ops.maximum(squares, ops.square(old_values + moves - returns))
    value_loss = 0.5 * ops.mean(squares)
    entropy = ops.mean(distribution.entropy(params))
    loss = policy_loss - c_e * entropy + c_v * value_loss
    return loss, {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "policy_entropy": entropy,
        "approxkl": 0.5 * ops.mean(ops.square(log_ratio)),
        "clipfrac": ops.mean(ops.cast(ops.abs(ratio - 1.0) > cliprange, "float32")),
    }


@algorithm()
def learn(
    run,
    *,
    env: arg.Env,
    network: arg.Network,
    seed: arg.Seed = None,
    total_timesteps: arg.Timesteps = int(1e6),
    nsteps: Annotated[arg.Count, "steps of each environment per update"] = 2048,
    ent_coef: Annotated[float, "weight of the entropy bonus"] = 0.0,
    lr: Annotated[arg.Schedule, "learning rate"] = 3e-4,
    vf_coef: Annotated[float, "weight of the value loss"] = 0.5,
    max_grad_norm: arg.GradientNorm = 0.5,
    gamma: arg.Gamma = 0.99,
    lam: arg.Lambda = 0.95,
    log_interval: arg.LogInterval = 10,
    nminibatches: Annotated[
        arg.Count,
        "minibatches per epoch; has to divide num_env x nsteps, or num_env if the "
        "network is recurrent",
    ] = 4,
    noptepochs: Annotated[arg.Count, "epochs of training on each rollout"] = 4,
    cliprange: Annotated[
        arg.Schedule,
        "clip range of the probability ratio, and of values if clip_values",
    ] = 0.2,
    clip_values: Annotated[
        bool,
        "whether values are clipped too; cliprange then has to suit their scale",
    ] = True,
    adam_epsilon: arg.AdamEpsilon = 1e-5,
    value_network: arg.ValueNetwork = "shared",
    normalize_observations: arg.NormalizeObservations = False,
    callback: arg.Callback = None,
) -> Policy:
    """Trains a policy by PPO and returns it."""
    policy = Policy(
        env.observation_space,
        env.action_space,
        network,
        value_network,
        normalize_observations,
        seed=seed,
        # Another module, such as ppo1, if its learn() calls this function.
        algorithm=run.learn.__module__,
    )
    run.load(policy)
    lr = make_schedule(lr, name="lr")
    cliprange = make_schedule(cliprange, name="cliprange")
    recurrent = policy.initial_state is not None
    # Minibatches are drawn from samples, or from whole sequences if recurrent.
    num_samples = env.num_envs if recurrent else env.num_envs * nsteps
    # For a model that is only loaded, the environments do not matter.
    if total_timesteps and num_samples % nminibatches:
        samples = f"num_env {env.num_envs} x nsteps {nsteps}"
        if recurrent:
            samples = "num_env, as a recurrent network trains on whole sequences"
        raise UserValueError(
            f"the number of minibatches has to divide {num_samples} ({samples}), "
            f"received {nminibatches}"
        )
    if total_timesteps and env.num_envs * nsteps == nminibatches:
        raise UserValueError(
            f"{nminibatches} minibatches of an update have one sample each, whose "
            "normalised advantage is 0; give more samples or fewer minibatches"
        )
    check_epochs(noptepochs, num_samples, "noptepochs or nsteps")
    optimizer = Adam(epsilon=adam_epsilon, global_clipnorm=max_grad_norm)

    def loss(indices, cliprange, *batch):
        states, obs, masks, *batch = minibatch(indices, *batch)
        params, values = policy(obs, states, masks)
        return ppo2_loss(
            params,
            values,
            *map(flatten, batch),
            cliprange,
            distribution=policy.distribution,
            c_v=vf_coef,
            c_e=ent_coef,
            clip_values=clip_values,
        )

    step = Step(loss, optimizer, policy.trainable_variables)
    update = make_update(step, variables=policy.variables, scan=True)
    runner = Runner(env, policy, nsteps)
    shuffler = Shuffler(num_samples, nminibatches, noptepochs, seed)
    parts = dict(optimizer=optimizer, runner=runner, shuffler=shuffler)
    with run.start(nsteps, policy, **parts):
        for nupdates, num_timesteps in run.updates():
            rollout = runner.run()
            run.add_episodes(rollout.episodes)
            advantages = gae(
                rollout.rewards,
                rollout.dones,
                rollout.values,
                rollout.next_values,
                gamma,
                lam,
            )
            returns = advantages + rollout.values
            progress = (nupdates - 1) / run.num_updates
            metrics = update(
                np.float32(lr(progress)),
                shuffler.draw(),
                np.float32(cliprange(progress)),
                rollout.states,
                rollout.obs,
                rollout.masks,
                rollout.actions,
                rollout.neglogps,
                rollout.values,
                advantages,
                returns,
            )
            policy.observe(rollout.obs)
            if run.row_due(log_interval):
                explained = explained_variance(rollout.values, returns)
                run.log(metrics, nupdates=nupdates, explained_variance=explained)
            run.stop = callback is not None and callback(locals(), globals())
    return policy
