"""Exported models act as they did, without this library."""

import os
from types import SimpleNamespace

import gymnasium as gym
import keras
import numpy as np
import pytest
from test_nests import ACTIONS
from toy_envs import Reach

from baselines import a2c, acer, dqn, export, logger, ppo2, sac
from baselines.common.base.errors import UserFileError, UserValueError
from baselines.common.envs.nests import FlatBox
from baselines.common.run.export import FORMATS, inputs_of, write_policy

TRAINED = {
    "lstm": (a2c.learn, "CartPole-v1", dict(network="lstm", total_timesteps=0)),
    "acer": (acer.learn, "CartPole-v1", dict(total_timesteps=0)),
    "dqn": (dqn.learn, "CartPole-v1", dict(noisy=True, total_timesteps=0)),
    "sac": (sac.learn, "Pendulum-v1", dict(total_timesteps=0)),
    "nest": (
        ppo2.learn,
        Reach(ACTIONS["brake"]),
        dict(image_network="cnn_small", normalize_observations=True, nsteps=20)
        | dict(total_timesteps=40),
    ),
}


@pytest.fixture(scope="module")
def saved(request, tmp_path_factory):
    """A model, and where it is saved."""
    learn, env, settings = TRAINED[request.param]
    env = gym.make(env) if isinstance(env, str) else env
    tmp_path = tmp_path_factory.mktemp(request.param)
    with logger.scoped_configure(str(tmp_path / "log"), []):
        model = learn(env=env, seed=0, **settings)
    model.save(tmp_path / "model")
    return model, str(tmp_path / "model")


@pytest.mark.parametrize("saved", TRAINED, indirect=True)
def test_saved_model_acts_as_the_model(saved, capsys):
    model, path = saved
    export.main([path, "-o", f"{path}_exported"])
    assert "as the model does" in capsys.readouterr().out
    inputs = inputs_of(model, 3)
    layer = keras.layers.TFSMLayer(f"{path}_exported", call_endpoint="serve")
    found = np.asarray(keras.tree.flatten(layer(inputs))[0])
    state = {}
    if model.initial_state is not None:
        state = dict(S=inputs[1], M=inputs[2])
    expected = model.step(inputs[0], deterministic=True, **state)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(UserFileError):
        export.export(path, f"{path}_exported")


@pytest.mark.parametrize("saved", ["acer", "lstm", "sac"], indirect=True)
def test_onnx_acts_as_the_model(saved, capsys):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tf2onnx")
    export.main([saved[1], "-o", f"{saved[1]}.onnx"])
    assert "as the model does" in capsys.readouterr().out


@pytest.mark.parametrize("saved", ["acer"], indirect=True)
def test_a_file_that_acts_otherwise_is_removed(saved, monkeypatch):
    wrong = "tf_saved_model", lambda path, inputs: [np.full(100, 7)]
    monkeypatch.setitem(FORMATS, "", wrong)
    with pytest.raises(UserValueError, match="did not act"):
        write_policy(saved[0], f"{saved[1]}_wrong")
    assert not os.path.exists(f"{saved[1]}_wrong")


def test_inputs_of_stacks_have_their_shape():
    space = FlatBox(Reach().observation_space, stack=2)
    model = SimpleNamespace(observation_space=space, initial_state=None)
    assert inputs_of(model, 3)[0].shape == (3, *space.shape)
