from typing import TYPE_CHECKING

from baselines.common.base.lazy import exports

if TYPE_CHECKING:  # for completion in editors
    from baselines.a2c.a2c import learn as learn

__getattr__, __dir__ = exports(__name__)
