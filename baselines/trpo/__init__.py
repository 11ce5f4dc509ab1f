from typing import TYPE_CHECKING

from baselines.common.base.lazy import learn_of

if TYPE_CHECKING:  # for completion in editors
    from baselines.trpo.trpo import learn as learn

__getattr__, __dir__ = learn_of(__name__)
