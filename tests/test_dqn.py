"""DQN and its extensions: numbers typed by hand, and how they are put together."""

import keras
import numpy as np
import pytest
from conftest import cartpoles
from gymnasium import spaces
from memory_checks import check_memory
from white_images import Peak, image_env

import baselines
from baselines import rainbow
from baselines.common.base import mpi
from baselines.common.base.errors import UserError, UserValueError
from baselines.common.data.episodes import count_due
from baselines.common.data.prioritized_replay import PrioritizedReplayBuffer
from baselines.common.data.replay_buffer import Transitions
from baselines.common.networks.layers import NoisyDense
from baselines.common.networks.networks import cnn_small
from baselines.common.networks.q_function import QFunction
from baselines.common.networks.values import CategoricalValues, ScalarValues
from baselines.common.run.algorithm import preset
from baselines.common.saving.tensors import load_tensors
from baselines.common.vec_env import (
    VecEnvWrapper,
    VecFrameStack,
    VecMonitor,
)
from baselines.common.vec_env.vec_frame_stack import count_stacked
from baselines.common.vec_env.vec_normalize import VecNormalize
from baselines.dqn.dqn import dqn_loss, epsilon_at, learn, q_targets

SCALARS = ScalarValues()
VECTOR = spaces.Box(-1, 1, (3,), np.float32)


TWICE = keras.Sequential([keras.layers.Dense(4)])


def floats(*values):
    return np.array(values, np.float32)


def q_function(dueling=False, sigma=None):
    spaces_of_env = VECTOR, spaces.Discrete(4)
    return QFunction(*spaces_of_env, "mlp", SCALARS, [8], dueling, sigma, seed=0)


def test_targets_of_the_target_network():
    outputs = floats([1, 5, 2], [4, 3, 0])[..., None]
    ends = floats(1, 2), floats(0.9, 0)
    targets = q_targets(outputs, SCALARS.mean(outputs), *ends, values=SCALARS)
    # 1 + 0.9 * 5; 2 and nothing more, as the episode had ended
    np.testing.assert_allclose(targets, [[5.5], [2.0]])
    # For the best action of another network, the last: 1 + 0.9 * 2
    chooser = floats([0, 0, 9], [1, 2, 0])
    targets = q_targets(outputs, chooser, *ends, values=SCALARS)
    np.testing.assert_allclose(targets, [[2.8], [2.0]])


def test_huber_loss():
    outputs = floats([1, 7], [0, 2])[..., None]
    loss, metrics = dqn_loss(
        outputs,
        np.array([0, 1]),
        floats([1.5], [5]),
        floats(1, 0.5),
        values=SCALARS,
    )
    # errors 0.5 and 3: losses 0.125 and 2.5, the second of weight 0.5
    assert float(loss) == pytest.approx((0.125 + 1.25) / 2)
    np.testing.assert_allclose(metrics["priorities"], [0.5, 3.0])
    assert float(metrics["q_mean"]) == 4.5


