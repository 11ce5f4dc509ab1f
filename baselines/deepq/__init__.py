from typing import TYPE_CHECKING

from baselines.common.base.lazy import learn_of

if TYPE_CHECKING:  # for completion in editors
    from baselines.deepq.deepq import learn as learn
    from baselines.deepq.deepq import load_act as load_act
    from baselines.deepq.deepq import wrap_atari_dqn as wrap_atari_dqn

__getattr__, __dir__ = learn_of(__name__, "load_act", "wrap_atari_dqn")
