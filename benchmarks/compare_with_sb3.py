"""Checks A2C's update and the Atari wrappers against Stable-Baselines3's.

    python -m benchmarks.compare_with_sb3     (needs pip install stable-baselines3)

Update: Stable-Baselines3's A2C gets the initial weights and the rollouts of one of our
runs on Pong. It computes values, returns and advantages, and makes its own updates. The
largest difference between its weights and ours is printed after some of them.

Wrappers: one of our environments and one in Stable-Baselines3's AtariWrapper get the
same emulator state at each reset and the same random actions.
"""

import tempfile

import ale_py
import gymnasium as gym
import numpy as np
import stable_baselines3
import torch
import torch._dynamo  # It cannot be imported after TensorFlow.
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.envs import FakeImageEnv
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv

from baselines import logger
from baselines.a2c import defaults, learn
from baselines.common.arguments.declaration import declared_arguments
from baselines.common.backend.seeding import set_global_seeds
from baselines.common.envs import make_env, make_vec_env
from baselines.common.networks.policies import Policy
from baselines.common.vec_env import VecFrameStack
from benchmarks import sb3

GAME = "PongNoFrameskip-v4"
NUM_ENV = defaults.atari()["num_env"]
DEFAULTS = {name: x.default for name, x in declared_arguments(learn).items()}
TOTAL = 10_000_000


def make_theirs():
    """Returns Stable-Baselines3's A2C, with an environment that only has spaces."""
    sizes = dict(screen_height=84, screen_width=84, n_channels=4, channel_first=False)
    env = DummyVecEnv([lambda: FakeImageEnv(action_dim=6, **sizes)] * NUM_ENV)
    model = sb3.a2c(stable_baselines3, "CnnPolicy", env, DEFAULTS | {"network": "cnn"})
    model.set_logger(Logger(None, []))
    return model


def layers(policy):
    """Returns a Stable-Baselines3 policy's layers in the order of our variables."""
    convs = [m for m in policy.features_extractor.cnn if hasattr(m, "kernel_size")]
    dense = policy.features_extractor.linear[0]
    return [*convs, dense, policy.action_net, policy.value_net]


def in_torch(policy):
    """Returns the kernels and biases of our policy in PyTorch's layout."""
    tensors = [torch.tensor(variable.numpy()) for variable in policy.variables]
    for i, kernel in enumerate(tensors):
        if kernel.ndim == 4:
            tensors[i] = kernel.permute(3, 2, 0, 1)
        elif kernel.ndim == 2 and len(kernel) == 3136:  # an image of 7 x 7 x 64
            tensors[i] = kernel.reshape(7, 7, 64, -1).permute(3, 2, 0, 1).flatten(1)
        elif kernel.ndim == 2:
            tensors[i] = kernel.T
    return tensors


def parameters(theirs):
    """Returns the kernels and biases of a Stable-Baselines3 policy in our order."""
    return [x.data for layer in layers(theirs) for x in (layer.weight, layer.bias)]


def channels_first(obs):
    """Returns images [N, 84, 84, 4] as a tensor [N, 4, 84, 84]."""
    return torch.tensor(np.asarray(obs)).permute(0, 3, 1, 2)


def update_theirs(model, rollout, next_obs, num_timesteps):
    """Makes Stable-Baselines3's update with one of our rollouts."""
    policy, buffer = model.policy, model.rollout_buffer
    buffer.reset()
    with torch.no_grad():
        for t in range(len(rollout.rewards)):
            obs = channels_first(rollout.obs[t])
            actions = rollout.actions[t]
            values, log_p, _ = policy.evaluate_actions(obs, torch.tensor(actions))
            rewards, starts = rollout.rewards[t], rollout.masks[t]
            buffer.add(obs.numpy(), actions, rewards, starts, values, log_p)
        last_values = policy.predict_values(channels_first(next_obs))
    buffer.compute_returns_and_advantage(last_values, rollout.dones[-1])
    model._update_current_progress_remaining(num_timesteps - 1, TOTAL)
    model.train()


def compare_updates(checks=(1, 10, 100, 200)):
    """Trains both, and prints how far their weights are apart after some updates."""
    env = VecFrameStack(make_vec_env(GAME, num_env=NUM_ENV, seed=0), 4)
    set_global_seeds(0)  # of the initial weights
    spaces = env.observation_space, env.action_space
    start = Policy(*spaces, "cnn", seed=0, algorithm="baselines.a2c.a2c")
    path = f"{logger.get_dir()}/start"
    start.save(path)
    theirs = make_theirs()
    initial = in_torch(start)
    for parameter, value in zip(parameters(theirs.policy), initial, strict=True):
        parameter.copy_(value)

    def callback(names, _):
        next_obs, number = names["runner"].obs, names["nupdates"]
        update_theirs(theirs, names["rollout"], next_obs, names["num_timesteps"])
        if number in checks:
            ours = in_torch(names["policy"])
            difference = largest_difference(ours, parameters(theirs.policy))
            moved = largest_difference(ours, initial)
            print(
                f"update {number}: largest difference {difference:.1e}, weights moved "
                f"by up to {moved:.1e}"
            )
        return number == checks[-1]

    settings = dict(total_timesteps=TOTAL, checkpoint_interval=0, load_path=path)
    learn(env=env, network="cnn", seed=0, callback=callback, **settings)
    env.close()


def largest_difference(some, others):
    """Returns the largest absolute difference of two lists of tensors."""
    return max((a - b).abs().max() for a, b in zip(some, others, strict=True))


def compare_wrappers(steps=6000):
    gym.register_envs(ale_py)
    ours, theirs = make_env(GAME, seed=3), AtariWrapper(gym.make(GAME))

    def reset():
        ours.reset()
        theirs.reset()
        state = ours.unwrapped.ale.cloneSystemState()
        theirs.unwrapped.ale.restoreSystemState(state)

    reset()
    rng = np.random.default_rng(0)
    difference, rewards, differing = 0.0, 0, 0
    for _ in range(steps):
        action = int(rng.integers(ours.action_space.n))
        obs, *results, _ = ours.step(action)
        other_obs, *other_results, _ = theirs.step(action)
        difference += np.abs(obs.astype(int) - other_obs).mean()
        differing += results != other_results
        rewards += results[0] != 0
        if any(results[1:]) or any(other_results[1:]):
            reset()
    print(
        f"{steps} steps, {rewards} rewards: {differing} steps with another reward or "
        f"end; frames differ by {difference / steps:.4f} grey levels on average"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, logger.scoped_configure(folder, []):
        compare_updates()
        compare_wrappers()
