"""Errors that the caller can fix: the command line prints them as one line.

Each is also a subclass of the built-in exception that research code would expect, so
that ``except ValueError`` works as usual. An exception of any other type is a bug, ours
or an environment's, and is shown with its traceback.
"""

import difflib
import pathlib
import shlex
import sys

TRACEBACK = "BASELINES_TRACEBACK"  # environment variable that shows whole tracebacks


class UserError(Exception):
    """A mistake by the caller; the message says what is wrong and what is expected."""

    status = 2  # with which a command ends


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


OUTPUTS = (
    "before learn(), logger.configure(FOLDER, ['stdout', 'csv', 'tensorboard']) says "
    "where logs go; for a command, --log_path and $OPENAI_LOG_FORMAT"
)
# Names in Stable-Baselines3, OpenAI Baselines and other libraries: our name for it, or
# what there is instead.
OUR_NAMES = {
    "CnnLstmPolicy": "cnn_lstm",
    "CnnPolicy": "cnn",
    "MlpLstmPolicy": "lstm",
    "MlpPolicy": "mlp",
    "action_noise": "noise_type",
    "algo": "alg",
    "batch_size": "nminibatches (ppo2) or optim_batchsize (ppo1) divides an update",
    "device": "the environment variable CUDA_VISIBLE_DEVICES chooses a GPU",
    "clip_range": "cliprange",
    "env_id": "env",
    "exploration_initial_eps": "the probability of a random action begins at 1",
    "gae_lambda": "lam",
    "gradient_steps": "nb_train_steps",
    "logdir": OUTPUTS,
    "learning_rate": "lr",
    "n_envs": "num_env",
    "n_epochs": "noptepochs",
    "n_steps": "nsteps",
    "net_arch": "num_layers and num_hidden are arguments of learn()",
    "optimizer_class": "optimizer",
    "policy": "network",
    "policy_kwargs": "the network's arguments, such as num_hidden and activation, are "
    "arguments of learn()",
    "progress_bar": "a terminal shows the progress",
    "replay_buffer_class": "memory",
    "target_update_interval": "target_network_update_freq",
    "tensorboard_log": OUTPUTS,
    "verbose": OUTPUTS,
}


def suggest(name: str, known, prefix="") -> str:
    """Returns a hint at the valid name that was meant, or empty text.

    Args:
        name: what was given.
        known: the valid names.
        prefix: what to write before a name.
    """
    if (ours := OUR_NAMES.get(name, "")) in known:
        return f"; it is called {prefix + ours!r} here"
    if " " in ours:
        return f"; {ours}"
    names = {x.lower().replace("-", "_"): x for x in map(str, known)}
    plain = name.lower().replace("-", "_")
    nearest = difflib.get_close_matches(plain, names, n=1, cutoff=0.6)
    return f"; did you mean {prefix + names[nearest[0]]!r}?" if nearest else ""


def install_command(extra) -> str:
    """Returns the command that installs optional dependencies, such as ``plot``."""
    root = pathlib.Path(__file__).parents[3]
    place = ["-e", f"{root}[{extra}]"]
    if not (root / "pyproject.toml").is_file():
        place = [f"keras-baselines[{extra}]"]
    return shlex.join([sys.executable, "-m", "pip", "install", *place])


def shown(value, most=80) -> str:
    """Returns the text of a value for a message; the middle of a long one is cut."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most // 2]}...{text[-9:]}"


def first_line(error) -> str:
    """Returns the first line of an exception's message, or the name of its class."""
    return (str(error) or type(error).__name__).splitlines()[0]
