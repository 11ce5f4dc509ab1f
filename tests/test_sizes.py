"""Sizes that no machine has: one line each, within seconds, and nothing is written."""

import os

import numpy as np
import pytest
from baselines.common.run.parsing import parse
from conftest import import_learn
from gymnasium import spaces

from baselines import run
from baselines.common.arguments.declaration import declared_arguments
from baselines.common.arguments.discovery import list_algorithms
from baselines.common.arguments.types import Batch
from baselines.common.base.errors import UserValueError
from baselines.common.base.machine import check_memory
from baselines.common.data.replay_buffer import ReplayBuffer
from baselines.common.envs import make_vec_env
from baselines.common.networks.networks import mlp
from baselines.common.networks.policies import Policy
from baselines.common.run.settings import OWN
from baselines.common.updates.optimizers import Adam, RMSprop

pytestmark = pytest.mark.usefixtures("empty_folder")

LSTM = "value_network=shared"
HUGE = "1" + 400 * "0"


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    """Gives the machine 24 GB, or as much as the function that it returns is told."""

    def set_memory(size):
        name = "baselines.common.base.machine.available_memory"
        monkeypatch.setattr(name, lambda: size)

    set_memory(24e9)
    return set_memory


@pytest.fixture
def error_of(capfd, env_id, small):
    """Returns a function to the one line that a wrong command line must give."""
    # The environments have no goals, and there is no expert.
    needed = {k: v for k, v in small.items() if k in ("replay_k", "reward")}

    def error_of(*arguments):
        given = {x.partition("=")[0] for x in arguments}
        needs = [f"--{k}={v}" for k, v in needed.items() if f"--{k}" not in given]
        arguments = *needs, *arguments
        with pytest.raises(SystemExit) as stop:
            steps = "--num_timesteps=1e15"
            given = any(x.startswith("--num_timesteps=") for x in arguments)
            run.main([f"--env={env_id}", *([] if given else [steps]), *arguments])
        out, err = capfd.readouterr()
        assert stop.value.code == 2
        assert out == ""
        assert err.startswith("error: ") and err.count("\n") == 1 and len(err) < 300
        assert os.listdir() == []
        return err

    return error_of


def takes(learn, name):
    return name in declared_arguments(learn) or name in OWN


def numbers(learn):
    """Returns the names of what has to be a number, on the command line."""
    declared = OWN | declared_arguments(learn) | declared_arguments(mlp)
    del declared["total_timesteps"]  # num_timesteps there
    kinds = {name: {c.kind for c in x.choices} for name, x in declared.items()}
    return [name for name, found in kinds.items() if found & {int, float}]


@pytest.mark.parametrize(
    ("argument", "others", "words"),
    [
        ("num_env=1e9", [], ["1,000,000,000 environments needs 10 TB", "24 GB left"]),
        ("nsteps=1e9", [], ["000,000,000 s", "needs", "24 GB left", "nsteps"]),
        ("timesteps_per_batch=1e9", [], ["epochs of 1,000,000,000 s", "per_batch"]),
        ("timesteps_per_batch=1e7", [], ["00,000 steps in", "give a smaller rollout"]),
        ("buffer_size=1e12", [], ["a replay memory of 1,000,000,000,00", "24 GB"]),
        ("batch_size=1e9", [], ["a batch of 1,000,000,000 transitions", "24 GB left"]),
        ("noptepochs=1e9", [], ["an update of 1,000,000,000 epochs", "noptepochs"]),
        ("values=categorical", ["--atoms=1e9"], ["a target of 1,000,000,000 atoms"]),
        ("eval_episodes=1e9", ["--eval_interval=100"], ["needs 250 GB", "24 GB left"]),
        (f"hiddens={101 * [1]}", [], ["hiddens has to have at most 100 items"]),
        ("network=impala_cnn", [f"--depths={101 * [1]}"], ["at most 100 items"]),
        (
            "network=conv_only",
            [f"--convs={101 * [[1]]}"],
            ["at most 100 items"],
        ),
        ("hiddens=[1000000000]", [], ["each of hiddens has to be at most 1000000"]),
        ("network=mlp", ["--num_hidden=1e9"], ["num_hidden has to be at most 1000000"]),
        ("network=mlp", ["--num_hidden=1e5"], ["(100000, 100000) in", "needs 160 GB"]),
        ("network=mlp", ["--num_layers=1e12"], ["num_layers has to be at most 1000"]),
        (LSTM, ["--network=lstm", "--nlstm=1e12"], ["nlstm has to be at most 1000000"]),
        (
            LSTM,
            ["--network=lstm", "--nlstm=1e5"],
            ["(100000, 400000) in", "needs 640 GB"],
        ),
    ],
)
def test_size_that_does_not_fit(argument, others, words, alg, learn, error_of):
    if not takes(learn, argument.split("=")[0]):
        pytest.skip(f"{alg} has none")
    message = error_of(f"--alg={alg}", f"--{argument}", *others)
    for word in words:
        assert word in message


