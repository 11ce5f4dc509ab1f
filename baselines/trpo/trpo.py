"""Trust region policy optimisation (TRPO) with generalised advantage estimation.

Schulman et al. 2015, "Trust Region Policy Optimization"; Schulman et al. 2016,
"High-Dimensional Continuous Control Using Generalized Advantage Estimation".
"""

import math
from typing import Annotated

import numpy as np
from keras import ops

from baselines.common.arguments import types as arg
from baselines.common.base import mpi
from baselines.common.data.returns import explained_variance, gae, rewards_and_metrics
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
from baselines.common.updates.trust_region import make_trust_region_update
from baselines.common.updates.update import Step, make_update

MINIBATCH = 64  # samples per step of the value function, as in OpenAI Baselines


def trpo_loss(
    params, old_params, actions, old_neglogps, advantages, *, distribution, c_e
):
    """Returns the loss that a step of the policy lowers, and a dict of metrics.

    L = -mean[r A] - c_e mean[H(π)]   while   mean[KL(π_old || π)] stays below a limit

    with the ratio r = π(a|s) / π_old(a|s). Schulman et al. 2015, equation 14. OpenAI
    Baselines added the entropy bonus.

    Args:
        params: [B, P] parameters of π(·|s)
        old_params: [B, P] those of π_old(·|s), at the time of acting
        actions: [B, ...]
        old_neglogps: [B] -log π_old(a|s), at the time of acting
        advantages: [B], constants
        distribution: the one that ``params`` parameterise
        c_e: weight of the entropy
    """
    ratio = ops.exp(old_neglogps - distribution.neglogp(params, actions))
    surrogate_gain = ops.mean(ratio * advantages)
    entropy = ops.mean(distribution.entropy(params))
    return -surrogate_gain - c_e * entropy, {
        "surrogate_gain": surrogate_gain,
        "policy_entropy": entropy,
        "kl": ops.mean(distribution.kl(old_params, params)),
    }


def standardize(advantages):
    """Returns the advantages standardised to mean 0 and variance 1 over all ranks."""
    centred = advantages - mpi.mean(np.mean(advantages))
    variance = mpi.mean(np.mean(np.square(centred)))
    return centred / (np.sqrt(variance) + 1e-8)


@algorithm()
def learn(
    run,
    *,
    env: arg.Env,
    network: arg.Network,
    seed: arg.Seed = None,
    total_timesteps: arg.Timesteps = int(1e6),
    timesteps_per_batch: Annotated[
        arg.Count,
        "agent steps per update, over all environments of a rank; rounded up to a "
        "multiple of num_env",
    ] = 1024,
    max_kl: Annotated[
        arg.Positive,
        "KL divergence that an update aims at; up to 1.5 times as much is accepted",
    ] = 0.001,
    cg_iters: Annotated[arg.Count, "iterations of conjugate gradient per update"] = 10,
    gamma: arg.Gamma = 0.99,
    lam: arg.Lambda = 1.0,
    ent_coef: Annotated[float, "weight of the entropy bonus"] = 0.0,
    cg_damping: Annotated[
        arg.NonNegative, "added to the diagonal of the Fisher matrix"
    ] = 1e-2,
    vf_stepsize: Annotated[
        arg.NonNegative, "learning rate of Adam for the value function"
    ] = 3e-4,
    vf_iters: Annotated[
        arg.Count, "epochs of training for the value function on each rollout"
    ] = 3,
    log_interval: arg.LogInterval = 1,
    value_network: arg.ValueNetwork = "copy",
    normalize_observations: arg.NormalizeObservations = False,
    reward: arg.Reward = "environment",
    callback: arg.Callback = None,
) -> Policy:
    """Trains a policy by TRPO and returns it."""
    policy = Policy(
        env.observation_space,
        env.action_space,
        network,
        value_network,
        normalize_observations,
        seed=seed,
        algorithm=__name__,
    )
    run.load(policy)
    reward = reward(run, policy)
    nsteps = math.ceil(timesteps_per_batch / env.num_envs)
    num_samples = env.num_envs * nsteps
    num_minibatches = max(1, num_samples // MINIBATCH)
    if policy.initial_state is not None:  # Minibatches hold whole sequences.
        num_samples = env.num_envs
        num_minibatches = min(num_minibatches, num_samples)
    check_epochs(vf_iters, num_samples, "vf_iters or timesteps_per_batch")

    def policy_loss(old_params, states, obs, masks, *batch):
        params, _ = policy(obs, states, masks)
        return trpo_loss(
            params,
            old_params,
            *map(flatten, batch),
            distribution=policy.distribution,
            c_e=ent_coef,
        )

    def value_loss(indices, *batch):
        states, obs, masks, returns = minibatch(indices, *batch)
        _, values = policy(obs, states, masks)
        loss = ops.mean(ops.square(values - flatten(returns)))
        return loss, {"value_loss": loss}

    update_policy = make_trust_region_update(
        policy, policy_loss, max_kl, cg_iters, cg_damping
    )
    optimizer = Adam()
    value_step = Step(value_loss, optimizer, policy.value_variables)
    update_values = make_update(value_step, variables=policy.variables, scan=True)
    runner = Runner(env, policy, nsteps)
    shuffler = Shuffler(num_samples, num_minibatches, vf_iters, seed)
    parts = dict(optimizer=optimizer, runner=runner, shuffler=shuffler, reward=reward)
    with run.start(nsteps, policy, **parts):
        if total_timesteps and not run.num_timesteps:
            reward.begin()
        for nupdates, num_timesteps in run.updates():
            rollout = runner.run()
            run.add_episodes(rollout.episodes)
            rewards, reward_metrics = rewards_and_metrics(reward, rollout)
            values = rollout.values, rollout.next_values
            advantages = gae(rewards, rollout.dones, *values, gamma, lam)
            returns = advantages + rollout.values
            inputs = rollout.states, rollout.obs, rollout.masks
            metrics = update_policy(
                *inputs, rollout.actions, rollout.neglogps, standardize(advantages)
            )
            metrics |= reward_metrics | update_values(
                np.float32(vf_stepsize), shuffler.draw(), *inputs, returns
            )
            policy.observe(rollout.obs)
            if run.row_due(log_interval):
                explained = explained_variance(rollout.values, returns)
                run.log(metrics, nupdates=nupdates, explained_variance=explained)
            run.stop = callback is not None and callback(locals(), globals())
    return policy