def test_categorical_projection():
    values = CategoricalValues(atoms=5, v_min=-2, v_max=2)  # -2, -1, 0, 1, 2
    probabilities = floats([0.1, 0.2, 0.3, 0.4, 0.0001])
    logits = np.log(np.repeat(probabilities, 3, axis=0))
    targets = values.targets(logits, floats(0.5, 0, 9), floats(0.5, 0, 1))
    # 0.5 + 0.5 z: -0.5, 0, 0.5, 1, 1.5
    p = probabilities[0] / probabilities.sum()
    first = [
        0,
        p[0] / 2,
        p[0] / 2 + p[1] + p[2] / 2,
        p[2] / 2 + p[3] + p[4] / 2,
        p[4] / 2,
    ]
    np.testing.assert_allclose(targets[0], first, atol=1e-6)
    np.testing.assert_allclose(targets[1], [0, 0, 1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(targets[2], [0, 0, 0, 0, 1], atol=1e-6)


def test_categorical_loss_and_mean():
    values = CategoricalValues(atoms=3, v_min=0, v_max=2)
    logits = np.log(floats([0.5, 0.25, 0.25]))
    np.testing.assert_allclose(values.mean(logits), [0.75], rtol=1e-6)
    losses, priorities = values.losses(logits, floats([0.5, 0.25, 0.25]))
    # entropy of (1/2, 1/4, 1/4) is 1.5 ln 2; the divergence from itself is 0
    np.testing.assert_allclose(losses, [1.5 * np.log(2)], rtol=1e-5)
    np.testing.assert_allclose(priorities, [0.0], atol=1e-6)
    losses, priorities = values.losses(logits, floats([1, 0, 0]))
    np.testing.assert_allclose([losses, priorities], [[np.log(2)]] * 2, rtol=1e-5)


def test_variance_of_noisy_layers():
    sigma = 0.1
    layer = NoisyDense(2, sigma)
    layer.build((None, 100))
    noise = np.random.default_rng(0).standard_normal((20_000, 102), np.float32)
    x = np.ones((20_000, 100), np.float32)
    still = layer(x[:1], np.zeros((1, 102), np.float32))
    moved = np.asarray(layer(x, noise) - still)
    # Deviations are sigma / sqrt(100), and noise is sgn(e) sqrt|e| on both sides, of
    # variance m = sqrt(2 / pi) each: m for a bias, m^2 for each of 100 weights.
    expected = sigma**2 / 100 * (100 * 0.63662 + 0.79788)
    np.testing.assert_allclose(moved.var(axis=0), expected, rtol=0.05)
    np.testing.assert_allclose(moved.mean(axis=0), 0, atol=0.02 * sigma)


def test_dueling_advantages_have_no_mean():
    model = q_function(dueling=True)
    obs = np.random.default_rng(0).uniform(-1, 1, (5, 3)).astype(np.float32)
    features = model.parts["network"](obs)
    outputs = np.asarray(model.outputs(obs, model.noise(1)))[..., 0]
    state = np.asarray(model.parts["state"](features, np.zeros((1, 0), np.float32)))
    np.testing.assert_allclose(outputs.mean(axis=1), state[:, 0], atol=1e-6)


def test_share_of_random_actions():
    model = q_function()
    obs = np.zeros((4000, 3), np.float32)
    greedy = model.step(obs, deterministic=True)[0][0]
    for epsilon in (0.0, 0.4, 1.0):
        model.epsilon = epsilon
        share = np.mean(model.step(obs)[0] != greedy)
        assert share == pytest.approx(0.75 * epsilon, abs=0.03)
    model.epsilon, model.final_epsilon = None, 0.4
    share = np.mean(model.step(obs)[0] != greedy)
    assert share == pytest.approx(0.3, abs=0.03)
    # Noise explores instead.
    assert len(set(q_function(sigma=0.5).step(obs)[0])) > 1


def test_exploration_schedule():
    rates = [epsilon_at(step, 1000, 0.1) for step in (0, 500, 1000, 5000)]
    assert rates == pytest.approx([1.0, 0.55, 0.1, 0.1])
    assert epsilon_at(0, 0, 0.1) == 0.1


@pytest.mark.parametrize("num_envs", [1, 3, 8])
def test_optimiser_steps_do_not_depend_on_the_number_of_environments(num_envs):
    steps = range(num_envs, 2400 + 1, num_envs)
    due = [count_due(step - num_envs, step, 4, 100) for step in steps]
    assert sum(due) == (2400 - 100) // 4
    assert max(due) - min(due[150:]) <= 1


def local_names(**settings):
    """Returns learn()'s local variables after its last step."""
    names = {}
    first = dict(env=cartpoles(), network="mlp", seed=0, defaults=False)
    settings = first | settings
    learn(**settings, callback=lambda now, _: names.update(now))
    return names


@pytest.mark.parametrize(
    ("large_batch", "shape", "optimizer_steps"),
    [(False, (2, 5), 10), (True, (1, 10), 5)],
)
def test_large_batch_makes_one_step_of_those_due(large_batch, shape, optimizer_steps):
    settings = dict(total_timesteps=80, learning_starts=40, batch_size=5, train_freq=4)
    names = local_names(**settings, env=cartpoles(8), large_batch=large_batch)
    assert names["batches"].actions.shape == shape
    assert int(names["optimizer"].iterations) == optimizer_steps


@pytest.mark.parametrize("double_q", [False, True])
def test_trained_by_targets_of_the_target_network(double_q):
    settings = dict(total_timesteps=100, learning_starts=50, lr=1e-2, double_q=double_q)
    names = local_names(**settings, target_network_update_freq=1000)
    for name, bias in (("model", [0.0, 1000.0]), ("target", [1000.0, 0.0])):
        names[name].parts["actions"].dense[-1].bias.assign(bias)
    batch = Transitions(*(field[0] for field in names["batches"]))
    online, target = (
        np.asarray(names[name].outputs(batch.next_obs, batch.noise[:1]))[..., 0]
        for name in ("model", "target")
    )
    assert (online.argmax(axis=1) != target.argmax(axis=1)).all()
    best = (online if double_q else target).argmax(axis=1)
    following = target[np.arange(32), best]
    values = np.asarray(names["model"].outputs(batch.obs, batch.noise[:1]))[..., 0]
    errors = values[np.arange(32), batch.actions] - (
        batch.returns + batch.discounts * following
    )
    huber = np.where(abs(errors) < 1, errors**2 / 2, abs(errors) - 0.5)
    loss, _ = names["loss"](batch)
    assert float(loss) == pytest.approx(huber.mean(), rel=1e-5)


def test_training_begins_at_once_and_target_networks_are_copied_in_time():
    copied, before = [], None

    def callback(names, _):
        nonlocal before
        now = [variable.numpy() for variable in names["target"].variables]
        if before and any((x != y).any() for x, y in zip(now, before)):
            copied.append(names["num_timesteps"])
        before = now
        iterations = int(names["optimizer"].iterations)
        # As many as steps, but for the first, when nothing is in memory.
        assert iterations == names["num_timesteps"] - 8

    settings = dict(total_timesteps=120, learning_starts=0, prioritized_replay=True)
    settings |= dict(target_network_update_freq=30, callback=callback, defaults=False)
    learn(cartpoles(8), "mlp", **settings)
    # At the first step that reaches or passes a multiple of 30.
    assert copied == [32, 64, 96, 120]


def test_each_switch_changes_what_is_trained():
    def kinds(**settings):
        names = local_names(**settings, total_timesteps=2)
        model, memory = names["model"], names["memory"]
        return {
            "dueling": "state" in model.parts,
            "noisy": isinstance(model.parts["actions"].dense[0], NoisyDense),
            "categorical": isinstance(model.values, CategoricalValues),
            "prioritized_replay": isinstance(memory, PrioritizedReplayBuffer),
            "n_step": memory.n_step == 3,
        }

    plain = kinds()
    assert not any(plain.values())
    for name in plain:
        setting = {"n_step": {name: 3}, "categorical": {"values": name}}
        changed = kinds(**setting.get(name, {name: True}))
        assert [key for key, value in changed.items() if value] == [name]
    assert all(kinds(**rainbow.learn.settings).values())


def test_noise_begins_with_the_given_deviation():
    settings = dict(network="mlp", num_layers=0, hiddens=[], total_timesteps=0)
    model = learn(env=cartpoles(), **settings, noisy=True, noisy_sigma=0.125)
    (layer,) = model.parts["actions"].dense
    # CartPole has 4 inputs: 0.125 / √4
    for sigma in (layer.kernel_sigma, layer.bias_sigma):
        np.testing.assert_allclose(sigma, np.full(sigma.shape, 0.0625))


def test_frames_are_not_scaled_twice():
    """Pixels divided by 255 twice kept OpenAI Baselines' DQN from learning Pong.

    Its issues 431, 672 and 983. White has to enter the first convolution as 1.
    """
    peaks, seen = [], []

    def network():
        peaks.append(Peak())
        return keras.Sequential([peaks[-1], *cnn_small().layers])

    def callback(*_):
        seen.append([float(peak.peak) for peak in peaks])

    settings = dict(network=network, target_network_update_freq=1000)
    settings |= dict(total_timesteps=12, learning_starts=8)
    with image_env() as env:
        learn(env, **settings, callback=callback)
    # The target network sees what training draws from memory, and nothing else.
    assert (seen[0], seen[-1]) == ([1.0, 0.0], [1.0, 1.0])


def test_each_frame_is_kept_once_unless_a_wrapper_changes_stacks():
    class Darker(VecEnvWrapper):
        def step_wait(self):
            obs, *results = self.venv.step_wait()
            return obs // 2, *results

    env = VecFrameStack(image_env(), 4)
    wrapped = VecMonitor(env), VecNormalize(env, ob=False), Darker(env)
    assert [count_stacked(x) for x in (env, *wrapped)] == [4, 4, 4, 1]
    memory = local_names(env=env, network="cnn_small", total_timesteps=8)["memory"]
    assert memory.frames.shape[1:] == (1, 40, 40, 3)
    check_memory(memory)


def test_best_weights_are_kept_in_a_folder_and_returned(tmp_path):
    means, weights = [], []

    def callback(names, _):
        if names["num_timesteps"] % 100 == 0 and names["run"].episodes.count >= 100:
            means.append(names["run"].episodes.mean("r"))
            weights.append(names["model"].get_state()["variables"])

    settings = dict(network="mlp", seed=0, total_timesteps=4000)
    model = learn(
        env=cartpoles(4),
        exploration_final_eps=1.0,
        checkpoint_freq=100,
        checkpoint_path=str(tmp_path),
        callback=callback,
        **settings,
    )
    best = np.argmax(means)
    assert 0 < best < len(means) - 1
    assert_weights(model, weights[best])
    assert_weights(model, load_tensors(tmp_path / "best.safetensors")[0])


RANDOMLY = dict(network="mlp", seed=0, total_timesteps=10**5, train_freq=20)
RANDOMLY |= dict(exploration_final_eps=1.0, defaults=False)


def assert_weights(model, expected):
    for name, value in expected.items():
        np.testing.assert_array_equal(model.named_variables[name].numpy(), value)


def test_weights_that_met_stop_at_in_an_evaluation_are_returned():
    means, last = [], {}

    def callback(names, _):
        if names["num_timesteps"] % 100 == 0:
            means.append(names["run"].episodes.mean("r"))
            last.update(names["model"].get_state()["variables"])

    model = learn(
        env=cartpoles(4),
        eval_env=cartpoles(),
        checkpoint_freq=100,
        eval_interval=4000,
        eval_episodes=1,
        stop_at=0.0,
        callback=callback,
        **RANDOMLY,
    )
    assert means[-1] < max(means[30:])
    assert_weights(model, last)


def test_weights_before_training_are_never_the_best():
    settings = dict(env=cartpoles(4), checkpoint_freq=100, exploration_final_eps=1.0)
    settings |= dict(learning_starts=100, train_freq=5000)
    names = local_names(**settings, total_timesteps=3000)
    assert names["run"].episodes.count >= 100
    assert names["best"].mean is None


def test_model_is_returned_with_the_last_share_of_random_actions(tmp_path):
    settings = dict(network="mlp", total_timesteps=400, exploration_final_eps=0.05)
    stopped = learn(env=cartpoles(), **settings, callback=lambda *_: True)
    stopped.save(tmp_path / "model")
    for model in stopped, baselines.load(tmp_path / "model"):
        assert model.final_epsilon == pytest.approx(0.05) and model.epsilon is None
    noisy = learn(env=cartpoles(), **settings, noisy=True)
    assert noisy.final_epsilon == 0 and noisy.epsilon is None


def test_preset_of_a_preset_has_the_settings_of_both():
    train = preset(rainbow.learn, n_step=5, double_q=False)
    assert train.settings == rainbow.learn.settings | dict(n_step=5, double_q=False)
    model = train(env=cartpoles(), network="mlp", total_timesteps=0)
    assert model.arguments["noisy"] and model.arguments["n_step"] == 5


@pytest.mark.parametrize(
    "changes",
    [
        dict(values="categorical", v_min=1, v_max=1),
        dict(network="lstm"),
        dict(network=lambda: TWICE),  # not a new one at each call
        dict(checkpoint_path="/dev/null/x"),
    ],
    ids=lambda x: ",".join(x),
)
def test_mistakes_are_refused(changes):
    with pytest.raises(UserError):
        learn(**{"env": cartpoles(), "network": "mlp", **changes})


def test_best_model_of_another_run_is_replaced_when_asked(tmp_path):
    path = tmp_path / "best.safetensors"
    path.write_text("precious")
    given = dict(env=cartpoles(), network="mlp", checkpoint_path=str(tmp_path))
    with pytest.raises(UserError, match="has the best model of another run"):
        learn(**given)
    assert path.read_text() == "precious"
    # Not enough episodes for a mean of 100.
    learn(**given, total_timesteps=10, overwrite=True)
    learn(**given, total_timesteps=10, checkpoint_freq=0)
    assert path.read_text() == "precious"  # which these do not write


def test_several_ranks_are_refused(monkeypatch):
    monkeypatch.setattr(mpi, "size", 2)
    with pytest.raises(UserValueError):
        learn(env=cartpoles(), network="mlp")
