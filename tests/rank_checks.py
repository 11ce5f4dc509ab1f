"""What two MPI ranks do: test_mpi.py starts this script by ``mpiexec -n 2``.

One script, because most of the time is spent on starting processes. It makes the
checks; trains with the arguments of its command line; resumes what a kill would have
left of that run, until rank 1 gets a SIGTERM; resumes it again; and ends with an
exception of rank 1.
"""

import contextlib
import shutil
import signal
import sys
from unittest import mock

import keras
import numpy as np
from conftest import after_updates, copied_after
from gymnasium import spaces
from keras import ops
from test_evaluation import Returns, Sure
from test_normalize import Scripted

from baselines import acer, ddpg, logger, ppo2, run, trpo
from baselines.common.base import mpi
from baselines.common.base.running_moments import RunningMoments
from baselines.common.data.runners import Batch
from baselines.common.envs import make_vec_env
from baselines.common.networks.networks import mlp
from baselines.common.networks.policies import Policy
from baselines.common.run.evaluation import Evaluation
from baselines.common.updates.optimizers import Adam
from baselines.common.updates.trust_region import make_trust_region_update
from baselines.common.updates.update import Step, check_equal, make_update
from baselines.common.vec_env import VecNormalize
from baselines.trpo.trpo import standardize


def collectives():
    np.testing.assert_array_equal(mpi.mean([1.0, 4.0 * mpi.rank]), [1, 2])
    assert mpi.mean(np.float32([mpi.rank])).dtype == np.float32
    assert mpi.broadcast(7 + mpi.rank) == 7
    assert mpi.gather(mpi.rank == 1) == [rank == 1 for rank in range(mpi.size)]
    assert mpi.seed_of_rank(5) == 5 + 10_000 * mpi.rank
    with logger.scoped_configure():  # a new folder, which has the time in its name
        assert len(set(mpi.gather(logger.get_dir()))) == 1


def statistics_are_those_of_all_ranks():
    batches = np.random.default_rng(0).normal(5, 3, (6, 10, 2))
    moments = RunningMoments((2,))
    for batch in batches[mpi.rank :: mpi.size]:
        moments.update(batch)
    everything = batches.reshape(-1, 2)
    np.testing.assert_allclose(moments.mean, everything.mean(axis=0))
    np.testing.assert_allclose(moments.var, everything.var(axis=0))
    assert moments.count == 60
    states = mpi.gather(moments.get_state())
    assert (states[0]["mean"] == states[1]["mean"]).all()
    assert (states[0]["var"] == states[1]["var"]).all()

    class Scaled(Scripted):
        def step_wait(self):
            obs, rewards, *rest = super().step_wait()
            return obs, rewards * (1 + mpi.rank), *rest

    env = VecNormalize(Scaled(), ob=False, gamma=0, epsilon=0)
    env.reset()
    _, rewards, *_ = env.step([0, 0])
    expected = np.array([1, 2]) * (1 + mpi.rank) / np.std([1, 2, 2, 4])
    np.testing.assert_allclose(rewards, expected, rtol=1e-6)


def train(xs, ys, seed):
    """Trains a network on 30 batches; returns its variables and the losses."""
    keras.utils.set_random_seed(seed)
    network = keras.Sequential([keras.layers.Dense(5, "tanh"), keras.layers.Dense(1)])
    network.build((None, 3))

    def loss(x, y):
        loss = ops.mean(ops.square(network(x)[:, 0] - y))
        return loss, {"loss": loss}

    rate, clip = np.float32(0.1), dict(global_clipnorm=0.5)
    step = Step(lambda xy: loss(*xy), Adam(**clip), network.variables)
    update = make_update(step, scan=True)
    losses = update(rate, (xs[:20], ys[:20]))["loss"]
    optimizer = keras.optimizers.SGD(momentum=0.9, **clip)
    update = make_update(Step(loss, optimizer, network.variables))
    more = [update(rate, x, y)["loss"] for x, y in zip(xs[20:], ys[20:])]
    return network.variables, np.concatenate([losses, more])


