"""PPO with the arguments of OpenAI Baselines' ppo1, trained as in ppo2."""

import math
from typing import Annotated

from typing_extensions import Unpack

from baselines.common.arguments import types as arg
from baselines.common.arguments.schedules import has_schedule, make_schedule
from baselines.common.base.errors import UserValueError
from baselines.common.networks.policies import Policy
from baselines.common.run.algorithm import algorithm
from baselines.ppo2 import ppo2


@algorithm(preset_of=ppo2.learn)
def learn(
    run,
    env: arg.Env,
    network: arg.Network = "mlp",
    *,
    seed: arg.Seed = None,
    total_timesteps: arg.Timesteps = int(1e6),
    timesteps_per_actorbatch: Annotated[
        arg.Count,
        "agent steps per update, over all environments of a rank; rounded up to a "
        "multiple of num_env",
    ] = 2048,
    clip_param: Annotated[arg.Schedule, "clip range of the probability ratio"] = 0.2,
    entcoeff: Annotated[float, "weight of the entropy bonus"] = 0.0,
    optim_epochs: Annotated[arg.Count, "epochs of training on each rollout"] = 10,
    optim_stepsize: Annotated[arg.Schedule, "learning rate"] = 3e-4,
    optim_batchsize: Annotated[
        arg.Count,
        "agent steps per minibatch; has to divide those of an update and, if the "
        "network is recurrent, give a number of minibatches that divides num_env",
    ] = 64,
    gamma: arg.Gamma = 0.99,
    lam: arg.Lambda = 0.95,
    adam_epsilon: arg.AdamEpsilon = 1e-5,
    schedule: Annotated[
        arg.ScheduleOfNumbers,
        "schedule of clip_param and optim_stepsize, if those are numbers",
    ] = "constant",
    log_interval: arg.LogInterval = 1,
    value_network: arg.ValueNetwork = "shared",
    normalize_observations: arg.NormalizeObservations = False,
    callback: arg.Callback = None,
    **others: Unpack[arg.Others],
) -> Policy:
    """Trains a policy by PPO and returns it."""
    schedules = optim_stepsize, clip_param
    if schedule not in ("constant", "linear") and all(map(has_schedule, schedules)):
        raise UserValueError(
            "optim_stepsize and clip_param have schedules of their own; leave out "
            f"schedule {schedule!r}"
        )
    nsteps = math.ceil(timesteps_per_actorbatch / env.num_envs)
    num_samples = env.num_envs * nsteps
    # For a model that is only loaded, the environments do not matter.
    if total_timesteps and num_samples % optim_batchsize:
        raise UserValueError(
            f"optim_batchsize has to divide {num_samples} (timesteps_per_actorbatch "
            f"{timesteps_per_actorbatch}, rounded up to a multiple of num_env "
            f"{env.num_envs}), received {optim_batchsize}"
        )
    return ppo2.learn.__wrapped__(
        run,
        env=env,
        network=network,
        seed=seed,
        total_timesteps=total_timesteps,
        nsteps=nsteps,
        ent_coef=entcoeff,
        lr=make_schedule(optim_stepsize, schedule, "optim_stepsize"),
        vf_coef=2.0,  # ppo1 did not halve squared errors.
        max_grad_norm=None,
        gamma=gamma,
        lam=lam,
        log_interval=log_interval,
        nminibatches=num_samples // optim_batchsize,
        noptepochs=optim_epochs,
        cliprange=make_schedule(clip_param, schedule, "clip_param"),
        clip_values=False,
        adam_epsilon=adam_epsilon,
        value_network=value_network,
        normalize_observations=normalize_observations,
        callback=callback,
    )
