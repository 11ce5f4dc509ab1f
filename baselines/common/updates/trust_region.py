"""Policy steps that are limited by a KL divergence.

Schulman et al. 2015, "Trust Region Policy Optimization", appendix C: a step along the
natural gradient up to the limit; and the simpler limit of Wang et al. 2017.
"""

import numpy as np
from keras import ops

from baselines.common import backend
from baselines.common.base import mpi
from baselines.common.base.errors import DivergedError
from baselines.common.base.timing import timed
from baselines.common.updates.update import assign, to_vector

FISHER_STRIDE = 5  # between time steps that the Fisher matrix is computed from
MAX_HALVINGS = 10  # of a step, before it is given up
TOLERANCE = 1.5  # times the limit of the KL divergence is still accepted


def make_trust_region_update(policy, loss, max_kl, cg_iters, cg_damping):
    """Returns ``update(batch) -> metrics``, a step of a policy.

    step = sqrt(2 δ / xᵀFx) x   with   F x = -∇L   and then halved, see ``line_search``

    F is the Hessian of the mean of KL(π_old || π), the Fisher matrix, with
    ``cg_damping`` added to its diagonal. As in OpenAI Baselines, it is computed from
    every fifth time step, unless the policy is recurrent. The metrics are those of the
    loss after the step, and ``halvings``: how often the step was halved, or 10 if it
    was given up and the policy is unchanged.

    With several MPI ranks, gradients, products with F and losses are means over all of
    them, so all make the same step; the policy has to be the same on all of them.

    Args:
        policy: a ``Policy``, whose ``policy_variables`` are trained.
        loss: function of a ``Batch`` and the distribution parameters [T * N, P] before
            the step; it returns the loss L and metrics, which include ``kl``.
        max_kl: δ
        cg_iters: iterations of ``conjugate_gradient``.
        cg_damping: what is added to the diagonal of F.

    ``update`` raises DivergedError if the step is not finite.
    """
    variables = policy.policy_variables

    def loss_with(weights, *inputs):
        assign(variables, weights)
        return loss(*inputs)

    product = fisher_product(policy)
    gradient, loss_with, params_of = (
        backend.compile(function, policy.variables, side_by_side=True)
        for function in (
            gradient_of(loss, variables),
            loss_with,
            lambda batch: policy(batch).params,
        )
    )

    @timed("updates")
    def update(batch):
        inputs = batch, params_of(batch)
        weights = np.asarray(to_vector(variables))

        def multiply(vector):
            return mpi.mean(product(vector, batch)) + cg_damping * vector

        def evaluate(fraction):
            loss, metrics = loss_with(weights + fraction * step, *inputs)
            metrics = {name: float(value) for name, value in metrics.items()}
            return mpi.mean(loss).item(), mpi.mean_row(metrics)

        descent = -mpi.mean(gradient(*inputs))
        step = natural_step(multiply, descent, cg_iters, max_kl)
        return line_search(evaluate, max_kl)

    return update


def gradient_of(function, variables):
    """Returns a function for the gradient [P] of one that returns (loss, metrics)."""
    differentiate = backend.value_and_grad(function, variables)
    return lambda *inputs: to_vector(differentiate(*inputs)[1])


def fisher_product(policy):
    """Returns a compiled function of a vector [P] and a ``Batch``: F vector, [P].

    It is the gradient of (∇KL)ᵀ vector, a Hessian-vector product.
    """
    variables = policy.policy_variables

    def kl(batch):
        if batch.states is None:
            batch = batch._replace(obs=batch.obs[::FISHER_STRIDE])
        params = policy(batch).params
        # Where both are equal, the Hessian is the Fisher matrix.
        return ops.mean(policy.distribution.kl(ops.stop_gradient(params), params)), {}

    kl_gradient = gradient_of(kl, variables)

    def slope(vector, batch):
        return ops.sum(kl_gradient(batch) * vector), {}

    product = gradient_of(slope, variables)
    return backend.compile(product, policy.variables, side_by_side=True)


def natural_step(multiply, descent, iterations, max_kl):
    """Returns the step [P] along F⁻¹ d with the KL divergence δ, to second order.

    sqrt(2 δ / xᵀFx) x   with   F x = d

    Args:
        multiply: function from a vector [P] to its product with F.
        descent: d [P]; the step is 0 if it is 0.
        iterations: of ``conjugate_gradient``.
        max_kl: δ

    Raises:
        DivergedError: if xᵀFx is not positive and finite.
    """
    x = conjugate_gradient(multiply, descent, iterations)
    if not x.any():
        return x
    curvature = x @ multiply(x)
    if not 0 < curvature < np.inf:
        raise DivergedError(
            f"the curvature of the KL divergence along the policy's step is "
            f"{curvature}; a smaller vf_stepsize or a larger cg_damping may help"
        )
    return np.sqrt(2 * max_kl / curvature) * x


def conjugate_gradient(multiply, b, iterations, tolerance=1e-10):
    """Returns x [P] with A x ≈ b, for a symmetric positive definite matrix A.

    Hestenes and Stiefel 1952; after k iterations x is the best solution in the space
    spanned by b, A b, ..., Aᵏ⁻¹ b.

    Args:
        multiply: function from a vector [P] to its product with A.
        b: [P]
        iterations: maximum number of iterations.
        tolerance: squared norm of b - A x below which the iterations stop.
    """
    x, residual, direction = np.zeros_like(b), b, b
    squared = residual @ residual
    for _ in range(iterations):
        if squared < tolerance:
            break
        product = multiply(direction)
        length = squared / (direction @ product)
        x = x + length * direction
        residual = residual - length * product
        previous, squared = squared, residual @ residual
        direction = residual + squared / previous * direction
    return x


def line_search(evaluate, max_kl) -> dict:
    """Halves a step until the KL divergence is within its limit and the loss no higher.

    Args:
        evaluate: function that takes a fraction of the step, from where it began, and
            returns the loss and metrics there, which include ``kl``. The last call is
            with the fraction that was chosen.
        max_kl: limit, of which ``kl`` may be up to 1.5 times.

    Returns:
        the metrics and ``halvings``: 10 if every fraction was rejected, in which case
        the last call was with 0.
    """
    loss_before, _ = evaluate(0.0)
    for halvings in range(MAX_HALVINGS):
        loss, metrics = evaluate(0.5**halvings)
        # Neither is true of NaN.
        if metrics["kl"] <= TOLERANCE * max_kl and loss <= loss_before:
            return metrics | {"halvings": halvings}
    _, metrics = evaluate(0.0)
    return metrics | {"halvings": MAX_HALVINGS}


def limit_gradients(gradients, directions, delta):
    """Returns the z [..., A] nearest to gradients g [..., A] with k · z ≤ δ.

    z = g - max(0, (k · g - δ) / |k|²) k, with directions k [..., A]. Wang et al. 2017,
    "Sample Efficient Actor-Critic with Experience Replay", equation 12.
    """
    excess = ops.sum(directions * gradients, axis=-1, keepdims=True) - delta
    squares = ops.sum(ops.square(directions), axis=-1, keepdims=True)
    return gradients - ops.relu(excess) / squares * directions
