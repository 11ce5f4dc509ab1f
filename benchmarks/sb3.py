"""Stable-Baselines3, or SBX, on the work of our algorithms, for ``throughput.py``.

A separate program, so that neither side has the other's threads and memory. It measures
the rates ``env`` and ``loop`` on request, see ``rates.serve``.
"""

import functools
import importlib

import ale_py
import gymnasium as gym
import numpy as np
import stable_baselines3
from stable_baselines3.common import env_util
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecFrameStack,
)

from baselines.common.arguments.schedules import make_schedule
from benchmarks.rates import Clock, rate_of_env, serve
from benchmarks.torch_ppo import faster

# Here, because every worker of SubprocVecEnv imports this file.
gym.register_envs(ale_py)


def mlp_sizes(settings):
    """Returns the sizes of our mlp's layers; [] for the cnn."""
    if settings["network"] == "cnn":
        return []
    return [settings["num_hidden"]] * settings["num_layers"]


def layers(settings):
    """Returns ``net_arch`` for our mlp with value_network=copy; {} for the cnn."""
    sizes = mlp_sizes(settings)
    return {"net_arch": dict(pi=sizes, vf=sizes)} if sizes else {}


def schedule(value, of_numbers="constant"):
    """Returns one of our schedules as a function of the remaining fraction."""
    ours = make_schedule(value, of_numbers)
    return lambda remaining: ours(1.0 - remaining)


def a2c(package, policy, env, settings):
    """Returns Stable-Baselines3's A2C with our settings."""
    return package.A2C(
        policy,
        env,
        learning_rate=schedule(settings["lr"], settings["lrschedule"]),
        n_steps=settings["nsteps"],
        gamma=settings["gamma"],
        vf_coef=settings["vf_coef"],
        ent_coef=settings["ent_coef"],
        max_grad_norm=settings["max_grad_norm"],
        policy_kwargs=dict(
            optimizer_class=RMSpropTFLike,
            optimizer_kwargs=dict(alpha=settings["alpha"], eps=settings["epsilon"]),
            **layers(settings),
        ),
    )


def ppo2(package, policy, env, settings):
    """Returns Stable-Baselines3's PPO with our settings."""
    batch_size = env.num_envs * settings["nsteps"] // settings["nminibatches"]
    return package.PPO(
        policy,
        env,
        learning_rate=schedule(settings["lr"]),
        n_steps=settings["nsteps"],
        batch_size=batch_size,
        n_epochs=settings["noptepochs"],
        gamma=settings["gamma"],
        gae_lambda=settings["lam"],
        clip_range=schedule(settings["cliprange"]),
        clip_range_vf=schedule(settings["cliprange"]),
        ent_coef=settings["ent_coef"],
        vf_coef=settings["vf_coef"] / 2,  # Its squared errors are not halved.
        max_grad_norm=settings["max_grad_norm"],
        policy_kwargs=layers(settings),
    )


def dqn(package, policy, env, settings):
    """Returns Stable-Baselines3's DQN with our settings, without extensions."""
    return package.DQN(
        policy,
        env,
        learning_rate=schedule(settings["lr"]),
        buffer_size=settings["buffer_size"],
        learning_starts=settings["learning_starts"],
        batch_size=settings["batch_size"],
        gamma=settings["gamma"],
        target_update_interval=settings["target_network_update_freq"],
        # Constant, because Stable-Baselines3 skips the network for random actions.
        exploration_initial_eps=settings["exploration_final_eps"],
        exploration_final_eps=settings["exploration_final_eps"],
        max_grad_norm=settings["max_grad_norm"],
        policy_kwargs=dict(net_arch=[*mlp_sizes(settings), *settings["hiddens"]]),
        **frequencies(env, settings),
    )


def frequencies(env, settings) -> dict:
    """Returns how often to train, and how many optimiser steps each time."""
    steps, every = env.num_envs, settings.get("train_freq", 1)
    assert steps % every == 0 or every % steps == 0, "one has to divide the other"
    return dict(
        train_freq=max(1, every // steps), gradient_steps=max(1, steps // every)
    )


def off_policy(kind, policy, env, settings, lr="lr", **names):
    """Returns an off-policy algorithm; ``names`` maps its arguments to ours."""
    same = "buffer_size", "learning_starts", "batch_size", "tau", "gamma"
    if "noise_type" in settings:
        size = env.action_space.shape[0]
        deviation = float(settings["noise_type"].removeprefix("normal_"))
        noise = NormalActionNoise(np.zeros(size), np.full(size, deviation))
    else:
        noise = None
    return kind(
        policy,
        env,
        action_noise=noise,
        learning_rate=schedule(settings[lr]),
        policy_kwargs=dict(net_arch=mlp_sizes(settings)),
        **{name: settings[name] for name in same},
        **{theirs: settings[ours] for theirs, ours in names.items()},
        **frequencies(env, settings),
    )


def sac(package, policy, env, settings):
    """Returns the SAC of Stable-Baselines3 or SBX with our settings."""
    return off_policy(package.SAC, policy, env, settings)


def td3(package, policy, env, settings):
    """Returns the TD3 of Stable-Baselines3 or SBX with our settings."""
    names = dict(target_policy_noise="target_noise", policy_delay="policy_delay")
    names["target_noise_clip"] = "target_noise_clip"
    return off_policy(package.TD3, policy, env, settings, **names)


def ddpg(package, policy, env, settings):
    """Returns the DDPG of Stable-Baselines3 or SBX with our settings."""
    return off_policy(package.DDPG, policy, env, settings, lr="actor_lr")


ALGORITHMS = {fn.__name__: fn for fn in (a2c, ppo2, dqn, sac, td3, ddpg)}


class UntilTimeIsUp(BaseCallback):
    """Stops training when a Clock says so."""

    def __init__(self, seconds, first_steps):
        super().__init__()
        self.clock = Clock(seconds, first_steps)

    def _on_step(self):
        return not self.clock.is_over(self.num_timesteps)


def make_env(work):
    """Returns the environments as Stable-Baselines3's users make them.

    They run in worker processes if ours do.
    """
    kind = SubprocVecEnv if work["workers"] else DummyVecEnv
    if work["is_atari"]:
        env = env_util.make_atari_env(work["env"], work["num_env"], vec_env_cls=kind)
        return VecFrameStack(env, 4)
    return env_util.make_vec_env(work["env"], work["num_env"], vec_env_cls=kind)


def extractors(model):
    """Returns the convolutional networks of a model."""
    policy = model.policy
    if isinstance(model, stable_baselines3.DQN):
        networks = policy.q_net, policy.q_net_target
        return [network.features_extractor for network in networks]
    return [policy.features_extractor]


def make_measures(work):
    """Returns functions that measure a rate, by its name."""
    env = make_env(work)
    settings, package = work["settings"], importlib.import_module(work["package"])

    @functools.cache
    def make_model():
        policy = "CnnPolicy" if len(env.observation_space.shape) == 3 else "MlpPolicy"
        model = ALGORITHMS[work["alg"]](package, policy, env, settings)
        if work["best"]:
            for extractor in extractors(model):
                faster(extractor, settings["precision"] == "bfloat16")
        return model

    def loop_rate():
        first_steps = settings.get("learning_starts", 0)
        callback = UntilTimeIsUp(work["seconds"], first_steps)
        make_model().learn(int(1e9), callback, reset_num_timesteps=False)
        return callback.clock.rate

    return {"env": lambda: rate_of_env(env, work["seconds"]), "loop": loop_rate}


if __name__ == "__main__":
    serve(make_measures)
