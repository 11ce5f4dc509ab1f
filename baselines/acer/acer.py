"""Actor-critic with experience replay (ACER), for Discrete actions.

Wang et al. 2017, "Sample Efficient Actor-Critic with Experience Replay".
"""

from typing import Annotated

import numpy as np
from annotated_types import Interval
from gymnasium import spaces
from keras import ops
from typing_extensions import Unpack

from baselines.common.arguments import types as arg
from baselines.common.arguments.schedules import check_lrschedule, make_schedule
from baselines.common.base import mpi
from baselines.common.base.errors import UserValueError
from baselines.common.data.collector import Collector
from baselines.common.data.memory import make_memory
from baselines.common.data.returns import explained_variance, retrace
from baselines.common.data.sequence_replay import SequenceReplayBuffer
from baselines.common.networks.discrete_actor_critic import DiscreteActorCritic
from baselines.common.run.algorithm import algorithm
from baselines.common.updates.optimizers import RMSprop
from baselines.common.updates.trust_region import limit_gradients
from baselines.common.updates.update import Step, make_update, move_towards

EPSILON = 1e-6  # added to denominators


def acer_loss(
    logits,
    action_values,
    average_logits,
    batch,
    *,
    gamma,
    c,
    q_coef,
    ent_coef,
    delta,
):
    """Returns the loss of a batch of sequences and a dict of metrics.

    L = L_π - ent_coef mean[H(π)] + q_coef mean[½ (q(a) - Q)²]
    L_π = -mean[min(c, ρ(a)) (Q - v) log π(a)
                + Σ_b max(0, 1 - c / ρ(b)) π(b) (q(b) - v) log π(b)]

    with Q from ``retrace``, v = Σ_b π(b) q(b) and ρ = π / μ; the factors of the
    logarithms are constants. The gradient of the first two terms of L with respect to π
    is limited along that of KL(average || π). Wang et al. 2017, equations 9 to 12.

    Args:
        logits: [T + 1, N, A] of π; the last are for the state after the last step
        action_values: [T + 1, N, A] q
        average_logits: [T, N, A] of the average policy
        batch: ``Sequences``, with actions from 0; its probabilities are μ
        gamma: discount of one agent step
        c: limit at which importance ratios are truncated
        q_coef, ent_coef: weights of the action values' loss and the entropy
        delta: limit on the gradient's product with that of KL; infinite for none
    """
    values = ops.sum(ops.softmax(logits) * action_values, axis=-1)
    next_values = ops.where(batch.dones, batch.limit_values, values[1:])
    q, v = action_values[:-1], values[:-1, :, None]
    log_pi = ops.log_softmax(logits[:-1])
    pi, average_pi = ops.exp(log_pi), ops.softmax(average_logits)
    taken = ops.one_hot(batch.actions, q.shape[-1])
    q_taken = ops.sum(taken * q, axis=-1)
    ratios = pi / (batch.probabilities + EPSILON)
    ratios_taken = ops.sum(taken * ratios, axis=-1)
    targets = retrace(
        batch.rewards, batch.dones, next_values, q_taken, ratios_taken, gamma
    )
    weights = taken * ops.minimum(ratios, c) * (targets[..., None] - v)
    weights = weights + ops.relu(1.0 - c / (ratios + EPSILON)) * pi * (q - v)
    weights = ops.stop_gradient(weights)
    policy_loss = -ops.mean(ops.sum(weights * log_pi, axis=-1))
    entropy = -ops.mean(ops.sum(pi * log_pi, axis=-1))
    q_loss = 0.5 * ops.mean(ops.square(q_taken - targets))
    gradients = weights / (pi + EPSILON) - ent_coef * (1.0 + log_pi)
    limited = limit_gradients(gradients, -average_pi / (pi + EPSILON), delta)
    # A loss whose negative gradient with respect to π is the limited one.
    loss = -ops.mean(ops.sum(ops.stop_gradient(limited) * pi, axis=-1))
    kl = ops.sum(average_pi * (ops.log_softmax(average_logits) - log_pi), axis=-1)
    return loss + q_coef * q_loss, {
        "policy_loss": policy_loss,
        "q_loss": q_loss,
        "policy_entropy": entropy,
        "kl": ops.mean(kl),
        "q_taken": q_taken,
        "targets": targets,
    }


