"""What signatures declare: types, ranges, meanings, parts; and how it is checked."""

import dataclasses
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import gymnasium as gym
import keras
import numpy as np
import pytest
from annotated_types import MultipleOf
from numpy.typing import ArrayLike

from baselines import a2c, dqn, sac, trpo
from baselines.common.arguments import cli
from baselines.common.arguments import types as arg
from baselines.common.arguments.checked import check_arguments
from baselines.common.arguments.declarations import (
    Argument,
    declared_arguments,
    describe_arguments,
)
from baselines.common.arguments.schedules import make_schedule
from baselines.common.base.errors import UserTypeError, UserValueError, suggest_name
from baselines.common.run.parsing import check_rewards


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


TEXT = cli.of_text(declared_arguments(example))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", 7),
        ("count", np.int64(7)),
        ("share", 0),
        ("share", np.float32(1)),
        ("limit", 1e-9),
        ("limit", None),
        ("kind", "two"),
        ("switch", np.bool_(True)),
        ("units", []),
        ("units", [1, 2]),
        ("rate", 0),
        ("rate", "linear:1e-3"),
        ("rate", lambda done: 1 - done),
        ("function", len),
        ("plain", "anything"),
    ],
)
def test_what_is_right_is_taken(name, value):
    expected = value.item() if isinstance(value, np.generic) else value
    found = check_arguments(example, {name: value}).values[name]
    assert found is expected or (found == expected and type(found) is type(expected))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("count", 0, "count has to be at least 1, received 0"),
        ("count", 1.5, "count has to be an integer, received 1.5"),
        ("count", True, "count has to be an integer, received True"),
        ("count", None, "count has to be an integer, received None"),
        ("share", 1.5, "share has to be at most 1, received 1.5"),
        ("share", -1, "share has to be at least 0, received -1"),
        ("share", float("nan"), "share has to be a finite number, received nan"),
        ("share", True, "share has to be a finite number, received True"),
        ("limit", 0, "limit has to be above 0, received 0"),
        ("limit", "x", "limit has to be a finite number or None, received 'x'"),
        (
            "kind",
            "twoo",
            "kind has to be 'one' or 'two', received 'twoo'; did you mean 'two'?",
        ),
        ("switch", 1, "switch has to be True or False, received 1"),
        ("units", 8, "units has to be a list, received 8"),
        ("units", [8, 0], "each of units has to be at least 1, received 0"),
        ("function", 3, "function has to be a function or None, received 3"),
    ],
)
def test_what_is_wrong_is_refused_in_a_sentence(name, value, sentence):
    with pytest.raises(UserValueError) as error:
        check_arguments(example, {name: value})
    assert str(error.value) == sentence


@pytest.mark.parametrize("value", ["fast", -1, float("inf"), "linear:", "linear:-1"])
def test_schedules_that_are_none(value):
    with pytest.raises(UserValueError, match="rate has to be"):
        check_arguments(example, {"rate": value})


@pytest.mark.parametrize("result", [None, -1.0, float("nan"), float("inf"), "fast"])
def test_schedules_of_the_user_return_numbers(result):
    arguments = dict(env=gym.make("CartPole-v1"), network="mlp", total_timesteps=5)
    with pytest.raises(UserValueError, match="lr has to return a number .* for 0, "):
        a2c.learn(**arguments, lr=lambda progress: result)
    assert make_schedule(lambda progress: np.float32(progress))(0.25) == 0.25
    assert make_schedule(math.sqrt)(0.25) == 0.5
    assert make_schedule(int)(1.0) == 1  # It has no signature to check.


def test_schedules_of_the_user_take_one_number():
    for function in (lambda: 1.0, lambda progress, step: 1.0):
        with pytest.raises(UserValueError, match="lr has to be a function of one numb"):
            make_schedule(function, name="lr")


def test_arguments_of_a_part_are_taken_checked_and_recorded():
    arguments = check_arguments(example, {"num_layers": 1, "num_hidden": 3})
    network = arguments.values["network"]()
    assert [layer.units for layer in network.layers if hasattr(layer, "units")] == [3]
    assert repr(arguments.values["network"]) == "'mlp'"
    given = arguments.given
    assert (given["network"], given["num_hidden"]) == ("mlp", 3)
    assert given["activation"] == "tanh"
    with pytest.raises(UserTypeError) as error:
        check_arguments(example, {"num_hiden": 3})
    assert str(error.value) == (
        "neither example() nor the network 'mlp' has an argument 'num_hiden'; did you "
        "mean 'num_hidden'?"
    )


def test_a_function_can_be_a_part():
    def small(width: int = 4):
        return keras.layers.Dense(width)

    arguments = check_arguments(example, {"network": small, "width": 6})
    assert arguments.values["network"]().units == 6


