"""What is learned from: rewards of the environment, or others made of each rollout.

``--reward=environment`` calls ``environment()`` and ``--reward=my_module:my_function``
calls yours, with ``run`` and ``policy`` by position and its own arguments by keyword.
A function of this file returns an object with

    begin()
        called once before the first rollout of a new run, not of a resumed one
    __call__(rollout)
        rewards [T, N] of a ``Rollout``, and metrics for the row of its update; it may
        train itself on the rollout after that
    get_state(), set_state(state)
        all that changes, for checkpoints; or ``variables``, if it is no more than these

Scores of episodes (``eprewmean``) are the environment's own whatever is learned from.
"""


def environment(run, policy, /):
    """Rewards as the environment gives them."""
    return EnvironmentRewards()


class EnvironmentRewards:
    """Rewards as the environment gives them."""

    variables = ()

    def begin(self) -> None:
        """Does nothing."""

    def __call__(self, rollout):
        """Returns rewards [T, N] of a rollout, and no metrics."""
        return rollout.rewards, {}
