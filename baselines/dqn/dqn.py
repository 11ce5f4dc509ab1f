"""Deep Q-learning (DQN), and the extensions that together make Rainbow.

Mnih et al. 2015, "Human-level control through deep reinforcement learning"; Hessel et
al. 2018, "Rainbow: Combining Improvements in Deep Reinforcement Learning".
"""

import os
import time
from collections.abc import Callable

import numpy as np
from keras import ops

from baselines import logger
from baselines.common import backend, mpi
from baselines.common.checkpoint import (
    Checkpoints,
    VariableState,
    must_not_change,
)
from baselines.common.envs import as_vec_env
from baselines.common.errors import UserValueError
from baselines.common.files import check_writable
from baselines.common.models import check_keywords, check_separate
from baselines.common.optimizers import Adam, make_update
from baselines.common.replay_buffer import (
    PrioritizedReplayBuffer,
    ReplayBuffer,
)
from baselines.common.training import (
    EpisodeResults,
    check_gradient_limit,
    check_range,
    check_switches,
    check_whole,
    count_updates,
    make_seed,
    warn_unused,
)
from baselines.common.vec_env.vec_frame_stack import count_stacked
from baselines.dqn.q_function import CategoricalValues, QFunction, ScalarValues


def q_targets(outputs, chooser_outputs, returns, discounts, *, values):
    """Returns what the outputs for the action taken should have been, constants.

    R + γ^n Q_target(s', argmax_a Q_chooser(s', a)). The chooser is the target itself
    (Mnih et al. 2015), or the network that is trained: double Q-learning (van Hasselt
    et al. 2016, equation 4).

    Args:
        outputs: [B, actions, values.size] of the target network for s'
        chooser_outputs: the same of the chooser
        returns: [B] R, the discounted rewards of n steps
        discounts: [B] γ^n, 0 where the episode had ended
        values: what outputs mean, ``ScalarValues`` or ``CategoricalValues``
    """
    best = ops.argmax(values.mean(chooser_outputs), axis=1)
    targets = values.targets(take_actions(outputs, best), returns, discounts)
    return ops.stop_gradient(targets)


def dqn_loss(outputs, actions, targets, weights, *, values):
    """Returns the loss of a batch and its parts.

    Args:
        outputs: [B, actions, values.size]
        actions: [B], from 0
        targets: of the outputs for these actions, from ``q_targets``
        weights: [B] of each sample
        values: as in ``q_targets``
    """
    losses, priorities = values.losses(take_actions(outputs, actions), targets)
    loss = ops.mean(weights * losses)
    return loss, {
        "loss": loss,
        "q_mean": ops.mean(ops.max(values.mean(outputs), axis=1)),
        "priorities": priorities,
    }


def take_actions(outputs, actions):
    """Returns [B, size] of outputs [B, actions, size]."""
    return ops.take_along_axis(outputs, actions[:, None, None], axis=1)[:, 0]


