"""Actor-critic with a Kronecker-factored trust region (ACKTR).

Wu et al. 2017, "Scalable trust-region method for deep reinforcement learning using
Kronecker-factored approximation".
"""

from typing import Annotated

import numpy as np
from keras import ops
from typing_extensions import Unpack

from baselines.a2c.a2c import a2c_loss
from baselines.common.arguments import types as arg
from baselines.common.arguments.schedules import check_lrschedule, make_schedule
from baselines.common.data.returns import explained_variance, n_step
from baselines.common.data.runners import Runner, flatten
from baselines.common.networks.policies import Policy
from baselines.common.run.algorithm import algorithm
from baselines.common.updates.kfac import KFAC

# Between time steps that the Fisher factors are computed from, to save time; OpenAI
# Baselines uses all of them.
FISHER_STRIDE = 5


def log_likelihood(params, values, actions, noise, *, distribution, vf_fisher_coef):
    """Returns the log-likelihood whose Fisher matrix is used, summed over a batch.

    log p = Σ log π(a|s) - c (v - y)²   with   y = v + noise, constants

    As in Wu et al. 2017, section 3.1, the policy's output and the value (the mean of a
    Gaussian) are independent.

    Args:
        params: [B, P] parameters of π(·|s)
        values: [B] v(s)
        actions: [B, ...] drawn from π(·|s)
        noise: [B] standard normal
        distribution: the one that ``params`` parameterise
        vf_fisher_coef: c, ½ for a standard deviation of 1
    """
    targets = ops.stop_gradient(values) + noise
    value_term = vf_fisher_coef * ops.square(values - targets)
    return -ops.sum(distribution.neglogp(params, actions) + value_term)


@algorithm(mpi=False)
def learn(
    run,
    env: arg.Env,
    network: arg.Network = "mlp",
    *,
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
    distribution: arg.Distribution = None,
    normalize_observations: arg.NormalizeObservations = False,
    callback: arg.Callback = None,
    **others: Unpack[arg.Others],
) -> Policy:
    """Trains a policy by ACKTR and returns it."""
    check_lrschedule(lr, lrschedule, "linear")
    lr = make_schedule(lr, lrschedule, "lr")
    networks = network, value_network
    policy = run.make_model(Policy, *networks, normalize_observations, distribution)
    run.load(policy)
    optimizer = KFAC(policy, kfac_clip, seed, max_grad_norm, kfac_update)
    pi = policy.distribution
    weights = dict(vf_coef=vf_coef, ent_coef=ent_coef)

    def loss(batch):
        params, values, *_ = policy(batch)
        return a2c_loss(params, values, batch.flat(), distribution=pi, **weights)

    def fisher(batch, noise):
        obs, actions = batch.obs[::FISHER_STRIDE], batch.actions[::FISHER_STRIDE]
        params, values, *_ = policy(batch._replace(obs=obs))
        drawn = flatten(actions), flatten(noise)
        return log_likelihood(
            params, values, *drawn, distribution=pi, vf_fisher_coef=vf_fisher_coef
        )

    update = optimizer.make_update(loss, fisher)
    runner = Runner(env, policy, nsteps)
    with run.start(nsteps, policy, optimizer=optimizer, runner=runner):
        for nupdates, num_timesteps in run.updates():
            rollout = runner.run()
            run.add_episodes(rollout.episodes)
            returns = n_step(rollout.rewards, rollout.dones, rollout.next_values, gamma)
            times = len(range(0, nsteps, FISHER_STRIDE))
            noise = optimizer.rng.standard_normal((times, env.num_envs), np.float32)
            batch = rollout.batch(returns - rollout.values, returns)
            metrics = update(lr(run.progress_at_last_step), batch, noise)
            policy.observe(rollout.obs)
            if run.row_due(log_interval):
                explained = explained_variance(rollout.values, returns)
                run.log(metrics, nupdates=nupdates, explained_variance=explained)
            run.stop = callback is not None and callback(locals(), globals())
    return policy
