"""Proximal policy optimisation (PPO), with the clipped surrogate objective.

Schulman et al. 2017, "Proximal Policy Optimization Algorithms".
"""

import os
import time
from collections.abc import Callable

import gymnasium as gym
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
from baselines.common.errors import UserValueError
from baselines.common.models import check_keywords
from baselines.common.optimizers import Adam, make_update
from baselines.common.policies import Policy
from baselines.common.returns import explained_variance, gae
from baselines.common.runners import Runner, flatten
from baselines.common.schedules import parse_schedule
from baselines.common.training import (
    EpisodeResults,
    Shuffler,
    check_gradient_limit,
    check_range,
    check_switches,
    check_whole,
    count_updates,
    make_seed,
)
from baselines.common.vec_env import VecEnv


def ppo2_loss(
    params,
    values,
    actions,
    old_neglogps,
    old_values,
    advantages,
    returns,
    cliprange,
    *,
    distribution,
    c_v,
    c_e,
):
    """Returns the loss of a minibatch and its parts.

    L = mean[max(-A r, -A clip(r, 1 - ε, 1 + ε))] - c_e mean[H(π)]
        + c_v ½ mean[max((v - R)², (v_old + clip(v - v_old, -ε, ε) - R)²)]

    with the ratio r = π(a|s) / π_old(a|s) and A normalised over the minibatch.
    Schulman et al. 2017, equations 7 and 9. The clipped value loss is OpenAI
    Baselines' addition.

    Args:
        params: [B, P] parameters of π(·|s)
        values: [B] v(s)
        actions: [B, ...]
        old_neglogps: [B] -log π_old(a|s), at the time of acting
        old_values: [B] v_old(s), at the time of acting
        advantages: [B], constants
        returns: [B] R, constants
        cliprange: ε
        distribution: what ``params`` are parameters of
        c_v, c_e: weights of value loss and entropy
    """
    advantages = advantages - ops.mean(advantages)
    advantages = advantages / (ops.std(advantages) + 1e-8)
    log_ratio = old_neglogps - distribution.neglogp(params, actions)
    ratio = ops.exp(log_ratio)
    clipped_ratio = ops.clip(ratio, 1.0 - cliprange, 1.0 + cliprange)
    policy_loss = ops.mean(
        ops.maximum(-advantages * ratio, -advantages * clipped_ratio)
    )
    clipped_values = old_values + ops.clip(values - old_values, -cliprange, cliprange)
    value_loss = 0.5 * ops.mean(
        ops.maximum(ops.square(values - returns), ops.square(clipped_values - returns))
    )
    entropy = ops.mean(distribution.entropy(params))
    loss = policy_loss - c_e * entropy + c_v * value_loss
    return loss, {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "policy_entropy": entropy,
        "approxkl": 0.5 * ops.mean(ops.square(log_ratio)),
        "clipfrac": ops.mean(ops.cast(ops.abs(ratio - 1.0) > cliprange, "float32")),
    }


