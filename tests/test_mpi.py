"""Several ranks train as one run. Scripts are started by mpiexec, two ranks each."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import long, slow
from rank_checks import CHECKS

from baselines import run
from baselines.common.base import mpi
from baselines.common.base.errors import UserValueError
from baselines.common.base.machine import container_cores
from baselines.common.saving.checkpoints import check_ranks, list_manifests
from baselines.common.saving.tensors import load_tensors

HERE = Path(__file__).parent
PATH = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
MPIEXEC = shutil.which("mpiexec", path=PATH)
RUN = ["-m", "baselines.run"]
PPO2 = "--alg=ppo2 --env=Pendulum-v1 --value_network=copy --normalize_observations "
PPO2 += "--num_env=2 --nsteps=25 --nminibatches=2 --noptepochs=2 --seed=1 "
PPO2 += "--log_interval=3 --checkpoint_interval=400 --num_timesteps=4000"
LOG = "--log_path=cut"


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    prepare(monkeypatch, tmp_path)


def prepare(monkeypatch, folder):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
    monkeypatch.setenv("OPENAI_LOG_FORMAT", "stdout,csv")


def mpiexec(arguments):
    """Starts Python with these arguments as two ranks."""
    return subprocess.Popen(
        [MPIEXEC, "-n", "2", sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process, timeout=600):
    """Returns exit status, stdout and stderr."""
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    return process.returncode, out, err


def succeed(arguments):
    """Runs two ranks to their end."""
    status, _, err = finish(mpiexec(arguments))
    assert status == 0, err


def newest_manifest():
    return (list_manifests("cut/checkpoints") or [None])[-1]


def wait_for_checkpoint(process):
    """Waits until a running command has saved another checkpoint."""
    before = newest_manifest()
    while newest_manifest() == before:
        assert process.poll() is None
        time.sleep(0.002)


def read_rows(folder):
    with open(Path(folder, "progress.csv"), newline="") as file:
        return [
            {k: v for k, v in row.items() if k not in ("fps", "time_elapsed")}
            for row in csv.DictReader(file)
        ]


def read_episodes(folder):
    """(return, length) of every episode, by file."""
    return {
        path.name: [line.split(",")[:2] for line in path.read_text().splitlines()[2:]]
        for path in Path(folder).glob("*.monitor.csv")
    }


def results(folder):
    weights = load_tensors(Path(folder, "model.safetensors"))[0]
    weights = {key: tensor.tobytes() for key, tensor in weights.items()}
    return read_rows(folder), read_episodes(folder), weights


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({}, (1, 0, 1, 0)),
        ({"PMI_SIZE": "1", "PMI_RANK": "0"}, (1, 0, 1, 0)),
        ({"PMI_SIZE": "4", "PMI_RANK": "3"}, (4, 3, 1, 0)),
        (
            {
                "OMPI_COMM_WORLD_SIZE": "8",
                "OMPI_COMM_WORLD_RANK": "5",
                "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
                "OMPI_COMM_WORLD_LOCAL_RANK": "1",
            },
            (8, 5, 4, 1),
        ),
    ],
)
def test_number_of_ranks_is_read_from_the_launchers_variables(environ, place):
    assert mpi.read_environment(environ) == place


def test_without_a_launcher_mpi4py_is_not_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)  # Importing it would raise.
    arguments = ["--alg=ppo2", "--env=CartPole-v1", "--nsteps=8", "--log_path=log"]
    run.main([*arguments, "--num_timesteps=64"])


def test_launcher_without_mpi4py_is_refused_in_one_line():
    script = (
        "import sys\n"
        "sys.modules['mpi4py'] = None\n"
        "from baselines.run import main\n"
        "main(['--alg=a2c', '--env=CartPole-v1'])\n"
    )
    environ = {**os.environ, "PMI_SIZE": "2", "PMI_RANK": "0"}
    process = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True
    )
    assert process.returncode == 2
    assert process.stderr.startswith("error: mpiexec started 2 processes, but mpi4py")
    assert process.stderr.count("\n") == 1


def test_mpiexec_of_another_mpi_is_refused():
    """It starts two ranks that cannot connect to each other."""
    environ = {**os.environ, "PMI_SIZE": "2", "PMI_RANK": "0"}
    process = subprocess.run(
        [sys.executable, *RUN, "--alg=a2c", "--env=CartPole-v1"],
        env=environ,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 2
    line = process.stderr.splitlines()[-1]
    assert line.startswith("error: mpiexec started 2 processes, but MPI finds 1")


def test_worker_processes_are_not_ranks(monkeypatch):
    for name in ("PMI_RANK", "PMI_SIZE", "PMI_FD", "OMPI_COMM_WORLD_SIZE"):
        monkeypatch.setenv(name, "2")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    environ = mpi.child_environment()
    assert mpi.read_environment(environ) == (1, 0, 1, 0)
    assert environ["PYTHONHASHSEED"] == "7"


def test_ranks_of_a_machine_share_its_cores(monkeypatch):
    cores = mpi.available_cores()
    monkeypatch.setattr(mpi, "local_size", 2)
    assert mpi.available_cores() == max(1, cores // 2)
    monkeypatch.setattr(mpi, "local_size", 1000)
    assert mpi.available_cores() == 1


@pytest.mark.parametrize(
    ("limit", "cores"),
    [("150000 100000", 1), ("300000 100000", 3), ("10000 100000", 1), ("max 1000", 64)],
)
def test_cores_of_a_container(monkeypatch, tmp_path, limit, cores):
    (tmp_path / "cpu.max").write_text(f"{limit}\n")
    found = container_cores(tmp_path)
    monkeypatch.setattr(mpi, "container_cores", lambda: found)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64), raising=False)
    assert mpi.available_cores() == cores


def test_rows_are_means_over_the_ranks(monkeypatch):
    rows = [{"n": 3, "loss": 1.0, "same": 0.1}, {"n": 3, "loss": 4.0, "same": 0.1}]
    monkeypatch.setattr(mpi, "size", 2)
    monkeypatch.setattr(mpi, "gather", lambda row: rows)
    assert mpi.mean_row(rows[0]) == {"n": 3, "loss": 2.5, "same": 0.1}


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory):
    """Folder, exit status and output of rank_checks.py."""
    folder = tmp_path_factory.mktemp("two_ranks")
    with pytest.MonkeyPatch.context() as patch:
        prepare(patch, folder)
        process = mpiexec([str(HERE / "rank_checks.py"), *PPO2.split()])
        return folder, *finish(process, timeout=300)


@pytest.mark.parametrize("name", [check.__name__ for check in CHECKS])
def test_two_ranks(name, two_ranks):
    _, _, out, err = two_ranks
    assert out.count(f"passed {name}\n") == 2, err


def test_log_of_two_ranks(two_ranks):
    folder, _, out, _ = two_ranks
    rows = read_rows(folder / "uninterrupted")
    out = out.partition("Play: ")[0]
    assert out.count("| total_timesteps ") == len(rows) == 15
    assert rows[-1]["total_timesteps"] == "4000"
    files = read_episodes(folder / "uninterrupted")
    assert sorted(files) == [f"{r}.{i}.monitor.csv" for r in (0, 1) for i in (0, 1)]
    episodes = [tuple(files[name]) for name in files]
    assert len(set(map(str, episodes))) == 4
    returns = [float(r) for rows in files.values() for r, _ in rows[:4]]
    mean = float(rows[-4]["eprewmean"])  # after 3,300 agent steps
    assert mean == pytest.approx(np.mean(returns))


def test_signal_to_one_rank_stops_all_at_the_same_update(two_ranks):
    folder, _, out, err = two_ranks
    assert out.count(f"exit status {128 + signal.SIGTERM}\n") == 2, err
    (steps,) = re.findall(r"SIGTERM: .*/(\d+)\.json; continue with .* --resume", out)
    manifest = Path(list_manifests(folder / "stopped" / "checkpoints")[-1])
    assert int(manifest.stem) == int(steps) < 3900
    assert len(json.loads(manifest.read_text())["files"]) == 2


def test_killed_rank_ends_the_others(two_ranks):
    folder, status, _, err = two_ranks
    assert status != 0, err
    assert not (folder / "cut" / "model.safetensors").exists()


def test_interrupted_run_of_two_ranks_is_resumed_bit_for_bit(capfd, two_ranks):
    """It was stopped by a signal, resumed, and stopped by the death of a rank."""
    folder, *_ = two_ranks
    shutil.copytree(folder / "cut", "cut")
    config = json.loads(Path("cut/config.json").read_text())
    assert config["ranks"] == 2
    with pytest.raises(SystemExit):
        run.main(["--resume=cut"])
    error = capfd.readouterr().err
    assert "trained by 2 MPI rank(s)" in error and "mpiexec -n 2" in error
    succeed([*RUN, "--resume=cut"])
    assert results("cut") == results(folder / "uninterrupted")


@pytest.mark.parametrize("kills", [slow(1), long(2)])
def test_killed_run_of_two_ranks_is_resumed_bit_for_bit(
    alg, learn, small, env_id, kills
):
    if not learn.mpi:
        pytest.skip(f"{alg} trains in one process")
    # Long enough to be killed so many times.
    num_timesteps = 800 + 1600 * kills
    if "buffer_size" not in learn.declared:
        num_timesteps *= 5
    command = f"--alg={alg} --env={env_id} --num_env=2 --seed=1 "
    command += f"--num_timesteps={num_timesteps} --checkpoint_interval=400"
    # So that rows are due when checkpoints are saved.
    often = {"print_freq": 1} if "print_freq" in learn.declared else {}
    command = command.split() + [f"--{k}={v}" for k, v in (small | often).items()]
    succeed([*RUN, *command, "--log_path=uninterrupted"])
    arguments = [*command, LOG]
    for _ in range(kills):
        process = mpiexec([*RUN, *arguments])
        for _ in range(3):  # Episodes of Pendulum end after 800 agent steps.
            wait_for_checkpoint(process)
        process.kill()
        finish(process)
        arguments = ["--resume=cut"]
    succeed([*RUN, "--resume=cut"])
    assert results("cut") == results("uninterrupted")


def test_ranks_need_equal_settings(monkeypatch):
    """They would otherwise deadlock, or average gradients of different networks."""
    from toy_envs import CounterEnv

    from baselines.a2c import learn

    arguments = dict(env=CounterEnv(), network="mlp", total_timesteps=100)
    arguments["overwrite"] = True
    learn(**arguments)
    for name, value in (("nsteps", 9), ("num_envs", 3), ("total_timesteps", 200)):

        def broadcast(mine, name=name, value=value):
            return {**mine, name: value} if isinstance(mine, dict) else mine

        monkeypatch.setattr(mpi, "broadcast", broadcast)
        with pytest.raises(UserValueError, match=f"{name} is {value} on rank 0 and"):
            learn(**arguments)


def test_other_numbers_of_ranks_are_refused():
    check_ranks("log", 1)
    with pytest.raises(UserValueError, match="mpiexec -n 2"):
        check_ranks("log", 2)


FAILING = """
    import sys
    from toy_envs import FailingEnv
    from baselines.common import mpi
    from baselines.common.vec_env import DummyVecEnv

    mpi.connect()
    failing = str(mpi.rank) in sys.argv[1:]
    env = DummyVecEnv([lambda: FailingEnv("step" if failing else "nowhere")])
    env.reset()
    while True:
        env.step([0])
        mpi.wait()
