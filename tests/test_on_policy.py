"""What on-policy algorithms do beside what all algorithms promise."""

import importlib
import inspect
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import cartpoles
from test_algorithms import read_rows
from toy_envs import CounterEnv

from baselines import a2c, acer, acktr, logger, ppo1, ppo2, trpo
from baselines.a2c.a2c import a2c_loss
from baselines.common.base.errors import UserValueError
from baselines.common.data.runners import Runner
from baselines.common.networks.policies import Policy

ONE_BATCH = dict(nminibatches=1)


def test_first_minibatch_of_ppo2_has_ratio_1(log_folder):
    settings = dict(nsteps=50, nminibatches=1, noptepochs=1, total_timesteps=500)
    settings |= dict(normalize_observations=True, log_interval=1)
    ppo2.learn(cartpoles(), "mlp", **settings)
    rows = read_rows(log_folder)
    assert len(rows) == 5
    for row in rows:
        assert float(row["clipfrac"]) == 0
        assert float(row["approxkl"]) < 1e-10


@pytest.mark.parametrize(
    ("learn", "settings", "words"),
    [
        (ppo2.learn, dict(nsteps=5, nminibatches=4), "divide 10 .*received 4"),
        (ppo2.learn, dict(nsteps=2, nminibatches=4), "more than one sample"),
        (ppo2.learn, dict(network="lstm", nminibatches=4), "divide 2 .*recurrent"),
        (ppo1.learn, dict(timesteps_per_actorbatch=9, optim_batchsize=4), "divide 10"),
        (a2c.learn, dict(lr="constant:1", lrschedule="middle_drop"), "of its own"),
    ],
)
def test_what_cannot_be_done_is_refused(learn, settings, words):
    with pytest.raises(UserValueError, match=words):
        learn(env=cartpoles(), **{"network": "mlp", **settings})


def test_ppo1_is_ppo2_by_other_names(log_folder):
    same = dict(adam_epsilon=1e-4, gamma=0.9, lam=0.8, value_network="copy", seed=0)
    # 39 steps are rounded up to 20 of each environment.
    of_ppo1 = dict(timesteps_per_actorbatch=39, optim_batchsize=10, optim_epochs=3)
    of_ppo1 |= dict(clip_param=0.3, entcoeff=0.01, optim_stepsize=1e-2)
    of_ppo1 |= dict(schedule="linear")
    of_ppo2 = dict(nsteps=20, nminibatches=4, noptepochs=3, log_interval=1)
    of_ppo2 |= dict(cliprange="linear:0.3", ent_coef=0.01, lr="linear:1e-2")
    of_ppo2 |= dict(max_grad_norm=None, vf_coef=2.0, clip_values=False)
    found = []
    for learn, settings in (ppo1.learn, of_ppo1), (ppo2.learn, of_ppo2):
        folder = log_folder / learn.__module__
        with logger.scoped_configure(str(folder), ["csv"]):
            model = learn(cartpoles(), "mlp", total_timesteps=200, **same, **settings)
        weights = [variable.numpy().tobytes() for variable in model.variables]
        found.append((weights, read_rows(folder)))
    assert found[0] == found[1] and len(found[0][1]) == 5


def test_training_sees_what_acting_saw():
    """A whole recurrent rollout gives the values that single steps gave."""
    env = cartpoles(num_env=3)
    policy = Policy(env.observation_space, env.action_space, "lnlstm", seed=0)
    runner = Runner(env, policy, nsteps=40)
    for _ in range(2):  # The second begins in the middle of episodes.
        rollout = runner.run()
        assert rollout.masks.any()
        params, values, *_ = policy(rollout)
        values = np.asarray(values).reshape(40, 3)
        np.testing.assert_allclose(values, rollout.values, atol=1e-5)
        actions = rollout.actions.reshape(-1)
        neglogps = np.asarray(policy.distribution.neglogp(params, actions))
        neglogps = neglogps.reshape(40, 3)
        np.testing.assert_allclose(neglogps, rollout.neglogps, atol=1e-5)


def local_names(learn, **settings):
    """The variables of learn() after an update of 3 steps with rewards 1, 2 and 3."""
    names, settings = {}, dict(seed=0, gamma=0.5, total_timesteps=3) | settings
    learn(CounterEnv(), "mlp", callback=lambda now, _: names.update(now), **settings)
    return names