def learn(
    *,
    env,
    network,
    seed: int | None = None,
    total_timesteps: int = int(1e6),
    eval_env: gym.Env | VecEnv | None = None,
    nsteps: int = 2048,
    ent_coef: float = 0.0,
    lr: float | str | Callable = 3e-4,
    vf_coef: float = 0.5,
    max_grad_norm: float | None = 0.5,
    gamma: float = 0.99,
    lam: float = 0.95,
    log_interval: int = 10,
    nminibatches: int = 4,
    noptepochs: int = 4,
    cliprange: float | str | Callable = 0.2,
    save_interval: int = 0,
    checkpoint_interval: int = 100_000,
    value_network: str = "shared",
    normalize_observations: bool = False,
    callback: Callable | None = None,
    load_path: str | None = None,
    resume: str | None = None,
    **network_kwargs,
) -> Policy:
    """Trains a policy by PPO and returns it.

    Args:
        env: a VecEnv, or a Gymnasium environment
        network: name of a network in common/models.py, module:function, or a
            function that builds one
        seed: of the weights, the actions drawn and the minibatches; None for a
            random one
        total_timesteps: agent steps, over all environments; what does not fill
            a whole update is left out
        eval_env: as env; played for nsteps after each update, and its results
            logged as eval_eprewmean and eval_eplenmean
        nsteps: steps of each environment in an update
        ent_coef: weight of the entropy bonus
        lr: learning rate: a number, text as linear:2.5e-4 for what it begins with
            and how it falls, or in Python a function of the fraction that remains
        vf_coef: weight of the value loss
        max_grad_norm: longest gradient, all variables together; None for no limit
        gamma: discount of an agent step
        lam: of generalised advantage estimation
        log_interval: updates from one row of the log to the next
        nminibatches: minibatches in an epoch; has to divide num_env x nsteps, or
            num_env if the network is recurrent
        noptepochs: times that each rollout is trained on
        cliprange: how far ratio and value may move in an update; given as lr is
        save_interval: updates from one saved model to the next, in the folder models
            of the log folder; 0 for none
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
    check_whole(1, nminibatches=nminibatches, noptepochs=noptepochs)
    check_range(0, 1, gamma=gamma, lam=lam)
    check_whole(0, save_interval=save_interval, checkpoint_interval=checkpoint_interval)
    if save_interval and logger.get_dir() is None:
        raise UserValueError("save_interval needs a log folder: logger.configure(dir)")
    check_gradient_limit(max_grad_norm)
    check_range(None, vf_coef=vf_coef, ent_coef=ent_coef)
    check_switches(normalize_observations=normalize_observations)
    lr, cliprange = parse_schedule(lr, "lr"), parse_schedule(cliprange, "cliprange")
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
    recurrent = policy.initial_state is not None
    # What minibatches are drawn from: whole sequences if there is a state.
    num_samples = env.num_envs if recurrent else env.num_envs * nsteps
    if num_samples % nminibatches:
        samples = f"num_env {env.num_envs} x nsteps {nsteps}"
        if recurrent:
            samples = "num_env, as a recurrent network trains on whole sequences"
        raise UserValueError(
            f"nminibatches has to divide {num_samples} ({samples}), received "
            f"{nminibatches}"
        )
    optimizer = Adam(epsilon=1e-5, global_clipnorm=max_grad_norm)

    def minibatch(indices, states, *batch):
        """Returns states and batch [T, N, ...] of some environments or samples."""
        if recurrent:  # Whole sequences, which begin with their own states.
            states = ops.take(states, indices, axis=0)
            return states, *(ops.take(x, indices, axis=1) for x in batch)
        samples = (ops.take(flatten(x), indices, axis=0) for x in batch)
        return states, *(ops.expand_dims(x, 0) for x in samples)

    def loss(indices, cliprange, *batch):
        states, obs, masks, *batch = minibatch(indices, *batch)
        params, values = policy(obs, states, masks)
        return ppo2_loss(
            params,
            values,
            *map(flatten, batch),
            cliprange,
            distribution=policy.distribution,
            c_v=vf_coef,
            c_e=ent_coef,
        )

    update = make_update(loss, optimizer, policy.variables, scan=True)
    batch_size = mpi.size * env.num_envs * nsteps
    num_updates = count_updates(total_timesteps, batch_size)
    episodes = EpisodeResults()
    runner = Runner(env, policy, nsteps)
    shuffler = Shuffler(seed)
    parts = dict(
        policy=policy,
        optimizer=VariableState(optimizer.variables),
        runner=runner,
        episodes=episodes,
        shuffler=shuffler,
    )
    envs = [env]
    if eval_env is not None:
        envs.append(as_vec_env(eval_env, seed))
        eval_runner = Runner(envs[-1], policy, nsteps)
        eval_episodes = EpisodeResults()
        parts |= dict(eval_runner=eval_runner, eval_episodes=eval_episodes)
    checkpoints = Checkpoints(
        logger.get_dir(),
        checkpoint_interval,
        total_timesteps,
        envs,
        {**policy.description, **fixed_arguments},
        **parts,
    )
    first_timestep = checkpoints.restore(resume)
    start = time.perf_counter()
    with checkpoints:
        for nupdates in range(first_timestep // batch_size + 1, num_updates + 1):
            num_timesteps = nupdates * batch_size
            remaining = 1.0 - (nupdates - 1) / num_updates
            learning_rate = np.float32(lr(remaining))
            clip = np.float32(cliprange(remaining))
            rollout = runner.run()
            episodes.extend(rollout.episodes)
            advantages = gae(
                rollout.rewards,
                rollout.dones,
                rollout.values,
                rollout.next_values,
                gamma,
                lam,
            )
            returns = advantages + rollout.values
            epochs = [
                shuffler.minibatches(num_samples, nminibatches)
                for _ in range(noptepochs)
            ]
            metrics = update(
                learning_rate,
                np.concatenate(epochs),
                clip,
                rollout.states,
                rollout.obs,
                rollout.masks,
                rollout.actions,
                rollout.neglogps,
                rollout.values,
                advantages,
                returns,
            )
            policy.observe(rollout.obs)
            if eval_env is not None:
                eval_episodes.extend(eval_runner.run().episodes)
            if nupdates == 1 or nupdates % log_interval == 0:
                seconds = time.perf_counter() - start
                logger.logkv("nupdates", nupdates)
                logger.logkv("total_timesteps", num_timesteps)
                logger.logkv("fps", int((num_timesteps - first_timestep) / seconds))
                logger.logkv("eprewmean", episodes.mean("r"))
                logger.logkv("eplenmean", episodes.mean("l"))
                if eval_env is not None:
                    logger.logkv("eval_eprewmean", eval_episodes.mean("r"))
                    logger.logkv("eval_eplenmean", eval_episodes.mean("l"))
                logger.logkv(
                    "explained_variance", explained_variance(rollout.values, returns)
                )
                for key, values in metrics.items():
                    logger.logkv(key, float(np.mean(values)))
                logger.dumpkvs()
            if save_interval and nupdates % save_interval == 0:
                name = f"{nupdates:05d}.safetensors"
                policy.save(os.path.join(logger.get_dir(), "models", name))
            stop = mpi.any_rank(callback is not None and callback(locals(), globals()))
            checkpoints.after_update(num_timesteps, stop or nupdates == num_updates)
            if stop:
                break
    return policy