@dataclasses.dataclass
class Wide:  # cannot be hashed
    width: int = 4

    def __call__(self):
        return keras.layers.Dense(self.width)


def test_an_object_can_be_a_part():
    arguments = check_arguments(example, {"network": Wide(6)})
    assert arguments.values["network"]().units == 6


def unknown_type(units: "Sequence" = (8,)):  # noqa: F821
    return keras.layers.Dense(units[0])


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (
            unknown_type,
            "unknown_type .* cannot be read: name 'Sequence' is not defined",
        ),
        (dict, "arguments of <class 'dict'> cannot be read: no signature found"),
    ],
)
def test_a_part_whose_arguments_cannot_be_read_is_refused(network, message):
    with pytest.raises(UserTypeError, match=message):
        check_arguments(example, {"network": network})


def test_a_network_is_a_function_that_returns_a_layer():
    layer = keras.layers.Dense(4)
    with pytest.raises(UserTypeError, match="function that returns a new one .*built"):
        check_arguments(example, {"network": layer})
    arguments = check_arguments(example, {"network": lambda: None})
    with pytest.raises(UserTypeError, match="return an object with trainable_variab"):
        arguments.values["network"]()


def test_a_reward_takes_run_and_policy_by_position():
    def bounded(run, policy, most: float = 1.0):
        """Returns nothing."""

    given = {"env": None, "network": "mlp", "reward": bounded}
    with pytest.raises(UserTypeError, match=r"put a / behind them, \(run, policy, /\)"):
        check_arguments(trpo.learn, given)


def test_a_reward_of_another_algorithm_may_be_anything():
    declared = {"reward": Argument("reward", Annotated[str, "which of its own"])}
    check_rewards({"reward_scale": 2.0}, {"reward": "sparse"}, declared)


def test_what_must_be_the_same_after_resuming():
    fixed = check_arguments(example, {"function": len, "free": 7}).fixed
    assert fixed["units"] == [8, 8] and fixed["num_hidden"] == 64
    assert {"free", "function"}.isdisjoint(fixed)


def test_tuples_are_as_a_checkpoint_has_them():
    fixed = check_arguments(example, {"network": "conv_only"}).fixed
    assert fixed["convs"] == [[32, 8, 4], [64, 4, 2], [64, 3, 1]]


def test_a_network_may_take_any_keyword():
    def anything(**keywords):
        return keras.layers.Dense(keywords["depth"])

    arguments = check_arguments(example, {"network": anything, "depth": 3})
    assert arguments.values["network"]().units == 3


def test_a_network_must_not_take_an_argument_of_learn():
    with pytest.raises(UserTypeError, match="has an argument 'count', but"):
        check_arguments(example, {"network": lambda count=1: None})


def test_annotations_of_other_kinds_are_taken_and_constraints_are_not_ignored():
    def odd(sizes: tuple = (4, 4), path: os.PathLike | str = "x", like: ArrayLike = 1):
        pass

    given = {"sizes": [3, 3], "path": Path("y"), "like": [1.5]}
    assert check_arguments(odd, given).values == given
    with pytest.raises(UserValueError, match="path has to be a path or text"):
        check_arguments(odd, {"path": 3})

    def even(number: Annotated[int, MultipleOf(2)] = 2):
        pass

    with pytest.raises(TypeError, match="MultipleOf.* is not checked"):
        check_arguments(even, {})


def test_numbers_without_annotation_have_the_type_of_their_default():
    def plain(units=64, gain=1.0, bias=True, name="x", shape=None):
        pass

    arguments = declared_arguments(plain)
    given = dict(units=0.5, gain=2, bias=False, name=3, shape=(4,))
    for name, argument in arguments.items():
        argument.check(given[name])
    wrong = dict(units="a", gain="1", bias=1)
    for name, value in wrong.items():
        with pytest.raises(UserValueError, match=f"{name} has to be"):
            arguments[name].check(value)


def test_huge_integers_are_no_finite_numbers():
    with pytest.raises(UserValueError, match="share has to be a finite number"):
        check_arguments(example, {"share": 10**400})


def test_argument_without_effect_because_of_another():
    given = {"env": None, "network": "mlp", "target_entropy": -1.0}
    assert not check_arguments(sac.learn, given).without_effect()
    sentences = check_arguments(sac.learn, given | {"ent_coef": 0.2}).without_effect()
    assert sentences == ["target_entropy is -1.0, which has no effect with ent_coef"]


def test_random_actions_have_no_effect_where_noise_explores():
    given = {"env": None, "network": "mlp", "exploration_fraction": 0.5}
    assert not check_arguments(dqn.learn, given).without_effect()
    sentences = check_arguments(dqn.learn, given | {"noisy": True}).without_effect()
    assert sentences == ["exploration_fraction is 0.5, which has no effect with noisy"]


