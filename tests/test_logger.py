"""Rows of numbers: where they go, and that none is lost."""

import contextlib
import csv
import io
import json
import os
import sys
import tempfile
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from baselines import logger
from baselines.common.base.errors import UserFileError, UserTypeError, UserValueError


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Runs each test in an empty folder and puts the logger back afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_LOGDIR", raising=False)
    monkeypatch.delenv("OPENAI_LOG_FORMAT", raising=False)
    monkeypatch.setattr(logger, "current", logger.Logger(None, []))
    yield tmp_path
    logger.close()


def write(*rows):
    for row in rows:
        logger.logkvs(row)
        logger.dumpkvs()


def open_files():
    """Files below the working folder that this process has open."""
    paths = (os.path.relpath(file.path) for file in psutil.Process().open_files())
    return sorted(path for path in paths if not path.startswith(".."))


def csv_rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_csv_has_a_header_and_a_row_each():
    logger.configure("log", ["csv"])
    write({"b": 2, "a": 1.5}, {"a": -3e-7, "b": 4})
    with open("log/progress.csv", newline="") as file:
        assert file.read() == "b,a\n2,1.5\n4,-3e-07\n"


def test_new_column_loses_no_row():
    logger.configure("log", ["csv"])
    rows = [{"a": 1}, {"a": 2, "c": 3}, {"c": 4}, {"b": 5, "a": 6}, {"a": 7}]
    for count, row in enumerate(rows, start=1):
        write(row)
        assert len(csv_rows("log/progress.csv")) == count
    found = csv_rows("log/progress.csv")
    expected = [{key: str(row.get(key, "")) for key in "abc"} for row in rows]
    assert found == expected
    assert os.listdir("log") == ["progress.csv"]


def test_json_has_an_object_a_line():
    logger.configure("log", ["json"])
    write({"a": 1, "b": np.float32(0.5)}, {"c": np.int64(2)})
    with open("log/progress.json") as file:
        rows = [json.loads(line) for line in file]
    assert rows == [{"a": 1, "b": 0.5}, {"c": 2}]


def test_table_has_full_integers_and_short_floats(capsys):
    logger.configure("log", ["stdout", "log"])
    write(
        {
            "total_timesteps": 12_345_678,
            "steps": np.int64(1_000_001),
            "loss": 0.123456789,
            "eprewmean": np.float32(-20.25),
        }
    )
    table = capsys.readouterr().out
    lines = table.splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines[1:-1]]
    assert cells == [
        ["", "eprewmean", "-20.25", ""],
        ["", "loss", "0.1235", ""],
        ["", "steps", "1000001", ""],
        ["", "total_timesteps", "12345678", ""],
    ]
    assert len({len(line) for line in lines}) == 1
    with open("log/log.txt") as file:
        assert file.read() == table


def test_text_goes_to_the_terminal_and_log_txt_only(capsys):
    logger.configure("log", ["stdout", "log", "csv", "json"])
    logger.log("saved to", 7)
    assert capsys.readouterr().out == "saved to 7\n"
    with open("log/log.txt") as file:
        assert file.read() == "saved to 7\n"
    assert os.path.getsize("log/progress.csv") == 0
    assert os.path.getsize("log/progress.json") == 0


def test_a_row_is_returned_and_cleared():
    logger.configure("log", ["json"])
    logger.logkv("a", np.float64(1))
    logger.record_tabular("b", 2)
    assert logger.getkvs() == {"a": 1, "b": 2}
    row = logger.dump_tabular()
    assert row == {"a": 1, "b": 2} and type(row["a"]) is float
    assert logger.getkvs() == {}
    assert logger.dumpkvs() == {}
    logger.logkv("a", SimpleNamespace(numpy=lambda: np.float64(2)))  # as a tensor
    assert repr(logger.dumpkvs()) == "{'a': 2.0}"
    logger.logkv("a", [1, 2])
    with pytest.raises(UserTypeError, match=r"one number, received \[1, 2\] for a"):
        logger.dumpkvs()
    logger.current.clear()
    logger.logkv(3, 1)
    with pytest.raises(UserTypeError, match="names of columns are text, received 3"):
        logger.dumpkvs()
    with open("log/progress.json") as file:
        assert file.read().count("\n") == 2