def update_is_that_of_one_rank_with_all_batches():
    """Also where the norm is limited, which would differ for each rank's gradients."""
    rng = np.random.default_rng(0)
    xs = rng.normal(size=(30, 8, 3)).astype(np.float32)
    ys = 3 * rng.normal(size=(30, 8)).astype(np.float32)
    half = slice(4 * mpi.rank, 4 * mpi.rank + 4)
    # Different initial weights: those of rank 0 count.
    together, losses = train(xs[:, half], ys[:, half], mpi.rank)
    check_equal(together)
    losses = mpi.mean(losses)
    with mock.patch.object(mpi, "size", 1):
        alone, losses_alone = train(xs, ys, 0)
    for a, b in zip(together, alone):
        np.testing.assert_allclose(a, b, atol=1e-5)
    np.testing.assert_allclose(losses, losses_alone, rtol=1e-4)

    if mpi.rank == 1:
        together[1].assign_add(1e-7 * ops.ones_like(together[1]))
    try:
        check_equal(together)
    except RuntimeError as error:
        assert together[1].path in str(error) and "rank 1" in str(error)
    else:
        raise AssertionError("different variables of the ranks were not noticed")


def check_equal_weights(model):
    weights = b"".join(v.numpy().tobytes() for v in model.variables)
    first, second = mpi.gather(weights)
    assert first == second


def variables_are_equal_after_10_updates():
    """Also the statistics of observations, though each rank has different ones."""
    for learn, batch in (
        (ppo2.learn, dict(nsteps=8)),
        (trpo.learn, dict(timesteps_per_batch=8)),
    ):
        seen = []

        def callback(local_variables, global_variables, seen=seen):
            seen.append(np.asarray(local_variables["rollout"].obs).tobytes())
            return mpi.rank == 1 and len(seen) == 10

        model = learn(
            env=make_vec_env("Pendulum-v1", seed=0),
            network="mlp",
            seed=0,
            **batch,
            total_timesteps=100_000,
            normalize_observations=True,
            callback=callback,
            overwrite=True,
        )
        assert len(seen) == 10
        check_equal_weights(model)
        first, second = mpi.gather(seen)
        assert not set(first) & set(second)
        assert model.parts["normalizer"].count.numpy() == 160


def off_policy_steps_are_counted_over_the_ranks():
    seen = {}
    model = ddpg.learn(
        env=make_vec_env("Pendulum-v1", num_env=2, seed=0),
        network="mlp",
        seed=0,
        nb_rollout_steps=4,
        nb_train_steps=2,
        batch_size=8,
        learning_starts=12,
        total_timesteps=80,
        normalize_observations=True,
        normalize_returns=True,
        prioritized_replay=True,
        callback=lambda names, _: seen.update(names),
    )
    check_equal_weights(model)
    memory, target = seen["memory"], seen["target"]
    first, second = mpi.gather(memory.frames[:20].tobytes())
    assert first != second
    # 20 steps of two environments on two ranks; the first is of the fourth of them.
    assert int(seen["critic_optimizer"].iterations) == 2 * 17
    assert seen["collector"].num_timesteps == 80
    assert model.parts["normalizer"].count.numpy() == 80
    assert target.parts["returns"].count.numpy() == 2 * 17 * 2 * 8
    assert memory.beta_iters == 80


def replays_are_as_many_on_all_ranks():
    seen = {}
    model = acer.learn(
        env=make_vec_env("CartPole-v1", num_env=2, seed=0),
        network="mlp",
        seed=0,
        nsteps=4,
        replay_start=32,
        replay_ratio=3,
        total_timesteps=160,
        callback=lambda names, _: seen.update(names),
    )
    check_equal_weights(model)
    # A step for each of 10 rollouts of 16 agent steps, and some for all but the first.
    assert 10 + 9 < int(seen["optimizer"].iterations) < 10 + 9 * 6


