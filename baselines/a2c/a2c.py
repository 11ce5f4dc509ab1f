"""Advantage actor-critic (A2C), the synchronous form of A3C.

Mnih et al. 2016, "Asynchronous Methods for Deep Reinforcement Learning".
"""

from typing import Annotated

import numpy as np
from keras import ops

from baselines.common.arguments import types as arg
from baselines.common.arguments.schedules import check_lrschedule, make_schedule
from baselines.common.data.returns import explained_variance, n_step
from baselines.common.data.runners import Runner, flatten
from baselines.common.networks.policies import Policy
from baselines.common.run.algorithm import algorithm
from baselines.common.updates.optimizers import RMSprop
from baselines.common.updates.update import Step, make_update


def a2c_loss(params, values, actions, advantages, returns, *, distribution, c_v, c_e):
    """Returns the loss of a batch and a dict of metrics.

    L = mean[A · -log π(a|s)] - c_e mean[H(π)] + c_v mean[(v - R)²]

    Mnih et al. 2016, section 4 and algorithm S3. The squares are not halved.

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
    loss = policy_loss - c_e * entropy + c_v * value_loss
    return loss, {
        "policy_loss": policy_loss,
        "policy_entropy": entropy,
        "value_loss": value_loss,
    }


@algorithm()
def learn(
    run,
    *,
    env: arg.Env,
    network: arg.Network,
    seed: arg.Seed = None,
    total_timesteps: arg.Timesteps = int(80e6),
    nsteps: Annotated[arg.Count, "steps of each environment per update"] = 5,
    vf_coef: Annotated[float, "weight of the value loss"] = 0.5,
    ent_coef: Annotated[float, "weight of the entropy bonus"] = 0.01,
    max_grad_norm: arg.GradientNorm = 0.5,
    lr: Annotated[arg.Schedule, "learning rate"] = 7e-4,
    lrschedule: arg.LrSchedule = "linear",
    epsilon: Annotated[arg.NonNegative, "of RMSProp, inside the square root"] = 1e-5,
    alpha: Annotated[arg.Fraction, "decay of RMSProp's mean square"] = 0.99,
    gamma: arg.Gamma = 0.99,
    log_interval: arg.LogInterval = 100,
    value_network: arg.ValueNetwork = "shared",
    normalize_observations: arg.NormalizeObservations = False,
    callback: arg.Callback = None,
) -> Policy:
    """Trains a policy by A2C and returns it."""
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
    optimizer = RMSprop(rho=alpha, epsilon=epsilon, global_clipnorm=max_grad_norm)

    def loss(obs, states, masks, *batch):
        params, values = policy(obs, states, masks)
        return a2c_loss(
            params,
            values,
            *map(flatten, batch),
            distribution=policy.distribution,
            c_v=vf_coef,
            c_e=ent_coef,
        )

    step = Step(loss, optimizer, policy.trainable_variables)
    update = make_update(step, variables=policy.variables)
    runner = Runner(env, policy, nsteps)
    with run.start(nsteps, policy, optimizer=optimizer, runner=runner):
        for nupdates, num_timesteps in run.updates():
            rollout = runner.run()
            run.add_episodes(rollout.episodes)
            returns = n_step(rollout.rewards, rollout.dones, rollout.next_values, gamma)
            # As in OpenAI Baselines, the rate at the batch's last agent step.
            learning_rate = lr((num_timesteps - 1) / total_timesteps)
            metrics = update(
                np.float32(learning_rate),
                rollout.obs,
                rollout.states,
                rollout.masks,
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