@pytest.mark.parametrize(
    ("learn", "settings"),
    [
        (ppo2.learn, dict(nsteps=3) | ONE_BATCH),
        (trpo.learn, dict(timesteps_per_batch=3)),
    ],
    ids=["ppo2", "trpo"],
)
def test_gamma_and_lambda_are_those_of_the_advantages(learn, settings):
    names = local_names(learn, lam=0.25, **settings)
    rollout = names["rollout"]
    next_values = 0.5 * rollout.next_values[:, 0]
    a, b, c = np.array([1, 2, 3]) + next_values - rollout.values[:, 0]
    expected = [a + b / 8 + c / 64, b + c / 8, c]  # gamma * lam is 1 / 8
    np.testing.assert_allclose(names["advantages"][:, 0], expected, rtol=1e-5)


@pytest.mark.parametrize("learn", [a2c.learn, acktr.learn], ids=["a2c", "acktr"])
def test_policy_is_trained_on_returns_above_the_values_at_acting(learn):
    names = local_names(learn, nsteps=3)
    last = names["rollout"].next_values[-1, 0]
    expected = [2.75 + last / 8, 3.5 + last / 4, 3 + last / 2]
    np.testing.assert_allclose(names["returns"][:, 0], expected, rtol=1e-5)
    # The loss is that of the policy which acted, before its first update.
    advantages = names["returns"] - names["rollout"].values
    expected = np.mean(advantages * names["rollout"].neglogps)
    assert float(names["metrics"]["policy_loss"]) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("learn", "settings", "expected"),
    [
        (ppo2.learn, ONE_BATCH, [0, 0.25, 0.5, 0.75]),
        (acer.learn, {}, [0, 0.25, 0.5, 0.75]),
        (a2c.learn, {}, [3 / 16, 7 / 16, 11 / 16, 15 / 16]),
        (acktr.learn, {}, [3 / 16, 7 / 16, 11 / 16, 15 / 16]),
    ],
    ids=["ppo2", "acer", "a2c", "acktr"],
)
def test_schedules_and_the_limit_of_gradients(learn, settings, expected):
    asked, rates = {}, []

    def falling(name):
        asked[name] = []
        return lambda done: asked[name].append(done) or 0.1 * (1 - done)

    def callback(names, _):
        if learn is not acktr.learn:  # whose optimiser is not Keras'
            rates.append(float(names["optimizer"].learning_rate))
            assert names["optimizer"].global_clipnorm == 0.75

    names = ["lr", "cliprange"] if learn is ppo2.learn else ["lr"]
    settings = settings | {name: falling(name) for name in names}
    settings |= dict(nsteps=4, total_timesteps=16, max_grad_norm=0.75)
    learn(CounterEnv(), "mlp", seed=0, callback=callback, **settings)
    # Before, values are asked for to check them, and for a warning.
    assert all(values[-4:] == expected for values in asked.values())
    if learn is not acktr.learn:
        assert rates == pytest.approx([0.1 * (1 - x) for x in expected])


def test_auxiliary_loss_of_the_docs_in_a_copied_a2c(log_folder, monkeypatch, tmp_path):
    """It trains, and is saved with the policy."""
    docs = Path(__file__).parent.parent / "docs" / "new_algorithm.md"
    section = docs.read_text().split("### An auxiliary loss\n")[1]
    head, loss = re.findall(r"```python\n(.*?)```", section, re.S)[:2]
    text = Path(inspect.getsourcefile(a2c_loss)).read_text()
    start, end = text.index("    def loss(batch)"), text.index("    step = Step(")
    text = text[:start] + loss + "\n" + text[end:]
    for line, other in (
        ("    run.load(policy)\n", head + "    run.load(policy)\n"),
        ("(learning_rate, batch)", "(learning_rate, batch, rollout.rewards)"),
        ("import numpy as np\n", "import keras\nimport numpy as np\n"),
    ):
        assert text.count(line) == 1
        text = text.replace(line, other)
    folder = tmp_path / "my_pkg" / "my_alg"
    shutil.copytree(Path(inspect.getsourcefile(a2c_loss)).parent, folder)
    (folder / "a2c.py").rename(folder / "my_alg.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    learn = importlib.import_module("my_pkg.my_alg").learn

    settings = dict(seed=0, overwrite=True)
    first, last = (
        learn(cartpoles(), "mlp", total_timesteps=steps, **settings)
        for steps in (0, 20)
    )
    name = "reward.0.kernel"
    before, after = (x.get_state()["variables"][name] for x in (first, last))
    assert np.any(before != after)
