"""Several ranks train as one run. Scripts are started by mpiexec, two ranks each."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import error_of, long, slow
from rank_checks import CHECKS
from test_algorithms import read_episodes, read_rows, results
from toy_envs import CounterEnv

from baselines.a2c import learn
from baselines.common.base import mpi
from baselines.common.base.errors import UserValueError
from baselines.common.base.machine import container_cores
from baselines.common.saving.checkpoints import list_manifests

HERE = Path(__file__).parent
PATH = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
MPIEXEC = shutil.which("mpiexec", path=PATH)
RUN = ["-m", "baselines.run"]
PPO2 = "--alg=ppo2 --env=Pendulum-v1 --value_network=copy --normalize_observations "
PPO2 += "--num_env=2 --nsteps=25 --nminibatches=2 --noptepochs=2 --seed=1 "
PPO2 += "--log_interval=3 --checkpoint_interval=400 --num_timesteps=4000"


@pytest.fixture(autouse=True)
def folder_of_test(tmp_path, monkeypatch):
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


@pytest.mark.parametrize(
    ("environ", "place"),
    [
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


def test_without_a_launcher_mpi4py_is_not_imported():
    script = "import sys\nfrom baselines.common.base import mpi\nmpi.connect()\n"
    script += "assert mpi.size == 1 and 'mpi4py' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    "spoil",
    ["sys.modules['mpi4py'] = None", ""],  # or mpiexec is another MPI's
)
def test_launcher_without_its_mpi_is_refused_in_one_line(spoil):
    script = f"import sys\n{spoil}\nfrom baselines.run import main\n"
    script += "main(['--alg=a2c', '--env=CartPole-v1'])"
    environ = {**os.environ, "PMI_SIZE": "2", "PMI_RANK": "0"}
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, env=environ, capture_output=True, text=True)
    line = ended.stderr.splitlines()[-1]
    assert ended.returncode == 2 and line.startswith("error: mpiexec started 2 proc")


def test_worker_processes_are_not_ranks(monkeypatch):
    for name in ("PMI_RANK", "PMI_SIZE", "PMI_FD", "OMPI_COMM_WORLD_SIZE"):
        monkeypatch.setenv(name, "2")
    assert mpi.read_environment(mpi.child_environment()) == (1, 0, 1, 0)


@pytest.mark.parametrize(
    ("limit", "cores"), [("150000 100000", 1), ("300000 100000", 3), ("max 1000", 64)]
)
def test_ranks_share_the_cores_of_a_container(monkeypatch, tmp_path, limit, cores):
    (tmp_path / "cpu.max").write_text(f"{limit}\n")
    number = container_cores(tmp_path)
    monkeypatch.setattr(mpi, "container_cores", lambda: number)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64), raising=False)
    assert mpi.available_cores() == cores
    monkeypatch.setattr(mpi, "local_size", 2)
    assert mpi.available_cores() == max(1, cores // 2)


def test_mean_keeps_the_shape():
    for array in (np.float32(2), np.ones(3), np.ones((2, 3)).T):
        assert mpi.mean(array).shape == array.shape


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
        return folder, *finish(process)


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
    files = {}
    for name, *result in read_episodes(folder / "uninterrupted"):
        files.setdefault(name, []).append(result)
    assert list(files) == [f"{r}.{i}.monitor.csv" for r in (0, 1) for i in (0, 1)]
    assert len(set(map(str, files.values()))) == 4
    returns = [float(r) for rows in files.values() for r, _ in rows[:4]]
    mean = float(rows[-4]["eprewmean"])  # after 3,300 agent steps
    assert mean == pytest.approx(np.mean(returns))


def test_signal_to_one_rank_stops_all_at_the_same_update(two_ranks, capfd):
    folder, _, out, err = two_ranks
    assert out.count(f"exit status {128 + signal.SIGTERM}\n") == 2, err
    manifest = Path(list_manifests(folder / "stopped" / "checkpoints")[-1])
    assert int(manifest.stem) == 2300  # It was resumed at 2000.
    assert len(json.loads(manifest.read_text())["files"]) == 2
    shutil.copytree(folder / "stopped", "stopped")
    assert "2 MPI" in error_of(capfd, "--resume=stopped")


def test_interrupted_run_of_two_ranks_is_resumed_bit_for_bit(two_ranks):
    """It was resumed from what a kill would have left, stopped, and resumed again."""
    folder, *_ = two_ranks
    assert results(folder / "cut1") == results(folder / "uninterrupted")


def test_exception_of_a_rank_ends_all(two_ranks):
    _, status, _, err = two_ranks
    assert status == 1
    assert err.count("AssertionError: on fire") == 1


OTHERS = "a2c", "acer", "ddpg", "gail", "her", "ppo1", "td3", "trpo"


@pytest.mark.parametrize("alg", [slow("sac"), *map(long, OTHERS)], scope="module")
def test_killed_run_of_two_ranks_is_resumed_bit_for_bit(alg, learn, small, env_id):
    num_timesteps = 2400 if "buffer_size" in learn.declared else 12_000
    command = f"--alg={alg} --env={env_id} --num_env=2 --seed=1 "
    command += f"--num_timesteps={num_timesteps} --checkpoint_interval=400"
    # So that rows are due when checkpoints are saved.
    often = {"print_freq": 1} if "print_freq" in learn.declared else {}
    command = command.split() + [f"--{k}={v}" for k, v in (small | often).items()]
    succeed([*RUN, *command, "--log_path=uninterrupted"])
    process = mpiexec([*RUN, *command, "--log_path=cut"])
    # Episodes of Pendulum end after 800 agent steps.
    while not any("1200" in x for x in list_manifests("cut/checkpoints")):
        assert process.poll() is None
        time.sleep(0.002)
    process.kill()
    finish(process)
    succeed([*RUN, "--resume=cut"])
    assert results("cut") == results("uninterrupted")


def test_ranks_need_equal_settings(monkeypatch):
    """They would otherwise deadlock, or average gradients of different networks."""

    def broadcast(mine):
        return {**mine, "nsteps": 9} if isinstance(mine, dict) else mine

    monkeypatch.setattr(mpi, "broadcast", broadcast)
    with pytest.raises(UserValueError, match="nsteps is 9 on rank 0 and"):
        learn(CounterEnv(), "mlp", total_timesteps=100)


def test_user_error_of_a_rank_ends_all_with_one_line():
    Path("my_envs.py").write_text(
        "from baselines.common.base import mpi\n"
        "from baselines.common.base.errors import UserValueError\n"
        "mpi.EXIT_TIMEOUT_SECONDS = 0.1\n"
        "if mpi.rank == 1:\n"
        "    raise UserValueError('rank 1 cannot start')\n"
        "mpi.wait()\n"
    )
    arguments = [*RUN, "--alg=a2c", "--env=my_envs:Lazy-v0", "--num_env=1"]
    status, out, err = finish(mpiexec(arguments), timeout=120)
    assert status == 2
    assert err.startswith("error: rank 1 cannot start\n")


@pytest.mark.parametrize("name", [slow("trpo"), long("ppo2")])
def test_two_ranks_learn_cartpole(name):
    settings = "--num_env=4 --env=CartPole-v1 --seed=0 --log_path=log"
    settings += " --stop_at=195 --log_interval=1 --num_timesteps=100_000"
    succeed([*RUN, f"--alg={name}", *settings.split()])
    assert float(read_rows("log")[-1]["eprewmean"]) >= 195
