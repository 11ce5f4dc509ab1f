"""Answers imports of other libraries' modules that do not exist here."""

import sys

from baselines.common.base.errors import MovedModule


def find_spec(name, path=None, target=None) -> None:
    """Called by Python's import for a module that no other finder has found.

    Raises:
        MovedModule: for a module of this package.
    """
    if name.startswith("baselines."):
        # With a name, "from baselines import her" would take it for a missing
        # attribute; without one, python -m shows a traceback.
        raise MovedModule(
            f"there is no module {name}; docs/from_openai_baselines.md and "
            "docs/from_stable_baselines3.md say what replaces those of other libraries",
            name=name if sys.argv[:1] == ["-m"] else None,
        )
