"""What is done with trained models: loaded, evaluated, played, filmed."""

import itertools
import json
import os
import shutil
import subprocess

import gymnasium as gym
import keras
import numpy as np
import pytest
from gymnasium import spaces

import baselines
from baselines import a2c, evaluate, play, run
from baselines.common.arguments import cli
from baselines.common.base import mpi
from baselines.common.base.errors import (
    UserError,
    UserFileError,
    UserTypeError,
    UserValueError,
)
from baselines.common.envs.nests import (
    FlatBox,
    flat_observations,
    space_from_json,
    space_to_json,
)
from baselines.common.run.evaluation import play_steps
from baselines.common.saving.models import find_model, save_model
from baselines.common.saving.tensors import load_tensors

OBS = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Log folder of a short run, with a model and two checkpoints."""
    folder = tmp_path_factory.mktemp("trained") / "log"
    words = "--alg=a2c --env=CartPole-v1 --num_env=2 --num_timesteps=400 --seed=0 "
    words += "--checkpoint_interval=200 --num_hidden=8"
    run.main([*words.split(), f"--log_path={folder}"])
    return folder


def best_actions(model):
    return model.predict(OBS, deterministic=True)[0]


def test_load_takes_a_folder_a_model_or_a_checkpoint(trained, tmp_path):
    model = baselines.load(trained)
    (newest,) = trained.glob("checkpoints/*400.safetensors")
    killed, continued = tmp_path / "killed", tmp_path / "continued"
    shutil.copytree(trained, killed)
    (killed / "model.safetensors").unlink()
    shutil.copytree(trained, continued)
    earlier = next(trained.glob("checkpoints/*200.safetensors"))
    baselines.load(earlier).save(continued / "model.safetensors")
    manifest = newest.with_suffix(".json")
    for path in trained / "model.safetensors", newest, manifest, killed, continued:
        loaded = baselines.load(path)
        np.testing.assert_array_equal(loaded.value(OBS), model.value(OBS))
    # A copy of a folder may have other times.
    os.utime(continued / "model.safetensors", (0, 0))
    shutil.copy(trained / "model.safetensors", continued / "model.safetensors")
    assert find_model(continued) == str(continued / "model.safetensors")
    # The newest checkpoint that is not damaged.
    (killed / "checkpoints" / newest.name).write_bytes(b"damaged")
    older = baselines.load(killed).value(OBS)
    assert not np.array_equal(older, model.value(OBS))
    shutil.rmtree(killed / "checkpoints")
    with pytest.raises(UserFileError):
        baselines.load(killed)


def test_predict_takes_one_observation_or_a_batch(trained):
    model = baselines.load(trained)
    actions, state = model.predict(OBS, deterministic=True)
    assert actions.shape == (6,) and state is None
    for obs, action in zip(OBS, actions):
        one, _ = model.predict(obs, deterministic=True)
        assert one == action and one.shape == ()


def test_predict_carries_recurrent_state_and_clips():
    model = a2c.learn(gym.make("Pendulum-v1"), "lstm", total_timesteps=0, seed=0)
    obs = np.ones((2, 3), np.float32)
    _, state = model.predict(obs, deterministic=True)
    value = model.value(obs, state)
    assert not np.array_equal(value, model.value(obs))
    _, reset = model.predict(obs, state, episode_start=[True, False])
    assert not np.array_equal(reset[0], reset[1])
    (bias,) = (v for v in model.parts["pi"].variables if v.name == "bias")
    bias.assign([50.0])
    assert model.predict(obs[0])[0].tolist() == [2.0]


def test_function_as_network_is_given_again(tmp_path):
    def tiny():
        return keras.layers.Dense(3)

    env = gym.make("CartPole-v1")
    model = a2c.learn(env, network=tiny, total_timesteps=0, seed=0)
    model.save(tmp_path / "model")
    with pytest.raises(UserError):
        baselines.load(tmp_path / "model")
    loaded = baselines.load(tmp_path / "model", network=tiny)
    np.testing.assert_array_equal(best_actions(loaded), best_actions(model))


def test_mistakes_of_a_caller(trained):
    model = baselines.load(trained)
    for wrong in np.zeros(5), (np.zeros(4), {}):
        with pytest.raises(UserError):
            model.predict(wrong)
    with pytest.raises(TypeError):
        baselines.load(trained, total_timesteps=5)


@pytest.mark.parametrize(
    "change",
    [
        dict(algorithm="os.path"),
        dict(algorithm="baselines.run"),
        dict(arguments={"network": "subprocess:getoutput"}),
        dict(arguments={"network": "baselines.common.base.lazy:import_module"}),
        dict(
            algorithm="baselines.rainbow.rainbow",
            arguments={"network": "mlp", "values": "subprocess:getoutput"},
        ),
    ],
    ids=str,
)
def test_load_runs_no_code_that_a_file_names(trained, tmp_path, change):
    tensors, metadata = load_tensors(trained / "model.safetensors")
    save_model(tmp_path / "model", tensors, metadata | change)
    with pytest.raises(UserValueError):
        baselines.load(tmp_path / "model")


def test_load_takes_no_other_arguments_from_a_file(trained, tmp_path):
    (tmp_path / "formats_of_others.py").write_text("1 / 0")
    shutil.copytree(trained, tmp_path / "log")
    config = json.loads((trained / "config.json").read_text())
    config |= {"log_formats": ["formats_of_others:Output"]}
    (tmp_path / "log/config.json").write_text(json.dumps(config))
    tensors, metadata = load_tensors(trained / "model.safetensors")
    arguments = {"resume": str(tmp_path / "log"), "trust": True}
    metadata["arguments"] = metadata["arguments"] | arguments
    save_model(tmp_path / "model", tensors, metadata)
    model = baselines.load(tmp_path / "model")
    np.testing.assert_array_equal(
        best_actions(model), best_actions(baselines.load(trained))
    )


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(0, 255, (3, 4, 2), np.uint8),
        spaces.Box(np.array([-1, -np.inf]), np.array([0.1, np.inf]), dtype=np.float32),
        spaces.Box(-1, 1, (0,), np.float32),
        spaces.Discrete(3, start=-1, dtype=np.int8),
        spaces.MultiDiscrete([2, 3], start=[1, 0]),
        spaces.MultiBinary([2, 2]),
    ],
)
@pytest.mark.parametrize("stack", [1, 2])
def test_spaces_survive_a_file(space, stack):
    found = space_from_json(json.loads(json.dumps(space_to_json(space))))
    assert found == space and str(found) == str(space)
    inner = spaces.Tuple([space, spaces.Discrete(2)])
    flat = FlatBox(spaces.Dict([("b", inner), ("a", space)]), stack)
    stored = json.loads(json.dumps(space_to_json(flat)))
    found = flat_observations(space_from_json(stored), stored.get("stack", 1))
    assert (found, found.nest, found.parts) == (flat, flat.nest, flat.parts)


def test_a_kind_of_ones_own_is_saved_as_what_it_is():
    class OwnBox(spaces.Box):
        pass

    space = OwnBox(0, 1, (2,), np.float32)
    assert space_from_json(space_to_json(space)) == spaces.Box(0, 1, (2,), np.float32)
    with pytest.raises(UserTypeError):
        space_to_json(spaces.Dict(mission=spaces.Text(5)))


def test_one_dict_is_flattened_where_the_model_acts(tmp_path):
    """Also in a model of scaled rewards, which is loaded without an environment."""

    class Nested(gym.ObservationWrapper):
        observation_space = spaces.Dict(z=spaces.Discrete(3), a=spaces.Box(-9, 9, (4,)))

        def observation(self, obs):
            return {"z": 1, "a": np.clip(obs, -9, 9)}

    env = Nested(gym.make("CartPole-v1"))
    model = a2c.learn(env, total_timesteps=20, seed=0, normalize_rewards=True)
    model.save(tmp_path / "model")
    obs, _ = env.reset(seed=0)
    flat = spaces.flatten(env.observation_space, obs)
    for one in model, baselines.load(tmp_path / "model"):
        actions = [one.predict(x, deterministic=True)[0] for x in (obs, flat)]
        assert actions[0] == actions[1]


def test_model_trained_by_a_reward_of_ones_own(tmp_path, capsys):
    words = "--alg=trpo --env=CartPole-v1 --num_timesteps=24 --timesteps_per_batch=12"
    words += f" --reward=test_trpo:constant --log_path={tmp_path / 'log'}"
    run.main(words.split())
    evaluate.main([str(tmp_path / "log"), "--episodes=1"])  # without this code
    assert "of 1 episode," in capsys.readouterr().out


def test_evaluate_prints_scores(trained, capsys):
    argv = [str(trained), "--episodes=5", "--seed=3", "--deterministic"]
    result = cli.command(evaluate.evaluate_run, argv)
    out = capsys.readouterr().out
    assert f"mean score {result['mean']:g} " in out and "deterministic actions" in out
    assert result["mean"] == result["mean_length"]  # a point a step
    cli.command(evaluate.evaluate_run, [*argv, "--json"])
    assert json.loads(capsys.readouterr().out) == result
    assert (result["env"], result["seed"]) == ("CartPole-v1", 3)
    assert result["deterministic"] and len(result["returns"]) == 5
    assert np.mean(result["returns"]) == result["mean"]


@pytest.mark.parametrize("name", ["deep/out.mp4", "out.gif"])
def test_play_writes_a_video(trained, tmp_path, capsys, name):
    imageio = pytest.importorskip("imageio.v2")
    path = tmp_path / name
    cli.command(play.play_run, [str(trained), f"--video={path}", "--seed=0"])
    out = capsys.readouterr().out
    game, where, how = out.splitlines()
    assert game.startswith("game 1: score ") and where == f"wrote {path}"
    assert "--deterministic=False" in how
    steps = int(game.split()[-2])
    with imageio.get_reader(path) as reader:
        frames = list(reader.iter_data())
    assert frames[0].shape[:2] == (400, 600)
    # In a GIF, frames that look the same are one.
    shown = steps + 1  # the first state, and the one after each step
    assert len(frames) == shown or (path.suffix == ".gif" and 1 < len(frames) < shown)
    assert np.ptp(frames[0]) > 100  # a pole on a white ground


@pytest.fixture
def screen(tmp_path, monkeypatch):
    """A screen in memory: returns a function that returns its pixels."""
    if shutil.which("Xvfb") is None:
        pytest.skip("no Xvfb is installed")
    words = f"Xvfb -displayfd 1 -screen 0 1280x1024x24 -fbdir {tmp_path}"
    server = subprocess.Popen(words.split(), stdout=subprocess.PIPE, text=True)
    monkeypatch.delenv("SDL_VIDEODRIVER", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setenv("DISPLAY", f":{server.stdout.readline().strip()}")
    pixels = 1280 * 1024 * 4
    yield lambda: (tmp_path / "Xvfb_screen0").read_bytes()[-pixels:]
    server.terminate()
    server.wait()
    server.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env_id", "package"),
    [
        ("CartPole-v1", "pygame"),
        ("PongNoFrameskip-v4", "ale_py"),
        ("HalfCheetah-v5", "mujoco"),
    ],
)
def test_run_plays_in_a_window_until_ctrl_c(env_id, package, screen, monkeypatch):
    pytest.importorskip(package)
    pictures = []

    def steps_until_ctrl_c(*arguments):
        for results in itertools.islice(play_steps(*arguments), 20):
            pictures.append(screen())
            yield results
        raise KeyboardInterrupt

    monkeypatch.setattr(play, "play_steps", steps_until_ctrl_c)
    run.main(["--alg=ppo2", f"--env={env_id}", "--num_timesteps=0", "--play"])
    assert len(pictures) == 20 and any(pictures[-1]) and len(set(pictures)) > 10


def test_commands_on_a_model_refuse_several_ranks(monkeypatch):
    monkeypatch.setattr(mpi, "size", 2)
    monkeypatch.setenv("BASELINES_TRACEBACK", "1")  # to have the error raised
    with pytest.raises(UserError):
        evaluate.main(["somewhere"])
