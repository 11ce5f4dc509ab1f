"""What signatures declare: types, ranges, meanings, parts; and how it is checked."""

import math
from collections.abc import Callable
from typing import Annotated, Literal

import keras
import numpy as np
import pytest

from baselines import a2c, dqn, sac, trpo
from baselines.common.arguments import types as arg
from baselines.common.arguments.arguments import gather
from baselines.common.arguments.cli import read_words
from baselines.common.arguments.declaration import Text, declared_arguments
from baselines.common.arguments.schedules import make_schedule
from baselines.common.base.errors import UserTypeError, UserValueError, suggest


def example(
    *,
    count: Annotated[arg.Count, "how many"] = 1,
    share: arg.Fraction = 0.5,
    limit: Annotated[arg.Positive | None, "largest"] = None,
    kind: Literal["one", "two"] = "one",
    switch: bool = False,
    units: list[arg.Count] = (8, 8),
    rate: Annotated[arg.Schedule, "learning rate"] = 0.1,
    needy: Annotated[float, arg.Needs("switch"), "needs it"] = 3.0,
    free: Annotated[int, arg.MayChange, "may change"] = 5,
    network: arg.Network = "mlp",
    function: Callable | None = None,
    plain=None,
):
    """Does nothing."""


def arguments_of(given, fn=example, **layers):
    return gather(fn, {**layers, "given": given})


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("count", np.int64(7), 7),
        ("count", 1e3, 1000),
        ("share", 0, 0.0),
        ("switch", np.bool_(True), True),
        ("units", (1, 2), [1, 2]),
        ("function", len, len),
        ("count", Text("1e1"), 10),
        ("limit", Text("none"), None),
        ("switch", Text("yes"), True),
        ("units", Text("[1, 2]"), [1, 2]),
        ("rate", Text("1e-3"), 0.001),
        ("kind", Text("two"), "two"),
        ("plain", Text("(3,)"), (3,)),
    ],
)
def test_values_of_the_declared_type(name, value, expected):
    found = arguments_of({name: value})[name]
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", 0),
        ("count", 1.5),
        ("count", True),
        ("count", None),
        ("share", 1.5),
        ("share", float("nan")),
        ("switch", 1),
        ("units", [8, 0]),
        ("rate", "linear:-1"),
        ("function", 3),
        ("count", Text("x")),
        ("switch", Text("maybe")),
        ("units", Text("8")),
    ],
)
def test_other_values_are_refused_by_their_name(name, value):
    with pytest.raises(UserValueError, match=f"^{name} .*received") as error:
        arguments_of({name: value})
    assert "\n" not in str(error.value)


def test_a_misspelt_choice_or_name_gets_the_nearest():
    with pytest.raises(UserValueError, match="did you mean 'two'"):
        arguments_of({"kind": "twoo"})
    with pytest.raises(UserTypeError, match="'num_hiden'; did you mean 'num_hidden'"):
        arguments_of({"num_hiden": 3})
    with pytest.raises(UserTypeError, match="'rho'; optimizer=rmsprop has it"):
        gather(a2c.learn, {"given": {"env": None, "rho": 0.9}})
    with pytest.raises(UserTypeError, match="preset sets it"):
        arguments_of({}, preset={"coun": 3})


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("MlpPolicy", ["cnn", "mlp"], "'mlp'"),
        ("learning_rate", ["lr", "network"], "'lr'"),
        ("n-env", ["num_env"], "'num_env'"),
        ("net_arch", ["lr"], "num_hidden"),
    ],
)
def test_names_of_other_libraries_and_misspelt_ones_are_known(name, known, hint):
    assert hint in suggest(name, known)
    assert suggest("nonsense", known) == ""


def test_the_meaning_of_an_argument_comes_before_that_of_its_type():
    meaning = declared_arguments(example)["rate"].meaning
    assert meaning.startswith("learning rate: ")