def test_logkv_mean_is_the_mean_since_the_last_row():
    logger.configure("log", [])
    for value in (1, 2, 6):
        logger.logkv_mean("a", value)
    logger.logkv_mean("b", 5)
    assert logger.dumpkvs() == {"a": 3, "b": 5}
    logger.logkv_mean("a", 10)
    assert logger.dumpkvs() == {"a": 10}


def test_folder_and_formats_by_environment_variables(monkeypatch):
    monkeypatch.setenv("OPENAI_LOGDIR", "from_variable")
    monkeypatch.setenv("OPENAI_LOG_FORMAT", "json,log")
    logger.configure()
    assert logger.get_dir() == os.path.abspath("from_variable")
    write({"a": 1})
    assert sorted(os.listdir("from_variable")) == ["log.txt", "progress.json"]


def test_arguments_override_environment_variables(monkeypatch):
    monkeypatch.setenv("OPENAI_LOGDIR", "from_variable")
    monkeypatch.setenv("OPENAI_LOG_FORMAT", "json,log")
    logger.configure("from_argument", ["csv"])
    write({"a": 1})
    assert os.listdir() == ["from_argument"]
    assert os.listdir("from_argument") == ["progress.csv"]


def test_default_is_a_new_temporary_folder(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    os.mkdir("temporary")
    logger.configure()
    first = logger.get_dir()
    write({"a": 1})
    assert os.path.dirname(first) == str(tmp_path / "temporary")
    assert os.path.basename(first).startswith("openai-")
    assert sorted(os.listdir(first)) == ["log.txt", "progress.csv"]
    assert "| a | 1 |" in capsys.readouterr().out
    logger.configure()
    assert logger.get_dir() != first


def test_home_folder_is_expanded(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    logger.configure("~/log", [])
    assert logger.get_dir() == str(tmp_path / "home" / "log")


@pytest.mark.parametrize("by_variable", [False, True])
def test_unknown_format_names_the_known(monkeypatch, by_variable):
    monkeypatch.setenv("OPENAI_LOG_FORMAT", "stdout,cvs" if by_variable else "csv")
    before = logger.current
    with pytest.raises(UserValueError) as error:
        logger.configure("log", None if by_variable else ["stdout", "cvs"])
    message = str(error.value)
    assert "'cvs'" in message and "did you mean 'csv'" in message
    assert "stdout, log, csv, json, tensorboard, wandb; one of your own" in message
    assert logger.current is before
    assert os.listdir() == []


def test_folder_below_a_file_is_refused_and_nothing_left(tmp_path):
    (tmp_path / "file").write_text("text")
    before = logger.current
    for folder in ("file", "file/log", "file/deep/log"):
        with pytest.raises(UserFileError, match=f"cannot write to .*{folder}"):
            logger.configure(folder)
    assert os.listdir() == ["file"]
    assert (tmp_path / "file").read_text() == "text"
    assert logger.current is before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_without_permission_is_refused_and_nothing_left():
    os.mkdir("closed", mode=0o500)
    with pytest.raises(UserFileError, match="cannot write to"):
        logger.configure("closed/log")
    assert os.listdir("closed") == []


def test_nothing_is_created_before_the_first_row():
    logger.configure("log", ["stdout", "log", "csv", "json"], config={"a": 1})
    logger.logkv("a", 1)
    assert os.listdir() == []
    logger.dumpkvs()
    assert sorted(os.listdir("log")) == [
        "config.json",
        "log.txt",
        "progress.csv",
        "progress.json",
    ]


def test_config_is_written_as_json():
    config = {"alg": "a2c", "settings": {"lr": 7e-4, "layer_norm": None}}
    logger.configure("log", ["csv"], config)
    write({"a": 1})
    with open("log/config.json") as file:
        assert json.load(file) == {**config, "log_formats": ["csv"]}


def test_configure_closes_what_was_before():
    logger.configure("first", ["json"])
    write({"a": 1})
    assert open_files() == ["first/progress.json"]
    logger.configure("second", ["json"])
    assert open_files() == []
    write({"a": 2})
    with open("first/progress.json") as first, open("second/progress.json") as second:
        assert (first.read(), second.read()) == ('{"a": 1}\n', '{"a": 2}\n')


def test_scoped_configure_logs_to_another_folder_inside_the_block():
    logger.configure("outer", ["json"])
    write({"a": 1})
    with logger.scoped_configure("inner", ["json"]):
        assert logger.get_dir() == os.path.abspath("inner")
        write({"a": 2})
    assert open_files() == ["outer/progress.json"]
    assert logger.get_dir() == os.path.abspath("outer")
    write({"a": 3})
    with open("outer/progress.json") as file:
        assert file.read() == '{"a": 1}\n{"a": 3}\n'
    with open("inner/progress.json") as file:
        assert file.read() == '{"a": 2}\n'


def test_scoped_configure_is_undone_after_an_error_as_well():
    outer = logger.current
    with pytest.raises(ZeroDivisionError), logger.scoped_configure("inner", []):
        raise ZeroDivisionError
    assert logger.current is outer


def test_scoped_configure_that_is_refused_changes_nothing():
    outer = logger.current
    with (
        pytest.raises(UserValueError, match="'nonsense'"),
        logger.scoped_configure("inner", ["nonsense"]),
    ):
        pass
    assert logger.current is outer


def test_closing_leaves_the_terminal_open(monkeypatch):
    terminal = io.StringIO()
    monkeypatch.setattr(sys, "stdout", terminal)
    logger.configure("log", ["stdout"])
    write({"a": 1})
    with contextlib.redirect_stdout(io.StringIO()):
        logger.close()
    assert not terminal.closed
    assert "| a | 1 |" in terminal.getvalue()


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (None, "info\nlog\nwarning: warn\nerror: error\n"),
        (logger.DEBUG, "debug\ninfo\nlog\nwarning: warn\nerror: error\n"),
        (logger.WARN, "warning: warn\nerror: error\n"),
        (logger.ERROR, "error: error\n"),
    ],
)
def test_level_leaves_out_text_below_it_and_no_rows(level, expected):
    logger.configure("log", ["log", "json"])
    if level is not None:
        logger.set_level(level)
    for name in ("debug", "info", "log", "warn", "error"):
        getattr(logger, name)(name)
    with open("log/log.txt") as file:
        assert file.read() == expected
    write({"a": 1})
    with open("log/progress.json") as file:
        assert file.read() == '{"a": 1}\n'


