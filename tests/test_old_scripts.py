"""Scripts that were written for OpenAI Baselines."""

import gymnasium as gym
import numpy as np
import pytest
from toy_envs import CounterEnv

from baselines import bench, deepq, logger
from baselines.common.atari_wrappers import make_atari
from baselines.common.errors import UserValueError
from baselines.common.saving.tensors import load_tensors


def train_cartpole(**fewer):
    """As OpenAI Baselines' experiment of this name, but for the number of steps."""

    def callback(lcl, _glb):
        # Stops once it is solved: a return of 199 on average.
        return lcl["t"] > 100 and sum(lcl["episode_rewards"][-101:-1]) / 100 >= 199

    env = gym.make("CartPole-v0")
    act = deepq.learn(
        env,
        network="mlp",
        lr=1e-3,
        buffer_size=50000,
        exploration_fraction=0.1,
        exploration_final_eps=0.02,
        print_freq=10,
        callback=callback,
        **fewer,
    )
    print("Saving model to cartpole_model.pkl")
    act.save("cartpole_model.pkl")


def enjoy_cartpole(games):
    """As the experiment of this name, which played forever."""
    env = gym.make("CartPole-v0")
    act = deepq.learn(
        env, network="mlp", total_timesteps=0, load_path="cartpole_model.pkl"
    )
    for _ in range(games):
        (obs, _), done = env.reset(), False
        episode_rew = 0
        while not done:
            env.render()
            obs, rew, terminated, truncated, _ = env.step(act(obs[None])[0])
            done = terminated or truncated
            episode_rew += rew
        print("Episode reward", episode_rew)


def train_pong(**fewer):
    """As the experiment of this name, but for the number of steps."""
    logger.configure()
    env = make_atari("PongNoFrameskip-v4")
    env = bench.Monitor(env, logger.get_dir())
    env = deepq.wrap_atari_dqn(env)
    model = deepq.learn(
        env,
        "conv_only",
        convs=[(32, 8, 4), (64, 4, 2), (64, 3, 1)],
        hiddens=[256],
        dueling=True,
        lr=1e-4,
        exploration_fraction=0.1,
        exploration_final_eps=0.01,
        train_freq=4,
        gamma=0.99,
        **fewer,
    )
    model.save("pong_model.pkl")
    env.close()


@pytest.mark.filterwarnings("ignore:.*CartPole-v0", "ignore:.*render")
def test_cartpole_scripts(empty_folder, capsys):
    train_cartpole(total_timesteps=300, learning_starts=200)
    assert (empty_folder / "cartpole_model.pkl").is_file()
    enjoy_cartpole(games=2)
    assert capsys.readouterr().out.count("Episode reward") == 2


def test_pong_script(empty_folder):
    train_pong(
        total_timesteps=120,
        buffer_size=100,
        learning_starts=80,
        target_network_update_freq=50,
    )
    model = empty_folder / "pong_model.pkl"
    assert load_tensors(model)[0]["exploration.0.epsilon"] == np.float32(0.01)
    assert (empty_folder / "log" / "monitor.csv").is_file()


def test_callback_reads_what_it_read_there():
    seen = []

    def callback(lcl, _glb):
        seen.append((lcl["t"], lcl["episode_rewards"]))
        return lcl["t"] == 7

    env = CounterEnv(terminate_after=3)  # returns 1 + 2 + 3
    deepq.learn(env, "mlp", total_timesteps=100, callback=callback)
    assert seen[0] == (1, [0.0])
    assert seen[2] == (3, [6.0, 0.0])
    assert seen[-1] == (7, [6.0, 6.0, 0.0])


def test_act_takes_a_batch_of_observations():
    act = deepq.learn(CounterEnv(), "mlp", total_timesteps=0)
    actions = act(np.zeros((4, 1), np.float32))
    assert actions.shape == (4,) and actions.dtype == np.int64
    with pytest.raises(UserValueError, match="have to come as a batch"):
        act(np.zeros(1, np.float32))
