"""What a kind of environment changes in the defaults of ``learn()``.

The numbers of OpenAI Baselines' scripts, which had one environment in each MPI rank.
"""


def atari():
    # ppo1/run_atari.py, which ran in 8 ranks.
    return dict(
        timesteps_per_actorbatch=256,
        entcoeff=0.01,
        optim_epochs=4,
        optim_stepsize=1e-3,
        schedule="linear",
    )


def retro():
    return atari()  # OpenAI Baselines had none; as in its ppo2.


def mujoco():
    # ppo1/run_mujoco.py; its MlpPolicy normalised observations, and nothing rewards.
    return dict(value_network="copy", normalize_observations=True, schedule="linear")


def gymnasium_robotics():
    # ppo1/run_robotics.py
    return dict(
        mujoco(),
        network="mlp",
        num_layers=3,
        num_hidden=256,
        optim_epochs=5,
        optim_batchsize=256,
    )


def small():
    """Settings for tests: short updates of one to four environments, and rows often."""
    return dict(
        timesteps_per_actorbatch=12,
        optim_batchsize=6,
        optim_epochs=2,
        log_interval=20,
    )
