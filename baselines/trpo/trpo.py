"""Trust region policy optimisation (TRPO) with generalised advantage estimation.

Schulman et al. 2015, "Trust Region Policy Optimization"; Schulman et al. 2016,
"High-Dimensional Continuous Control Using Generalized Advantage Estimation".
"""

import math
from typing import Annotated

import numpy as np
from keras import ops
from typing_extensions import Unpack

from baselines.common.arguments import types as arg
from baselines.common.base import mpi
from baselines.common.data.returns import explained_variance, gae
from baselines.common.data.runners import Runner, Shuffler, flatten
from baselines.common.networks.policies import Policy
from baselines.common.run.algorithm import algorithm
from baselines.common.updates.optimizers import Adam
from baselines.common.updates.trust_region import make_trust_region_update
from baselines.common.updates.update import Step, make_update

MINIBATCH = 64  # samples per step of the value function, as in OpenAI Baselines


def trpo_loss(params, batch, old_params, *, distribution, ent_coef):
    """Returns the loss that a step of the policy lowers, and a dict of metrics.

    L = -mean[r A] - ent_coef mean[H(π)]   with   mean[KL(π_old || π)]   limited

    and the ratio r = π(a|s) / π_old(a|s). Schulman et al. 2015, equation 14. OpenAI
    Baselines added the entropy bonus.

    Args:
        params: [B, P] parameters of π(·|s)
        batch: a ``Batch`` of samples, with actions a [B, ...], and as constants the
            advantages A [B] and neglogps -log π_old(a|s) [B]
        old_params: [B, P] those of π_old(·|s), at the time of acting
        distribution: the one that ``params`` parameterise
        ent_coef: weight of the entropy
    """
    ratio = ops.exp(batch.neglogps - distribution.neglogp(params, batch.actions))
    surrogate_gain = ops.mean(ratio * batch.advantages)
    entropy = ops.mean(distribution.entropy(params))
    return -surrogate_gain - ent_coef * entropy, {
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
    env: arg.Env,
    network: arg.Network = "mlp",
    *,
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
    distribution: arg.Distribution = None,
    normalize_observations: arg.NormalizeObservations = False,
    reward: arg.Reward = "environment",
    callback: arg.Callback = None,
    **others: Unpack[arg.Others],
) -> Policy:
    """Trains a policy by TRPO and returns it."""
    networks = network, value_network
    policy = run.make_model(Policy, *networks, normalize_observations, distribution)
    run.load(policy)
    reward = reward(run=run, policy=policy)
    nsteps = math.ceil(timesteps_per_batch / env.num_envs)
    num_samples = env.num_envs * nsteps
    num_minibatches = max(1, num_samples // MINIBATCH)
    if policy.initial_state is not None:  # Minibatches hold whole sequences.
        num_samples = env.num_envs
        num_minibatches = min(num_minibatches, num_samples)

    def policy_loss(batch, old_params):
        params, pi = policy(batch).params, policy.distribution
        samples = batch.flat()
        return trpo_loss(
            params, samples, old_params, distribution=pi, ent_coef=ent_coef
        )

    def value_loss(indices, batch):
        minibatch = batch.take(indices)
        errors = policy(minibatch).values - flatten(minibatch.returns)
        loss = ops.mean(ops.square(errors))
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
            rewards, reward_metrics = reward(rollout)
            values = rollout.values, rollout.next_values
            advantages = gae(rewards, rollout.dones, *values, gamma, lam)
            returns = advantages + rollout.values
            batch = rollout.batch(standardize(advantages), returns)
            metrics = update_policy(batch) | reward_metrics
            metrics |= update_values(np.float32(vf_stepsize), shuffler.draw(), batch)
            policy.observe(rollout.obs)
            if run.row_due(log_interval):
                explained = explained_variance(rollout.values, returns)
                run.log(metrics, nupdates=nupdates, explained_variance=explained)
            run.stop = callback is not None and callback(locals(), globals())
    return policy
