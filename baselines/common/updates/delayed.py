"""Critics that are trained several times before each step of the policy.

Fujimoto et al. 2018, "Addressing Function Approximation Error in Actor-Critic Methods",
section 5.2. Batches come in groups: [K, policy_delay, B, ...].
"""

from typing import Any

import keras
import numpy as np

from baselines.common.updates.update import Step


def grouped(batches: Any, policy_delay: int) -> Any:
    """Returns a nest of arrays [K * policy_delay, ...] as [K, policy_delay, ...]."""
    return keras.tree.map_structure(
        lambda x: x.reshape(-1, policy_delay, *x.shape[1:]), batches
    )


def delayed(critics: Step, policy: Step, policy_delay: int) -> list[Step]:
    """Returns the steps of a group: of critics on each batch, of policy on the last.

    Args:
        critics: the step on one batch; its metrics have ``priorities``.
        policy: the step on one batch.
    """

    def on(i, step):
        def loss(group):
            batch = keras.tree.map_structure(lambda x: x[i], group)
            value, metrics = step.loss(batch)
            names = {"priorities": f"priorities_{i}"}
            return value, {names.get(name, name): x for name, x in metrics.items()}

        return step._replace(loss=loss)

    return [*(on(i, critics) for i in range(policy_delay)), on(-1, policy)]


def pop_priorities(metrics: dict, policy_delay: int) -> np.ndarray:
    """Removes the priorities [K, policy_delay, B] from the metrics and returns them."""
    each = [metrics.pop(f"priorities_{i}") for i in range(policy_delay)]
    return np.stack(each, axis=1)
