"""The rewards to learn from: the environment's, or others made from each rollout.

``--reward=environment`` calls ``environment()`` and ``--reward=my_module:my_function``
calls yours, ``def my_function(run, policy, ...)``, its own arguments by keyword.
Such a function returns an object with

    begin()
        called once before the first rollout of a new run, but not of a resumed one
    __call__(rollout)
        returns the rewards [T, N] of a ``Rollout``, and metrics for the row of that
        update; the object may then train itself on the rollout
    get_state(), set_state(state)
        all that changes, for checkpoints; or ``variables``, if nothing else changes

If the function has an attribute ``replaces_rewards`` that is true, arguments that only
change the environment's rewards are refused. Episode scores (``eprewmean``) are the
environment's own, whichever rewards are used.
"""


def environment(run, policy):
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
