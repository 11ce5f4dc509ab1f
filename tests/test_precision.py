"""What is computed in bfloat16, and on which machines."""

import os
import platform
import runpy
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import baselines
from baselines import evaluate, logger, run
from baselines.a2c import learn
from baselines.common import backend
from baselines.common.backend.precision import choose_precision, computing_in
from baselines.common.base import machine
from baselines.common.base.errors import UserValueError
from baselines.common.data.runners import Batch
from baselines.common.networks.layers import dense
from baselines.common.networks.model import build_network
from baselines.common.networks.policies import Policy

IMAGE = spaces.Box(0, 255, (36, 36, 1), np.uint8)


def test_trunk_computes_in_bfloat16_and_all_else_in_float32():
    def trunk():
        with computing_in("bfloat16"):
            return build_network("cnn_small")

    policy = Policy(IMAGE, spaces.Discrete(3), trunk)
    network = policy.parts["network"]
    assert network(np.zeros((1, 36, 36, 1), np.float32)).dtype == "bfloat16"
    params, values, *_ = policy(Batch(np.zeros((1, 1, 36, 36, 1), np.uint8)))
    assert params.dtype == values.dtype == "float32"
    assert {v.dtype for v in policy.variables} == {"float32"}
    assert dense(1).compute_dtype == "float32"


def test_state_of_recurrent_networks_is_float32():
    with computing_in("bfloat16"):
        network = build_network("cnn_lstm")
    obs, masks = np.zeros((2, 1, 84, 84, 4), np.float32), np.zeros((2, 1), bool)
    features, states = network(obs, np.full((1, 256), 0.1, np.float32), masks)
    assert features.dtype == states.dtype == "float32"
    assert network.trunk(obs[0]).dtype == "bfloat16"
    # Some value that bfloat16 does not have.
    assert (np.asarray(states).view(np.uint32) % 2**16).any()


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("flags : fpu avx512_bf16 amx_int8", True),
        ("vendor_id : GenuineIntel\nflags : fpu avx512_bf16 amx_bf16", True),
        ("vendor_id : GenuineIntel\nflags : fpu avx512_bf16", False),
        ("Features : fp asimd bf16", True),
        ("flags : fpu avx512f avx512_vnni", False),
        (None, False),
    ],
)
def test_auto_asks_the_processor(tmp_path, monkeypatch, flags, expected):
    if flags:
        (tmp_path / "cpuinfo").write_text(f"model name : Chip\n{flags}\n")
    found = machine.bfloat16_flags(tmp_path / "cpuinfo")
    assert bool(found) is expected
    monkeypatch.setattr(machine, "bfloat16_flags", lambda: found)
    monkeypatch.setattr(backend, "gpu_has_bfloat16", lambda: None)
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    assert choose_precision("auto") == "float32"
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS")
    assert choose_precision("auto") == ("bfloat16" if expected else "float32")
    monkeypatch.setattr(backend, "gpu_has_bfloat16", lambda: not expected)
    assert choose_precision("auto") == ("float32" if expected else "bfloat16")
    assert choose_precision("bfloat16") == "bfloat16"


def test_run_in_auto_is_not_resumed_in_another_precision(tmp_path, monkeypatch):
    def train(**changes):
        settings = dict(precision="auto", checkpoint_interval=10, **changes)
        with logger.scoped_configure(str(tmp_path), ["csv"]):
            learn(gym.make("CartPole-v1"), "mlp", seed=0, **settings)

    monkeypatch.setattr(backend, "gpu_has_bfloat16", lambda: True)
    train(total_timesteps=10)
    monkeypatch.setattr(backend, "gpu_has_bfloat16", lambda: False)
    with pytest.raises(UserValueError, match="precision"):
        train(total_timesteps=20, resume=str(tmp_path))


def test_model_is_evaluated_in_its_own_precision_or_another(tmp_path, monkeypatch):
    monkeypatch.setattr(backend, "gpu_has_bfloat16", lambda: True)
    command = "--alg=a2c --env=CartPole-v1 --num_timesteps=40 --precision=bfloat16"
    run.main([*command.split(), f"--log_path={tmp_path}"])
    loaded = []

    def load(*args, original=evaluate.load, **arguments):
        loaded.append(original(*args, **arguments))
        return loaded[-1]

    monkeypatch.setattr(evaluate, "load", load)
    for chosen, expected in (None, "bfloat16"), ("float32", "float32"):
        evaluate.evaluate_run(str(tmp_path), episodes=1, precision=chosen)
        features = loaded[-1].parts["network"](np.zeros((1, 4), np.float32))
        assert features.dtype == expected


on_x86 = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="oneDNN is set on x86 only"
)


@on_x86
def test_onednn_is_on_unless_the_user_turns_it_off(monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    for given, expected in ({}, "1"), ({"TF_ENABLE_ONEDNN_OPTS": "0"}, "0"):
        monkeypatch.setattr(os, "environ", given)
        runpy.run_path(baselines.__file__)
        assert given["TF_ENABLE_ONEDNN_OPTS"] == expected
