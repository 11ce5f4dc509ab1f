"""Random command lines are understood or refused; damaged files are never loaded."""

import random

import pytest
from conftest import import_learn

import baselines
from baselines import a2c, logger
from baselines.common.arguments.discovery import list_algorithms
from baselines.common.base.errors import UserError
from baselines.common.envs import make_vec_env
from baselines.common.run.command_line import read_arguments

ENVS = "CartPole-v1", "Pendulum-v1", "CartPole-v9", "x:Y-v0", ""
VALUES = (
    *("", "0", "1", "-1", "7", "0.5", "1e3", "1e400", "nan", "True", "None", "[]"),
    *(
        "[64]",
        "[0]",
        "{}",
        "(",
        "mlp",
        "lstm",
        "cnn_small",
        "linear:1e-3",
        "normal_0.1",
    ),
    *("no_such_module:x", "é", "it's", "a b", "9" * 30),
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


def damage(data, rng) -> bytes:
    """Returns bytes with some of them flipped, cut off or inserted."""
    data, place = bytearray(data), rng.randrange(len(data))
    kind = rng.randrange(3)
    if kind == 0:
        data[place] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[place:]
    else:
        data[place:place] = rng.randbytes(8)
    return bytes(data)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a model and two checkpoints, and the run's Checkpoints."""
    folder, runs = tmp_path_factory.mktemp("trained"), []
    with (
        logger.scoped_configure(str(folder), ["csv"]),
        make_vec_env("CartPole-v1", num_env=2, seed=0) as env,
    ):
        model = a2c.learn(
            env=env,
            network="mlp",
            seed=0,
            total_timesteps=400,
            checkpoint_interval=150,
            on_update=runs.append,
        )
    model.save(folder / "model.safetensors")
    checkpoints = runs[-1].checkpoints
    checkpoints.parts = {}  # A file that has its checksum is intact.
    return folder, checkpoints


def test_damaged_files_are_refused_or_an_older_checkpoint_is_restored(trained):
    folder, checkpoints = trained
    paths = [*sorted((folder / "checkpoints").iterdir()), folder / "model.safetensors"]
    assert len(paths) == 5
    rng, restored = random.Random(0), set()
    for _ in range(60):
        path = rng.choice(paths)
        data = path.read_bytes()
        path.write_bytes(damage(data, rng))
        try:
            if path.name == "model.safetensors":
                baselines.load(path)
                raise AssertionError("a damaged model was loaded")
            restored.add(checkpoints.restore(str(folder), 400)[0])
        except UserError as error:
            assert str(error).isprintable()
        finally:
            path.write_bytes(data)
    assert restored == {300, 400}
