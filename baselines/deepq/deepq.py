"""DQN as OpenAI Baselines' deepq had it: double and dueling."""

import baselines
from baselines.common.algorithm import preset
from baselines.dqn import dqn

learn = preset(dqn.learn, double_q=True, dueling=True)


def load_act(path):
    """Returns a saved model, a function of observations [N, ...] to actions [N].

    Args:
        path: as in ``baselines.load``.
    """
    return baselines.load(path)


def wrap_atari_dqn(env):
    """Returns a game of ``make_atari`` with the observations of DQN, [84, 84, 4]."""
    # Only here, because OpenCV and the emulator are for Atari only.
    from baselines.common.atari_wrappers import wrap_deepmind

    return wrap_deepmind(env, frame_stack=True)
