"""Imitation: the adversary by numbers by hand, expert data, recording, cloning."""

import os
import pickle
import re
from pathlib import Path

import gymnasium as gym
import keras
import numpy as np
import pytest
from conftest import cartpoles, error_of, killed_after, slow
from gymnasium import spaces
from test_algorithms import read_rows, results
from test_learning import make_identities

import baselines
from baselines import a2c, gail, run
from baselines.common.base.errors import UserFileError, UserTypeError, UserValueError
from baselines.common.networks.distributions import make_distribution
from baselines.common.run.evaluation import evaluate
from baselines.gail.adversary import Adversary, adversary_loss, imitation_rewards
from baselines.gail.expert import Expert, read_expert, write_expert
from baselines.gail.gail import cloning_loss
from baselines.gail.record import main as record

LOG_2, LOG_3 = np.log(2), np.log(3)
BOX, TWO = spaces.Box(-1, 1, (2,)), spaces.Discrete(2)
CARTPOLE = "--env=CartPole-v1 --expert_path=expert.npz --seed=1 --log_interval=1 "
CARTPOLE += "--timesteps_per_batch=64 --checkpoint_interval=64 --num_timesteps=384 "
CARTPOLE += "--num_env=2 --d_step=2 --g_step=2 --pretrained --BC_max_iter=20"


pytestmark = pytest.mark.usefixtures("empty_folder")


def make_expert(n=6, acs_space=TWO):
    """Expert data of two episodes, of random samples."""
    samples = [copy_seeded(space) for space in (BOX, acs_space)]
    obs, acs = (np.stack([s.sample() for _ in range(n)]) for s in samples)
    return Expert(obs, acs, np.array([n - 2, 2]), np.array([3.0, 5.0]))


def copy_seeded(space):
    space = pickle.loads(pickle.dumps(space))
    space.seed(0)
    return space


def test_adversary_loss():
    # D is 1/2 and 1/4 for the policy, 3/4 for the expert.
    loss, metrics = adversary_loss(
        np.float32([0, -LOG_3]), np.float32([LOG_3]), ent_coef=0.1
    )
    expected = {
        "generator_loss": (LOG_2 + (2 * LOG_2 - LOG_3)) / 2,  # -log 1/2, -log 3/4
        "expert_loss": 2 * LOG_2 - LOG_3,
        # of 1/2, and twice of 1/4 and 3/4
        "adversary_entropy": (LOG_2 + 2 * (2 * LOG_2 - 0.75 * LOG_3)) / 3,
        "generator_acc": 0.5,
        "expert_acc": 1,
    }
    assert {k: float(v) for k, v in metrics.items()} == pytest.approx(expected)
    total = expected["generator_loss"] + expected["expert_loss"]
    assert float(loss) == pytest.approx(total - 0.1 * expected["adversary_entropy"])


def test_imitation_rewards():
    """-log(1 - D), which stays finite where D is 1 in float32."""
    rewards = imitation_rewards(np.float32([-LOG_3, 0, LOG_3, 100]))
    np.testing.assert_allclose(
        rewards, [2 * LOG_2 - LOG_3, LOG_2, 2 * LOG_2, 100], rtol=1e-5
    )


def test_cloning_loss():
    # A mean of 1 and a deviation of 1, for the actions 3 and 1.
    loss, _ = cloning_loss(
        np.float32([[1, 0], [1, 0]]),
        np.float32([[3], [1]]),
        distribution=make_distribution(spaces.Box(-9, 9, (1,))),
    )
    assert float(loss) == pytest.approx((2 + 0) / 2 + 0.5 * np.log(2 * np.pi))


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(3, start=1),
        slow(spaces.MultiDiscrete([2, 3])),
        spaces.MultiBinary(3),
        spaces.Box(-2, 2, (2, 2)),
    ],
    ids=lambda space: type(space).__name__,
)
def test_adversary_tells_actions_apart(space):
    """The expert takes one action, the policy any others, for the same observations."""
    keras.utils.set_random_seed(0)  # of the adversary's first weights
    samples = copy_seeded(space)
    obs = np.random.default_rng(0).uniform(-1, 1, (200, 2)).astype(np.float32)
    action = samples.sample()
    acs = [samples.sample() for _ in range(400)]
    acs = np.stack([x for x in acs if np.any(x != action)][:200])
    expert = Expert(obs, np.stack([action] * len(obs)), None, None)
    adversary = Adversary(BOX, space, expert, hidden_size=32, ent_coef=0.0, seed=0)
    for _ in range(40):
        metrics = adversary.train(obs, acs, steps=4, stepsize=3e-3)
    assert metrics["expert_acc"] > 0.95 and metrics["generator_acc"] > 0.95
    rewards = adversary.rewards(obs, acs), adversary.rewards(obs, expert.acs)
    assert np.mean(rewards[0]) < LOG_2 < np.mean(rewards[1])


