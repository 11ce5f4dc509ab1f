"""Exports a trained model: ``python -m baselines.export LOGDIR -o policy.onnx``."""

from typing import Annotated

from baselines.common.arguments import cli
from baselines.common.arguments import types as arg
from baselines.common.base.lazy import import_module
from baselines.common.run.loading import load


def export(
    path: Annotated[str, "log folder of a run, or a saved model"],
    output: Annotated[
        str, "file to write, .onnx or .tflite; any other name is a SavedModel's folder"
    ],
    trust: arg.Trust = False,
):
    """Writes a model's best actions as a file that needs nothing of this library."""
    model = load(path, trust)
    import_module("baselines.common.run.export").write_policy(model, output)
    print(f"wrote {output}, which acts as the model does")


def main(argv=None):
    """Runs the command line."""
    return cli.command(export, argv, short={"-o": "--output"})


if __name__ == "__main__":
    main()
