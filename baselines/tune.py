"""Searches for settings: ``python -m baselines.tune --alg=ALG --env=ENV NAME=RANGE``.

Optuna's samplers choose the settings of each trial, and its pruners which trials are
paused. A paused trial goes on, bit for bit, once the pruner would let it pass.
"""

import contextlib
import importlib
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from typing import Annotated, Any, Literal

from baselines.common.arguments import cli
from baselines.common.arguments import types as arg
from baselines.common.arguments.declaration import declared_arguments
from baselines.common.arguments.discovery import find_algorithm
from baselines.common.base import mpi
from baselines.common.base.errors import UserValueError
from baselines.common.base.lazy import import_extra
from baselines.common.base.signals import stop
from baselines.common.saving.files import read_json, replace_file

FILE, PAGE = "tune.json", "tune.html"  # the words of the command line; plots


def objective(
    folder: str, suggest: Callable[[Any], dict], seeds: int = 1, **settings: Any
) -> Callable[[Any], float]:
    """Returns an objective to maximise, for a study of Optuna of your own.

    Its value is the mean return of the last evaluation, over all seeds. A trial that is
    pruned leaves checkpoints in its folder.

    Args:
        folder: for the log folders of the trials.
        suggest: a function of a trial that returns the settings to try, by name.
        seeds: number of runs of each trial.
        settings: all others, by name, as ``baselines.run`` takes them: ``alg``, ``env``
            and so on.

    Raises:
        UserError: for a setting that is not valid.
    """
    from baselines.common.run.tuning import Search, optuna, words_of

    search = Search(os.path.abspath(folder), words_of(settings), seeds)

    def run(trial):
        runs = search.new_runs(trial, suggest(trial))
        try:
            ended = runs.advance()
        finally:
            runs.unlock()
        if not ended:
            raise optuna.TrialPruned
        return runs.scores[-1]

    return run


def tune_arguments(
    log_path: Annotated[str, "folder for the study and the runs of its trials"],
    trials: Annotated[arg.Count, "number of trials in the study"] = 50,
    seeds: Annotated[arg.Count, "runs in each trial, whose returns are averaged"] = 1,
    jobs: Annotated[
        arg.Count | None, "trials at a time (default: one on each core)"
    ] = None,
    sampler: Annotated[Literal["TPE", "Random", "CmaEs"], "of Optuna"] = "TPE",
    pruner: Annotated[
        Literal["Median", "SuccessiveHalving", "Nop"],
        "what pauses trials; a paused one goes on once it would let it pass",
    ] = "Median",
    storage: Annotated[
        str | None,
        "URL of a database that several machines share, or path of a journal, "
        "FILE.journal (default: SQLite in the folder)",
    ] = None,
    study: Annotated[
        str | None, "name of the study in the storage (default: ALG_ENV)"
    ] = None,
    resume: Annotated[
        str | None,
        "folder of a search to go on with; only --trials and --jobs may change",
    ] = None,
):
    """Searches for settings of an algorithm: --alg=ALG --env=ENV NAME=RANGE...

    A range is LOW..HIGH, log:LOW..HIGH or [CHOICE,CHOICE]. All other arguments are
    those of baselines.run. The same command, started again, or on another machine with
    the same --storage, goes on with the study.
    """


TUNE_ARGUMENTS = declared_arguments(tune_arguments)


def read_command(argv):
    """Returns tune's own arguments, ranges by name, and words for ``baselines.run``."""
    words = cli.read_words(argv, ["ranges..."])
    if "resume" in words:
        folder = words.pop("resume")
        if others := words.keys() - {"trials", "jobs"}:
            raise UserValueError(
                f"--{min(others)} cannot be given with --resume, only --trials and "
                "--jobs"
            )
        path = os.path.join(os.path.expanduser(folder), FILE)
        words = cli.read_words(read_json(path), ["ranges..."]) | words
        words["log_path"] = folder
    for name in "alg", "env", "log_path":
        if name not in words:
            raise UserValueError(f"--{name} is required; see --help")
    own = {k: x.validate(words.pop(k, x.default)) for k, x in TUNE_ARGUMENTS.items()}
    own["log_path"] = os.path.abspath(os.path.expanduser(own["log_path"]))
    own["study"] = own["study"] or f"{words['alg']}_{words['env']}"
    ranges = dict(text.partition("=")[::2] for text in words.pop("ranges", []))
    if not ranges:
        package = find_algorithm(words["alg"]).rpartition(".")[0]
        with contextlib.suppress(ModuleNotFoundError):
            defaults = importlib.import_module(f"{package}.defaults")
            ranges = getattr(defaults, "tune", dict)()
    if not ranges:
        raise UserValueError(f"give ranges: {words['alg']} suggests none")
    command = [f"--{k}" if x is True else f"--{k}={x}" for k, x in words.items()]
    return own, ranges, command