def test_statistics_are_of_policy_and_expert():
    expert = Expert(np.full((9, 2), 3, np.float32), np.zeros(9, int), None, None)
    adversary = Adversary(BOX, TWO, expert, hidden_size=4, ent_coef=0.0, seed=0)
    adversary.train(np.ones((4, 2), np.float32), np.zeros(4, int), 1, 1e-3)
    np.testing.assert_allclose(adversary.normalizer.mean, [2, 2])
    np.testing.assert_allclose(adversary.normalizer.deviation, [1, 1])
    # More steps than transitions, which are used again.
    assert adversary.train(np.ones((2, 2), np.float32), np.zeros(2, int), 5, 1e-3)


def test_expert_data_of_episodes():
    """As OpenAI Baselines had them, and in other numbers than the space's."""
    obs, acs = np.arange(12).reshape(2, 3, 2) / 4.0, np.full((2, 3, 2), 9.0)
    np.savez("expert.npz", obs=obs, acs=acs, rews=np.zeros(2))
    found = read_expert("expert.npz", BOX, BOX, episodes=1)
    np.testing.assert_array_equal(found.obs, [[0, 0.25], [0.5, 0.75], [1, 1.25]])
    assert found.obs.dtype == np.float32
    # pandas and transposed arrays have the other order.
    np.savez("fortran.npz", obs=np.asfortranarray(obs), acs=np.asfortranarray(acs))
    assert read_expert("fortran.npz", BOX, BOX, episodes=1).checksum == found.checksum
    # Clipped, as environments do.
    np.testing.assert_array_equal(found.acs, np.ones((3, 2)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(acs=None), "has no array 'acs'"),
        (dict(obs=np.zeros((6, 3))), r"obs of shape \(6, 3\), but .* be \(6, 2\)"),
        (dict(acs=np.zeros(6)), "acs of type float64, but .* be int64"),
        (dict(obs=np.full((6, 2), np.nan)), "obs that are NaN or infinite"),
        (dict(acs=np.full(6, 2)), r"acs that are not in Discrete\(2\)"),
        (dict(ep_lens=np.array([3, 4])), "do not add up"),
        (dict(ep_lens=None), r"where episodes end \(ep_lens\), which traj_limitation"),
        (dict(), "has 2 episodes, fewer than the traj_limitation of 3"),
        (dict(obs=np.array([[], [1]], object)), "Object arrays cannot be loaded"),
    ],
)
def test_expert_data_that_do_not_fit(changes, message):
    arrays = make_expert()._asdict() | changes
    np.savez("bad.npz", **{k: v for k, v in arrays.items() if v is not None})
    with pytest.raises(UserValueError, match=f"the expert data bad.npz .*{message}"):
        read_expert("bad.npz", BOX, TWO, episodes=3)


def test_damaged_expert_data_are_refused():
    write_expert(os.path.abspath("expert.npz"), make_expert())
    Path("expert.npz").write_bytes(Path("expert.npz").read_bytes()[:-9])
    with pytest.raises(UserValueError, match="cannot be read as an .npz file: "):
        read_expert("expert.npz", BOX, TWO)


@pytest.fixture
def model():
    """A file of an untrained model of another algorithm."""
    env = gym.make("CartPole-v1")
    model = a2c.learn(env=env, network="mlp", seed=0, total_timesteps=0)
    model.save("model.safetensors")
    return "model.safetensors"


def test_recorded_transitions_are_those_that_were_played(model, capsys):
    expert = record([model, "--env=CartPole-v1", "--episodes=4", "--seed=3"])
    assert re.search(r"model\.npz: .* 4 episodes of CartP", capsys.readouterr().out)
    env = gym.make("CartPole-v1").unwrapped
    found = read_expert("model.npz", env.observation_space, env.action_space)
    for a, b in zip(found, expert):
        np.testing.assert_array_equal(a, b)
    assert len(found.ep_lens) == 4
    np.testing.assert_array_equal(found.ep_lens, found.ep_rets)
    ends = np.cumsum(found.ep_lens) - 1
    env.reset()
    for t, (obs, action) in enumerate(zip(found.obs[:-1], found.acs)):
        env.state = obs
        following, _, terminated, *_ = env.step(action)
        assert terminated == (t in ends)
        if not terminated:
            np.testing.assert_allclose(following, found.obs[t + 1], atol=1e-6)
        env.steps_beyond_terminated = None


def test_recording_replaces_no_file(model, capsys):
    Path("mine.npz").write_text("mine")
    line = error_of(capsys, f"{model} --env=CartPole-v1 --output=mine.npz", record)
    assert "mine.npz already" in line and "--output" in line
    assert Path("mine.npz").read_text() == "mine"


