"""Parallelised Q-network (PQN): Q(λ) on rollouts, without memory and target network.

Gallici et al. 2024, "Simplifying Deep Temporal Difference Learning". Layer
normalisation in the network takes the place of a target network.
"""

from typing import Annotated

import numpy as np
from gymnasium import spaces
from keras import ops
from typing_extensions import Unpack

from baselines.common.arguments import types as arg
from baselines.common.arguments.schedules import make_schedule
from baselines.common.data.returns import explained_variance, gae
from baselines.common.data.runners import Batch, Runner, Shuffler
from baselines.common.networks.q_function import QFunction, epsilon_at, take_actions
from baselines.common.networks.values import ScalarValues
from baselines.common.run.algorithm import algorithm
from baselines.common.updates.optimizers import Adam
from baselines.common.updates.update import Step, make_optimizer, make_update


def q_lambda(rollout, gamma, lam):
    """Returns Peng's λ-returns, [T, N].

    R_t = r_t + γ (λ R_{t+1} + (1 - λ) max_a Q(s_{t+1}, a)), which ends at an episode's
    end as ``next_values`` do. These are GAE's returns of v(s) = max_a Q(s, a).

    Args:
        rollout: a ``Rollout`` whose values are max_a Q(s, a).
        gamma, lam: γ and λ.
    """
    rewards, dones, values = rollout.rewards, rollout.dones, rollout.values
    return gae(rewards, dones, values, rollout.next_values, gamma, lam) + values


@algorithm(actions=[spaces.Discrete])
def learn(
    run,
    env: arg.Env,
    network: arg.Network = "mlp",
    *,
    seed: arg.Seed = None,
    total_timesteps: arg.Timesteps = 10_000_000,
    nsteps: Annotated[arg.Count, "steps of each environment per update"] = 32,
    lr: Annotated[arg.Schedule, "learning rate"] = 2.5e-4,
    gamma: arg.Gamma = 0.99,
    lam: Annotated[arg.Fraction, "lambda of Q(lambda)"] = 0.65,
    nminibatches: Annotated[
        arg.Count, "minibatches per epoch; what does not fill them is left out"
    ] = 32,
    noptepochs: Annotated[arg.Count, "epochs of training on each rollout"] = 2,
    max_grad_norm: arg.GradientNorm = 10.0,
    exploration_fraction: arg.ExplorationFraction = 0.1,
    exploration_final_eps: arg.FinalEpsilon = 0.001,
    hiddens: arg.Hiddens = [],  # noqa: B006
    log_interval: arg.LogInterval = 10,
    optimizer: arg.Optimizer = None,
    callback: arg.Callback = None,
    **others: Unpack[arg.Others],
) -> QFunction:
    """Trains a Q-function by PQN and returns it."""
    model = run.make_model(QFunction, network, ScalarValues(), hiddens)
    run.load(model)
    lr = make_schedule(lr, name="lr")
    if total_timesteps:
        model.final_epsilon = exploration_final_eps
    limits = dict(global_clipnorm=max_grad_norm)
    # RAdam in the paper, whose first steps are smaller.
    optimizer = make_optimizer(optimizer, Adam, limits)

    def loss(indices, batch):
        samples = batch.take(indices).flat()
        outputs = model.outputs(samples.obs, np.zeros((1, 0), np.float32))
        actions = samples.actions - int(env.action_space.start)
        values = take_actions(outputs, actions)[:, 0]
        value_loss = 0.5 * ops.mean(ops.square(values - samples.returns))
        return value_loss, {"value_loss": value_loss, "q_mean": ops.mean(values)}

    step = Step(loss, optimizer, model.trainable_variables)
    update = make_update(step, variables=model.variables, scan=True)
    runner = Runner(env, model, nsteps)
    size = nsteps * env.num_envs
    shuffler = Shuffler(size, min(nminibatches, size), noptepochs, run.seed)
    exploration_steps = exploration_fraction * total_timesteps
    parts = dict(optimizer=optimizer, runner=runner, shuffler=shuffler)
    with run.start(nsteps, model, **parts):
        for nupdates, num_timesteps in run.updates():
            model.epsilon = epsilon_at(
                run.previous_timesteps, exploration_steps, exploration_final_eps
            )
            rollout = runner.run()
            run.add_episodes(rollout.episodes)
            returns = q_lambda(rollout, gamma, lam)
            batch = Batch(rollout.obs, actions=rollout.actions, returns=returns)
            rate = np.float32(lr(run.progress_by_updates))
            metrics = update(rate, shuffler.draw(), batch)
            if run.row_due(log_interval):
                explained = explained_variance(rollout.values, returns)
                columns = dict(epsilon=model.epsilon, explained_variance=explained)
                run.log(metrics, nupdates=nupdates, **columns)
            run.stop = callback is not None and callback(locals(), globals())
    model.epsilon = None
    return model