def make_study(own, command):
    """Returns the study of these arguments, a new one or that in the storage.

    Args:
        own: the values of ``tune_arguments``, by name.
        command: all that has to be the same whenever it goes on.

    Raises:
        UserValueError: if there is a study of that name for other words.
    """
    from baselines.common.run.tuning import PRUNERS, optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = own["storage"] or f"sqlite:///{own['log_path']}/study.db"
    if storage.endswith(".journal"):
        path = os.path.expanduser(storage)
        file = optuna.storages.journal.JournalFileBackend(path)
        storage = optuna.storages.JournalStorage(file)
    study = optuna.create_study(
        storage=storage,
        study_name=own["study"],
        direction="maximize",
        load_if_exists=True,
        sampler=getattr(optuna.samplers, own["sampler"] + "Sampler")(),
        pruner=PRUNERS[own["pruner"]](),
    )
    if study.user_attrs.get("command", command) != command:
        raise UserValueError(
            f"there is a study {own['study']} already, of other settings "
            f"({shlex.join(study.user_attrs['command'])}): give another --study"
        )
    study.set_user_attr("command", command)
    return study


def write_page(study, path) -> None:
    """Writes Optuna's plots of a study, the importances among them, to a page."""
    import_extra("plotly", "tune")
    draw = import_extra("optuna.visualization", "tune")
    names = "optimization_history", "param_importances", "slice", "intermediate_values"
    figures = [getattr(draw, f"plot_{name}")(study) for name in names]
    parts = [
        figure.to_html(full_html=False, include_plotlyjs=i == 0)
        for i, figure in enumerate(figures)
    ]
    title = (
        f"<!doctype html><title>{study.study_name}</title><h1>{study.study_name}</h1>"
    )
    replace_file(path, "".join([title, *parts]).encode())


def main(argv=None):
    """Runs the command line, and returns the study."""
    argv = sys.argv[1:] if argv is None else argv
    if {"--help", "-h"} & {*argv}:
        cli.print_help(tune_arguments, TUNE_ARGUMENTS, named=["log_path"])
        return None
    with cli.one_line_errors():
        own, ranges, command = read_command(argv)
        from baselines.common.run.tuning import (
            STATES,
            Search,
            Tuner,
            read_range,
            words_of,
        )

        own["jobs"] = own["jobs"] or mpi.available_cores()
        folder = own["log_path"]
        wanted = {name: read_range(name, text) for name, text in ranges.items()}
        search = Search(folder, command, own["seeds"])
        search.check(wanted)
        words = [*command, *(f"{name}={text}" for name, text in ranges.items())]
        os.makedirs(folder, exist_ok=True)
        study = make_study(own, [f"--seeds={own['seeds']}", *words])
        given = {name: value for name, value in own.items() if value is not None}
        stored = json.dumps([*words_of(given), *words]).encode()
        replace_file(os.path.join(folder, FILE), stored)
        print(f"{own['trials']} trials, {own['jobs']} at a time, in {folder}")
        signal.signal(signal.SIGTERM, lambda number, frame: stop(number))
        try:
            Tuner(search, wanted, study, own["trials"]).run(own["jobs"])
        except (KeyboardInterrupt, SystemExit):
            print(f"paused; go on with python -m baselines.tune --resume={folder}")
            raise
        if not study.get_trials(deepcopy=False, states=(STATES.COMPLETE,)):
            raise UserValueError(
                f"no trial was trained to its end; see the files output.txt in {folder}"
            )
        write_page(study, os.path.join(folder, PAGE))
        best = shlex.join([*command, *words_of(study.best_params)])
        print(f"best: {study.best_value:g}, python -m baselines.run {best}")
        print(f"wrote {os.path.join(folder, PAGE)}")
    return study


if __name__ == "__main__":
    main()
