"""Actor-critic with a Kronecker-factored trust region (ACKTR).

Wu et al. 2017, "Scalable trust-region method for deep reinforcement learning using
Kronecker-factored approximation".
"""

from typing import Annotated

import numpy as np
from keras import ops

from baselines import logger
from baselines.common.arguments import types as arg
from baselines.common.arguments.schedules import check_lrschedule, make_schedule
from baselines.common.data.returns import explained_variance, n_step
from baselines.common.data.runners import Runner, flatten
from baselines.common.networks.policies import Policy
from baselines.common.run.algorithm import algorithm
from baselines.common.updates.kfac import COLD_UPDATES, KFAC

# Between time steps that the Fisher factors are computed from, to save time; OpenAI
# Baselines uses all of them.
FISHER_STRIDE = 5


def acktr_loss(params, values, actions, advantages, returns, *, distribution, c_v, c_e):
    """Returns the loss of a batch and a dict of metrics, both the same as A2C's.

    L = mean[A · -log π(a|s)] - c_e mean[H(π)] + c_v mean[(v - R)²]

    Args:
        params: [B, P] parameters of π(·|s)
        values: [B] v(s)
        actions: [B, ...]
        advantages: [B] R minus the value at the time of acting, as constants
        returns: [B] R
        distribution: the one that ``params`` parameterise
        c_v, c_e: weights of the value loss and the entropy
    """
    policy_loss = ops.mean(advantages * distribution.neglogp(params, actions))
    entropy = ops.mean(distribution.entropy(params))
    value_loss = ops.mean(ops.square(values - returns))
    return policy_loss - c_e * entropy + c_v * value_loss, {
        "policy_loss": policy_loss,
        "policy_entropy": entropy,
        "value_loss": value_loss,
    }


def log_likelihood(params, values, actions, noise, *, distribution, c_f):
    """Returns the log-likelihood whose Fisher matrix is used, summed over a batch.

    log p = Σ log π(a|s) - c_f (v - y)²   with   y = v + noise, constants

    As in Wu et al. 2017, section 3.1, the policy's output and the value (the mean of a
    Gaussian) are independent.

    Args:
        params: [B, P] parameters of π(·|s)
        values: [B] v(s)
        actions: [B, ...] drawn from π(·|s)
        noise: [B] standard normal
        distribution: the one that ``params`` parameterise
        c_f: weight of the value term, ½ for a standard deviation of 1
    """
    targets = ops.stop_gradient(values) + noise
    value_term = c_f * ops.square(values - targets)
    return -ops.sum(distribution.neglogp(params, actions) + value_term)


@algorithm(mpi=False)
def learn(
    run,
    *,
    env: arg.Env,
    network: arg.Network,
    seed: arg.Seed = None,
    total_timesteps: arg.Timesteps = int(40e6),
    gamma: arg.Gamma = 0.99,
    log_interval: arg.LogInterval = 100,
    nsteps: Annotated[arg.Count, "steps of each environment per update"] = 20,
    ent_coef: Annotated[float, "weight of the entropy bonus"] = 0.01,
    vf_coef: Annotated[float, "weight of the value loss"] = 0.5,
    vf_fisher_coef: Annotated[
        arg.Positive, "weight of the value function in the Fisher matrix"
    ] = 1.0,
    lr: Annotated[arg.Schedule, "learning rate; kfac_clip may shorten the step"] = 0.25,
    max_grad_norm: Annotated[
        arg.GradientNorm,
        "in the first ten updates, before the Fisher matrix is used",
    ] = 0.5,
    kfac_clip: Annotated[
        arg.Positive, "twice the maximum KL divergence of a step"
    ] = 0.001,
    kfac_update: Annotated[
        arg.Count,
        "updates between decompositions of the Fisher matrix, each used as many "
        "updates later",
    ] = 20,
    lrschedule: arg.LrSchedule = "linear",
    value_network: arg.ValueNetwork = "shared",
    normalize_observations: arg.NormalizeObservations = False,
    callback: arg.Callback = None,
) -> Policy:
    """Trains a policy by ACKTR and returns it."""
    check_lrschedule(lr, lrschedule, "linear")
    lr = make_schedule(lr, lrschedule, "lr")
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
    optimizer = KFAC(policy, kfac_clip, seed, max_grad_norm, kfac_update)
    distribution = policy.distribution

    def loss(obs, *batch):
        params, values = policy(obs)
        return acktr_loss(
            params,
            values,
            *map(flatten, batch),
            distribution=distribution,
            c_v=vf_coef,
            c_e=ent_coef,
        )

    def fisher(obs, actions, noise):
        params, values = policy(obs)
        return log_likelihood(
            params,
            values,
            flatten(actions),
            flatten(noise),
            distribution=distribution,
            c_f=vf_fisher_coef,
        )

    update = optimizer.make_update(loss, fisher)
    runner = Runner(env, policy, nsteps)
    with run.start(nsteps, policy, optimizer=optimizer, runner=runner):
        if 0 < run.num_updates <= COLD_UPDATES:
            logger.warn(
                f"no step will use the Fisher matrix: total_timesteps (num_timesteps) "
                f"is {run.num_updates} updates, and the first {COLD_UPDATES} gather "
                "its statistics"
            )
        for nupdates, num_timesteps in run.updates():
            rollout = runner.run()
            run.add_episodes(rollout.episodes)
            returns = n_step(rollout.rewards, rollout.dones, rollout.next_values, gamma)
            obs = rollout.obs[::FISHER_STRIDE]
            noise = optimizer.rng.standard_normal(obs.shape[:2], np.float32)
            metrics = update(
                lr((num_timesteps - 1) / total_timesteps),
                (obs, rollout.actions[::FISHER_STRIDE], noise),
                rollout.obs,
                rollout.actions,
                returns - rollout.values,
                returns,
            )
            policy.observe(rollout.obs)
            if run.row_due(log_interval):
                explained = explained_variance(rollout.values, returns)
                run.log(metrics, nupdates=nupdates, explained_variance=explained)
            run.stop = callback is not None and callback(locals(), globals())
    return policy