def write_balancing_expert(episodes, steps):
    """Writes the data of a rule: push the cart to where the pole falls."""
    env = gym.make("CartPole-v1").unwrapped
    obs, acs = [], []
    for seed in range(episodes):
        following, _ = env.reset(seed=seed)
        for _ in range(steps):
            obs.append(following)
            acs.append(int(obs[-1][2] + 0.5 * obs[-1][3] > 0))
            following, _, terminated, *_ = env.step(acs[-1])
            assert not terminated
    lengths = np.full(episodes, steps)
    write_expert(os.path.abspath("expert.npz"), Expert(obs, acs, lengths, lengths))


@pytest.mark.slow
def test_interrupted_run_goes_on_as_if_it_had_not_been(capsys):
    write_balancing_expert(episodes=2, steps=50)
    run.main(f"--alg=gail {CARTPOLE} --log_path=whole".split())
    with killed_after(3):
        run.main(f"--alg=gail {CARTPOLE} --log_path=cut".split())
    run.main(["--resume=cut"])
    rows, episodes, _ = results("whole")
    assert results("cut") == results("whole")
    # It is trained on every second rollout, and rows have the scores of episodes.
    losses = [row["expert_loss"] for row in rows]
    assert losses[0::2] == losses[1::2] and len(set(losses)) == 3
    returns = [float(r) for _, r, _ in episodes]
    assert float(rows[-1]["eprewmean"]) == pytest.approx(np.mean(returns[-100:]))
    # The same file may be elsewhere; with another, no run goes on.
    Path("expert.npz").rename("moved.npz")
    run.main(["--resume=whole", "--num_timesteps=640", "--expert_path=moved.npz"])
    assert read_rows("whole")[: len(rows)] == rows
    run.main(["--resume=whole", "--num_timesteps=896"])  # The path is stored now.
    Path("moved.npz").unlink()
    write_balancing_expert(episodes=2, steps=40)
    again = "--resume=whole --num_timesteps=1280 --expert_path=expert.npz"
    assert "the expert data are not those" in error_of(capsys, again)
    Path("expert.npz").unlink()
    action, _ = baselines.load("whole").predict(np.zeros(4, np.float32))
    assert action in (0, 1)


def test_without_expert_data():
    arguments = dict(env=gym.make("CartPole-v1"), network="mlp", total_timesteps=2048)
    with pytest.raises(UserTypeError, match="expert_path"):
        gail.learn(**arguments)
    with pytest.raises(UserFileError, match="no expert data at missing.npz"):
        gail.learn(**arguments, expert_path="missing.npz")
    assert not os.listdir()
    untrained = arguments | {"total_timesteps": 0, "expert_path": "missing.npz"}
    gail.learn(**untrained)
    with pytest.raises(UserValueError, match="pretrained begins training"):
        gail.learn(**untrained, pretrained=True)


def imitate(space, **settings):
    """Returns the mean return of a policy that has seen the identity, not rewards."""
    samples = copy_seeded(space)
    acs = np.stack([samples.sample() for _ in range(2000)])
    obs = acs.astype(make_identities(space).observation_space.dtype)
    write_expert(os.path.abspath("expert.npz"), Expert(obs, acs, None, None))
    model = gail.learn(
        env=make_identities(space),
        network="mlp",
        seed=0,
        expert_path="expert.npz",
        gamma=0.5,
        **settings,
    )
    results = evaluate(model, make_identities(space), 40, deterministic=True)
    return np.mean([result["r"] for result in results])


EACH_SPACE = pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(5),
        slow(spaces.MultiDiscrete([3, 4])),
        slow(spaces.MultiBinary(3)),
        slow(spaces.Box(-1, 1, (2,))),
    ],
    ids=lambda space: type(space).__name__,
)


@EACH_SPACE
def test_cloning_imitates(space):
    """Alone: one update, of the smallest step."""
    settings = dict(pretrained=True, BC_max_iter=1000, max_kl=1e-9)
    settings |= dict(timesteps_per_batch=64, total_timesteps=64)
    assert imitate(space, **settings) > 9  # 2, 2.9, 5 and 6.7 by one action


@pytest.mark.slow
@EACH_SPACE
def test_adversary_imitates(space):
    """Episodes of one length, so that their length tells nothing."""
    settings = dict(g_step=1, d_step=8, d_stepsize=3e-3, max_kl=0.02)
    settings |= dict(timesteps_per_batch=512, total_timesteps=20_480)
    assert imitate(space, **settings) > 9


@pytest.mark.slow
def test_cartpole_is_balanced_as_by_the_expert():
    """By the defaults, in 40,000 agent steps; that episodes go on is paid as well."""
    write_balancing_expert(episodes=5, steps=500)
    runs = []
    gail.learn(
        env=cartpoles(8),
        network="mlp",
        seed=0,
        expert_path="expert.npz",
        total_timesteps=40_000,
        stop_at=195.5,
        on_update=runs.append,
    )
    assert runs[-1].episodes.mean("r") > 195  # 22 at first