@algorithm(actions=[spaces.Discrete])
def learn(
    run,
    env: arg.Env,
    network: arg.Network = "mlp",
    *,
    seed: arg.Seed = None,
    nsteps: Annotated[arg.Count, "steps of each environment per update"] = 20,
    total_timesteps: arg.Timesteps = int(80e6),
    q_coef: Annotated[float, "weight of the action values' loss"] = 0.5,
    ent_coef: Annotated[float, "weight of the entropy bonus"] = 0.01,
    max_grad_norm: arg.GradientNorm = 10.0,
    lr: Annotated[arg.Schedule, "learning rate"] = 7e-4,
    lrschedule: arg.LrSchedule = "linear",
    rprop_epsilon: Annotated[arg.NonNegative, "of RMSProp, in the square root"] = 1e-5,
    rprop_alpha: Annotated[arg.Fraction, "decay of RMSProp's mean square"] = 0.99,
    gamma: arg.Gamma = 0.99,
    log_interval: arg.LogInterval = 100,
    buffer_size: arg.BufferSize = 50_000,
    replay_ratio: Annotated[
        float, Interval(ge=0, le=1000), "mean number of replay updates per rollout"
    ] = 4,
    replay_start: Annotated[
        arg.CountOrZero,
        arg.Needs("replay_ratio"),
        "agent steps before the first replay update",
    ] = 10_000,
    c: Annotated[arg.Positive, "limit at which importance ratios are truncated"] = 10.0,
    trust_region: Annotated[
        bool, "whether to limit the policy's gradient by an average policy"
    ] = True,
    alpha: Annotated[
        arg.Fraction, "decay of the average policy", arg.Needs("trust_region")
    ] = 0.99,
    delta: Annotated[
        arg.Positive,
        "largest product of the gradients of policy and KL divergence",
        arg.Needs("trust_region"),
    ] = 1.0,
    callback: arg.Callback = None,
    **others: Unpack[arg.Others],
) -> DiscreteActorCritic:
    """Trains a policy by ACER and returns it."""
    check_lrschedule(lr, lrschedule, "linear", "constant")
    lr = make_schedule(lr, lrschedule, "lr")
    if total_timesteps and buffer_size < env.num_envs * nsteps:
        raise UserValueError(
            f"buffer_size has to be at least num_env {env.num_envs} x nsteps {nsteps}, "
            f"received {buffer_size}"
        )
    both = env.observation_space, env.action_space
    model, average = (
        DiscreteActorCritic(*both, network, seed, __name__) for _ in range(2)
    )
    run.load(model, average)
    memory = make_memory(run, buffer_size, build=SequenceReplayBuffer)
    optimizer = RMSprop(
        rho=rprop_alpha, epsilon=rprop_epsilon, global_clipnorm=max_grad_norm
    )
    first_action = int(env.action_space.start)

    def loss(batch):
        return acer_loss(
            *model(batch.obs),
            average(batch.obs[:-1])[0],
            batch._replace(actions=batch.actions - first_action),
            gamma=gamma,
            c=c,
            q_coef=q_coef,
            ent_coef=ent_coef,
            delta=delta if trust_region else np.inf,
        )

    update = make_update(
        Step(loss, optimizer, model.trainable_variables),
        variables=[*model.variables, *average.variables],
        after=lambda: move_towards(average.variables, model.variables, 1 - alpha),
    )

    def explore(obs):
        actions, _, probabilities, _ = model.act(obs)
        memory.add_probabilities(probabilities)
        return actions

    collector = Collector(env, memory, explore)
    parts = dict(average=average, memory=memory, collector=collector)
    with run.start(nsteps, model, optimizer=optimizer, **parts):
        for nupdates, num_timesteps in run.updates():
            for _ in range(nsteps):
                collector.step_async()
                run.add_episodes(collector.step_wait())
            rate = np.float32(lr(run.progress))
            metrics = update(rate, memory.newest(nsteps, model.value))
            if num_timesteps >= replay_start:
                # All ranks have to make the same number of updates.
                for _ in range(mpi.broadcast(memory.rng.poisson(replay_ratio))):
                    update(rate, memory.sample_sequences(nsteps, model.value))
            values = metrics.pop("q_taken"), metrics.pop("targets")
            if run.row_due(log_interval):
                explained = explained_variance(*map(np.asarray, values))
                run.log(metrics, nupdates=nupdates, explained_variance=explained)
            run.stop = callback is not None and callback(locals(), globals())
    return model
