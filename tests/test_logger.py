"""Rows of numbers: where they go, and that none is lost."""

import csv
import os
import tempfile

import gymnasium as gym
import keras
import numpy as np
import psutil
import pytest

from baselines import a2c, logger
from baselines.common.base.errors import UserFileError, UserTypeError, UserValueError

ALL_TEXT = ["stdout", "log", "csv", "json"]


@pytest.fixture(autouse=True)
def folder(empty_folder, monkeypatch):
    """Runs each test in an empty folder and puts the logger back afterwards."""
    monkeypatch.delenv("OPENAI_LOGDIR")


def write(*rows):
    for row in rows:
        logger.logkvs(row)
        logger.dumpkvs()


def read(path):
    with open(path, newline="") as file:
        return file.read()


def open_files():
    """Files below the working folder that this process has open."""
    paths = (os.path.relpath(file.path) for file in psutil.Process().open_files())
    return sorted(path for path in paths if not path.startswith(".."))


def test_new_column_loses_no_row():
    logger.configure("log", ["csv"])
    rows = [{"a": 1}, {"a": 2.5, "c": -3e-7}, {"c": 4}, {"b": 5, "a": 6}, {"a": 7}]
    for count, row in enumerate(rows, start=1):
        write(row)
        assert len(read("log/progress.csv").splitlines()) == count + 1
    with open("log/progress.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert found == [{key: str(row.get(key, "")) for key in "acb"} for row in rows]
    assert os.listdir("log") == ["progress.csv"]


def test_columns_that_were_new_after_the_checkpoint():
    logger.configure("log", ["csv"])
    write({"a": 1})
    state = logger.get_state()
    write({"a": 2, "b": 3})
    logger.configure("log", ["csv"])
    logger.set_state(state)
    assert read("log/progress.csv") == "a\n1\n"
    write({"a": 2}, {"b": 3})
    assert read("log/progress.csv") == "a,b\n1,\n2,\n,3\n"


def test_json_has_an_object_a_line():
    logger.configure("log", ["json"])
    write({"a": 1, "b": np.float32(0.5)}, {"c": np.int64(2)})
    assert read("log/progress.json") == '{"a": 1, "b": 0.5}\n{"c": 2}\n'


def test_table_has_full_integers_and_short_floats(capsys):
    logger.configure("log", ["stdout", "log"])
    write({"steps": np.int64(12_345_678), "loss": 0.123456789, "r": np.float32(-20.25)})
    table = capsys.readouterr().out
    assert table == read("log/log.txt")
    assert table.splitlines() == [
        "--------------------",
        "| loss  | 0.1235   |",
        "| r     | -20.25   |",
        "| steps | 12345678 |",
        "--------------------",
    ]


def test_a_row_is_returned_and_cleared():
    logger.configure("log", [])
    logger.logkv("a", np.float64(1))
    logger.record_tabular("b", keras.ops.convert_to_tensor(2))
    assert logger.getkvs() == {"a": 1, "b": 2}
    assert repr(logger.dump_tabular()) == "{'a': 1.0, 'b': 2}"
    assert logger.getkvs() == logger.dumpkvs() == {}
    logger.logkv("a", [1, 2])
    with pytest.raises(UserTypeError, match=r"one number, received \[1, 2\] for a"):
        logger.dumpkvs()


def test_logkv_mean_is_the_mean_since_the_last_row():
    logger.configure("log", [])
    for value in (1, 2, 6):
        logger.logkv_mean("a", value)
    assert logger.dumpkvs() == {"a": 3}
    logger.logkv_mean("a", 10)
    assert logger.dumpkvs() == {"a": 10}


def test_arguments_override_environment_variables(monkeypatch):
    monkeypatch.setenv("OPENAI_LOGDIR", "from_variable")
    monkeypatch.setenv("OPENAI_LOG_FORMAT", "json,log")
    logger.configure()
    write({"a": 1})
    logger.configure("from_argument", ["csv"])
    write({"a": 1})
    assert sorted(os.listdir("from_variable")) == ["log.txt", "progress.json"]
    assert os.listdir("from_argument") == ["progress.csv"]


def test_default_is_a_new_temporary_folder(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    logger.configure()
    first = logger.get_dir()
    write({"a": 1})
    assert os.path.dirname(first) == str(tmp_path)
    assert sorted(os.listdir(first)) == ["log.txt", "progress.csv"]
    assert "| a | 1 |" in capsys.readouterr().out
    logger.configure()
    assert logger.get_dir() != first


def test_what_is_refused_changes_nothing(tmp_path):
    (tmp_path / "file").write_text("text")
    before = logger.current
    with pytest.raises(UserValueError, match="'cvs'; did you mean 'csv'"):
        logger.configure("log", ["stdout", "cvs"])
    for folder in ("file", "file/log", "file/deep/log"):
        with pytest.raises(UserFileError, match=f"cannot write to .*{folder}"):
            logger.configure(folder)
    assert logger.current is before and os.listdir() == ["file"]


def test_a_model_that_is_only_loaded_writes_no_file(capsys):
    def warning():
        logger.warn("of a network")
        return keras.layers.Dense(4)

    logger.configure("log", ALL_TEXT)
    a2c.learn(gym.make("CartPole-v1"), warning, total_timesteps=0)
    assert os.listdir() == [] and "of a network" in capsys.readouterr().out
    assert logger.get_dir() == os.path.abspath("log")


def test_scoped_configure_logs_to_another_folder_inside_the_block():
    logger.configure("outer", ["json"])
    write({"a": 1})
    with pytest.raises(ZeroDivisionError), logger.scoped_configure("inner", ["json"]):
        assert logger.get_dir() == os.path.abspath("inner")
        write({"a": 2})
        raise ZeroDivisionError
    assert open_files() == ["outer/progress.json"]
    write({"a": 3})
    assert read("outer/progress.json") == '{"a": 1}\n{"a": 3}\n'
    assert read("inner/progress.json") == '{"a": 2}\n'


def test_what_is_written_after_closing_is_appended(capsys):
    logger.configure("log", ALL_TEXT)
    write({"a": 1})
    logger.close()
    assert open_files() == []
    write({"a": 2})
    assert read("log/progress.csv") == "a\n1\n2\n"
    assert read("log/log.txt") == capsys.readouterr().out


def test_level_leaves_out_text_below_it_and_rows_only_if_it_is_disabled():
    logger.configure("log", ["log", "json"])
    for level in logger.DEBUG, logger.INFO, logger.ERROR, logger.DISABLED:
        logger.set_level(level)
        for name in ("debug", "info", "log", "warn", "error"):
            getattr(logger, name)(name, level)
        write({"a": level})
    lines = read("log/log.txt").splitlines()
    assert [line for line in lines if line[0] not in "-|"] == [
        *("debug 10", "info 10", "log 10", "warning: warn 10", "error: error 10"),
        *("info 20", "log 20", "warning: warn 20", "error: error 20"),
        "error: error 40",
    ]
    assert logger.read_json("log/progress.json").a.tolist() == [10, 20, 40]


def test_profile_adds_the_seconds_of_blocks_and_calls(monkeypatch):
    clock = iter([10.0, 12.5, 20.0, 20.5])
    monkeypatch.setattr(logger.time, "perf_counter", lambda: next(clock))
    with logger.profile_kv("work"):
        pass
    assert logger.profile("work")(lambda a, b: a + b)(1, b=2) == 3
    assert logger.getkvs() == {"wait_work": 3.0}
