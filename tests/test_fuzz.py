"""Random command lines are understood or refused; damaged models are never loaded."""

import random

import gymnasium as gym
import pytest
from conftest import import_learn

import baselines
from baselines import a2c
from baselines.common.arguments.discovery import list_algorithms
from baselines.common.base.errors import UserError
from baselines.common.run.command_line import read_arguments

ENVS = "CartPole-v1", "Pendulum-v1", "CartPole-v9", "x:Y-v0", ""
VALUES = (
    *("", "0", "1", "-1", "7", "0.5", "1e3", "1e400", "nan", "True", "None", "[]"),
    *("[64]", "[0]", "{}", "(", "mlp", "lstm", "cnn_small", "linear:1e-3"),
    *("normal_0.1", "no_such_module:x", "é", "it's", "a b", "9" * 30),
)


def random_line(rng) -> list:
    """Returns the words of a command line, which may be valid."""
    alg = rng.choice(list_algorithms())
    words = [f"--alg={alg}", f"--env={rng.choice(ENVS[:2] * 8 + ENVS)}"]
    declared = import_learn(alg).declared
    for name in rng.sample(list(declared), rng.randrange(1, 4)):
        value = rng.choice([rng.choice(VALUES), declared[name].default])
        misspelt = rng.random() < 0.05
        words.append(f"--{name[misspelt:]}={value}")
    return words


def test_two_hundred_random_command_lines(empty_folder):
    rng, refused = random.Random(0), 0
    for _ in range(200):
        words = random_line(rng)
        try:
            read_arguments(words)
        except UserError as error:
            refused += 1
            assert str(error).isprintable(), words
        except BaseException as error:
            raise AssertionError(words) from error
    assert 20 < refused < 180


def test_a_model_with_a_flipped_bit_is_never_loaded(tmp_path):
    path, rng = tmp_path / "model", random.Random(0)
    a2c.learn(gym.make("CartPole-v1"), "mlp", total_timesteps=0).save(path)
    good = path.read_bytes()
    for place in rng.choices(range(len(good)), k=40):
        bad = bytearray(good)
        bad[place] ^= 1 << rng.randrange(8)
        path.write_bytes(bad)
        with pytest.raises(UserError):
            baselines.load(path)
