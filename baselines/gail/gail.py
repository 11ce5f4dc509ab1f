"""Generative adversarial imitation learning (GAIL): trpo with an adversary's rewards.

Ho and Ermon 2016, "Generative Adversarial Imitation Learning".
"""

from typing import Annotated

import numpy as np
from keras import ops

from baselines import logger
from baselines.common.arguments import types as arg
from baselines.common.base.errors import UserValueError
from baselines.common.data.rewards import environment
from baselines.common.data.runners import Batch
from baselines.common.envs.spaces import clip_actions
from baselines.common.networks.policies import Policy
from baselines.common.run.algorithm import Learn, preset
from baselines.common.updates.optimizers import Adam
from baselines.common.updates.update import Step, make_update
from baselines.gail.adversary import Adversary
from baselines.gail.expert import read_expert
from baselines.trpo import trpo

CLONING_BATCH = 128  # transitions per step of behaviour cloning, as in OpenAI Baselines
CLONING_RATE = 3e-4  # its learning rate, also from there
STEPS_PER_CALL = 1000  # of behaviour cloning, in one compiled call


def cloning_loss(params, actions, *, distribution):
    """Returns mean[-log π(a|s)] of an expert's actions [B], and the same as a metric.

    For a Gaussian, the gradient with respect to the means is that of half the squared
    error, divided by the variance, which becomes that of the actions around the means.
    """
    loss = ops.mean(distribution.neglogp(params, actions))
    return loss, {"cloning_loss": loss}


def adversary(
    run,
    policy,
    expert_path: Annotated[
        str,
        arg.ReadPath,
        ".npz file of expert data, see python -m baselines.gail.record",
    ],
    traj_limitation: Annotated[
        arg.Count | None, "number of the expert's episodes to use; None for all"
    ] = None,
    g_step: Annotated[
        arg.Count, "updates of the policy per training of the adversary"
    ] = 3,
    d_step: Annotated[
        arg.Count,
        "optimiser steps per training of the adversary, each on its share of the "
        "rollout and as many transitions of the expert",
    ] = 1,
    d_stepsize: Annotated[
        arg.NonNegative, "learning rate of Adam for the adversary"
    ] = 3e-4,
    adversary_hidden_size: Annotated[
        arg.Units, "units in each of the adversary's two layers"
    ] = 100,
    adversary_entcoeff: Annotated[
        float, "weight of the entropy bonus of the adversary"
    ] = 1e-3,
    pretrained: Annotated[
        bool, "whether a new policy is first trained by behaviour cloning"
    ] = False,
    BC_max_iter: Annotated[
        arg.Count, arg.Needs("pretrained"), "optimiser steps of behaviour cloning"
    ] = 10_000,
):
    """Rewards from an adversary for transitions that it takes for the expert's."""
    if not run.total_timesteps:
        if pretrained and run.load_path is None:
            raise UserValueError(
                "pretrained begins training, and total_timesteps is 0: give "
                "timesteps_per_batch for behaviour cloning and one update"
            )
        return environment(run, policy)  # The expert is only for training.
    if pretrained and policy.initial_state is not None:
        raise UserValueError(
            "pretrained is for networks without a memory, as single transitions are "
            "learned; leave it out"
        )
    spaces = policy.observation_space, policy.action_space
    expert = read_expert(expert_path, *spaces, traj_limitation)
    network = Adversary(
        *spaces, expert, adversary_hidden_size, adversary_entcoeff, run.seed
    )

    def begin():
        logger.log(f"expert data {expert_path}: {expert}")
        if pretrained and run.load_path is not None:
            logger.log("load_path is given: it is trained on, without cloning first")
        elif pretrained:
            clone(policy, expert, BC_max_iter, np.random.default_rng([run.seed, 7]))

    def train(obs, acs):
        return network.train(obs, acs, d_step, d_stepsize)

    return ImitationRewards(policy, network, g_step, begin, train)


adversary.replaces_rewards = True


class ImitationRewards:
    """Rewards from an adversary for transitions that it takes for the expert's.

    Args:
        policy: the policy whose rollouts are rewarded.
        network: an ``Adversary``.
        g_step: rollouts per training of the network, which uses the first of them.
        begin: function that is called when a new run begins.
        train: function of observations and actions [n, ...] that trains the adversary
            and returns metrics.
    """

    def __init__(self, policy, network, g_step, begin, train):
        self.spaces = policy.observation_space, policy.action_space
        self.network, self.g_step = network, g_step
        self.begin, self.train = begin, train
        self.rollouts, self.metrics = 0, {}

    def __call__(self, rollout):
        """Returns rewards [T, N] of a rollout, and metrics of the adversary."""
        obs, acs = (
            np.asarray(x).reshape(-1, *space.shape)
            for x, space in zip((rollout.obs, rollout.actions), self.spaces)
        )
        # As the environment takes them: values out of bounds would reveal the policy.
        acs = clip_actions(acs, self.spaces[1])
        rewards = np.asarray(self.network.rewards(obs, acs))
        if self.rollouts % self.g_step == 0:
            self.metrics = self.train(obs, acs)
        self.rollouts += 1
        metrics = self.metrics | {"imitation_reward": rewards.mean()}
        return rewards.reshape(rollout.rewards.shape), metrics

    def get_state(self) -> dict:
        return {
            "network": self.network.get_state(),
            "rollouts": self.rollouts,
            "metrics": self.metrics,
        }

    def set_state(self, state) -> None:
        self.network.set_state(state["network"])
        self.rollouts, self.metrics = state["rollouts"], state["metrics"]


def clone(policy, expert, steps, rng) -> None:
    """Trains a policy on an expert's actions (behaviour cloning).

    Args:
        policy: a ``Policy`` without a recurrent state.
        expert: an ``Expert``.
        steps: number of steps of Adam, each on ``CLONING_BATCH`` transitions.
        rng: generator that draws the transitions.
    """
    policy.observe(expert.obs)

    def loss(indices, obs, acs):
        batch = Batch(ops.expand_dims(ops.take(obs, indices, axis=0), 0))
        acs = ops.take(acs, indices, axis=0)
        return cloning_loss(policy(batch).params, acs, distribution=policy.distribution)

    step = Step(loss, Adam(), policy.policy_variables)
    update = make_update(step, variables=policy.variables, scan=True)
    losses = []
    for done in range(0, steps, STEPS_PER_CALL):
        shape = min(STEPS_PER_CALL, steps - done), CLONING_BATCH
        indices = rng.integers(len(expert.obs), size=shape)
        metrics = update(np.float32(CLONING_RATE), indices, expert.obs, expert.acs)
        losses.extend(np.asarray(metrics["cloning_loss"]))
    ends = np.mean(losses[:100]), np.mean(losses[-100:])
    logger.log(
        f"behaviour cloning: mean -log likelihood of the expert's actions from "
        f"{ends[0]:.3f} in the first 100 optimiser steps to {ends[1]:.3f} in the last "
        f"100 of {steps:,}"
    )


# The numbers of OpenAI Baselines' gail/run_mujoco.py. Type checkers do not know the
# arguments of ``adversary``.
learn: Learn[..., Policy] = preset(
    trpo.learn,
    reward=adversary,
    timesteps_per_batch=1024,
    max_kl=0.01,
    cg_iters=10,
    cg_damping=0.1,
    gamma=0.995,
    lam=0.97,
    ent_coef=0.0,
    vf_iters=5,
    vf_stepsize=1e-3,
)