def test_layers_override_those_below_and_are_remembered():
    layers = {"preset": {"count": 2, "share": 0.1}, "defaults.py": {"count": 3}}
    arguments = arguments_of({"limit": 4}, **layers)
    assert [arguments[x] for x in ("count", "share", "limit")] == [3, 0.1, 4.0]
    assert arguments.sources["count"] == "defaults.py"
    assert arguments.sources["share"] == "preset"
    assert arguments.sources["kind"] == "signature"


def test_defaults_of_a_part_are_for_no_other():
    below = {"network": "mlp", "num_layers": 3}
    assert arguments_of({}, preset=below)["num_layers"] == 3
    assert "num_layers" not in arguments_of({"network": "cnn_small"}, preset=below)


def test_arguments_of_a_part_are_checked_and_used():
    arguments = arguments_of({"num_layers": 1, "num_hidden": 3})
    network = arguments.for_learn()["network"]()
    assert [layer.units for layer in network.layers if hasattr(layer, "units")] == [3]
    assert arguments["activation"] == "tanh"


def test_a_function_can_be_a_part():
    def small(width: int = 4):
        return keras.layers.Dense(width)

    def anything(**keywords):
        return keras.layers.Dense(keywords["depth"])

    given = {"network": small, "width": 6}
    assert arguments_of(given).for_learn()["network"]().units == 6
    given = {"network": anything, "depth": 3}
    assert arguments_of(given).for_learn()["network"]().units == 3


@pytest.mark.parametrize(
    ("given", "fn"),
    [
        ({"network": keras.layers.Dense(4)}, example),  # built already
        ({"network": 3}, example),
        ({"network": lambda count=1: None}, example),  # an argument of learn()
        ({"network": "mlp", "env": None, "nstep": 3}, trpo.learn),
        ({"network": "mlp"}, trpo.learn),  # without an environment
    ],
)
def test_parts_and_names_that_cannot_be_used(given, fn):
    with pytest.raises(UserTypeError):
        arguments_of(given, fn)


def test_a_network_has_to_return_a_layer():
    with pytest.raises(UserTypeError, match="trainable_variables"):
        arguments_of({"network": lambda: None}).for_learn()["network"]()


def test_what_must_be_the_same_after_resuming():
    fixed = arguments_of({"function": len, "free": 7, "network": "conv_only"}).fixed
    assert fixed["units"] == [8, 8]
    assert fixed["convs"] == [[32, 8, 4], [64, 4, 2], [64, 3, 1]]  # as in a file
    assert {"free", "function"}.isdisjoint(fixed)


def test_arguments_without_effect():
    assert len(arguments_of({"needy": 4.0}).without_effect()) == 1
    for given in ({}, {"needy": 4.0, "switch": True}):
        assert not arguments_of(given).without_effect()
    assert not arguments_of({}, preset={"needy": 4.0}).without_effect()
    given = {"env": None, "network": "mlp", "target_entropy": -1.0, "ent_coef": 0.2}
    assert len(arguments_of(given, sac.learn).without_effect()) == 1
    given = {"env": None, "network": "mlp", "exploration_fraction": 0.5, "noisy": True}
    assert len(arguments_of(given, dqn.learn).without_effect()) == 1


def test_schedules_are_functions_of_one_number_that_return_numbers():
    assert make_schedule(lambda progress: np.float32(progress))(0.25) == 0.25
    assert make_schedule(math.sqrt)(0.25) == 0.5


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--a=1 --b 2 --c", dict(a="1", b="2", c=True)),
        ("--c --a=-1 --b -2", dict(a="-1", b="-2", c=True)),
        ("--d x y --a=b=c", dict(d=True, path="x", more=["y"], a="b=c")),
    ],
)
def test_words_have_names(words, expected):
    positional = ["path", "more..."] if "path" in expected else ()
    assert read_words(words.split(), positional, flags=["d"]) == expected


@pytest.mark.parametrize("words", ["x", "--a=1 --a=2", "--a=", "--a 1 2"])
def test_words_that_mean_nothing(words):
    with pytest.raises(UserValueError):
        read_words(words.split())
