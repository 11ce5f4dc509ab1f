"""Breaks lines of the package one at a time, and sees whether the tests notice.

    python -m benchmarks.mutations               each with the tests named for it
    python -m benchmarks.mutations replay        only those with this text in their line
    python -m benchmarks.mutations --default     each with the whole default suite

Each mutation is made in a copy of the checkout. The exit status is 1 if the tests pass
with one of them, or if its line is not there any more.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

# A file, the text that is replaced, which occurs once, what by, and what should notice.
MUTATIONS = r"""
common/data/returns.py: lam * np.where(dones[t], 0, following) => lam * following | maths
common/data/returns.py: next_values - values => next_values + values | maths
common/data/returns.py: np.where(dones[t], next_values[t], following) => following | maths
common/data/returns.py: ops.minimum(ratios, 1.0) => ratios | acer
common/data/runners.py: next_values[t, limits] = limit_values => pass | runner
common/data/replay_buffer.py: ended & ~self.truncated[at] => ended | replay_buffer
common/data/replay_buffer.py: frames[~same_episode] = 0 => pass | replay_buffer
common/data/prioritized_replay.py: probabilities) ** -beta => probabilities) ** beta | replay_buffer
common/networks/model.py: / 255.0 => / 256.0 | policy
common/updates/update.py: fraction * (source - target) => source - target | updates maths
common/updates/delayed.py: on(-1, policy) => on(0, policy) | updates
common/updates/optimizers.py: ones_like(mean_square) => zeros_like(mean_square) | updates maths
common/base/running_moments.py: batch.var(axis=0), => 1 + batch.var(axis=0), | normalize
common/vec_env/vec_frame_stack.py: self.stacked_obs[i] = 0 => pass | vec_env
common/envs/make.py: None if seed is None else seed + index => seed | envs
a2c/a2c.py: policy_loss - ent_coef * entropy => policy_loss + ent_coef * entropy | maths
a2c/a2c.py: returns - rollout.values, => returns, | on_policy
ppo2/ppo2.py: ops.maximum(-advantages * ratio => ops.minimum(-advantages * ratio | maths
ppo2/ppo2.py: , shuffler=shuffler) => ) | resume
dqn/dqn.py: ops.argmax(chooser_means => ops.argmax(values.mean(outputs) | dqn maths
td3/td3.py: discounts * ops.min(values => discounts * ops.max(values | continuous maths
common/networks/critics.py: ops.min(outputs[..., 0] => ops.max(outputs[..., 0] | continuous maths parts
"""  # noqa: E501


def survives(file, old, new, tests) -> bool:
    """Whether tests pass with a mutation.

    Args:
        file, old, new: as in ``MUTATIONS``.
        tests: the files to run; all of the default suite if there are none.

    Raises:
        ValueError: if its line is not there, or pytest could not run.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "checkout")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv"))
        path = copy / "baselines" / file
        text = path.read_text()
        if text.count(old) != 1:
            raise ValueError(f"{file} has {old!r} {text.count(old)} times")
        path.write_text(text.replace(old, new))
        command = [sys.executable, "-m", "pytest", "-qx", *tests]
        run = subprocess.run(
            command,
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy)},
            stdout=subprocess.PIPE,
            text=True,
        )
        if run.returncode not in (0, 1):
            raise ValueError(f"pytest could not run:\n{run.stdout}")
        return run.returncode == 0


def main(argv=None):
    """Makes the mutations that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", default="", help="in the lines to make")
    parser.add_argument("--default", action="store_true", help="all default tests")
    args = parser.parse_args(argv)
    lines = [line for line in MUTATIONS.strip().splitlines() if args.text in line]
    unnoticed = 0
    for line in lines:
        *mutation, tests = re.fullmatch(r"(\S+): (.*) => (.*) \| (.*)", line).groups()
        tests = [f"tests/test_{name}.py" for name in tests.split()]
        tests = [] if args.default else [*tests, "-n0"]
        unnoticed += (survived := survives(*mutation, tests))
        print("NOT NOTICED:" if survived else "noticed:", line, flush=True)
    print(f"{len(lines) - unnoticed} of {len(lines)} noticed")
    sys.exit(1 if unnoticed else 0)


if __name__ == "__main__":
    main()
