"""Single-file PyTorch PPO on ALE's vectorised environment, for ``throughput.py``.

This is what a researcher would write without a library: C++ environments with a thread
for each core, no workers and no log, and on a GPU, if there is one, the rollouts. It
does the same work as our ppo2, with the same settings. It is a separate program, used
like ``sb3.py``.
"""

import gymnasium as gym
import numpy as np
import torch
from ale_py.vector_env import AtariVectorEnv
from torch import nn

from baselines.common.arguments.schedules import make_schedule
from baselines.common.base.mpi import available_cores
from benchmarks.rates import Clock, serve


def faster(network, bfloat16) -> None:
    """Converts a convolutional network to channels_last, and compiles it.

    Args:
        network: a PyTorch module that takes images [B, channels, height, width].
        bfloat16: whether it computes in bfloat16, by autocast; its output is float32
            in either case.
    """
    network.to(memory_format=torch.channels_last)
    forward, device = network.forward, next(network.parameters()).device.type

    def cast(x):
        with torch.autocast(device, torch.bfloat16, enabled=bfloat16):
            return forward(x.contiguous(memory_format=torch.channels_last)).float()

    network.forward = torch.compile(cast)


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cuda":
    torch.set_float32_matmul_precision("high")  # TF32, as in TensorFlow


class Agent(nn.Module):
    """The network of the Nature paper, with logits and a value."""

    def __init__(self, num_actions):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, 2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(3136, 512),
            nn.ReLU(),
        )
        self.pi = nn.Linear(512, num_actions)
        self.vf = nn.Linear(512, 1)
        for layer in self.modules():
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                gain = {self.pi: 0.01, self.vf: 1.0}.get(layer, 2**0.5)
                nn.init.orthogonal_(layer.weight, gain)
                nn.init.zeros_(layer.bias)

    def forward(self, obs):
        """Returns an action distribution and values [B] for frames [B, 4, 84, 84]."""
        features = self.trunk(obs.float() / 255.0)
        logits = self.pi(features)
        distribution = torch.distributions.Categorical(
            logits=logits, validate_args=False
        )
        return distribution, self.vf(features)[:, 0]


class Ppo:
    """An agent, its environments and its optimiser."""

    def __init__(self, work):
        self.settings = work["settings"]
        self.seconds = work["seconds"]
        self.env = AtariVectorEnv(
            gym.spec(work["env"]).kwargs["game"],
            num_envs=work["num_env"],
            num_threads=available_cores(),
            episodic_life=True,
            reward_clipping=True,
        )
        self.agent = Agent(self.env.single_action_space.n).to(DEVICE)
        if work["best"]:
            bfloat16 = self.settings["precision"] == "bfloat16"
            faster(self.agent.trunk, bfloat16)
        self.optimizer = torch.optim.Adam(self.agent.parameters(), eps=1e-5)

    def loop_rate(self):
        """Returns agent steps/s of rollouts and updates."""
        clock, steps = Clock(self.seconds), 0
        obs = torch.from_numpy(self.env.reset()[0]).to(DEVICE)
        done = torch.zeros(self.env.num_envs, device=DEVICE)
        while not clock.is_over(steps):
            batch, obs, done = self.rollout(obs, done)
            self.update(*batch)
            steps += self.settings["nsteps"] * self.env.num_envs
        return clock.rate

    @torch.no_grad()
    def rollout(self, obs, done):
        steps = []
        for _ in range(self.settings["nsteps"]):
            distribution, value = self.agent(obs)
            action = distribution.sample()
            logp = distribution.log_prob(action)
            next_obs, reward, ended, cut, _ = self.env.step(action.cpu().numpy())
            reward = torch.from_numpy(np.asarray(reward, np.float32)).to(DEVICE)
            steps.append((obs.clone(), action, logp, value, reward, done))
            obs = torch.from_numpy(next_obs).to(DEVICE)
            done = torch.from_numpy(ended | cut).float().to(DEVICE)
        obs_, action, logp, value, reward, dones = map(torch.stack, zip(*steps))
        _, next_value = self.agent(obs)
        gamma, lam = self.settings["gamma"], self.settings["lam"]
        advantages, last, next_done = torch.zeros_like(reward), 0.0, done
        for t in reversed(range(len(reward))):
            delta = reward[t] + gamma * next_value * (1 - next_done) - value[t]
            last = delta + gamma * lam * (1 - next_done) * last
            advantages[t], next_value, next_done = last, value[t], dones[t]
        fields = obs_, action, logp, value, advantages, advantages + value
        return [x.flatten(0, 1) for x in fields], obs, done

    def update(self, *batch):
        settings = self.settings
        clip = make_schedule(settings["cliprange"])(0.0)
        for group in self.optimizer.param_groups:
            group["lr"] = make_schedule(settings["lr"])(0.0)
        size = len(batch[0])
        for _ in range(settings["noptepochs"]):
            order = torch.randperm(size, device=DEVICE)
            for part in order.split(size // settings["nminibatches"]):
                obs, action, logp, value, advantages, returns = (x[part] for x in batch)
                distribution, new_value = self.agent(obs)
                ratio = (distribution.log_prob(action) - logp).exp()
                advantages = (advantages - advantages.mean()) / (
                    advantages.std() + 1e-8
                )
                policy_loss = -torch.min(
                    ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages
                ).mean()
                clipped = value + (new_value - value).clamp(-clip, clip)
                value_loss = torch.max(
                    (new_value - returns) ** 2, (clipped - returns) ** 2
                ).mean()
                loss = (
                    policy_loss
                    - settings["ent_coef"] * distribution.entropy().mean()
                    + 0.5 * settings["vf_coef"] * value_loss
                )
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(
                    self.agent.parameters(), settings["max_grad_norm"]
                )
                self.optimizer.step()


if __name__ == "__main__":
    serve(lambda work: {"loop": Ppo(work).loop_rate})
