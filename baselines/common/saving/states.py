"""States of the parts in a checkpoint: nests of arrays and JSON values."""


def check_like(state, expected, name) -> None:
    """Raises ValueError unless a state has the structure of another one.

    These are the names in dicts, the lengths of lists, and the shapes and types of
    arrays. A checkpoint of another network, or of another number of environments, has
    others; NumPy would broadcast some of them.

    Args:
        state: the nest to check.
        expected: a nest of arrays, Keras variables, dicts and lists.
        name: of the state, for the message.
    """
    if isinstance(state, dict) and isinstance(expected, dict):
        for key in sorted(state.keys() ^ expected.keys()):
            raise ValueError(f"{name} {'lacks' if key in expected else 'has'} {key}")
        for key, part in expected.items():
            check_like(state[key], part, f"{name}[{key!r}]")
        return
    if (found := outline(state)) != (wanted := outline(expected)):
        raise ValueError(f"{name} is {found}, expected {wanted}")
    if isinstance(expected, list):
        for i, part in enumerate(expected):
            check_like(state[i], part, f"{name}[{i}]")


def outline(value) -> str:
    """Returns what ``check_like`` compares, without nested values."""
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    if hasattr(value, "shape"):
        return f"{tuple(value.shape)} {value.dtype}"
    return type(value).__name__


class VariableState:
    """The values of Keras variables, as a part of a checkpoint."""

    def __init__(self, variables):
        self.variables = variables

    def get_state(self) -> list:
        return [variable.numpy() for variable in self.variables]

    def set_state(self, state) -> None:
        check_like(state, list(self.variables), "the list of variables")
        for variable, value in zip(self.variables, state, strict=True):
            variable.assign(value)
