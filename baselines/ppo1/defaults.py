"""Defaults of ``learn()`` that depend on the kind of environment.

Most numbers are from OpenAI Baselines' scripts, with one environment per MPI rank.
"""


def atari():
    # ppo1/run_atari.py, which ran on 8 ranks.
    return dict(
        timesteps_per_actorbatch=256,
        entcoeff=0.01,
        optim_epochs=4,
        optim_stepsize=1e-3,
        schedule="linear",
    )


retro = atari  # OpenAI Baselines had none; its ppo2 used atari's.


def mujoco():
    # ppo1/run_mujoco.py; its MlpPolicy normalised observations, but not rewards.
    return dict(value_network="copy", normalize_observations=True, schedule="linear")


def classic_control():
    # ppo2's for the kind; OpenAI Baselines had none.
    return dict(
        total_timesteps=200_000,
        num_env=8,
        timesteps_per_actorbatch=256,
        optim_epochs=20,
        optim_stepsize=1e-3,
        optim_batchsize=256,
        gamma=0.98,
        lam=0.8,
        schedule="linear",
        value_network="copy",
    )


def gymnasium_robotics():
    # ppo1/run_robotics.py
    return dict(
        mujoco(),
        num_layers=3,
        num_hidden=256,
        optim_epochs=5,
        optim_batchsize=256,
    )


def small():
    """Settings for tests: short updates of 1 to 4 environments and frequent rows."""
    return dict(
        timesteps_per_actorbatch=12,
        optim_batchsize=6,
        optim_epochs=2,
        log_interval=20,
    )