def test_disabled_writes_nothing_at_all(capsys):
    logger.configure("log", ["stdout", "log", "csv", "json"])
    logger.set_level(logger.DISABLED)
    logger.error("not written")
    logger.show("not written")
    write({"a": 1})
    assert capsys.readouterr().out == ""
    assert logger.getkvs() == {}
    sizes = {name: os.path.getsize(f"log/{name}") for name in os.listdir("log")}
    assert sizes.keys() == {"log.txt", "progress.csv", "progress.json"}
    assert set(sizes.values()) == {0}
    logger.configure("enabled", ["json"])
    write({"a": 2})
    with open("enabled/progress.json") as file:
        assert file.read() == '{"a": 2}\n'


def test_profile_adds_the_seconds_of_blocks_and_calls(monkeypatch):
    clock = iter([10.0, 12.5, 20.0, 20.5])
    monkeypatch.setattr(logger.time, "perf_counter", lambda: next(clock))
    with logger.profile_kv("work"):
        pass

    @logger.profile("work")
    def work(a, b=0):
        return a + b

    assert work(1, b=2) == 3
    assert logger.getkvs() == {"wait_work": 3.0}


@pytest.mark.parametrize(
    ("name", "read"), [("csv", logger.read_csv), ("json", logger.read_json)]
)
def test_readers_return_rows_with_named_columns(name, read):
    logger.configure("log", [name])
    write({"a": 1, "b": 0.5}, {"a": 0, "c": float("nan")}, {"a": 2.5, "b": -1})
    rows = read(f"log/progress.{name}")
    assert list(rows.columns) == ["a", "b", "c"]
    np.testing.assert_array_equal(rows["a"], [1, 0, 2.5])
    np.testing.assert_array_equal(rows.b, [0.5, np.nan, -1])
    np.testing.assert_array_equal(rows.c, [np.nan] * 3)
