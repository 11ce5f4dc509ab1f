"""Several losses in one compiled call, target networks, second derivatives."""

import keras
import numpy as np
import pytest
from keras import ops

from baselines.common import backend
from baselines.common.base import mpi
from baselines.common.base.errors import DivergedError, UserTypeError
from baselines.common.updates.delayed import delayed, grouped, pop_priorities
from baselines.common.updates.update import (
    Step,
    assign,
    make_update,
    move_towards,
    to_vector,
)


def variable(*values):
    return keras.Variable(np.array(values, np.float32))


def sgd():
    return keras.optimizers.SGD(learning_rate=0.5)


def steps_on_two_variables():
    """x is moved to the data; then y to x, as x is by then."""
    x, y = variable(0.0), variable(0.0)

    def x_loss(data):
        loss = ops.sum(ops.square(x - data)) / 2
        return loss, {"x_loss": loss}

    def y_loss(data):
        loss = ops.sum(ops.square(y - ops.stop_gradient(x.value))) / 2
        return loss, {"y_loss": loss}

    return x, y, [Step(x_loss, sgd(), [x]), Step(y_loss, sgd(), [y])]


def test_steps_are_made_in_order():
    x, y, steps = steps_on_two_variables()
    update = make_update(*steps, variables=[x, y])
    metrics = update(None, np.float32([8]))
    # x: 0 + 8 / 2; y: 0 + 4 / 2, from the x that the first step left
    assert (float(x[0]), float(y[0])) == (4, 2)
    assert (float(metrics["x_loss"]), float(metrics["y_loss"])) == (32, 8)
    update(np.float32(0.25), np.float32([8]))
    # x: 4 + (8 - 4) / 4; y: 2 + (5 - 2) / 4
    assert (float(x[0]), float(y[0])) == (5, 2.75)


@pytest.fixture
def compared(monkeypatch):
    """Two ranks whose exchange gives back what this one has; returns what they show."""
    shown = []
    monkeypatch.setattr(mpi, "size", 2)
    monkeypatch.setattr(mpi, "mean", lambda array, out: np.asarray(array))
    monkeypatch.setattr(mpi, "gather", lambda value: shown.append(value) or [value])
    monkeypatch.setattr(mpi, "broadcast", lambda value: value)
    return shown


@pytest.mark.parametrize("ranks", [1, 2])
def test_slices_are_repeated_up_to_an_end_and_targets_follow(
    ranks, compared, monkeypatch
):
    monkeypatch.setattr(mpi, "size", ranks)
    x, y, steps = steps_on_two_variables()
    target = variable(0.0)
    update = make_update(
        *steps,
        variables=[x, y, target],
        after=lambda: move_towards([target], [y], 0.5),
        scan=True,
        until=lambda metrics: metrics["x_loss"] < 10,
    )
    for _ in range(2):  # The second call is not ended by the first.
        assign([x, y, target], np.zeros(3, np.float32))
        metrics = update(None, np.float32([[8], [6], [1], [1]]))
        np.testing.assert_array_equal(metrics["x_loss"], [32, 2])
        # first x 4, y 2, target 1
        assert [float(v[0]) for v in (x, y, target)] == [5, 3.5, 2.25]
    assert int(steps[0].optimizer.iterations) == 4
    # Ranks compare what no step trains, too.
    assert ranks == 1 or len(compared[0]) == 3
    assign([x, y], np.zeros(2, np.float32))
    make_update(*steps, variables=[x, y], scan=True)(None, np.float32([[8], [6]]))
    assert (float(x[0]), float(y[0])) == (5, 3.5)


def test_moved_all_the_way_variables_are_equal():
    target, source = variable(0.1, 0.2), variable(1 / 3, 1e8)
    move_towards([target], [source], 1)
    np.testing.assert_array_equal(target, source)


def test_metrics_that_are_not_finite_are_refused():
    x, y, steps = steps_on_two_variables()
    with pytest.raises(DivergedError, match="x_loss is inf after optimiser step 1"):
        make_update(*steps, variables=[x, y])(None, np.float32([np.inf]))


def test_weights_that_nobody_trains_are_refused():
    x, _, steps = steps_on_two_variables()
    head = keras.layers.Dense(1)
    with pytest.raises(UserTypeError, match="no variables to train"):
        make_update(Step(steps[0].loss, sgd(), head.trainable_variables))

    def loss(data):
        return ops.sum(x * head(data[None])), {}

    with pytest.raises(UserTypeError, match=r"loss reads .*kernel.*nobody would train"):
        make_update(Step(loss, sgd(), [x]))(None, np.float32([8]))


def test_nested_gradients_give_hessian_vector_products():
    """Of x² y, at (3, 5): [[2y, 2x], [2x, 0]] times the vector."""
    x, y = variable(3.0), variable(5.0)

    def function():
        return ops.sum(x * x * y), {}

    gradient = backend.value_and_grad(function, [x, y])

    def along(vector):
        _, gradients = gradient()
        return ops.sum(to_vector(gradients) * vector), {}

    product = backend.compile(backend.value_and_grad(along, [x, y]), [x, y])
    _, (first, second) = product(np.float32([1, 2]))
    assert (float(first[0]), float(second[0])) == (10 + 12, 6)


def test_critics_have_each_batch_of_a_group_and_the_policy_the_last():
    critic, policy = (keras.Variable(0.0) for _ in range(2))

    def loss_of(variable):
        def loss(batch):
            return variable * ops.mean(batch), {"priorities": batch}

        return loss

    sgd = keras.optimizers.SGD
    steps = delayed(
        Step(loss_of(critic), sgd(1.0), [critic]),
        Step(lambda batch: (loss_of(policy)(batch)[0], {}), sgd(1.0), [policy]),
        policy_delay=3,
    )
    update = make_update(*steps, variables=[critic, policy], scan=True)
    metrics = update(None, grouped(np.arange(6, dtype=np.float32)[:, None], 3))
    assert (float(critic), float(policy)) == (-(0 + 1 + 2 + 3 + 4 + 5), -(2 + 5))
    expected = [[[0], [1], [2]], [[3], [4], [5]]]
    np.testing.assert_array_equal(pop_priorities(metrics, 3), expected)
    assert not metrics
