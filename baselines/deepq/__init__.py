from typing import TYPE_CHECKING

from baselines.common.base.lazy import exports

if TYPE_CHECKING:  # for completion in editors
    from baselines.deepq.deepq import learn as learn
    from baselines.deepq.deepq import load_act as load_act
    from baselines.deepq.deepq import wrap_atari_dqn as wrap_atari_dqn

__getattr__, __dir__ = exports(
    __name__, learn="deepq", load_act="deepq", wrap_atari_dqn="deepq"
)
