"""Errors that the caller can fix: the command line prints them as one line.

Each is also a subclass of the built-in exception that research code would expect, so
that ``except ValueError`` works as usual. An exception of any other type is a bug, ours
or an environment's, and is shown with its traceback.
"""

import difflib
import pathlib
import re
import shlex
import sys

TRACEBACK = "BASELINES_TRACEBACK"  # environment variable that shows whole tracebacks
LONGEST = 2000  # characters in a message, which may quote somebody else's files


class UserError(Exception):
    """A mistake by the caller; the message says what is wrong and what is expected."""

    status = 2  # with which a command line exits


class UserValueError(UserError, ValueError):
    """A value, space or file content that cannot be used."""


class UserTypeError(UserError, TypeError):
    """An object or keyword of the wrong kind."""


class UserFileError(UserError, OSError):
    """A path that cannot be read or written."""


class WriteError(UserFileError):
    """A file could not be written, for example because the disk is full."""

    status = 1


class DivergedError(UserError, ArithmeticError):
    """The loss or the weights became NaN or infinite."""


class MissingDependency(UserError, ImportError):
    """A package that has to be installed first."""


class MovedModule(UserError, ModuleNotFoundError):
    """A module or name of OpenAI Baselines that was moved or removed."""


class WorkerError(RuntimeError):
    """An environment raised in its worker process, or the process died."""


class RaisedInWorker(WorkerError):
    """An environment raised in its worker process; the message has the traceback."""


class WorkerDied(WorkerError, UserError):
    """A worker process ended without an exception from its environments."""


# Arguments and networks by their names in Stable-Baselines3 and other libraries.
OUR_NAMES = {
    "CnnLstmPolicy": "cnn_lstm",
    "CnnPolicy": "cnn",
    "MlpLstmPolicy": "lstm",
    "MlpPolicy": "mlp",
    "algo": "alg",
    "clip_range": "cliprange",
    "env_id": "env",
    "gae_lambda": "lam",
    "learning_rate": "lr",
    "n_envs": "num_env",
    "n_epochs": "noptepochs",
    "n_steps": "nsteps",
    "policy": "network",
    "target_update_interval": "target_network_update_freq",
    "total_timesteps": "num_timesteps",  # on the command line
}
LOG_FORMATS = (
    "in Python, call logger.configure(FOLDER, FORMATS) before learn(); FORMATS, or the "
    "environment variable OPENAI_LOG_FORMAT, choose what is logged"
)
MADE_BEFORE = "in Python, make_vec_env(..., num_env=N) makes the environments"
LEARNING_RATES = (
    "it is optim_stepsize in ppo1, vf_stepsize in trpo and gail, and actor_lr and "
    "critic_lr in ddpg and her"
)
LENGTH = "total_timesteps (num_timesteps) is the length of training, in agent steps"
BLOCKS = (
    "nb_rollout_steps agent steps and nb_train_steps optimiser steps follow each other"
)
OTHER_WAYS = {  # where ``OUR_NAMES`` does not help
    "batch_size": "on policy, a batch is a whole rollout; minibatches of it are set by "
    "nminibatches in ppo2, and by optim_batchsize in ppo1",
    "demo_file": "her does not learn from demonstrations",
    "device": "choose a GPU by the environment variable CUDA_VISIBLE_DEVICES; without "
    "one, the processor trains",
    "learning_rate": LEARNING_RATES,
    "log_path": "in Python, call logger.configure(FOLDER) before learn()",
    "logdir": "it is --log_path on the command line, and in Python, call "
    "logger.configure(FOLDER) before learn()",
    "lr": LEARNING_RATES,
    "max_episodes": LENGTH,
    "max_iters": LENGTH,
    "max_seconds": LENGTH,
    "n_batches": BLOCKS,
    "n_cycles": BLOCKS,
    "n_envs": MADE_BEFORE,
    "nb_epoch_cycles": LENGTH,
    "nb_epochs": LENGTH,
    "nb_eval_steps": "eval_interval and eval_episodes set how often and how long it is "
    "evaluated",
    "num_env": MADE_BEFORE,
    "param_noise": "dqn, deepq and rainbow have noisy=True, for noisy networks; other "
    "algorithms have no noise of parameters",
    "popart": "normalize_returns does both, in ddpg and her",
    "policy_kwargs": "give the arguments of the network by themselves, such as "
    "num_layers=2",
    "save_interval": "checkpoint_interval counts agent steps, and saves what --resume "
    "needs",
    "tensorboard_log": f"{LOG_FORMATS}, such as stdout,log,csv,tensorboard",
    "track": f"{LOG_FORMATS}, such as stdout,log,csv,wandb",
    "verbose": LOG_FORMATS,
}


def suggest_name(name: str, known) -> str:
    """Suggests a name as ``suggest`` does, or our name for another library's.

    Args:
        name: the name that was given, such as ``--learning_rate`` or ``MlpPolicy``.
        known: the valid names, with dashes if ``name`` has them.
    """
    plain = name.lstrip("-").replace("-", "_")
    dashes = "--" if name.startswith("--") else ""
    if found := translate(plain, known, dashes) or suggest(name, known):
        return found
    others = OUR_NAMES | OTHER_WAYS
    nearest = difflib.get_close_matches(plain, others, n=1, cutoff=0.8)
    return translate(nearest[0], known, dashes) if nearest else ""


def translate(name, known, dashes) -> str:
    """Returns what to use instead of another library's name, '' if it is none.

    Args:
        name: without dashes.
        known: the valid names.
        dashes: those that valid names begin with.
    """
    if (ours := f"{dashes}{OUR_NAMES.get(name)}") in known:
        return f"; it is called {ours!r} here"
    return f"; {OTHER_WAYS[name]}" if name in OTHER_WAYS else ""


def suggest(name: str, known, prefix="") -> str:
    """Returns ``; did you mean 'x'?`` for the nearest of ``known``, or empty text.

    Args:
        name: what was given.
        known: the valid names.
        prefix: what to write before a name.
    """
    # Names do not resemble each other by their dashes.
    known = {str(k).lstrip("-"): f"{prefix}{k}" for k in known}
    name = name.lstrip("-–—−")
    nearest = [k for k in known if k.lower() == name.lower()]
    nearest = nearest or difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {known[nearest[0]]!r}?" if nearest else ""


def install_command(extra) -> str:
    """Returns the command that installs optional dependencies, such as ``plot``."""
    root = pathlib.Path(__file__).parents[3]
    place = str(root) if (root / "pyproject.toml").is_file() else "."
    command = [sys.executable, "-m", "pip", "install", "-e", f"{place}[{extra}]"]
    return shlex.join(command)


def shown(value, most=80) -> str:
    """Returns the text of a value for a message; the middle of a long one is cut."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of more digits than Python writes"
    return text if len(text) <= most else f"{text[: most // 2]}...{text[-9:]}"


def first_line(error) -> str:
    """Returns an exception's message as one line, without control characters."""
    line = re.sub(r"\s+", " ", shortened(str(error))).strip()
    return printable(line or type(error).__name__)


def one_line(error) -> str:
    """Returns a message without line breaks, control characters or overlong words."""
    text = printable(shortened(str(error)))
    return re.sub(r"(\S{80})\S{200,}(\S{80})", r"\1...\2", text)


def shortened(text) -> str:
    """Returns a text, without its middle if it is long."""
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"


def printable(text) -> str:
    """Returns a text with line breaks and other control characters escaped.

    Text from files has to be printed like this, so that it cannot move the cursor.
    """
    return "".join(x if x.isprintable() else repr(x)[1:-1] for x in text)