"""


@pytest.mark.parametrize("ranks", [["1"], ["0", "1"]])
def test_exception_of_a_rank_ends_all(ranks):
    Path("script.py").write_text(textwrap.dedent(FAILING))
    status, out, err = finish(mpiexec(["script.py", *ranks]), timeout=30)
    assert status == 1
    assert err.count("ValueError: the gearbox is on fire") == 1


def test_user_error_of_a_rank_ends_all_with_one_line():
    Path("my_envs.py").write_text(
        textwrap.dedent(
            """
            import gymnasium as gym
            from gymnasium.envs.classic_control import CartPoleEnv
            from baselines.common import mpi
            from baselines.common.base.errors import UserValueError

            if mpi.rank == 1:
                raise UserValueError("rank 1 cannot start")
            gym.register("Lazy-v0", entry_point=CartPoleEnv)
            """
        )
    )
    arguments = [*RUN, "--alg=a2c", "--env=my_envs:Lazy-v0", "--num_env=1"]
    status, out, err = finish(mpiexec(arguments), timeout=30)
    assert status == 2
    assert err.startswith("error: rank 1 cannot start\n")
    arguments[2] = "--alg=a2d"
    status, out, err = finish(mpiexec(arguments), timeout=30)
    assert status == 2
    assert err.startswith("error: unknown algorithm 'a2d'") and err.count("\n") == 1


@pytest.mark.parametrize("name", [long("ppo2"), long("a2c"), slow("trpo")])
def test_two_ranks_learn_cartpole(name):
    settings = "--num_env=4 --env=CartPole-v1 --seed=0 --log_path=log"
    settings += " --stop_at=195 --log_interval=1"
    if name == "a2c":
        settings += " --value_network=copy --lr=5e-3 --ent_coef=0 --network=mlp"
    steps = {"ppo2": 100_000, "a2c": 150_000, "trpo": 100_000}[name]
    succeed([*RUN, f"--alg={name}", f"--num_timesteps={steps}", *settings.split()])
    assert float(read_rows("log")[-1]["eprewmean"]) >= 195
