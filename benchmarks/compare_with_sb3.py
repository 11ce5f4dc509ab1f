"""Checks A2C's update and the Atari wrappers against parts of Stable-Baselines3.

    python -m benchmarks.compare_with_sb3     (needs pip install stable-baselines3)

Update: a PyTorch network with the same initial weights is trained on the rollouts of
one of our runs on Pong, with Stable-Baselines3's RMSpropTFLike, and with returns and a
loss computed here. The largest difference between the weights is printed after some
updates.

Wrappers: one of our environments and one in Stable-Baselines3's AtariWrapper get the
same emulator state at each reset and the same random actions.
"""

import tempfile

import ale_py
import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike
from torch import nn

from baselines import logger
from baselines.a2c import learn
from baselines.common.envs import make_env, make_vec_env
from baselines.common.policies import Policy
from baselines.common.vec_env import VecFrameStack

GAME = "PongNoFrameskip-v4"
TOTAL = 6_000_000
GAMMA, ENTROPY, VALUE, LR = 0.99, 0.01, 0.5, 7e-4


class Network(nn.Module):
    """The network of the Nature paper with two heads."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(
            [nn.Conv2d(4, 32, 8, 4), nn.Conv2d(32, 64, 4, 2), nn.Conv2d(64, 64, 3)]
        )
        self.dense = nn.Linear(3136, 512)
        self.pi, self.vf = nn.Linear(512, 6), nn.Linear(512, 1)

    def forward(self, obs):
        x = torch.tensor(np.array(obs)).permute(0, 3, 1, 2).float() / 255
        for conv in self.convs:
            x = conv(x).relu()
        x = self.dense(x.permute(0, 2, 3, 1).flatten(1)).relu()
        return self.pi(x), self.vf(x)[:, 0]

    def layers(self):
        return [*self.convs, self.dense, self.pi, self.vf]


def ours_of(layer):
    """Returns a PyTorch layer's kernel and bias in Keras' layout."""
    kernel = layer.weight.detach()
    kernel = kernel.permute(2, 3, 1, 0) if kernel.ndim == 4 else kernel.T
    return kernel.numpy(), layer.bias.detach().numpy()


def copy_weights(policy, network):
    variables = iter(policy.variables)
    for layer in network.layers():
        kernel = torch.tensor(next(variables).numpy())
        kernel = kernel.permute(3, 2, 0, 1) if kernel.ndim == 4 else kernel.T
        layer.weight.data = kernel.contiguous()
        layer.bias.data = torch.tensor(next(variables).numpy())


def compare_updates(checks=(1, 10, 100, 200)):
    env = VecFrameStack(make_vec_env(GAME, num_env=16, seed=0), 4)
    spaces = env.observation_space, env.action_space
    start = Policy(*spaces, "cnn", seed=0, algorithm="baselines.a2c.a2c")
    path = f"{logger.get_dir()}/start"
    start.save(path)
    network = Network()
    copy_weights(start, network)
    optimizer = RMSpropTFLike(network.parameters(), lr=LR, alpha=0.99, eps=1e-5)

    def callback(names, _):
        rollout = names["rollout"]
        obs = np.asarray(rollout.obs)
        logits, values = network(obs.reshape(-1, 84, 84, 4))
        returns, following = [], network(names["runner"].obs)[1].detach().numpy()
        for t in reversed(range(len(obs))):
            following = rollout.rewards[t] + GAMMA * following * ~rollout.dones[t]
            returns.insert(0, following)
        returns = torch.tensor(np.stack(returns).reshape(-1))
        policy = torch.distributions.Categorical(logits=logits)
        log_p = policy.log_prob(torch.tensor(rollout.actions.reshape(-1)))
        loss = -((returns - values.detach()) * log_p).mean()
        loss = loss - ENTROPY * policy.entropy().mean()
        loss = loss + VALUE * (values - returns).square().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 0.5)
        learning_rate = LR * (1 - (names["num_timesteps"] - 1) / TOTAL)
        optimizer.param_groups[0]["lr"] = learning_rate
        optimizer.step()
        if names["nupdates"] in checks:
            weights = [w for layer in network.layers() for w in ours_of(layer)]
            pairs = zip(weights, names["policy"].variables)
            difference = max(np.abs(a - b.numpy()).max() for a, b in pairs)
            print(f"update {names['nupdates']}: largest difference {difference:.1e}")
        return names["nupdates"] == checks[-1]

    settings = dict(total_timesteps=TOTAL, checkpoint_interval=0, load_path=path)
    learn(env=env, network="cnn", seed=0, callback=callback, **settings)
    env.close()


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
