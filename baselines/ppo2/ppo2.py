"""Proximal policy optimisation (PPO), with the clipped surrogate objective.

Schulman et al. 2017, "Proximal Policy Optimization Algorithms".
"""

import math
from typing import Annotated

import numpy as np
from keras import ops
from typing_extensions import Unpack

from baselines.common.arguments import types as arg
from baselines.common.arguments.schedules import make_schedule
from baselines.common.base.errors import UserValueError
from baselines.common.data.returns import explained_variance, gae
from baselines.common.data.runners import Runner, Shuffler
from baselines.common.networks.policies import Policy
from baselines.common.run.algorithm import algorithm
from baselines.common.updates.optimizers import Adam
from baselines.common.updates.update import Step, make_optimizer, make_update


def ppo2_loss(
    params,
    values,
    batch,
    cliprange,
    *,
    distribution,
    vf_coef,
    ent_coef,
    clip_values=True,
):
    """Returns the loss of a minibatch and a dict of metrics.

    L = mean[max(-A r, -A clip(r, 1 - ε, 1 + ε))] - ent_coef mean[H(π)]
        + vf_coef ½ mean[max((v - R)², (v_old + clip(v - v_old, -ε, ε) - R)²)]

    with the ratio r = π(a|s) / π_old(a|s) and A normalised over the minibatch.
    Schulman et al. 2017, equations 7 and 9. OpenAI Baselines added the clipped value
    loss.

    Args:
        params: [B, P] parameters of π(·|s)
        values: [B] v(s)
        batch: a ``Batch`` of samples, with actions a [B, ...], and as constants the
            advantages A and returns R, and the values v_old and neglogps
            -log π_old(a|s) at the time of acting, all [B]
        cliprange: ε
        distribution: the one that ``params`` parameterise
        vf_coef, ent_coef: weights of the value loss and the entropy
        clip_values: False for vf_coef ½ mean[(v - R)²]
    """
    advantages = batch.advantages - ops.mean(batch.advantages)
    advantages = advantages / (ops.std(advantages) + 1e-8)
    log_ratio = batch.neglogps - distribution.neglogp(params, batch.actions)
    # Where exp overflows, the gradient would be NaN even for a clipped ratio: 0 · ∞.
    ratio = ops.exp(ops.minimum(log_ratio, 20.0))
    clipped_ratio = ops.clip(ratio, 1.0 - cliprange, 1.0 + cliprange)
    policy_loss = ops.mean(
        ops.maximum(-advantages * ratio, -advantages * clipped_ratio)
    )
    squares = ops.square(values - batch.returns)
    if clip_values:
        moves = ops.clip(values - batch.values, -cliprange, cliprange)
        clipped = ops.square(batch.values + moves - batch.returns)
        squares = ops.maximum(squares, clipped)
    value_loss = 0.5 * ops.mean(squares)
    entropy = ops.mean(distribution.entropy(params))
    loss = policy_loss - ent_coef * entropy + vf_coef * value_loss
    return loss, {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "policy_entropy": entropy,
        "approxkl": 0.5 * ops.mean(ops.square(log_ratio)),
        "clipfrac": ops.mean(ops.cast(ops.abs(ratio - 1.0) > cliprange, "float32")),
    }