def test_overwrite_has_no_effect_on_a_run_that_is_resumed():
    given = {"env": None, "network": "mlp", "overwrite": True}
    assert not check_arguments(sac.learn, given).without_effect()
    sentences = check_arguments(sac.learn, given | {"resume": "x"}).without_effect()
    assert sentences == ["overwrite is True, which has no effect with resume"]


def test_arguments_without_effect():
    sentences = check_arguments(example, {"needy": 4.0}).without_effect()
    assert sentences == ["needy is 4.0, which has no effect without switch"]
    for given in ({}, {"needy": 4.0, "switch": True}):
        assert not check_arguments(example, given).without_effect()


def test_meanings():
    text = describe_arguments(example)
    assert "    count: how many\n" in text
    assert "    rate: learning rate: a number, text such as linear:2.5e-4" in text
    assert max(map(len, text.splitlines())) <= 80


def test_signatures_show_plain_types():
    plain = {name: x.plain_type for name, x in declared_arguments(example).items()}
    assert plain["count"] is int
    assert plain["limit"] == float | None
    assert plain["kind"] == Literal["one", "two"]
    assert plain["units"] == list[int]
    assert plain["rate"] == float | str | Callable


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--count=1e1", dict(count=10)),
        ("--limit=none --share=1", dict(limit=None, share=1.0)),
        ("--switch", dict(switch=True)),
        ("--switch=no", dict(switch=False)),
        ("--units=[1,2] --plain=(3,)", dict(units=[1, 2], plain=(3,))),
        ("--rate=1e-3", dict(rate=0.001)),
        ("--rate=linear:1e-3", dict(rate="linear:1e-3")),
        ("--kind two --plain=text", dict(kind="two", plain="text")),
    ],
)
def test_text_becomes_values(words, expected):
    assert cli.read(TEXT, words.split()) == (expected, [])


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("--count=x", "expected an integer, received 'x'"),
        ("--limit=x", "expected a finite number or None, received 'x'"),
        ("--switch=maybe", "expected True or False, received 'maybe'"),
        ("--units=8", "expected a list, received '8'"),
    ],
)
def test_text_that_is_no_value(word, sentence):
    with pytest.raises(UserValueError) as error:
        cli.read(TEXT, [word])
    assert sentence in str(error.value)


def test_words_that_are_nobodys_are_returned():
    words = ["--coun=3", "--function=len", "stray"]
    assert cli.read(TEXT, words) == ({}, words)


@pytest.mark.parametrize(
    ("given", "known", "hint"),
    [
        ("learning_rate", ["lr", "network"], "; it is called 'lr' here"),
        ("learing_rate", ["lr", "network"], "; it is called 'lr' here"),
        ("MlpPolicy", ["cnn", "mlp"], "; it is called 'mlp' here"),
        ("--n-envs", ["--num_env"], "; it is called '--num_env' here"),
        ("--total_timesteps", ["--num_timesteps"], "it is called '--num_timesteps'"),
        # An algorithm without a lr, and one with neither lr nor lam.
        ("learning_rate", ["actor_lr"], "; it is optim_stepsize in ppo1, vf"),
        ("gae_lambda", ["gae_lamb"], "; did you mean 'gae_lamb'?"),
        ("device", ["lr"], "; choose a GPU by the environment variable CUDA_VISIBLE"),
        ("save_interval", ["eval_interval"], "; checkpoint_interval counts agent"),
        ("n_envs", ["env"], "; in Python, make_vec_env(..., num_env=N) makes"),
        ("n_envs", ["num_env"], "; it is called 'num_env' here"),
        ("nonsense", ["lr"], ""),
    ],
)
def test_names_of_other_libraries_are_known(given, known, hint):
    found = suggest_name(given, known)
    assert found.startswith(hint) or hint in found
    assert bool(found) == bool(hint)


def test_whole_floats_are_integers():
    arguments = check_arguments(example, dict(count=1e3, num_hidden=np.float64(8)))
    assert arguments.values["count"] == 1000
    assert type(arguments.values["count"]) is type(arguments.given["count"]) is int
    assert arguments.values["network"].build.keywords == {"num_hidden": 8}
    assert type(arguments.values["network"].build.keywords["num_hidden"]) is int
    assert type(check_arguments(example, dict(share=1.0)).values["share"]) is float
    for value in (1.5, float("nan"), float("inf")):
        with pytest.raises(UserValueError, match="count has to be an integer"):
            check_arguments(example, dict(count=value))


def test_a_number_for_a_list_says_how_lists_are_written():
    with pytest.raises(UserValueError, match=r"received '64'; write \[64\]"):
        cli.read(declared_arguments(example), ["--units=64"])
