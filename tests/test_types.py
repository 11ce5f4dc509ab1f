"""Type checkers accept what README and docs show, and find mistakes in calls."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_readme import FILES, SCRIPTS

from baselines.common.arguments import types as arg
from baselines.common.arguments.types import PartArguments

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
RIGHT = """
import gymnasium as gym

from baselines import her, load, ppo1, ppo2, rainbow
from baselines.a2c import learn
from baselines.common.envs import make_vec_env
from baselines.common.vec_env import VecFrameStack
from baselines.gail import gail

env = gym.make("CartPole-v1")
model = learn(env, "mlp", lr=lambda progress: 1e-3, num_hidden=8, precision="auto")
ppo2.learn(env=env, network="lstm", nlstm=4, load_path="model.safetensors").save("m")
ppo1.learn(env, optim_epochs=4)
rainbow.learn(env, "mlp", atoms=21, n_step=3)
ppo2.learn(env, value_network="mlp", value_num_hidden=8, optimizer="sgd", momentum=0.9)
her.learn(env, "mlp", replay_k=8)
gail.learn(env, "mlp", expert_path="expert.npz")
actions, state = load("folder").predict([0.0, 0.0, 0.0, 0.0], deterministic=True)
actions, values, states, neglogps = model.step([[0.0, 0.0, 0.0, 0.0]])
venv = VecFrameStack(make_vec_env("PongNoFrameskip-v4", num_env=2), 4)
obs, rewards, dones, infos = venv.step([0, 1])
"""
WRONG = """
import gymnasium as gym

from baselines import load, rainbow
from baselines.a2c import learn
from baselines.common.envs import make_vec_env

env = gym.make("CartPole-v1")
learn(env, "mlp", total_timestep=100)
learn(env, "mlp", nsteps="five")
learn(network="mlp")
learn("CartPole-v1", "mlp")
learn(env, "mlp", num_hidden="8")
learn(env, "mlp", checkpoint_interval="often")
learn(env, "mlp", value_network=64)
learn(env, "mlp").predict([0.0], determinstic=True)
rainbow.learn(env, "mlp", doubleq=True)
load("folder").steps([0.0])
make_vec_env("CartPole-v1", num_envs=2)
make_vec_env("CartPole-v1", num_env=2).step()
"""
ERROR = r": error: | - error: "  # of mypy, of pyright
LINES = [n for n, line in enumerate(WRONG.splitlines(), 1) if n > 8]  # all the calls


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that readers make, and scripts."""
    folder = tmp_path_factory.mktemp("checked")
    scripts = {f"script_{i}.py": code for i, code in enumerate(SCRIPTS)}
    for name, code in {**FILES, **scripts, "r.py": RIGHT, "w.py": WRONG}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(code)
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "mypy --explicit-package-bases --follow-imports=silent "
        "--disable-error-code=import-untyped .",  # Keras has no types.
        f"basedpyright --pythonpath {sys.executable} .",
    ],
    ids=["mypy", "pyright"],
)
def test_checkers_accept_what_the_docs_show_and_find_mistakes_in_calls(command, folder):
    pytest.importorskip(command.split()[0])
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT)]}
    settings["useLibraryCodeForTypes"] = False  # It would guess Keras' types wrong.
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    result = subprocess.run(
        [sys.executable, "-m", *command.split()],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    errors = [x.split(":") for x in result.stdout.splitlines() if re.search(ERROR, x)]
    found = {(Path(file.strip()).name, int(line)) for file, line, *_ in errors}
    assert found == {("w.py", line) for line in LINES}, result.stdout


def test_type_checkers_know_the_arguments_of_parts():
    annotations = [x for x in vars(arg).values() if hasattr(x, "__metadata__")]
    parts = [y for x in annotations for y in x.__metadata__ if isinstance(y, arg.Part)]
    parts = [part for part in parts if part.kind != "reward"]  # it has no arguments
    names = [part.arguments(fn) for part in parts for fn in part.known().values()]
    assert set().union(*names) == PartArguments.__annotations__.keys()
