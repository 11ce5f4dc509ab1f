"""DQN as in OpenAI Baselines' deepq: double and dueling."""

import baselines
from baselines.common.run.algorithm import preset
from baselines.dqn import dqn

learn = preset(dqn.learn, double_q=True, dueling=True)


def load_act(path):
    """Returns a saved model, a function from observations [N, ...] to actions [N].

    Args:
        path: as in ``baselines.load``.
    """
    return baselines.load(path)


def wrap_atari_dqn(env):
    """Returns a ``make_atari`` game wrapped for DQN, with observations [84, 84, 4]."""
    # Imported only here, because only Atari needs OpenCV and the emulator.
    from baselines.common.envs.atari_wrappers import wrap_deepmind

    return wrap_deepmind(env, frame_stack=True)
