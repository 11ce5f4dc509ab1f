"""Deep Q-learning (DQN), and the extensions that together make Rainbow.

Mnih et al. 2015, "Human-level control through deep reinforcement learning"; Hessel et
al. 2018, "Rainbow: Combining Improvements in Deep Reinforcement Learning".
"""

from typing import Annotated

import numpy as np
from gymnasium import spaces
from keras import ops
from typing_extensions import Unpack

from baselines.common import backend
from baselines.common.arguments import types as arg
from baselines.common.arguments.schedules import make_schedule
from baselines.common.data.best_weights import BestWeights
from baselines.common.data.collector import Collector
from baselines.common.data.memory import make_memory
from baselines.common.networks.q_function import (
    QFunction,
    epsilon_at,
    losses_and_priorities,
    take_actions,
)
from baselines.common.run.algorithm import algorithm
from baselines.common.updates.optimizers import Adam
from baselines.common.updates.update import (
    Step,
    make_optimizer,
    make_update,
    move_towards,
)


def q_targets(outputs, chooser_means, returns, discounts, *, values):
    """Returns the targets of the outputs for the actions taken, as constants.

    R + γ^n Q_target(s', argmax_a Q_chooser(s', a)). The chooser is the target network
    itself (Mnih et al. 2015) or, in double Q-learning, the network being trained (van
    Hasselt et al. 2016, equation 4).

    Args:
        outputs: [B, actions, values.size] of the target network for s'
        chooser_means: [B, actions], the chooser's values for s'
        returns: [B] R, the discounted rewards of n steps
        discounts: [B] γ^n, 0 where the episode has ended
        values: what the outputs represent, see ``values.py``
    """
    best = ops.argmax(chooser_means, axis=1)
    targets = values.targets(take_actions(outputs, best), returns, discounts)
    return ops.stop_gradient(targets)


def dqn_loss(outputs, actions, targets, weights, *, values):
    """Returns the loss of a batch and a dict of metrics and priorities.

    Args:
        outputs: [B, actions, values.size]
        actions: [B], from 0
        targets: of the outputs for these actions, from ``q_targets``
        weights: [B] of the samples
        values: as in ``q_targets``
    """
    of_actions = take_actions(outputs, actions)
    losses, priorities = losses_and_priorities(values, of_actions, targets)
    loss = ops.mean(weights * losses)
    return loss, {
        "loss": loss,
        "q_mean": ops.mean(ops.max(values.mean(outputs), axis=1)),
        "priorities": priorities,
    }


