"""Trials of settings on Optuna, each of which trains runs that can be paused.

A run that is stopped between two evaluations is resumed bit for bit, so a trial that
was pruned too early goes on, and does not train again.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from baselines.common.arguments.declaration import literal
from baselines.common.base.errors import UserFileError, UserValueError
from baselines.common.base.lazy import import_extra
from baselines.common.base.machine import share_of_cores
from baselines.common.base.tables import read_table
from baselines.common.run.command_line import read_arguments
from baselines.common.saving.checkpoints import list_manifests
from baselines.common.saving.log_folder import (
    MODEL_FILE,
    find_run_files,
    is_locked,
    lock_folder,
)

optuna = import_extra("optuna", "tune")
STATES = optuna.trial.TrialState
POLL_SECONDS = 0.5
EVALUATIONS = 10  # of each run, unless the command says how often
MOST_KILLS = 2  # of the runs of a trial, by the system, such as for their memory
SCORE = "eval_eprewmean"
# Exit codes of a run that has ended, or can be resumed.
PAUSED = {
    0,
    128 + signal.SIGINT,
    128 + signal.SIGTERM,
    -signal.SIGTERM,
    -signal.SIGKILL,
}
LIBC, PR_SET_PDEATHSIG = ctypes.CDLL(None), 1


def read_range(name, text):
    """Returns a distribution of Optuna for ``name=text``.

    ``LOW..HIGH`` are whole numbers if both ends are, ``log:LOW..HIGH`` has a
    logarithmic scale, and ``[CHOICE,CHOICE]`` are choices.

    Raises:
        UserValueError: for another form.
    """
    if text.startswith("[") and text.endswith("]"):
        choices = literal(text)
        if not isinstance(choices, list):  # Words have no quotes.
            choices = text[1:-1].split(",")
        # Optuna takes numbers and text only; lists are read from text again.
        plain = [x if type(x) in (int, float) else str(x) for x in choices]
        return optuna.distributions.CategoricalDistribution(plain)
    kind, _, numbers = text.rpartition(":")
    types = [type(literal(end)) for end in numbers.split("..")]
    if kind in ("", "log") and len(types) == 2 and {*types} <= {int, float}:
        low, high = map(literal, numbers.split(".."))
        if low < high and (low > 0 or not kind):
            whole = types == [int, int]
            make = "IntDistribution" if whole else "FloatDistribution"
            return getattr(optuna.distributions, make)(low, high, log=bool(kind))
    raise UserValueError(
        f"{name}={text} is no range: write LOW..HIGH, LOW below HIGH, log:LOW..HIGH, "
        "LOW above 0, or [CHOICE,CHOICE]"
    )


class SuccessiveHalving(optuna.pruners.BasePruner):
    """Asynchronous successive halving (Li et al. 2020, algorithm 2).

    Steps 1, eta, eta^2 and so on are rungs. A trial passes the highest that it has
    reached while its first evaluation from there on is among the best 1 / eta of all
    that were made. Optuna's own gives another answer when it is asked again, so that it
    cannot promote a trial later.
    """

    def __init__(self, eta=3):
        self.eta = eta

    def prune(self, study, trial):
        rung = 1
        while rung * self.eta <= (trial.last_step or 0):
            rung *= self.eta
        own = score_at(trial, rung)
        scores = [score_at(x, rung) for x in study.get_trials(deepcopy=False)]
        scores = [score for score in scores if None not in (score, own)]
        better = sum(score > own for score in scores)
        return better >= max(len(scores) // self.eta, 1)


def score_at(trial, step):
    """Returns the first score of a trial at or after a step, None if there is none."""
    steps = [x for x in trial.intermediate_values if x >= step]
    return trial.intermediate_values[min(steps)] if steps else None


PRUNERS = {
    "Median": optuna.pruners.MedianPruner,
    "SuccessiveHalving": SuccessiveHalving,
    "Nop": optuna.pruners.NopPruner,
}


def words_of(values) -> list:
    """Returns the words of a command line for settings."""
    return [f"--{name}={value}" for name, value in values.items()]


class Search:
    """What all trials have in common.

    Args:
        folder: for the folders of the trials, an absolute path.
        command: words for ``baselines.run`` of the settings that all trials have.
        seeds: number of runs in each trial, whose returns are averaged.

    Raises:
        UserError: for a setting that is not valid.
    """

    def __init__(self, folder, command, seeds):
        self.folder = folder
        arguments = read_arguments(command)
        first = arguments["seed"] or 0
        self.seeds = range(first, first + seeds)
        self.command = [word for word in command if not word.startswith("--seed=")]
        self.interval = arguments["eval_interval"]
        if not self.interval:
            self.interval = max(arguments["total_timesteps"] // EVALUATIONS, 1)
            self.command.append(f"--eval_interval={self.interval}")

    def check(self, distributions) -> None:
        """Raises UserError unless the ends and choices of settings are valid."""
        for name, x in distributions.items():
            for value in getattr(x, "choices", None) or (x.low, x.high):
                read_arguments([*self.command, f"--{name}={value}"])

    def folder_of(self, trial) -> str:
        return os.path.join(self.folder, f"{trial.number:04d}")

    def new_runs(self, trial, settings) -> "Runs":
        """Returns the runs of a new trial of Optuna with these settings.

        Raises:
            UserFileError: if the folder has a trial of that number, of another search.
        """
        try:
            os.makedirs(self.folder_of(trial))
        except FileExistsError as error:
            raise UserFileError(
                f"{error.filename} is of another search: give another folder"
            ) from None
        return Runs(self, trial, settings)


class TrialFailed(Exception):
    """A run of a trial ended by an error, or was killed again and again."""


class Runs:
    """The runs of one trial, which train at the same time.

    If the trial had some before, they go on.

    Args:
        search: the ``Search``.
        trial: of Optuna.
        settings: of the trial, by name.

    Attributes:
        scores: the mean return, over the runs, of each evaluation that was reported.
    """

    def __init__(self, search, trial, settings):
        folder = search.folder_of(trial)
        self.trial, self.lock = trial, lock_folder(folder)
        self.interval = search.interval
        command = [*search.command, *words_of(settings)]
        self.commands = {
            os.path.join(folder, str(seed)): [*command, f"--seed={seed}"]
            for seed in search.seeds
        }
        self.processes, self.scores, self.kills = [], [], 0

    def advance(self, stopped=None) -> bool:
        """Trains, and reports evaluations, until the trial is to be pruned.

        Args:
            stopped: a ``threading.Event`` that ends it, too.

        Returns:
            whether all runs were trained to their end; if not, they are paused.

        Raises:
            TrialFailed: if a run ended by an error.
        """
        stopped, codes = stopped or threading.Event(), {None}
        try:
            self.start(stopped)
            while None in codes and not stopped.wait(POLL_SECONDS):
                codes = {process.poll() for process in self.processes}
                if self.report() and self.trial.should_prune():
                    break
        finally:
            codes = self.pause()
        self.kills += -signal.SIGKILL in codes
        if not codes <= PAUSED or self.kills > MOST_KILLS:
            raise TrialFailed(f"see output.txt in {', '.join(self.commands)}")
        self.report()
        return codes <= {0}

    def report(self) -> bool:
        """Reports the evaluations that are new, and returns whether there are any."""
        new = self.read_scores()[len(self.scores) :]
        for step, score in new:
            self.scores.append(score)
            # The last one may come just short of a multiple of the interval.
            self.trial.report(score, max(step, len(self.scores)))
        return bool(new)

    def start(self, stopped) -> None:
        """Starts or resumes all runs that have not ended."""
        formats = os.environ.get("OPENAI_LOG_FORMAT", "stdout,log").split(",")
        formats = ",".join(dict.fromkeys([*formats, "csv"]))  # Scores are read there.
        environ = {**os.environ, "OPENAI_LOG_FORMAT": formats}
        for folder, command in self.commands.items():
            os.makedirs(folder, exist_ok=True)
            # A run whose search was killed may still write its last checkpoint.
            while is_locked(folder) and not stopped.wait(POLL_SECONDS):
                pass
            if find_run_files(folder, [MODEL_FILE]):
                continue
            command = [*command, f"--log_path={folder}", "--overwrite"]
            if list_manifests(os.path.join(folder, "checkpoints")):
                command = [f"--resume={folder}", "--trust"]
            with open(os.path.join(folder, "output.txt"), "ab") as output:
                process = subprocess.Popen(
                    [sys.executable, "-m", "baselines.run", *command],
                    stdout=output,
                    stderr=output,
                    env=environ,
                    preexec_fn=end_with_parent,
                )
            self.processes.append(process)

    def pause(self) -> set:
        """Ends all processes, after a checkpoint, and returns their exit codes."""
        for process in self.processes:
            process.terminate()
        codes = {process.wait() for process in self.processes}
        self.processes = []
        return codes

    def unlock(self) -> None:
        """Lets other processes use the folder of the trial."""
        if self.lock is not None:
            os.close(self.lock)

    def read_scores(self) -> list:
        """Returns (step, score) of each evaluation that all runs have made.

        Steps are in units of ``interval``, so that they are the same in all trials.
        """
        tables = []
        for folder in self.commands:
            path = os.path.join(folder, "progress.csv")
            if not (os.path.exists(path) and os.path.getsize(path)):
                return []
            rows = read_table(path)
            if SCORE not in rows:
                return []
            rows = rows.dropna(subset=[SCORE])
            tables.append(zip(rows["total_timesteps"] // self.interval, rows[SCORE]))
        return [
            (int(evaluations[0][0]), sum(x for _, x in evaluations) / len(tables))
            for evaluations in zip(*tables)
        ]


def end_with_parent() -> None:
    """Has a process save and end when the one that started it is killed."""
    if hasattr(LIBC, "prctl"):  # Linux only.
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Tuner:
    """Chooses the trials of a study, and trains several at a time.

    Args:
        search: the ``Search``.
        distributions: of Optuna, for each setting that is searched for, by name.
        study: of Optuna.
        trials: number of trials that the study is to have.
    """

    def __init__(self, search, distributions, study, trials):
        self.search, self.distributions = search, distributions
        self.study, self.trials = study, trials
        self.lock, self.stopped = threading.Lock(), threading.Event()
        self.paused = []  # Runs, which go on once they would not be pruned
        self.training = 0  # number of trials
        for trial in study.get_trials(deepcopy=False, states=(STATES.RUNNING,)):
            # Of a process that was killed. Those of others are locked, or elsewhere.
            folder = search.folder_of(trial)
            if os.path.isdir(folder) and not is_locked(folder):
                same = optuna.Trial(study, trial._trial_id)
                runs = Runs(search, same, trial.params)
                runs.scores = list(trial.intermediate_values.values())
                self.paused.append(runs)

    def next(self):
        """Returns the runs of a paused or of a new trial; None if there is none."""
        self.paused.sort(key=lambda runs: runs.scores[-1:], reverse=True)
        for runs in self.paused:
            if not runs.trial.should_prune():
                self.paused.remove(runs)
                return runs
        trials = self.study.get_trials(deepcopy=False)
        if sum(x.state != STATES.WAITING for x in trials) < self.trials:
            trial = self.study.ask(self.distributions)
            return self.search.new_runs(trial, trial.params)
        return None

    def work(self) -> None:
        """Trains one trial after another, until no trial can let a paused one go on."""
        while not self.stopped.is_set():
            with self.lock:
                runs = self.next()
                self.training += runs is not None
                if not self.training:
                    return
            if runs is None:
                self.stopped.wait(POLL_SECONDS)
                continue
            try:
                ended = runs.advance(self.stopped)
                with self.lock:
                    if ended:
                        self.tell(runs, STATES.COMPLETE, runs.scores[-1])
                    else:
                        self.paused.append(runs)
                        show(runs, "paused")
            except TrialFailed as error:
                self.tell(runs, STATES.FAIL)
                print(error, file=sys.stderr)
            finally:
                with self.lock:
                    self.training -= 1

    def tell(self, runs, state, value=None) -> None:
        """Ends a trial."""
        self.study.tell(runs.trial, value, state)
        runs.unlock()
        show(runs, state.name.lower())

    def run(self, jobs) -> None:
        """Trains until no trial is left; an exception, as of Ctrl-C, pauses all."""
        with ThreadPoolExecutor(jobs, initializer=share_of_cores(jobs)) as pool:
            try:
                workers = [pool.submit(self.work) for _ in range(jobs)]
                for worker in wait(workers, return_when=FIRST_EXCEPTION).done:
                    worker.result()
            finally:
                self.stopped.set()
        for runs in self.paused:
            self.tell(runs, STATES.PRUNED)


def show(runs, state) -> None:
    """Prints a line about a trial."""
    score = f"{runs.scores[-1]:g}" if runs.scores else "no evaluation"
    settings = " ".join(words_of(runs.trial.params))
    print(f"trial {runs.trial.number} {state}: {score} {settings}", flush=True)