def trust_region_step_is_that_of_one_rank_with_all_samples():
    rng = np.random.default_rng(0)
    obs = rng.uniform(-1, 1, (20, 4, 3)).astype(np.float32)
    actions = rng.normal(size=(20, 4, 2)).astype(np.float32)
    advantages = rng.normal(size=(20, 4)).astype(np.float32)

    def step(envs):
        keras.utils.set_random_seed(0)
        box = spaces.Box(-1, 1, (2,))
        policy = Policy(spaces.Box(-1, 1, (3,)), box, mlp, "copy", seed=0)

        def loss(batch, old_params):
            params, batch = policy(batch).params, batch.flat()
            neglogps = policy.distribution.neglogp(params, batch.actions)
            kl = ops.mean(policy.distribution.kl(old_params, params))
            return ops.mean(batch.advantages * neglogps), {"kl": kl}

        update = make_trust_region_update(policy, loss, 0.01, 10, 0.1)
        fields = dict(obs=obs, actions=actions, advantages=advantages)
        metrics = update(Batch(**{k: x[:, envs] for k, x in fields.items()}))
        return metrics, policy.policy_variables

    metrics, together = step(slice(2 * mpi.rank, 2 * mpi.rank + 2))
    check_equal(together)
    with mock.patch.object(mpi, "size", 1):
        metrics_alone, alone = step(slice(None))
    assert metrics["halvings"] == metrics_alone["halvings"] < 10
    np.testing.assert_allclose(metrics["kl"], metrics_alone["kl"], rtol=1e-3)
    for a, b in zip(together, alone):
        np.testing.assert_allclose(a, b, atol=1e-4)


def evaluations_and_advantages_are_of_all_ranks():
    evaluation = Evaluation(Returns([1, 3] if mpi.rank == 0 else [3, 7]), 100, 2)
    evaluation.start(Sure(), None)
    evaluation.run(100)
    assert evaluation.mean == 3.5
    # 1, 3, 3 and 5 over both ranks.
    advantages = standardize(np.float32([[1 + 2 * mpi.rank], [3 + 2 * mpi.rank]]))
    expected = np.sqrt(2) * np.array([[-1, 0], [0, 1]][mpi.rank])
    np.testing.assert_allclose(advantages.ravel(), expected, atol=1e-6)


CHECKS = [
    collectives,
    statistics_are_those_of_all_ranks,
    update_is_that_of_one_rank_with_all_batches,
    variables_are_equal_after_10_updates,
    trust_region_step_is_that_of_one_rank_with_all_samples,
    off_policy_steps_are_counted_over_the_ranks,
    replays_are_as_many_on_all_ranks,
    evaluations_and_advantages_are_of_all_ranks,
]


def stop_rank_1(run, number):
    """Sends a signal to rank 1 after the second update; the third is then the last."""
    if mpi.rank == 1 and number == 2:
        signal.raise_signal(signal.SIGTERM)


def report(text):
    """Writes a line at once, which the other rank cannot split."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for check in CHECKS:
        with logger.scoped_configure(f"checks/{check.__name__}", []):
            check()
            report(f"passed {check.__name__}")
    with copied_after(22) if mpi.rank == 0 else contextlib.nullcontext():
        run.main([*sys.argv[1:], "--log_path=uninterrupted"])
    mpi.wait()
    try:
        with after_updates(stop_rank_1):
            run.main(["--resume=cut1"])
    except SystemExit as stop:
        report(f"exit status {stop.code}")
    if mpi.rank == 0:
        shutil.copytree("cut1", "stopped")
    mpi.wait()
    run.main(["--resume=cut1"])
    mpi.wait()
    mpi.EXIT_TIMEOUT_SECONDS = 0.1
    assert mpi.rank == 0, "on fire"
    mpi.wait()