@algorithm()
def learn(
    run,
    env: arg.Env,
    network: arg.Network = "mlp",
    *,
    seed: arg.Seed = None,
    total_timesteps: arg.Timesteps = int(1e6),
    nsteps: Annotated[arg.Count, "steps of each environment per update"] = 2048,
    ent_coef: Annotated[float, "weight of the entropy bonus"] = 0.0,
    lr: Annotated[arg.Schedule, "learning rate"] = 3e-4,
    vf_coef: Annotated[float, "weight of the value loss"] = 0.5,
    max_grad_norm: arg.GradientNorm = 0.5,
    gamma: arg.Gamma = 0.99,
    lam: arg.Lambda = 0.95,
    log_interval: arg.LogInterval = 10,
    nminibatches: Annotated[
        arg.Count,
        "minibatches per epoch; has to divide num_env x nsteps, or num_env if the "
        "network is recurrent",
    ] = 4,
    noptepochs: Annotated[arg.Count, "epochs of training on each rollout"] = 4,
    cliprange: Annotated[
        arg.Schedule,
        "clip range of the probability ratio, and of values if clip_values",
    ] = 0.2,
    clip_values: Annotated[
        bool,
        "whether values are clipped too; cliprange then has to suit their scale",
    ] = True,
    target_kl: Annotated[
        arg.Positive | None,
        "approximate KL divergence from the policy that acted; after a minibatch of "
        "more than 1.5 times that, the others of the update are left out",
    ] = None,
    adam_epsilon: arg.AdamEpsilon = 1e-5,
    value_network: arg.ValueNetwork = "shared",
    distribution: arg.Distribution = None,
    normalize_observations: arg.NormalizeObservations = False,
    optimizer: arg.Optimizer = None,
    callback: arg.Callback = None,
    **others: Unpack[arg.Others],
) -> Policy:
    """Trains a policy by PPO and returns it."""
    networks = network, value_network
    policy = run.make_model(Policy, *networks, normalize_observations, distribution)
    run.load(policy)
    lr = make_schedule(lr, name="lr")
    cliprange = make_schedule(cliprange, name="cliprange")
    recurrent = policy.initial_state is not None
    # Minibatches are drawn from samples, or from whole sequences if recurrent.
    num_samples = env.num_envs if recurrent else env.num_envs * nsteps

    def fits(count):
        return num_samples % count == 0 and count < env.num_envs * nsteps

    sources = run.arguments.sources
    # ppo1 has optim_batchsize.
    set_by = sources.get("nminibatches") or sources["optim_batchsize"]
    if not fits(nminibatches) and set_by != "given":
        # A default gives way.
        most = num_samples if recurrent else num_samples // 2
        nminibatches = math.gcd(nminibatches, most)
    # For a model that is only loaded, the environments do not matter.
    if total_timesteps and not fits(nminibatches):
        source = "num_env, of a recurrent network" if recurrent else "num_env x nsteps"
        raise UserValueError(
            f"nminibatches has to divide {num_samples} ({source}) into minibatches of "
            f"more than one sample, received {nminibatches}"
        )
    limits = dict(global_clipnorm=max_grad_norm)
    optimizer = make_optimizer(optimizer, Adam, limits, epsilon=adam_epsilon)
    settings = dict(vf_coef=vf_coef, ent_coef=ent_coef, clip_values=clip_values)

    def loss(indices, batch, cliprange):
        minibatch = batch.take(indices)
        params, values, *_ = policy(minibatch)
        samples, pi = minibatch.flat(), policy.distribution
        return ppo2_loss(
            params, values, samples, cliprange, distribution=pi, **settings
        )

    step = Step(loss, optimizer, policy.trainable_variables)
    until = target_kl and (lambda metrics: metrics["approxkl"] > 1.5 * target_kl)
    update = make_update(step, variables=policy.variables, scan=True, until=until)
    runner = Runner(env, policy, nsteps)
    shuffler = Shuffler(num_samples, nminibatches, noptepochs, seed)
    parts = dict(optimizer=optimizer, runner=runner, shuffler=shuffler)
    with run.start(nsteps, policy, **parts):
        for nupdates, num_timesteps in run.updates():
            rollout = runner.run()
            run.add_episodes(rollout.episodes)
            advantages = gae(
                rollout.rewards,
                rollout.dones,
                rollout.values,
                rollout.next_values,
                gamma,
                lam,
            )
            returns = advantages + rollout.values
            progress = run.progress_by_updates
            metrics = update(
                np.float32(lr(progress)),
                shuffler.draw(),
                rollout.batch(advantages, returns),
                np.float32(cliprange(progress)),
            )
            policy.observe(rollout.obs)
            if run.row_due(log_interval):
                explained = explained_variance(rollout.values, returns)
                run.log(metrics, nupdates=nupdates, explained_variance=explained)
            run.stop = callback is not None and callback(locals(), globals())
    return policy
