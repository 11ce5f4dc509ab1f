"""Soft actor-critic (SAC), with two critics and a learned temperature.

Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications".
"""

import math
from typing import Annotated

import numpy as np
from gymnasium import spaces
from keras import ops
from typing_extensions import Unpack

from baselines.common.arguments import types as arg
from baselines.common.arguments.schedules import make_schedule
from baselines.common.data.collector import Collector
from baselines.common.data.memory import make_memory
from baselines.common.networks.actor_critic import ActorCritic
from baselines.common.networks.distributions import SquashedGaussian
from baselines.common.networks.layers import Scalar
from baselines.common.run.algorithm import algorithm
from baselines.common.updates.optimizers import Adam
from baselines.common.updates.update import Step, make_update, move_towards


def sac_targets(values, neglogps, alpha, returns, discounts):
    """Returns the targets of the action values, [B], as constants.

    R + γ^n (min_i Q_i(s', a') - α log π(a'|s')), with a' drawn from π. Equations 5 and
    6, without the entropies of the steps within R.

    Args:
        values: [critics, B] Q(s', a') of the target critics
        neglogps: [B] -log π(a'|s')
        alpha: α, the temperature
        returns: [B] R, the discounted rewards of n steps
        discounts: [B] γ^n, 0 where the episode has ended
    """
    soft = ops.min(values, axis=0) + alpha * neglogps
    return ops.stop_gradient(returns + discounts * soft)


@algorithm(actions=[spaces.Box])
def learn(
    run,
    env: arg.Env,
    network: arg.Network,
    *,
    seed: arg.Seed = None,
    total_timesteps: arg.Timesteps = 1_000_000,
    lr: Annotated[arg.Schedule, "learning rate of Adam, of all parts"] = 3e-4,
    ent_coef: Annotated[
        arg.Positive | None,
        "temperature alpha, the weight of the entropy; None to learn it",
    ] = None,
    target_entropy: Annotated[
        float | None,
        arg.NeedsNo("ent_coef"),
        "entropy in nats that a learned temperature aims at; None for -1 per action",
    ] = None,
    buffer_size: arg.BufferSize = 1_000_000,
    batch_size: arg.BatchSize = 256,
    train_freq: arg.TrainFreq = 1,
    learning_starts: arg.RandomSteps = 1000,
    gamma: arg.Gamma = 0.99,
    tau: arg.TargetRate = 0.005,
    n_step: arg.NStep = 1,
    prioritized_replay: arg.PrioritizedReplay = False,
    replay_k: arg.ReplayK = 0,
    normalize_observations: arg.NormalizeObservations = False,
    print_freq: arg.PrintFreq = 10,
    callback: arg.Callback = None,
    **others: Unpack[arg.Others],
) -> ActorCritic:
    """Trains a stochastic policy by SAC and returns it."""
    pi, lr = SquashedGaussian(env.action_space), make_schedule(lr, name="lr")
    both = env.observation_space, env.action_space
    settings = dict(normalize_observations=normalize_observations, seed=seed)
    model, target = (
        ActorCritic(*both, network, pi, algorithm=__name__, **settings)
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

    def sample(obs, noise):
        return pi.sample_with_neglogp(model.policy(obs), noise)

    def critic_loss(batch):
        next_actions, neglogps = sample(batch.next_obs, batch.noise[0])
        next_values = target.values(batch.next_obs, next_actions)
        targets = sac_targets(
            next_values, neglogps, ops.exp(log_alpha), batch.returns, batch.discounts
        )
        errors = model.values(batch.obs, batch.actions) - targets
        loss = 0.5 * ops.sum(ops.mean(batch.weights * ops.square(errors), axis=1))
        priorities = ops.mean(ops.abs(errors), axis=0)
        return loss, {"critic_loss": loss, "priorities": priorities}

    def policy_loss(batch):
        actions, neglogps = sample(batch.obs, batch.noise[1])
        values = ops.min(model.values(batch.obs, actions), axis=0)
        alpha, entropy = ops.stop_gradient(ops.exp(log_alpha)), ops.mean(neglogps)
        loss = -ops.mean(values) - alpha * entropy
        metrics = {"policy_loss": loss, "policy_entropy": entropy, "alpha": alpha}
        # With the temperature's loss, which has no gradient for the policy.
        return loss + log_alpha * ops.stop_gradient(entropy - target_entropy), metrics

    learned = [] if ent_coef is not None else [log_alpha]
    critic_optimizer, policy_optimizer = Adam(), Adam()
    update = make_update(
        Step(critic_loss, critic_optimizer, model.critic_variables),
        Step(policy_loss, policy_optimizer, [*model.policy_variables, *learned]),
        variables=[*model.variables, *target.variables],
        after=lambda: move_towards(
            target.critic_variables, model.critic_variables, tau
        ),
        scan=True,
    )
    memory = make_memory(
        run, buffer_size, prioritized_replay, replay_k, n_step=n_step, gamma=gamma
    )
    collector = Collector(env, memory, model.act, learning_starts, random_seed=seed)
    parts = dict(target=target, memory=memory, collector=collector)
    parts |= dict(critic_optimizer=critic_optimizer, policy_optimizer=policy_optimizer)
    with run.start(1, model, **parts):
        for _, num_timesteps in run.updates():
            collector.step_async()
            if count := collector.training_due(run, train_freq):
                noise = pi.noise(model.rng, count, 2, batch_size)
                batches = memory.sample(count, batch_size)._replace(noise=noise)
                rate = np.float32(lr(run.previous_timesteps / total_timesteps))
                metrics = update(rate, batches)
                memory.update_priorities(batches.indices, metrics.pop("priorities"))
                collector.last_metrics = metrics
            run.add_episodes(collector.step_wait())
            model.observe(collector.obs, target)
            if run.episodes_due(print_freq):
                run.log(collector.last_metrics, episodes=run.episodes.count)
            run.stop = callback is not None and callback(locals(), globals())
    return model