def learn(
    *,
    env,
    network,
    seed: int | None = None,
    lr: float = 5e-4,
    total_timesteps: int = 100_000,
    buffer_size: int = 50_000,
    exploration_fraction: float = 0.1,
    exploration_final_eps: float = 0.02,
    train_freq: int = 1,
    batch_size: int = 32,
    large_batch: bool = False,
    print_freq: int = 100,
    checkpoint_freq: int = 10_000,
    checkpoint_path: str | None = None,
    checkpoint_interval: int = 100_000,
    learning_starts: int = 1000,
    gamma: float = 0.99,
    target_network_update_freq: int = 500,
    max_grad_norm: float | None = 10.0,
    adam_epsilon: float = 1e-8,
    hiddens: list = [256],  # noqa: B006
    double_q: bool = False,
    dueling: bool = False,
    prioritized_replay: bool = False,
    prioritized_replay_alpha: float = 0.6,
    prioritized_replay_beta0: float = 0.4,
    prioritized_replay_beta_iters: int | None = None,
    prioritized_replay_eps: float = 1e-6,
    n_step: int = 1,
    noisy: bool = False,
    categorical: bool = False,
    atoms: int = 51,
    v_min: float = -10.0,
    v_max: float = 10.0,
    callback: Callable | None = None,
    load_path: str | None = None,
    resume: str | None = None,
    **network_kwargs,
) -> QFunction:
    """Trains action values by DQN and returns them.

    The environments step while the optimiser works on what is in memory by then.

    Args:
        env: a VecEnv, or a Gymnasium environment; its actions have to be Discrete
        network: name of a network in common/models.py, module:function, or a
            function that builds one
        seed: of the weights, of what is explored and drawn from memory; None for a
            random one
        lr: learning rate of Adam
        total_timesteps: agent steps, over all environments
        buffer_size: transitions in the replay memory
        exploration_fraction: of all agent steps, in which the share of random actions
            falls to exploration_final_eps; counts for nothing if noisy
        exploration_final_eps: the share that remains, also in the model that is
            returned; 0 if noisy
        train_freq: agent steps, over all environments, to each optimiser step
        batch_size: transitions in an optimiser step
        large_batch: whether optimiser steps that are due together, because several
            environments step at once, become one on all their batches
        print_freq: episodes from one row of the log to the next
        checkpoint_freq: agent steps from one look at the mean return of the last 100
            episodes to the next, once training has begun; the weights of the best are
            returned in the end; 0 for the last weights
        checkpoint_path: folder in which the best model so far is kept as
            best.safetensors; None for memory only
        checkpoint_interval: agent steps from one checkpoint in the log folder to the
            next, for resuming; 0 for none
        learning_starts: agent steps before the first optimiser step
        gamma: discount of an agent step
        target_network_update_freq: agent steps from one copy of the weights to the
            target network to the next
        max_grad_norm: longest gradient of each variable; None for no limit
        adam_epsilon: of Adam
        hiddens: units of each layer between the network and its values, in both
            streams if dueling
        double_q: whether the trained network chooses the following action whose value
            the target network gives (van Hasselt et al. 2016)
        dueling: whether a state's value and the advantages of actions have streams
            of their own (Wang et al. 2016)
        prioritized_replay: whether transitions are drawn by what there was to learn
            from them (Schaul et al. 2016)
        prioritized_replay_alpha: how much that counts
        prioritized_replay_beta0: how much weights in the loss make up for it at first
        prioritized_replay_beta_iters: agent steps until they do so fully; None for
            total_timesteps
        prioritized_replay_eps: least priority
        n_step: most rewards before a return goes on with a value (Sutton 1988)
        noisy: whether noise on the weights explores, in place of random actions
            (Fortunato et al. 2018)
        categorical: whether values are distributions (C51, Bellemare et al. 2017)
        atoms: of such a distribution
        v_min: its lowest return
        v_max: its highest return
        callback: called as callback(locals(), globals()) after each step of all
            environments; true stops the training
        load_path: a saved model to start from
        resume: log folder of an interrupted run to go on with, bit for bit; what
            is trained has to be as it was, but for total_timesteps
        network_kwargs: arguments of the network's builder

    Raises:
        UserError: see ``common/errors.py``; before anything is written
    """
    fixed_arguments = must_not_change(locals())
    check_keywords(network, network_kwargs, learn)
    check_whole(0, total_timesteps=total_timesteps)
    check_whole(1, train_freq=train_freq, batch_size=batch_size, print_freq=print_freq)
    check_whole(1, target_network_update_freq=target_network_update_freq)
    check_whole(0, checkpoint_freq=checkpoint_freq, learning_starts=learning_starts)
    check_whole(0, checkpoint_interval=checkpoint_interval)
    check_whole(2, atoms=atoms)
    check_switches(large_batch=large_batch, double_q=double_q, dueling=dueling)
    check_switches(prioritized_replay=prioritized_replay, noisy=noisy)
    check_switches(categorical=categorical)
    check_range(0, 1, gamma=gamma, exploration_fraction=exploration_fraction)
    check_range(0, 1, exploration_final_eps=exploration_final_eps)
    check_range(0, lr=lr, adam_epsilon=adam_epsilon)
    check_range(None, v_min=v_min, v_max=v_max)
    check_gradient_limit(max_grad_norm)
    if not isinstance(hiddens, (list, tuple)):
        raise UserValueError(f"hiddens has to be a list, received {hiddens!r}")
    for units in hiddens:
        check_whole(1, hiddens=units)
    check_range(
        0,
        1,
        prioritized_replay_alpha=prioritized_replay_alpha,
        prioritized_replay_beta0=prioritized_replay_beta0,
    )
    check_range(0, prioritized_replay_eps=prioritized_replay_eps)
    if prioritized_replay_eps == 0:
        raise UserValueError("prioritized_replay_eps has to be above 0; received 0")
    if prioritized_replay_beta_iters is not None:
        check_whole(1, prioritized_replay_beta_iters=prioritized_replay_beta_iters)
    if checkpoint_path is not None:
        if checkpoint_freq == 0:
            raise UserValueError(
                f"nothing would be kept in the checkpoint_path {checkpoint_path!r}, as "
                "checkpoint_freq is 0"
            )
        check_writable(os.path.abspath(os.path.expanduser(checkpoint_path)))
    if v_min >= v_max:
        raise UserValueError(f"v_min {v_min} has to be below v_max {v_max}")
    if mpi.size > 1:
        raise UserValueError(
            "dqn trains in one process; leave out mpiexec, and set num_env for more "
            "environments"
        )
    seed = make_seed(seed)
    env = as_vec_env(env, seed)
    values = CategoricalValues(atoms, v_min, v_max) if categorical else ScalarValues()

    def make_q_function():
        return QFunction(
            env.observation_space,
            env.action_space,
            network,
            network_kwargs,
            values,
            hiddens,
            dueling,
            noisy,
            seed,
            algorithm=__name__,
        )

    model, target = make_q_function(), make_q_function()
    check_separate(model.parts["network"], target.parts["network"])
    if load_path is not None:
        model.load(load_path)
    for part in target.parts.values():
        part.trainable = False
    buffer = dict(
        size=buffer_size if total_timesteps else 1,
        num_envs=env.num_envs,
        n_step=n_step,
        gamma=gamma,
        frame_stack=count_stacked(env),
        seed=[seed, 1],  # Not the numbers that acting draws.
    )
    spaces = env.observation_space, env.action_space
    if prioritized_replay:
        memory = PrioritizedReplayBuffer(
            *spaces,
            **buffer,
            alpha=prioritized_replay_alpha,
            beta=prioritized_replay_beta0,
            beta_iters=prioritized_replay_beta_iters or max(total_timesteps, 1),
            eps=prioritized_replay_eps,
        )
    else:
        memory = ReplayBuffer(*spaces, **buffer)
    optimizer = Adam(epsilon=adam_epsilon, clipnorm=max_grad_norm)
    first_action = int(env.action_space.start)

    def loss(batch):
        transitions, noise = batch
        outputs = target(transitions.next_obs, noise[:1])
        chooser = model(transitions.next_obs, noise[1:2]) if double_q else outputs
        targets = q_targets(
            outputs, chooser, transitions.returns, transitions.discounts, values=values
        )
        return dqn_loss(
            model(transitions.obs, noise[2:]),
            transitions.actions - first_action,
            targets,
            transitions.weights,
            values=values,
        )

    def shape_of(num_batches):
        if large_batch:
            return 1, num_batches * batch_size
        return num_batches, batch_size

    update = make_update(
        loss, optimizer, [*model.variables, *target.variables], scan=True
    )

    def update_target():
        for variable, source in zip(target.variables, model.variables):
            variable.assign(source)

    update_target = backend.compile(update_target, target.variables)
    update_target()
    num_steps = count_updates(total_timesteps, env.num_envs)
    learning_rate = np.float32(lr)
    untrained_until = max(learning_starts, env.num_envs)  # Something is in memory then.
    exploration_steps = exploration_fraction * total_timesteps
    if noisy:
        exploration_steps = exploration_final_eps = 0
    player, episodes = Player(env, model), EpisodeResults()
    best, last_metrics = BestWeights(model, exploration_final_eps), LastMetrics()
    checkpoints = Checkpoints(
        logger.get_dir(),
        checkpoint_interval,
        total_timesteps,
        [env],
        {**model.description, **fixed_arguments},
        model=model,
        target=VariableState(target.variables),
        optimizer=VariableState(optimizer.variables),
        memory=memory,
        player=player,
        episodes=episodes,
        best=best,
        last_metrics=last_metrics,
    )
    first_timestep = checkpoints.restore(resume)
    if 0 < total_timesteps <= learning_starts:
        logger.warn(
            f"nothing will be trained: learning_starts is {learning_starts}, and "
            f"total_timesteps (num_timesteps) is {total_timesteps}"
        )
    if not categorical:
        warn_unused(learn, "categorical", atoms=atoms, v_min=v_min, v_max=v_max)
    if not prioritized_replay:
        warn_unused(
            learn,
            "prioritized_replay",
            prioritized_replay_alpha=prioritized_replay_alpha,
            prioritized_replay_beta0=prioritized_replay_beta0,
            prioritized_replay_beta_iters=prioritized_replay_beta_iters,
            prioritized_replay_eps=prioritized_replay_eps,
        )
    start = time.perf_counter()
    with checkpoints:
        if first_timestep == 0 < num_steps:
            memory.start(player.start())
        for step in range(first_timestep // env.num_envs + 1, num_steps + 1):
            num_timesteps = step * env.num_envs
            before = num_timesteps - env.num_envs
            model.epsilon = exploration(
                before, exploration_steps, exploration_final_eps
            )
            player.step_async()
            num_batches = count_due(before, num_timesteps, train_freq, untrained_until)
            if num_batches:
                transitions = memory.sample(*shape_of(num_batches))
                noise = model.noise(len(transitions.indices), 3)
                metrics = update(learning_rate, (transitions, noise))
                priorities = metrics.pop("priorities")
                memory.update_priorities(transitions.indices, priorities)
                last_metrics.values = metrics
            if count_due(before, num_timesteps, target_network_update_freq):
                update_target()
            step_results, results = player.step_wait()
            memory.add(*step_results)
            episodes.extend(results)
            if count_due(episodes.count - len(results), episodes.count, print_freq):
                seconds = time.perf_counter() - start
                logger.logkv("total_timesteps", num_timesteps)
                logger.logkv("episodes", episodes.count)
                logger.logkv("fps", int((num_timesteps - first_timestep) / seconds))
                logger.logkv("eprewmean", episodes.mean("r"))
                logger.logkv("eplenmean", episodes.mean("l"))
                logger.logkv("epsilon", model.epsilon)
                logger.logkvs(last_metrics.get_state())
                logger.dumpkvs()
            due = checkpoint_freq and count_due(before, num_timesteps, checkpoint_freq)
            if due and last_metrics.values:  # Something has been trained.
                best.look(episodes, checkpoint_path)
            stop = callback is not None and callback(locals(), globals())
            checkpoints.after_update(num_timesteps, stop or step == num_steps)
            if stop:
                break
    if num_steps:
        best.restore()
        model.epsilon = exploration_final_eps
        if episodes.count < print_freq:
            logger.warn(
                f"no row was logged: {episodes.count} episodes ended (those of which a "
                f"Monitor tells), and print_freq is {print_freq}"
            )
    return model


def exploration(step, num_steps, final) -> float:
    """Returns the share of random actions: from 1 to ``final`` in ``num_steps``."""
    return max(final, 1.0 - (1.0 - final) * step / num_steps) if num_steps else final


def count_due(before, now, every, after=0) -> int:
    """Returns how many multiples of ``every``, above ``after``, are in (before, now].

    So nothing is lost where several environments step at once.
    """
    return max(now // every - max(before, after) // every, 0)


class Player:
    """Steps environments with a model, and knows what they show.

    Args:
        env: a VecEnv.
        model: has ``step``.
    """

    def __init__(self, env, model):
        self.env = env
        self.model = model
        self.obs = None
        self.actions = None

    def start(self):
        """Resets; returns the first observations [N, *observation shape]."""
        self.obs = self.env.reset()
        return self.obs

    def step_async(self) -> None:
        """Chooses actions, and lets the environments begin with them."""
        self.actions, *_ = self.model.step(self.obs)
        self.env.step_async(self.actions)

    def step_wait(self):
        """Waits for the environments.

        Returns:
            what ``ReplayBuffer.add`` takes, and the results of episodes that ended.
        """
        self.obs, rewards, dones, infos = self.env.step_wait()
        last_obs = {
            i: infos[i]["terminal_observation"]
            for i in np.flatnonzero(dones)
            if infos[i].get("TimeLimit.truncated")
        }
        results = [info["episode"] for info in infos if "episode" in info]
        return (self.actions, rewards, dones, self.obs, last_obs), results

    def get_state(self) -> dict:
        return {"obs": self.obs, "env": self.env.get_state()}

    def set_state(self, state) -> None:
        self.env.set_state(state["env"])
        self.obs = state["obs"]


class LastMetrics:
    """The metrics of the last update, which rows show also after resuming."""

    def __init__(self):
        self.values = {}

    def get_state(self) -> dict:
        return {key: float(np.mean(value)) for key, value in self.values.items()}

    def set_state(self, state) -> None:
        self.values = state


class BestWeights:
    """The weights with which the last 100 episodes went best.

    Args:
        model: a QFunction.
        epsilon: share of random actions that it is kept with.
    """

    def __init__(self, model, epsilon):
        self.model = model
        self.epsilon = epsilon
        self.mean = None
        self.variables = {}

    def look(self, episodes, folder) -> None:
        """Keeps the weights as they are if ``episodes`` have the best mean so far."""
        if episodes.count < 100 or (
            self.mean is not None and episodes.mean("r") <= self.mean
        ):
            return
        self.mean = episodes.mean("r")
        exploring, self.model.epsilon = self.model.epsilon, self.epsilon
        self.variables = self.model.get_state()["variables"]
        if folder is not None:
            self.model.save(os.path.join(folder, "best.safetensors"))
        self.model.epsilon = exploring

    def restore(self) -> None:
        """Gives the best weights back to the model, if any were kept."""
        for name, value in self.variables.items():
            self.model.named_variables[name].assign(value)

    def get_state(self) -> dict:
        return {"mean": self.mean, "variables": self.variables}

    def set_state(self, state) -> None:
        self.mean, self.variables = state["mean"], state["variables"]
