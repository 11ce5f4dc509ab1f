"""Soft actor-critic (SAC), with two critics and a learned temperature.

Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications".
"""

import math
from typing import Annotated, Literal

import numpy as np
from gymnasium import spaces
from keras import ops
from pydantic import AfterValidator
from typing_extensions import Unpack

from baselines.common.arguments import types as arg
from baselines.common.arguments.schedules import make_schedule
from baselines.common.data.collector import Collector
from baselines.common.data.memory import make_memory
from baselines.common.networks.actor_critic import ActorCritic
from baselines.common.networks.distributions import SquashedGaussian
from baselines.common.networks.layers import Scalar
from baselines.common.run.algorithm import algorithm
from baselines.common.updates.delayed import delayed, grouped, pop_priorities
from baselines.common.updates.optimizers import Adam
from baselines.common.updates.update import (
    Step,
    make_optimizer,
    make_update,
    move_towards,
)


@algorithm(actions=[spaces.Box])
def learn(
    run,
    env: arg.Env,
    network: arg.Network = "mlp",
    *,
    seed: arg.Seed = None,
    total_timesteps: arg.Timesteps = 1_000_000,
    lr: Annotated[arg.Schedule, "learning rate of Adam, of all parts"] = 3e-4,
    ent_coef: Annotated[
        arg.Positive | Literal["auto"] | None,
        AfterValidator(lambda value: None if value == "auto" else value),
        "temperature alpha, the weight of the entropy; None or auto to learn it",
    ] = None,
    target_entropy: Annotated[
        float | None,
        arg.NeedsNo("ent_coef"),
        "entropy in nats that a learned temperature aims at; None for -1 per action",
    ] = None,
    policy_delay: arg.PolicyDelay = 1,
    buffer_size: arg.BufferSize = 1_000_000,
    batch_size: arg.BatchSize = 256,
    train_freq: arg.TrainFreq = 1,
    gradient_steps: arg.GradientSteps = 1,
    learning_starts: arg.RandomSteps = 1000,
    gamma: arg.Gamma = 0.99,
    tau: arg.TargetRate = 0.005,
    n_step: arg.NStep = 1,
    prioritized_replay: arg.PrioritizedReplay = False,
    replay_k: arg.ReplayK = 0,
    memory: arg.Memory = None,
    critic: arg.Critic = "minimum",
    normalize_observations: arg.NormalizeObservations = False,
    print_freq: arg.PrintFreq = 10,
    optimizer: arg.Optimizer = None,
    callback: arg.Callback = None,
    **others: Unpack[arg.Others],
) -> ActorCritic:
    """Trains a stochastic policy by SAC and returns it."""
    pi, lr = SquashedGaussian(env.action_space), make_schedule(lr, name="lr")
    critic = critic()
    both = env.observation_space, env.action_space
    settings = dict(normalize_observations=normalize_observations, critic=critic)
    model, target = (
        ActorCritic(*both, network, pi, seed=seed, algorithm=__name__, **settings)
        for _ in range(2)
    )
    for one in model, target:
        one.parts["temperature"] = Scalar("log_alpha", trainable=True)
    run.load(model, target)
    log_alpha = model.parts["temperature"].value
    if ent_coef is not None:
        log_alpha.assign(math.log(ent_coef))
    if target_entropy is None:
        target_entropy = -float(pi.num_actions)

    def sample(obs, noise, training=False):
        return pi.sample_with_neglogp(model.policy(obs, training), noise)

    def outputs_of(batch, next_actions):
        if not critic.joint:
            outputs = model.outputs(batch.obs, batch.actions)
            return outputs, target.outputs(batch.next_obs, next_actions)
        obs = ops.concatenate([batch.obs, batch.next_obs])
        actions = ops.concatenate([batch.actions, next_actions])
        return ops.split(model.outputs(obs, actions, training=True), 2, axis=1)

    def critic_loss(batch):
        next_actions, neglogps = sample(batch.next_obs, batch.noise[0])
        outputs, next_outputs = outputs_of(batch, next_actions)
        bonus = ops.exp(log_alpha) * neglogps
        targets = critic.targets(next_outputs, bonus, batch.returns, batch.discounts)
        losses, priorities = critic.losses(outputs, targets)
        loss = ops.sum(ops.mean(batch.weights * losses, axis=1))
        return loss, {"critic_loss": loss, "priorities": priorities}

    def policy_loss(batch):
        actions, neglogps = sample(batch.obs, batch.noise[1], critic.joint)
        values = critic.value(model.outputs(batch.obs, actions))
        alpha, entropy = ops.stop_gradient(ops.exp(log_alpha)), ops.mean(neglogps)
        loss = -ops.mean(values) - alpha * entropy
        metrics = {"policy_loss": loss, "policy_entropy": entropy, "alpha": alpha}
        # With the temperature's loss, which has no gradient for the policy.
        return loss + log_alpha * ops.stop_gradient(entropy - target_entropy), metrics

    def follow():
        move_towards(target.critic_variables, model.critic_variables, tau)

    learned = [] if ent_coef is not None else [log_alpha]
    critic_optimizer, policy_optimizer = (
        make_optimizer(optimizer, Adam, {}) for _ in range(2)
    )
    update = make_update(
        *delayed(
            Step(critic_loss, critic_optimizer, model.critic_variables),
            Step(policy_loss, policy_optimizer, [*model.policy_variables, *learned]),
            policy_delay,
        ),
        variables=[*model.variables, *target.variables],
        after=None if critic.joint else follow,
        scan=True,
    )
    kind = prioritized_replay, replay_k, memory
    memory = make_memory(run, buffer_size, *kind, n_step=n_step, gamma=gamma)
    collector = Collector(env, memory, model.act, learning_starts, random_seed=seed)
    parts = dict(target=target, memory=memory, collector=collector)
    parts |= dict(critic_optimizer=critic_optimizer, policy_optimizer=policy_optimizer)
    with run.start(1, model, **parts):
        for _, num_timesteps in run.updates():
            collector.step_async()
            due = collector.training_due(run, policy_delay * train_freq)
            if count := gradient_steps * policy_delay * due:
                noise = pi.noise(model.rng, count, 2, batch_size)
                batches = memory.sample(count, batch_size)._replace(noise=noise)
                batches = grouped(batches, policy_delay)
                rate = np.float32(lr(run.progress))
                metrics = update(rate, batches)
                priorities = pop_priorities(metrics, policy_delay)
                memory.update_priorities(batches.indices, priorities)
                collector.last_metrics = metrics
            run.add_episodes(collector.step_wait())
            model.observe(collector.obs, target)
            if run.episodes_due(print_freq):
                run.log(collector.last_metrics, episodes=run.episodes.count)
            run.stop = callback is not None and callback(locals(), globals())
    return model