def test_number_of_400_digits(alg, learn, error_of):
    names = numbers(learn)
    assert {"num_env", "num_hidden", "gamma", "eval_episodes"} < set(names)
    for name in names:
        message = error_of(f"--alg={alg}", f"--{name}={HUGE}")
        assert name in message and "...00000000" in message
        assert name in error_of(f"--alg={alg}", f"--{name}=1e400")


def test_count_beyond_all_machines(alg, learn, error_of):
    for name in numbers(learn):
        declared = (OWN | declared_arguments(mlp) | declared_arguments(learn))[name]
        if {int} == {choice.kind for choice in declared.choices}:
            message = error_of(f"--alg={alg}", f"--{name}=1e18")
            assert f"{name} has to be at most" in message


@pytest.mark.parametrize("digits", [400, 5000])
def test_integer_that_python_does_not_write(digits, alg, learn, error_of):
    """Python converts no integer of more than 4300 digits to text or back."""
    text = "1" + digits * "0"
    for name in "num_env", "num_layers", "lr", "gamma":
        if takes(learn, name) or name == "num_layers":
            assert "received" in error_of(f"--alg={alg}", f"--{name}", text)
    if takes(learn, "hiddens"):
        assert "hiddens" in error_of(f"--alg={alg}", f"--hiddens=[{text}]")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(nsteps=10**12), "a rollout of 1,000,000,000,000 steps .* needs"),
        (dict(nsteps=10**5000), "nsteps .* at most .*more digits than Python writes"),
        (dict(gamma=10**5000), "gamma .* a finite number, .*more digits"),
        (dict(lr=10**5000), "lr has to be .*more digits than Python writes"),
        (dict(lrschedule=10**5000), "lrschedule has to be .*more digits"),
        (dict(num_hidden=10**5), r"a weight of shape \(100000, 100000\) .* 160 GB"),
        (dict(num_layers=10**18), "num_layers has to be at most 1000, received"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else "",
)
def test_learn_refuses_it_too(arguments, words):
    env = make_vec_env("CartPole-v1", seed=0)
    learn = import_learn("a2c")
    with pytest.raises(UserValueError, match=words) as error:
        learn(env, "mlp", **{"total_timesteps": 10**15, **arguments})
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


def test_emulators_take_more_than_equations(memory):
    memory(1e9)
    words = "2,000 environments needs 1.8 GB, .* 1 GB left; give a smaller num_env"
    with pytest.raises(UserValueError, match=words):
        make_vec_env("PongNoFrameskip-v4", num_env=2000)
    words = "200,000 environments needs 2 GB"
    with pytest.raises(UserValueError, match=words):
        make_vec_env("CartPole-v1", num_env=200_000)


def test_optimiser_that_does_not_fit(memory):
    env = make_vec_env("CartPole-v1", seed=0)
    policy = Policy(env.observation_space, env.action_space, "mlp", seed=0)
    # 4,675 weights: 4 x 64, 64 x 64, 64 x 2 and 64 x 1, with 64, 64, 2 and 1 biases.
    memory(56_099)
    for optimizer in Adam(), RMSprop():
        with pytest.raises(UserValueError, match="4,675 weights needs 0.0561 MB"):
            optimizer.build(policy.trainable_variables)
    memory(56_100)
    Adam().build(policy.trainable_variables)


def test_networks_outside_of_models_are_not_guarded(memory):
    env = make_vec_env("CartPole-v1", seed=0)
    memory(1)
    with pytest.raises(UserValueError, match="in the network needs"):
        Policy(env.observation_space, env.action_space, "mlp", seed=0)
    network = mlp()
    network(np.zeros((1, 4)))
    assert network.built


def test_large_machine_has_large_runs(memory):
    memory(2e12)
    words = "--num_env=4096 --num_timesteps=1e12 --buffer_size=1e8 --n_step=1e9"
    settings = parse(["--alg=dqn", "--env=CartPole-v1", *words.split()])
    assert settings.learn_arguments["buffer_size"] == 10**8
    space = spaces.Box(-1, 1, (4,), np.float32)
    ReplayBuffer(space, spaces.Discrete(2), 10**8, num_envs=64)
    check_memory("a rollout", 1e12, "nsteps")


def test_batch_sizes_are_marked():
    for name in list_algorithms():
        argument = declared_arguments(import_learn(name)).get("batch_size")
        assert argument is None or Batch in argument.markers
