"""Advantage actor-critic (A2C), the synchronous form of A3C.

Mnih et al. 2016, "Asynchronous Methods for Deep Reinforcement Learning".
"""

from typing import Annotated

import numpy as np
from keras import ops
from typing_extensions import Unpack

from baselines.common.arguments import types as arg
from baselines.common.arguments.schedules import check_lrschedule, make_schedule
from baselines.common.data.returns import explained_variance, n_step
from baselines.common.data.runners import Runner
from baselines.common.networks.policies import Policy
from baselines.common.run.algorithm import algorithm
from baselines.common.updates.optimizers import RMSprop
from baselines.common.updates.update import Step, make_optimizer, make_update


def a2c_loss(params, values, batch, *, distribution, vf_coef, ent_coef):
    """Returns the loss of a batch and a dict of metrics.

    L = mean[A · -log π(a|s)] - ent_coef mean[H(π)] + vf_coef mean[(v - R)²]

    Mnih et al. 2016, section 4 and algorithm S3. The squares are not halved.

    Args:
        params: [B, P] parameters of π(·|s)
        values: [B] v(s)
        batch: a ``Batch`` of samples, with actions a [B, ...], and as constants the
            returns R [B] and advantages A [B]: R minus the value at the time of acting
        distribution: the one that ``params`` parameterise
        vf_coef, ent_coef: weights of the value loss and the entropy
    """
    policy_loss = ops.mean(
        batch.advantages * distribution.neglogp(params, batch.actions)
    )
    entropy = ops.mean(distribution.entropy(params))
    value_loss = ops.mean(ops.square(values - batch.returns))
    loss = policy_loss - ent_coef * entropy + vf_coef * value_loss
    return loss, {
        "policy_loss": policy_loss,
        "policy_entropy": entropy,
        "value_loss": value_loss,
    }


@algorithm()
def learn(
    run,
    env: arg.Env,
    network: arg.Network = "mlp",
    *,
    seed: arg.Seed = None,
    total_timesteps: arg.Timesteps = int(80e6),
    nsteps: Annotated[arg.Count, "steps of each environment per update"] = 5,
    vf_coef: Annotated[float, "weight of the value loss"] = 0.5,
    ent_coef: Annotated[float, "weight of the entropy bonus"] = 0.01,
    max_grad_norm: arg.GradientNorm = 0.5,
    lr: Annotated[arg.Schedule, "learning rate"] = 7e-4,
    lrschedule: arg.LrSchedule = "linear",
    epsilon: Annotated[
        arg.NonNegative,
        arg.NeedsNo("optimizer"),
        "of RMSProp, inside the square root",
    ] = 1e-5,
    alpha: Annotated[
        arg.Fraction, arg.NeedsNo("optimizer"), "decay of RMSProp's mean square"
    ] = 0.99,
    gamma: arg.Gamma = 0.99,
    log_interval: arg.LogInterval = 100,
    value_network: arg.ValueNetwork = "shared",
    distribution: arg.Distribution = None,
    normalize_observations: arg.NormalizeObservations = False,
    optimizer: arg.Optimizer = None,
    callback: arg.Callback = None,
    **others: Unpack[arg.Others],
) -> Policy:
    """Trains a policy by A2C and returns it."""
    check_lrschedule(lr, lrschedule, "linear")
    lr = make_schedule(lr, lrschedule, "lr")
    networks = network, value_network
    policy = run.make_model(Policy, *networks, normalize_observations, distribution)
    run.load(policy)
    # Each update sets its learning rate.
    limits, own = dict(global_clipnorm=max_grad_norm), dict(rho=alpha, epsilon=epsilon)
    optimizer = make_optimizer(optimizer, RMSprop, limits, **own)
    weights = dict(vf_coef=vf_coef, ent_coef=ent_coef)

    def loss(batch):
        params, values, *_ = policy(batch)
        pi = policy.distribution
        return a2c_loss(params, values, batch.flat(), distribution=pi, **weights)

    step = Step(loss, optimizer, policy.trainable_variables)
    update = make_update(step, variables=policy.variables)
    runner = Runner(env, policy, nsteps)
    with run.start(nsteps, policy, optimizer=optimizer, runner=runner):
        for nupdates, num_timesteps in run.updates():
            rollout = runner.run()
            run.add_episodes(rollout.episodes)
            returns = n_step(rollout.rewards, rollout.dones, rollout.next_values, gamma)
            # As in OpenAI Baselines, the rate at the batch's last agent step.
            learning_rate = np.float32(lr(run.progress_at_last_step))
            batch = rollout.batch(returns - rollout.values, returns)
            metrics = update(learning_rate, batch)
            policy.observe(rollout.obs)
            if run.row_due(log_interval):
                explained = explained_variance(rollout.values, returns)
                run.log(metrics, nupdates=nupdates, explained_variance=explained)
            run.stop = callback is not None and callback(locals(), globals())
    return policy
