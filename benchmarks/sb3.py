"""Stable-Baselines3, or SBX, on the work of our algorithms, for ``throughput.py``.

A separate program, so that neither side has the other's threads and memory. It measures
the rates ``env`` and ``loop`` on request, see ``serving.py``.
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
from baselines.common.data.action_noise import parse_noise
from benchmarks.rates import Clock, rate_of_env
from benchmarks.serving import serve
from benchmarks.torch_fast import faster

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
    steps, every = env.num_envs, settings["train_freq"]
    return package.DQN(
        policy,
        env,
        learning_rate=schedule(settings["lr"]),
        buffer_size=settings["buffer_size"],
        learning_starts=settings["learning_starts"],
        batch_size=settings["batch_size"],
        gamma=settings["gamma"],
        train_freq=max(1, every // steps),
        gradient_steps=max(1, steps // every),
        target_update_interval=settings["target_network_update_freq"],
        # Constant, because Stable-Baselines3 skips the network for random actions.
        exploration_initial_eps=settings["exploration_final_eps"],
        exploration_final_eps=settings["exploration_final_eps"],
        max_grad_norm=settings["max_grad_norm"],
        policy_kwargs=dict(net_arch=[*mlp_sizes(settings), *settings["hiddens"]]),
    )


def off_policy(env, settings, lr="lr", **names) -> dict:
    """Returns keywords that the algorithms below share; ``names`` maps them to ours."""
    names = dict.fromkeys(OFF_POLICY, None) | names
    every = settings.get("train_freq", 1)
    return dict(
        {theirs: settings[ours or theirs] for theirs, ours in names.items()},
        learning_rate=schedule(settings[lr]),
        train_freq=max(1, every // env.num_envs),
        gradient_steps=max(1, env.num_envs // every),
        policy_kwargs=dict(net_arch=mlp_sizes(settings)),
    )


OFF_POLICY = "buffer_size", "learning_starts", "batch_size", "tau", "gamma"


def noise(env, settings):
    """Returns our action noise as an object of Stable-Baselines3."""
    size = env.action_space.shape[0]
    _, deviation = parse_noise(settings["noise_type"])
    return NormalActionNoise(np.zeros(size), np.full(size, deviation))


def sac(package, policy, env, settings):
    """Returns the SAC of Stable-Baselines3 or SBX with our settings."""
    arguments = off_policy(env, settings)
    return package.SAC(policy, env, **arguments)


def td3(package, policy, env, settings):
    """Returns the TD3 of Stable-Baselines3 or SBX with our settings."""
    names = dict(target_policy_noise="target_noise", target_noise_clip=None)
    names |= dict(policy_delay=None)
    arguments = off_policy(env, settings, **names)
    return package.TD3(policy, env, action_noise=noise(env, settings), **arguments)


def ddpg(package, policy, env, settings):
    """Returns the DDPG of Stable-Baselines3 or SBX with our settings."""
    arguments = off_policy(env, settings, lr="actor_lr")
    return package.DDPG(policy, env, action_noise=noise(env, settings), **arguments)


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
    """Yields the convolutional networks of a model."""
    policy = model.policy
    if isinstance(model, stable_baselines3.DQN):
        yield policy.q_net.features_extractor
        yield policy.q_net_target.features_extractor
    else:
        yield policy.features_extractor


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
