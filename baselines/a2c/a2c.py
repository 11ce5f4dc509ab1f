"""Advantage actor-critic (A2C), the synchronous form of A3C.

Mnih et al. 2016, "Asynchronous Methods for Deep Reinforcement Learning".
"""

import time
from collections.abc import Callable

import numpy as np
from keras import ops

from baselines import logger
from baselines.common import mpi
from baselines.common.checkpoint import (
    Checkpoints,
    VariableState,
    must_not_change,
)
from baselines.common.envs import as_vec_env
from baselines.common.models import check_keywords
from baselines.common.optimizers import RMSprop, make_update
from baselines.common.policies import Policy
from baselines.common.returns import explained_variance, n_step
from baselines.common.runners import Runner, flatten
from baselines.common.schedules import find_schedule
from baselines.common.training import (
    EpisodeResults,
    check_gradient_limit,
    check_range,
    check_switches,
    check_whole,
    count_updates,
    make_seed,
)


def a2c_loss(params, values, actions, advantages, returns, *, distribution, c_v, c_e):
    """Returns the loss of a batch and its parts.

    L = mean[A · -log π(a|s)] - c_e mean[H(π)] + c_v mean[(v - R)²]

    Mnih et al. 2016, section 4 and algorithm S3. The squares are not halved.

    Args:
        params: [B, P] parameters of π(·|s)
        values: [B] v(s)
        actions: [B, ...]
        advantages: [B], constants: R minus the value at the time of acting
        returns: [B] R
        distribution: what ``params`` are parameters of
        c_v, c_e: weights of value loss and entropy
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


def learn(
    *,
    env,
    network,
    seed: int | None = None,
    total_timesteps: int = int(80e6),
    nsteps: int = 5,
    vf_coef: float = 0.5,
    ent_coef: float = 0.01,
    max_grad_norm: float | None = 0.5,
    lr: float = 7e-4,
    lrschedule: str | Callable = "linear",
    epsilon: float = 1e-5,
    alpha: float = 0.99,
    gamma: float = 0.99,
    log_interval: int = 100,
    checkpoint_interval: int = 100_000,
    value_network: str = "shared",
    normalize_observations: bool = False,
    callback: Callable | None = None,
    load_path: str | None = None,
    resume: str | None = None,
    **network_kwargs,
) -> Policy:
    """Trains a policy by A2C and returns it.

    Args:
        env: a VecEnv, or a Gymnasium environment
        network: name of a network in common/models.py, module:function, or a
            function that builds one
        seed: of the weights and of the actions drawn; None for a random one
        total_timesteps: agent steps, over all environments; what does not fill
            a whole update is left out
        nsteps: steps of each environment in an update
        vf_coef: weight of the value loss
        ent_coef: weight of the entropy bonus
        max_grad_norm: longest gradient, all variables together; None for no limit
        lr: learning rate at the start
        lrschedule: how it falls with the agent steps done: constant, linear,
            double_linear_con, middle_drop, double_middle_drop, or in Python a
            function from the fraction done to a factor
        epsilon: of RMSProp, inside the square root
        alpha: decay of RMSProp's mean square
        gamma: discount of an agent step
        log_interval: updates from one row of the log to the next
        checkpoint_interval: agent steps from one checkpoint in the log folder to the
            next, rounded up to whole updates; 0 for none
        value_network: shared with the policy, or copy for a network of its own
        normalize_observations: whether the model removes the running mean of float
            observations and divides by their running deviation
        callback: called as callback(locals(), globals()) after each update; true
            stops the training
        load_path: a saved model to start from
        resume: log folder of an interrupted run to go on with, bit for bit; what
            is trained has to be as it was, but for total_timesteps
        network_kwargs: arguments of the network's builder

    Raises:
        UserError: see ``common/errors.py``; before anything is written
    """
    fixed_arguments = must_not_change(locals())
    check_keywords(network, network_kwargs, learn)
    check_whole(1, nsteps=nsteps, log_interval=log_interval)
    check_range(0, 1, alpha=alpha, gamma=gamma)
    check_whole(0, checkpoint_interval=checkpoint_interval)
    check_range(0, lr=lr, epsilon=epsilon)
    check_gradient_limit(max_grad_norm)
    check_range(None, vf_coef=vf_coef, ent_coef=ent_coef)
    check_switches(normalize_observations=normalize_observations)
    seed = make_seed(seed)
    env = as_vec_env(env, seed)
    policy = Policy(
        env.observation_space,
        env.action_space,
        network,
        value_network,
        network_kwargs,
        normalize_observations,
        seed=seed,
        algorithm=__name__,
    )
    if load_path is not None:
        policy.load(load_path)
    schedule = find_schedule(lrschedule)
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

    update = make_update(loss, optimizer, policy.variables)
    batch_size = mpi.size * env.num_envs * nsteps
    num_updates = count_updates(total_timesteps, batch_size)
    episodes = EpisodeResults()
    runner = Runner(env, policy, nsteps)
    checkpoints = Checkpoints(
        logger.get_dir(),
        checkpoint_interval,
        total_timesteps,
        [env],
        {**policy.description, **fixed_arguments},
        policy=policy,
        optimizer=VariableState(optimizer.variables),
        runner=runner,
        episodes=episodes,
    )
    first_timestep = checkpoints.restore(resume)
    start = time.perf_counter()
    with checkpoints:
        for nupdates in range(first_timestep // batch_size + 1, num_updates + 1):
            num_timesteps = nupdates * batch_size
            rollout = runner.run()
            episodes.extend(rollout.episodes)
            returns = n_step(rollout.rewards, rollout.dones, rollout.next_values, gamma)
            # As OpenAI Baselines has it: the rate of the batch's last agent step.
            learning_rate = lr * schedule((num_timesteps - 1) / total_timesteps)
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
            if nupdates == 1 or nupdates % log_interval == 0:
                seconds = time.perf_counter() - start
                logger.logkv("nupdates", nupdates)
                logger.logkv("total_timesteps", num_timesteps)
                logger.logkv("fps", int((num_timesteps - first_timestep) / seconds))
                logger.logkv("eprewmean", episodes.mean("r"))
                logger.logkv("eplenmean", episodes.mean("l"))
                logger.logkv(
                    "explained_variance", explained_variance(rollout.values, returns)
                )
                logger.logkvs({key: float(value) for key, value in metrics.items()})
                logger.dumpkvs()
            stop = mpi.any_rank(callback is not None and callback(locals(), globals()))
            checkpoints.after_update(num_timesteps, stop or nupdates == num_updates)
            if stop:
                break
    return policy
