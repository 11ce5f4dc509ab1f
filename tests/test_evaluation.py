"""Evaluations during training: what they find, and that training does not notice."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from test_algorithms import read_rows
from toy_envs import CounterEnv

from baselines import a2c, dqn, logger, run
from baselines.common.base.errors import UserFileError, UserValueError
from baselines.common.envs import make_env, make_vec_env
from baselines.common.envs.spaces import check_spaces
from baselines.common.run.command_line import read_arguments
from baselines.common.run.evaluation import Evaluation, evaluate, write_actions
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.saving.tensors import load_tensors
from baselines.common.saving.video import shrink
from baselines.common.vec_env import DummyVecEnv, VecMonitor
from baselines.common.vec_env.vec_video_recorder import VecFilm

NOISY = dict(network="mlp", noisy=True, learning_starts=50, print_freq=5, seed=0)


class Sure:
    """A model that has a return and a length of episodes, which differ by number."""

    initial_state = None
    observation_space = action_space = None
    rng = None
    saved = []

    def step(self, obs, S, M, deterministic):
        assert deterministic
        return np.zeros(len(obs), int), None, None, None

    def save(self, path):
        self.saved.append(path)


class Returns:
    """VecEnv of one environment whose episodes of one step have the returns given."""

    num_envs = 1
    observation_space = action_space = None

    def __init__(self, returns):
        self.returns = iter(returns)

    def reset(self):
        return np.zeros(1)

    def step(self, actions):
        result = next(self.returns)
        infos = [{} if result is None else {"episode": {"r": result, "l": 1}}]
        return np.zeros(1), np.zeros(1), np.ones(1, bool), infos


def test_best_model_is_kept():
    model = Sure()
    evaluation = Evaluation(Returns([1, 3, 4, 6, 0, 8]), 100, episodes=2)
    evaluation.start(model, "folder")
    for num_timesteps, mean in (100, 2), (200, 5), (300, 4):
        evaluation.run(num_timesteps)
        assert evaluation.score_at(num_timesteps) == mean
    assert evaluation.best == 5 and evaluation.score_at(200) is None
    assert model.saved == ["folder/best_model.safetensors"] * 2
    assert evaluation.columns == {
        "eval_eprewmean": 4,
        "eval_eprewstd": 4,
        "eval_eplenmean": 1,
    }


class Turns:
    """VecEnv whose environment i has episodes of i + 1 steps and return 10 i."""

    observation_space = action_space = None

    def __init__(self, num_envs=2):
        self.num_envs = num_envs
        self.num_steps = 0

    def reset(self):
        return np.zeros((self.num_envs, 1))

    def step(self, actions):
        self.num_steps += 1
        dones = [self.num_steps % (i + 1) == 0 for i in range(self.num_envs)]
        infos = [
            {"episode": {"r": 10 * i, "l": i + 1}} if done else {}
            for i, done in enumerate(dones)
        ]
        return self.reset(), np.zeros(self.num_envs), np.array(dones), infos


def test_short_episodes_are_not_counted_more_often():
    results = evaluate(Sure(), Turns(3), episodes=7, deterministic=True)
    assert sorted(x["r"] for x in results) == [0, 0, 0, 10, 10, 20, 20]


class Counting(Sure):
    """Takes the actions 0 and 1, then 2 and 3, and so on."""

    next = 0

    def step(self, obs, S, M, deterministic):
        self.next += 2
        return np.array([self.next - 2, self.next - 1]), None, None, None


class Watcher:
    """A log format that keeps histograms and videos."""

    histograms, videos = {}, []

    def __init__(self, folder, state=None):
        self.histograms.clear()
        self.videos.clear()

    def write_row(self, row):
        pass

    def write_histogram(self, name, values, step):
        self.histograms[name, step] = values.tolist()

    def write_video(self, *arguments):
        self.videos.append(arguments)

    def get_state(self):
        return None

    def close(self):
        pass


WATCHER = f"{__name__}:Watcher"


def test_evaluation_has_a_histogram_of_actions():
    with logger.scoped_configure(None, [WATCHER]):
        evaluation = Evaluation(Turns(), 100, episodes=2)
        evaluation.start(Counting(), None)
        evaluation.run(100)
        write_actions(np.array([[[1, 2]], [[3, 4]]]), 200)
    assert Watcher.histograms == {
        ("eval_actions", 100): [0, 1, 3],
        ("eval_actions/0", 200): [1, 3],
        ("eval_actions/1", 200): [2, 4],
    }


@pytest.mark.parametrize(
    ("length", "steps_per_second", "rate", "shades"),
    [
        (5, 15, 15, [0, 1, 2, 3, 4]),
        (5, 30, 15, [0, 2, 4]),
        (6, 50, 12.5, [0, 4]),
        (40, 1, 1, list(range(30))),  # of 30 seconds
    ],
)
def test_film_is_of_the_first_episode(length, steps_per_second, rate, shades):
    venv = VecMonitor(DummyVecEnv([lambda: CounterEnv(terminate_after=length)]))
    env = VecFilm(venv, steps_per_second)
    assert env.frames_per_second == rate
    for _ in range(2):
        env.reset()
        for _ in range(50):
            env.step(np.zeros(1, int))
        assert [frame[0, 0, 0] for frame in env.frames] == shades


def test_large_frames_are_made_smaller():
    assert shrink(np.zeros((210, 160, 3), np.uint8), 320).shape == (210, 160, 3)
    assert shrink(np.zeros((400, 640, 3), np.uint8), 320).shape == (200, 320, 3)


def test_training_does_not_notice_films(empty_folder, monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("OPENAI_LOG_FORMAT", WATCHER)
    words = "--alg=a2c --env=CartPole-v1 --num_env=1 --num_timesteps=100 --seed=0 "
    run.main(f"{words} --save_path=unwatched".split())
    assert not Watcher.videos
    words += "--overwrite --eval_interval=50 --eval_episodes=2"
    monkeypatch.setenv("OPENAI_LOG_FORMAT", f"{WATCHER},log")
    run.main(f"{words} --save_path=watched".split())
    assert list_manifests("log/checkpoints")
    assert Path("log/best_model.safetensors").is_file()
    text = Path("log/log.txt").read_text()
    assert "evaluated at 100 agent steps: mean return" in text
    weights, expected = (load_tensors(x)[0] for x in ("watched", "unwatched"))
    np.testing.assert_equal(weights, expected)
    assert [video[0] for video in Watcher.videos] == ["eval_video"] * 2
    assert [video[3] for video in Watcher.videos] == [50, 100]
    _, frames, rate, _ = Watcher.videos[0]
    assert rate == 12.5  # of 50 steps a second
    assert 1 < len(frames) <= 30 * rate
    assert {frame.shape for frame in frames} == {(213, 320, 3)}
    assert (frames[0] != frames[-1]).any()


def test_environment_that_cannot_be_drawn_is_not_filmed(empty_folder, capsys):
    words = "--alg=a2c --env=toy_envs:CounterByName-v0 --seed=0 --eval_interval=50"
    with logger.scoped_configure("log", [WATCHER]):
        env = run.make_eval_env(read_arguments(words.split()))
    assert not isinstance(env, VecFilm)
    line = "warning: evaluations are not filmed: TypeError: CounterEnv"
    assert line in capsys.readouterr().err


def test_training_does_not_notice_evaluations(tmp_path):
    """Not even of a model that draws noise where it acts for the best."""
    weights = []
    for settings in {}, dict(eval_env=gym.make("CartPole-v1"), eval_interval=60):
        with logger.scoped_configure(str(tmp_path / str(len(weights))), ["csv"]):
            model = dqn.learn(
                gym.make("CartPole-v1"), total_timesteps=200, **NOISY, **settings
            )
        weights.append(model.get_state()["variables"])
    np.testing.assert_equal(*weights)


def test_evaluations_do_not_play_the_episodes_trained_on():
    class Seeded(gym.Wrapper):
        def reset(self, *, seed=None, options=None):
            if seed is not None:
                self.seed = seed
            return super().reset(seed=seed, options=options)

    env, eval_env = (Seeded(gym.make("CartPole-v1")) for _ in range(2))
    settings = dict(network="mlp", seed=3, total_timesteps=5)
    a2c.learn(env=env, eval_env=eval_env, eval_interval=5, **settings)
    assert env.seed == 3 and eval_env.seed == 5003


def a_vec_monitor(folder):
    env = DummyVecEnv([lambda: gym.make("CartPole-v1")])
    return VecMonitor(env, f"{folder}/eval.monitor.csv")


@pytest.mark.parametrize(
    "make_eval_env",
    [
        lambda folder: make_env("CartPole-v1", monitor_file=f"{folder}/eval"),
        lambda folder: make_vec_env("CartPole-v1", num_workers=1, log_dir=folder),
        a_vec_monitor,
    ],
    ids=["monitor", "worker", "vec_monitor"],
)
def test_files_of_evaluations_begin_once_a_run_may(tmp_path, make_eval_env):
    folder = str(tmp_path / "log")
    settings = dict(eval_interval=10, eval_episodes=1, seed=0)
    settings |= dict(checkpoint_interval=5)  # so the first is before an evaluation

    def train(**given):
        eval_env = make_eval_env(folder)
        with logger.scoped_configure(folder, []):
            env = gym.make("CartPole-v1")
            a2c.learn(env, "mlp", eval_env=eval_env, **settings, **given)
        eval_env.close()
        (file,) = (tmp_path / "log").glob("*.monitor.csv")
        return file.read_text()

    first = train(total_timesteps=20)
    with pytest.raises(UserFileError, match="has a run already"):
        train(total_timesteps=20)
    assert train(total_timesteps=30, resume=folder).startswith(first)


def test_training_stops_at_a_score(tmp_path):
    def train(**settings):
        settings |= dict(total_timesteps=5000, log_interval=1, seed=0, overwrite=True)
        with logger.scoped_configure(str(tmp_path), ["csv"]):
            a2c.learn(gym.make("CartPole-v1"), "mlp", **settings)
        return read_rows(tmp_path)[-1]

    # Of the last 100 episodes: at least as many have ended.
    last = train(stop_at=5)
    assert 100 * 9 < int(last["total_timesteps"]) < 5000
    # Of an evaluation: the first that there is.
    env = gym.make("CartPole-v1")
    last = train(stop_at=5, eval_env=env, eval_interval=105, eval_episodes=2)
    assert int(last["total_timesteps"]) == 105
    assert float(last["eval_eprewmean"]) >= 5


def test_environment_without_a_monitor_is_refused():
    evaluate(Sure(), Returns([None] * 50 + [1]), 1, deterministic=True)
    with pytest.raises(UserValueError, match="put a Monitor around"):
        evaluate(Sure(), Returns([None] * 101), 1, deterministic=True)


@pytest.mark.parametrize(
    ("env_id", "settings"),
    [
        (None, dict(eval_interval=100)),
        ("the same", dict(eval_interval=100)),
        ("CartPole-v1", dict()),
        ("Pendulum-v1", dict(eval_interval=100)),  # other spaces
    ],
)
def test_evaluations_that_cannot_be_made_are_refused(env_id, settings):
    env = gym.make("CartPole-v1")
    eval_env = env if env_id == "the same" else env_id and gym.make(env_id)
    with pytest.raises(UserValueError):
        a2c.learn(env, "mlp", eval_env=eval_env, **settings)


def test_actions_in_another_unit_are_not_evaluated():
    env = gym.make("Pendulum-v1")
    scaled = gym.wrappers.RescaleAction(env, np.float32(-1), 1)
    with pytest.raises(UserValueError, match=r"action space Box\(-1.0, 1.0.*Box\(-2.0"):
        check_spaces(scaled, env)


def test_evaluation_carries_recurrent_state():
    class Recurrent(Sure):
        initial_state = "start"
        seen = []

        def step(self, obs, S, M, deterministic):
            self.seen.append((S, bool(M[0])))
            return np.zeros(1, int), None, "later", None

    evaluate(Recurrent(), Returns([1, 2, 3]), 3, deterministic=True)
    assert Recurrent.seen == [("start", False), ("later", True), ("later", True)]
