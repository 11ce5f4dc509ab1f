"""Twin delayed deep deterministic policy gradient (TD3).

Fujimoto et al. 2018, "Addressing Function Approximation Error in Actor-Critic Methods".
"""

from typing import Annotated

import numpy as np
from gymnasium import spaces
from keras import ops
from typing_extensions import Unpack

from baselines.common.arguments import types as arg
from baselines.common.arguments.schedules import make_schedule
from baselines.common.data.action_noise import ActionNoise, NoiseType
from baselines.common.data.collector import Collector
from baselines.common.data.memory import make_memory
from baselines.common.networks.actor_critic import ActorCritic
from baselines.common.networks.distributions import Deterministic
from baselines.common.run.algorithm import algorithm
from baselines.common.updates.delayed import delayed, grouped, pop_priorities
from baselines.common.updates.optimizers import Adam
from baselines.common.updates.update import (
    Step,
    make_optimizer,
    make_update,
    move_towards,
)


def td3_targets(values, returns, discounts):
    """Returns the targets of the action values, [B], as constants.

    R + γ^n min_i Q_i(s', a'). Equation 10.

    Args:
        values: [critics, B] Q(s', a') of the target critics
        returns: [B] R, the discounted rewards of n steps
        discounts: [B] γ^n, 0 where the episode has ended
    """
    return ops.stop_gradient(returns + discounts * ops.min(values, axis=0))


@algorithm(actions=[spaces.Box])
def learn(
    run,
    env: arg.Env,
    network: arg.Network = "mlp",
    *,
    seed: arg.Seed = None,
    total_timesteps: arg.Timesteps = 1_000_000,
    lr: Annotated[arg.Schedule, "learning rate of Adam, of all parts"] = 3e-4,
    policy_delay: arg.PolicyDelay = 2,
    target_noise: Annotated[
        arg.NonNegative,
        "standard deviation of noise on target actions, in half widths of their range",
    ] = 0.2,
    target_noise_clip: Annotated[
        arg.NonNegative,
        arg.Needs("target_noise"),
        "limit at which that noise is clipped",
    ] = 0.5,
    noise_type: NoiseType = "normal_0.1",
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
    normalize_observations: arg.NormalizeObservations = False,
    print_freq: arg.PrintFreq = 10,
    optimizer: arg.Optimizer = None,
    callback: arg.Callback = None,
    **others: Unpack[arg.Others],
) -> ActorCritic:
    """Trains a deterministic policy by TD3 and returns it."""
    pi, lr = Deterministic(env.action_space), make_schedule(lr, name="lr")
    both = env.observation_space, env.action_space
    settings = dict(normalize_observations=normalize_observations, seed=seed)
    model, target = (
        ActorCritic(*both, network, pi, algorithm=__name__, **settings)
        for _ in range(2)
    )
    run.load(model, target)

    def critic_loss(batch):
        noise = target_noise * batch.noise
        next_actions = pi.smoothed(
            target.policy(batch.next_obs), noise, target_noise_clip
        )
        next_values = target.values(batch.next_obs, next_actions)
        targets = td3_targets(next_values, batch.returns, batch.discounts)
        errors = model.values(batch.obs, batch.actions) - targets
        loss = ops.sum(ops.mean(batch.weights * ops.square(errors), axis=1))
        priorities = ops.mean(ops.abs(errors), axis=0)
        return loss, {"critic_loss": loss, "priorities": priorities}

    def policy_loss(batch):
        actions = pi.mode(model.policy(batch.obs))
        loss = -ops.mean(model.values(batch.obs, actions, num_critics=1))
        return loss, {"policy_loss": loss}

    critic_optimizer, policy_optimizer = (
        make_optimizer(optimizer, Adam, {}) for _ in range(2)
    )
    update = make_update(
        *delayed(
            Step(critic_loss, critic_optimizer, model.critic_variables),
            Step(policy_loss, policy_optimizer, model.policy_variables),
            policy_delay,
        ),
        variables=[*model.variables, *target.variables],
        after=lambda: move_towards(
            target.trainable_variables, model.trainable_variables, tau
        ),
        scan=True,
    )
    noise = ActionNoise(noise_type, env, seed)
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
            due = collector.training_due(run, policy_delay * train_freq)
            if count := gradient_steps * due:
                batches = memory.sample(count * policy_delay, batch_size)
                drawn = model.rng.standard_normal(batches.actions.shape, np.float32)
                batches = grouped(batches._replace(noise=drawn), policy_delay)
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
