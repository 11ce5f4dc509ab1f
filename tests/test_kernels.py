"""The benchmark of an update's parts: its other ways give the same numbers."""

import json
import shutil

import keras
import numpy as np
import pytest

from benchmarks import kernels


def test_first_convolution_on_blocks_is_the_same():
    functions = kernels.first_convolutions(3, np.random.default_rng(0))
    for name in "first convolution {}", "with its gradient, {}":
        plain, blocks = (
            functions[name.format(way)]() for way in ("as it is", "on blocks")
        )
        np.testing.assert_allclose(*map(numbers, (plain, blocks)), rtol=1e-3, atol=1e-4)


def test_transposed_product_is_the_same():
    plain, transposed = kernels.dense_gradients(2, np.random.default_rng(0)).values()
    np.testing.assert_allclose(plain(), transposed(), rtol=1e-3, atol=1e-3)


def test_operations_of_products():
    found = kernels.products(2, np.random.default_rng(0), "float32")
    gflop = {name: round(1e3 * gflop, 3) for name, (_, gflop) in found.items()}
    # Two for each of 20 x 20 x 32 outputs of 8 x 8 x 4 inputs, in two images.
    assert gflop["first convolution, output"] == 13.107
    assert gflop["second convolution, gradient of input"] == 10.617
    assert gflop["dense layer, output"] == 6.423
    assert "first convolution, gradient of input" not in gflop
    for function, _ in found.values():
        function()


def test_unknown_words_are_refused(capsys):
    with pytest.raises(SystemExit):
        kernels.main(["--batches=16"])
    assert "unknown argument --batches" in capsys.readouterr().err


def test_functions_are_timed_in_turn():
    calls = []
    times = kernels.medians({x: lambda x=x: calls.append(x) for x in "ab"})
    assert times.keys() == {"a", "b"} and calls[:4] == ["a", "b", "a", "b"]


def test_picture_of_speed_is_drawn_from_what_is_committed(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from benchmarks import plot_speed

    for path in plot_speed.FOLDER.glob("*.json"):
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(plot_speed, "FOLDER", tmp_path)
    plot_speed.main()
    picture = (tmp_path / "speed.png").read_bytes()
    found = json.loads((tmp_path / "num_env.json").read_text())
    found["num_env"]["1"]["loop"] *= 2
    (tmp_path / "num_env.json").write_text(json.dumps(found))
    plot_speed.main()
    assert (tmp_path / "speed.png").read_bytes() != picture


def numbers(result):
    """Returns all arrays of a result as one vector."""
    return np.concatenate([np.ravel(x) for x in keras.tree.flatten(result)])
