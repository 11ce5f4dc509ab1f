"""Deep deterministic policy gradient (DDPG).

Lillicrap et al. 2016, "Continuous control with deep reinforcement learning".
"""

from typing import Annotated

import numpy as np
from gymnasium import spaces
from keras import ops
from typing_extensions import Unpack

from baselines.common.arguments import types as arg
from baselines.common.base.errors import UserValueError
from baselines.common.data.action_noise import ActionNoise, NoiseType
from baselines.common.data.collector import Collector
from baselines.common.data.memory import make_memory
from baselines.common.networks.actor_critic import ActorCritic
from baselines.common.networks.critics import Minimum
from baselines.common.networks.distributions import Deterministic
from baselines.common.run.algorithm import algorithm
from baselines.common.updates.optimizers import Adam
from baselines.common.updates.update import (
    Step,
    make_optimizer,
    make_update,
    move_towards,
)


def ddpg_targets(values, returns, discounts, limits):
    """Returns the targets of the action values, [B], as constants.

    R + γ^n Q(s', π(s')), clipped to limits. Algorithm 1.

    Args:
        values: [B] Q(s', π(s')) of the target networks
        returns: [B] R, the discounted rewards of n steps
        discounts: [B] γ^n, 0 where the episode has ended
        limits: the lowest and the highest target
    """
    return ops.stop_gradient(ops.clip(returns + discounts * values, *limits))


def lowest_return(gamma, steps=np.inf):
    """Returns the lowest sum of discounted rewards that are not below -1."""
    return -(1 - gamma**steps) / (1 - gamma) if gamma < 1 else -steps


def check_returns(returns, gamma, n_step) -> None:
    """Raises UserValueError unless returns are sums of n_step rewards from -1 to 0."""
    lowest = lowest_return(gamma, n_step)
    wrong = returns[(returns < lowest - 1e-3) | (returns > 1e-3)]
    if wrong.size:
        raise UserValueError(
            f"clip_return needs rewards from -1 to 0, received {wrong[0]:.4g} as the "
            f"sum of up to {n_step}; with clip_return=False, they may have any size"
        )


@algorithm(actions=[spaces.Box])
def learn(
    run,
    env: arg.Env,
    network: arg.Network = "mlp",
    *,
    seed: arg.Seed = None,
    total_timesteps: arg.Timesteps = 1_000_000,
    actor_lr: Annotated[arg.NonNegative, "learning rate of Adam for the policy"] = 1e-4,
    critic_lr: Annotated[arg.NonNegative, "learning rate of Adam for critics"] = 1e-3,
    nb_rollout_steps: Annotated[
        arg.Count,
        "agent steps, over all environments, between blocks of optimiser steps",
    ] = 100,
    nb_train_steps: Annotated[arg.Count, "optimiser steps per block"] = 50,
    noise_type: NoiseType = "normal_0.2",
    random_eps: Annotated[
        arg.Probability, "probability of a uniformly random action instead"
    ] = 0.0,
    critic_l2_reg: Annotated[
        arg.NonNegative,
        "weight of the critic's L2 penalty, half its squared kernels except the last",
    ] = 1e-2,
    action_l2: Annotated[
        arg.NonNegative,
        "weight of the policy's L2 penalty on actions, in half widths of their range",
    ] = 0.0,
    clip_norm: arg.VariableGradientNorm = None,
    buffer_size: arg.BufferSize = 1_000_000,
    batch_size: arg.BatchSize = 64,
    learning_starts: arg.RandomSteps = 0,
    gamma: arg.Gamma = 0.99,
    tau: arg.TargetRate = 0.01,
    n_step: arg.NStep = 1,
    prioritized_replay: arg.PrioritizedReplay = False,
    replay_k: arg.ReplayK = 0,
    memory: arg.Memory = None,
    clip_return: arg.ClipReturn = False,
    normalize_observations: arg.NormalizeObservations = False,
    normalize_returns: Annotated[
        bool,
        "whether to normalise the critic's targets by their running mean and standard "
        "deviation (Pop-Art, van Hasselt et al. 2016)",
    ] = False,
    print_freq: arg.PrintFreq = 10,
    optimizer: arg.Optimizer = None,
    callback: arg.Callback = None,
    **others: Unpack[arg.Others],
) -> ActorCritic:
    """Trains a deterministic policy by DDPG and returns it."""
    pi = Deterministic(env.action_space)
    limits = (lowest_return(gamma), 0.0) if clip_return else (-np.inf, np.inf)
    both = env.observation_space, env.action_space
    normalize = dict(
        normalize_observations=normalize_observations,
        normalize_returns=normalize_returns,
    )
    settings = dict(critic=Minimum(1), seed=seed, algorithm=__name__, **normalize)
    model, target = (ActorCritic(*both, network, pi, **settings) for _ in range(2))
    run.load(model, target)

    def critic_loss(batch):
        next_actions = pi.mode(target.policy(batch.next_obs))
        next_values = target.values(batch.next_obs, next_actions)[0]
        targets = ddpg_targets(next_values, batch.returns, batch.discounts, limits)
        errors = model.values(batch.obs, batch.actions)[0] - targets
        priorities = ops.abs(errors)  # in a unit that does not change
        errors = errors / model.deviation_of_returns
        loss = ops.mean(batch.weights * ops.square(errors))
        metrics = dict(critic_loss=loss, targets=targets, priorities=priorities)
        return loss + critic_l2_reg * model.critics[0].weight_decay(), metrics

    def policy_loss(batch):
        actions = pi.mode(model.policy(batch.obs))
        squares = ops.mean(ops.square((actions - pi.middle) / pi.half_width))
        loss = action_l2 * squares - ops.mean(model.values(batch.obs, actions)[0])
        return loss, {"policy_loss": loss}

    critic_optimizer, policy_optimizer = (
        make_optimizer(optimizer, Adam, dict(learning_rate=rate, clipnorm=clip_norm))
        for rate in (critic_lr, actor_lr)
    )
    update = make_update(
        Step(critic_loss, critic_optimizer, model.critic_variables),
        Step(policy_loss, policy_optimizer, model.policy_variables),
        variables=[*model.variables, *target.variables],
        after=lambda: move_towards(
            target.trainable_variables, model.trainable_variables, tau
        ),
        scan=True,
    )
    noise = ActionNoise(noise_type, env, seed, random_eps)
    kind = prioritized_replay, replay_k, memory
    memory = make_memory(run, buffer_size, *kind, n_step=n_step, gamma=gamma)
    collector = Collector(
        env, memory, lambda obs: noise.add(model.act(obs)), learning_starts, seed
    )
    parts = dict(target=target, memory=memory, collector=collector)
    parts |= dict(critic_optimizer=critic_optimizer, policy_optimizer=policy_optimizer)
    with run.start(1, model, **parts, noise=noise):
        for _, num_timesteps in run.updates():
            collector.step_async()
            if blocks := collector.training_due(run, nb_rollout_steps):
                batches = memory.sample(blocks * nb_train_steps, batch_size)
                if clip_return:
                    check_returns(batches.returns, gamma, n_step)
                metrics = update(None, batches)
                memory.update_priorities(batches.indices, metrics.pop("priorities"))
                model.observe_returns(metrics.pop("targets"), target)
                collector.last_metrics = metrics
            run.add_episodes(collector.step_wait())
            model.observe(collector.obs, target)
            if run.episodes_due(print_freq):
                run.log(collector.last_metrics, episodes=run.episodes.count)
            run.stop = callback is not None and callback(locals(), globals())
    return model
