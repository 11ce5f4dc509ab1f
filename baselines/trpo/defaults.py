"""Defaults of ``learn()`` that depend on the kind of environment.

There is one function per environment type; types without one have ``atari`` for images
and ``other`` for vectors. Keys are arguments of ``learn()``, of the network and of the
command line.
"""


def atari():
    # OpenAI Baselines' trpo_mpi/defaults.py, which used one environment.
    return dict(
        num_env=8,
        network="cnn_small",
        timesteps_per_batch=512,
        max_kl=0.001,
        cg_iters=10,
        cg_damping=1e-3,
        gamma=0.98,
        lam=1.0,
        vf_iters=3,
        vf_stepsize=1e-4,
    )


retro = atari  # OpenAI Baselines had none; its ppo2 used atari's.


def mujoco():
    # OpenAI Baselines' trpo_mpi/defaults.py; its wrapper normalised rewards.
    return dict(
        normalize_rewards=True,
        num_hidden=32,
        num_layers=2,
        timesteps_per_batch=1024,
        max_kl=0.01,
        cg_iters=10,
        cg_damping=0.1,
        gamma=0.99,
        lam=0.98,
        vf_iters=5,
        vf_stepsize=1e-3,
        normalize_observations=True,
    )


def other():
    # RL Baselines3 Zoo's settings for CartPole-v1; max_kl and cg_iters are the defaults
    # of its TRPO.
    return dict(
        num_env=2,
        timesteps_per_batch=1024,
        max_kl=0.01,
        cg_iters=15,
        cg_damping=1e-3,
        gamma=0.99,
        lam=0.98,
        vf_iters=20,
        vf_stepsize=1e-3,
    )


def classic_control():
    # With twice the Zoo's steps, as in ppo2.
    return dict(other(), total_timesteps=200_000)


def box2d():
    # RL Baselines3 Zoo's settings for LunarLander-v3.
    return dict(
        other(),
        cg_damping=0.01,
        vf_iters=15,
    )


TASKS = {
    # RL Baselines3 Zoo's, with twice the steps, and 0.99 as lam instead of 0.95; on
    # top of those of mujoco().
    "Swimmer-v5": dict(
        total_timesteps=2_000_000,
        num_env=2,
        num_hidden=64,
        timesteps_per_batch=2048,
        cg_iters=25,
        gamma=0.9999,
        lam=0.99,
        vf_iters=20,
    ),
}


def small():
    """Settings for tests: short updates and frequent rows."""
    return dict(
        timesteps_per_batch=64, max_kl=0.01, cg_damping=0.1, vf_iters=2, log_interval=3
    )