@algorithm(actions=[spaces.Discrete], mpi=False)
def learn(
    run,
    env: arg.Env,
    network: arg.Network = "mlp",
    *,
    seed: arg.Seed = None,
    lr: Annotated[arg.Schedule, "learning rate of Adam"] = 5e-4,
    total_timesteps: arg.Timesteps = 100_000,
    buffer_size: arg.BufferSize = 50_000,
    exploration_fraction: Annotated[
        arg.ExplorationFraction, arg.NeedsNo("noisy")
    ] = 0.1,
    exploration_final_eps: Annotated[arg.FinalEpsilon, arg.NeedsNo("noisy")] = 0.02,
    train_freq: arg.TrainFreq = 1,
    gradient_steps: arg.GradientSteps = 1,
    batch_size: arg.BatchSize = 32,
    large_batch: Annotated[
        bool,
        "whether optimiser steps that are due together become one on all their batches",
    ] = False,
    print_freq: arg.PrintFreq = 100,
    checkpoint_freq: arg.CheckpointFreq = 10_000,
    checkpoint_path: arg.CheckpointPath = None,
    learning_starts: arg.LearningStarts = 1000,
    gamma: arg.Gamma = 0.99,
    target_network_update_freq: Annotated[
        arg.Count, "agent steps between updates of the target network"
    ] = 500,
    max_grad_norm: arg.VariableGradientNorm = 10.0,
    adam_epsilon: arg.AdamEpsilon = 1e-8,
    hiddens: arg.Hiddens = [256],  # noqa: B006
    values: Annotated[
        arg.Values,
        "scalar, or categorical for a distribution of returns (C51, Bellemare et al. "
        "2017)",
    ] = "scalar",
    double_q: Annotated[
        bool,
        "whether the network being trained chooses the next action, and the target "
        "network evaluates it (van Hasselt et al. 2016)",
    ] = False,
    dueling: Annotated[
        bool,
        "whether state values and advantages have separate streams (Wang et al. 2016)",
    ] = False,
    prioritized_replay: arg.PrioritizedReplay = False,
    prioritized_replay_alpha: arg.PriorityExponent = 0.6,
    prioritized_replay_beta0: arg.ImportanceExponent = 0.4,
    prioritized_replay_beta_iters: arg.ImportanceSteps = None,
    prioritized_replay_eps: arg.PriorityOffset = 1e-6,
    n_step: arg.NStep = 1,
    replay_k: arg.ReplayK = 0,
    memory: arg.Memory = None,
    noisy: Annotated[
        bool,
        "whether to explore by noise on the weights instead of random actions "
        "(Fortunato et al. 2018)",
    ] = False,
    noisy_sigma: Annotated[
        arg.Positive,
        arg.Needs("noisy"),
        "initial standard deviation of that noise, in units of 1 / √inputs of a layer",
    ] = 0.5,
    optimizer: arg.Optimizer = None,
    callback: arg.Callback = None,
    **others: Unpack[arg.Others],
) -> QFunction:
    """Trains a Q-function by DQN and returns it."""
    values, lr = values(), make_schedule(lr, name="lr")

    both = env.observation_space, env.action_space
    heads = hiddens, dueling, noisy_sigma if noisy else None
    model, target = (
        QFunction(*both, network, values, *heads, seed, algorithm=__name__)
        for _ in range(2)
    )
    run.load(model, target)
    final_epsilon = 0 if noisy else exploration_final_eps
    if total_timesteps:
        model.final_epsilon = final_epsilon
    priorities = dict(
        alpha=prioritized_replay_alpha,
        beta=prioritized_replay_beta0,
        beta_iters=prioritized_replay_beta_iters or total_timesteps,
        eps=prioritized_replay_eps,
    )
    settings = dict(n_step=n_step, gamma=gamma)
    settings |= priorities if prioritized_replay else {}
    kind = prioritized_replay, replay_k, memory
    memory = make_memory(run, buffer_size, *kind, **settings)
    limits = dict(clipnorm=max_grad_norm)
    optimizer = make_optimizer(optimizer, Adam, limits, epsilon=adam_epsilon)

    def loss(batch):
        outputs = chooser = target.outputs(batch.next_obs, batch.noise[:1])
        if double_q:
            chooser = model.outputs(batch.next_obs, batch.noise[1:2])
        means = model.masked(values.mean(chooser), batch.next_obs)
        targets = q_targets(
            outputs, means, batch.returns, batch.discounts, values=values
        )
        outputs = model.outputs(batch.obs, batch.noise[2:])
        actions = batch.actions - int(env.action_space.start)
        return dqn_loss(outputs, actions, targets, batch.weights, values=values)

    step = Step(loss, optimizer, model.trainable_variables)
    variables = [*model.variables, *target.variables]
    update = make_update(step, variables=variables, scan=True)
    update_target = backend.compile(
        lambda: move_towards(target.variables, model.variables, 1), variables
    )
    exploration_steps = 0 if noisy else exploration_fraction * total_timesteps
    collector = Collector(env, memory, lambda obs: model.step(obs)[0], learning_starts)
    best = BestWeights(run, model, checkpoint_path if checkpoint_freq else None)
    parts = dict(target=target, memory=memory, collector=collector, best=best)
    with run.start(1, model, optimizer=optimizer, **parts):
        for _, num_timesteps in run.updates():
            model.epsilon = epsilon_at(
                run.previous_timesteps, exploration_steps, final_epsilon
            )
            collector.step_async()
            if count := gradient_steps * collector.training_due(run, train_freq):
                shape = (1, count * batch_size) if large_batch else (count, batch_size)
                noise = model.noise(shape[0], 3)
                batches = memory.sample(*shape)._replace(noise=noise)
                rate = np.float32(lr(run.progress))
                metrics = update(rate, batches)
                memory.update_priorities(batches.indices, metrics.pop("priorities"))
                collector.last_metrics = metrics
            if run.due(target_network_update_freq):
                update_target()
            run.add_episodes(collector.step_wait())
            if run.episodes_due(print_freq):
                columns = dict(episodes=run.episodes.count, epsilon=model.epsilon)
                columns["action_entropy"] = collector.action_entropy()
                run.log(collector.last_metrics, **columns)
            if collector.last_metrics and checkpoint_freq and run.due(checkpoint_freq):
                best.update_best(run.episodes)
            if callback is not None:
                # Two names that callbacks for OpenAI Baselines' deepq read.
                t = num_timesteps
                returns = [result["r"] for result in run.episodes.results]
                episode_rewards = [*returns, 0.0]
                run.stop = callback(locals(), globals())
    model.epsilon = None
    if checkpoint_freq and collector.last_metrics:
        best.update_best(run.episodes)
        # If an evaluation met stop_at, it was of the current weights: keep them.
        if not (run.reached_score and run.evaluation):
            best.restore()
    return model
