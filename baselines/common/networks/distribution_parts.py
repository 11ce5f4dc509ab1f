"""Distributions that ``--distribution`` can name, besides those of your own."""

from typing import Annotated

from baselines.common.networks.distributions import DiagGaussian


def gaussian(
    space,
    /,
    state_dependent: Annotated[
        bool, "whether standard deviations depend on the observation"
    ] = False,
):
    """Independent normal distributions, for a Box."""
    return DiagGaussian(space, state_dependent)
