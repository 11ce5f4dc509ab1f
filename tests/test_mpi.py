"""Several ranks train as one run. Scripts are started by mpiexec, two ranks each."""

import csv
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from baselines import run
from baselines.bench.chaos import find_mpiexec
from baselines.common import mpi
from baselines.common.checkpoint import check_ranks, list_manifests
from baselines.common.errors import UserValueError
from baselines.common.tensors import load_tensors

HERE = Path(__file__).parent
RUN = "-m baselines.run"
PPO2 = "--alg=ppo2 --env=Pendulum-v1 --value_network=copy --normalize_observations "
PPO2 += "--num_env=2 --nsteps=25 --nminibatches=2 --noptepochs=2 --seed=1 "
PPO2 += "--log_interval=3 --checkpoint_interval=400"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
    monkeypatch.setenv("OPENAI_LOG_FORMAT", "stdout,csv")


def mpiexec(arguments, ranks=2):
    """Starts Python with these arguments as so many ranks."""
    return subprocess.Popen(
        [find_mpiexec(), "-n", str(ranks), sys.executable, *arguments],
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


def run_script(script):
    Path("script.py").write_text(textwrap.dedent(script))
    status, out, err = finish(mpiexec(["script.py"]))
    assert status == 0, err
    return out


def run_ranks(arguments):
    status, out, err = finish(mpiexec([*RUN.split(), *arguments.split()]))
    assert status == 0, err
    return out


def read_rows(folder):
    with open(Path(folder, "progress.csv"), newline="") as file:
        return [
            {k: v for k, v in row.items() if k != "fps"} for row in csv.DictReader(file)
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
def test_launcher_tells_how_many_ranks_there_are(environ, place):
    assert mpi.read_environment(environ) == place


def test_without_a_launcher_mpi4py_is_not_imported():
    script = (
        "import sys\n"
        "from baselines.run import main\n"
        "main('--alg=ppo2 --env=CartPole-v1 --nsteps=8 --num_timesteps=64'.split())\n"
        "assert 'mpi4py' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_launcher_without_mpi4py_is_refused_in_a_sentence():
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
    """It says that there are two ranks, but they would not find each other."""
    environ = {**os.environ, "PMI_SIZE": "2", "PMI_RANK": "0"}
    process = subprocess.run(
        [sys.executable, *RUN.split(), "--alg=a2c", "--env=CartPole-v1"],
        env=environ,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 2
    line = process.stderr.splitlines()[-1]
    assert line.startswith("error: mpiexec started 2 processes, but MPI finds 1")


def test_worker_processes_are_no_ranks(monkeypatch):
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


def test_rows_are_means_over_the_ranks(monkeypatch):
    rows = [{"n": 3, "loss": 1.0, "same": 0.1}, {"n": 3, "loss": 4.0, "same": 0.1}]
    monkeypatch.setattr(mpi, "gather", lambda row: rows)
    assert mpi.mean_row(rows[0]) == {"n": 3, "loss": 2.5, "same": 0.1}


def test_statistics_are_those_of_all_ranks():
    run_script(
        """
        import numpy as np
        from test_normalize import Scripted
        from baselines import logger
        from baselines.common import mpi
        from baselines.common.running_moments import RunningMoments
        from baselines.common.vec_env import VecNormalize

        batches = np.random.default_rng(0).normal(5, 3, (6, 10, 2))
        moments = RunningMoments((2,))
        for batch in batches[mpi.rank :: mpi.size]:
            moments.update(batch)
        everything = batches.reshape(-1, 2)
        np.testing.assert_allclose(moments.mean, everything.mean(axis=0))
        np.testing.assert_allclose(moments.var, everything.var(axis=0))
        assert moments.count == 60
        states = mpi.gather(moments.get_state())
        assert (states[0]["mean"] == states[1]["mean"]).all()
        assert (states[0]["var"] == states[1]["var"]).all()

        class Scaled(Scripted):
            def step_wait(self):
                obs, rewards, *rest = super().step_wait()
                return obs, rewards * (1 + mpi.rank), *rest

        env = VecNormalize(Scaled(), ob=False, gamma=0, epsilon=0)
        env.reset()
        _, rewards, *_ = env.step([0, 0])
        expected = np.array([1, 2]) * (1 + mpi.rank) / np.std([1, 2, 2, 4])
        np.testing.assert_allclose(rewards, expected, rtol=1e-6)

        np.testing.assert_array_equal(mpi.mean([1.0, 4.0 * mpi.rank]), [1, 2])
        assert mpi.mean(np.float32([mpi.rank])).dtype == np.float32
        assert mpi.broadcast(7 + mpi.rank) == 7
        assert mpi.any_rank(mpi.rank == 1) and not mpi.any_rank(False)
        assert mpi.own_seed(5) == 5 + 10_000 * mpi.rank
        logger.configure()  # a new folder, which has the time in its name
        assert len(set(mpi.gather(logger.get_dir()))) == 1
        """
    )


@pytest.mark.parametrize("scan", [False, True])
def test_update_of_two_ranks_is_that_of_one_with_both_batches(scan):
    """Also where the norm is limited, which would differ for each rank's gradients."""
    run_script(
        """
        import keras
        import numpy as np
        from keras import ops
        from baselines.common import mpi
        from baselines.common.optimizers import Adam, check_equal, make_update

        def trained(xs, ys, seed):
            keras.utils.set_random_seed(seed)
            network = keras.Sequential(
                [keras.layers.Dense(5, "tanh"), keras.layers.Dense(1)]
            )
            network.build((None, 3))

            def loss(x, y):
                loss = ops.mean(ops.square(network(x)[:, 0] - y))
                return loss, {"loss": loss}

            rate = np.float32(0.1)
            if SCAN:
                optimizer = Adam(global_clipnorm=0.5)
                update = make_update(
                    lambda xy: loss(*xy), optimizer, network.variables, scan=True
                )
                metrics = [update(rate, (xs[:20], ys[:20]))["loss"]]
                metrics.append(update(rate, (xs[20:], ys[20:]))["loss"])
                return network.variables, np.concatenate(metrics)
            optimizer = keras.optimizers.SGD(momentum=0.9, global_clipnorm=0.5)
            update = make_update(loss, optimizer, network.variables)
            metrics = [update(rate, x, y)["loss"] for x, y in zip(xs, ys)]
            return network.variables, np.array(metrics)

        rng = np.random.default_rng(0)
        xs = rng.normal(size=(30, 8, 3)).astype(np.float32)
        ys = 3 * rng.normal(size=(30, 8)).astype(np.float32)
        half = slice(4 * mpi.rank, 4 * mpi.rank + 4)
        # Different initial weights: those of rank 0 count.
        together, losses = trained(xs[:, half], ys[:, half], seed=mpi.rank)
        check_equal(together)
        losses = mpi.mean(losses)
        size, mpi.size = mpi.size, 1
        alone, losses_alone = trained(xs, ys, seed=0)
        mpi.size = size
        for a, b in zip(together, alone):
            np.testing.assert_allclose(a, b, atol=1e-5)
        np.testing.assert_allclose(losses, losses_alone, rtol=1e-4)

        if mpi.rank == 1:
            together[1].assign_add(1e-7 * ops.ones_like(together[1]))
        try:
            check_equal(together)
        except RuntimeError as error:
            assert together[1].path in str(error) and "rank 1" in str(error)
        else:
            raise AssertionError("nobody noticed that the ranks have come apart")
        """.replace("SCAN", str(scan))
    )


def test_parameters_are_the_same_after_10_updates():
    """Also the statistics of observations, though each rank has seen its own."""
    out = run_script(
        """
        import numpy as np
        from baselines import a2c, ppo2
        from baselines.common import mpi
        from baselines.common.envs import make_vec_env

        for learn in (a2c.learn, ppo2.learn):
            seen, updates = [], []

            def callback(local_variables, global_variables):
                seen.append(np.asarray(local_variables["rollout"].obs).tobytes())
                updates.append(local_variables["nupdates"])
                return mpi.rank == 1 and len(updates) == 10

            model = learn(
                env=make_vec_env("Pendulum-v1", seed=0),
                network="mlp",
                seed=0,
                nsteps=8,
                total_timesteps=100_000,
                normalize_observations=True,
                callback=callback,
            )
            assert updates == list(range(1, 11))
            weights = b"".join(v.numpy().tobytes() for v in model.variables)
            first, second = mpi.gather(weights)
            assert first == second
            first, second = mpi.gather(seen)
            assert not set(first) & set(second)
            assert model.parts["normalizer"].count.numpy() == 160
        print("done\\n", end="")
        """
    )
    assert out.count("done") == 2


def test_killed_run_of_two_ranks_goes_on_as_if_it_had_not_been(capfd):
    out = run_ranks(f"{PPO2} --num_timesteps=4000 --log_path=whole")
    assert out.count("| total_timesteps ") == len(read_rows("whole")) == 14
    assert read_rows("whole")[-1]["total_timesteps"] == "3900"
    files = read_episodes("whole")
    assert sorted(files) == [f"{r}.{i}.monitor.csv" for r in (0, 1) for i in (0, 1)]
    episodes = [tuple(files[name]) for name in files]
    assert len(set(map(str, episodes))) == 4
    returns = [float(r) for rows in files.values() for r, _ in rows[:4]]
    mean = float(read_rows("whole")[-3]["eprewmean"])  # after 3,300 agent steps
    assert mean == pytest.approx(np.mean(returns))

    process = mpiexec([*RUN.split(), *f"{PPO2} --num_timesteps=4000".split(), LOG])
    while len(list_manifests("cut/checkpoints")) < 2:
        assert process.poll() is None
        time.sleep(0.002)
    ranks_of(process)["1"].kill()
    status, *_ = finish(process, timeout=20)  # The loss of one ends the other.
    assert status != 0
    assert not os.path.exists("cut/model.safetensors")
    config = json.loads(Path("cut/config.json").read_text())
    assert config["ranks"] == 2
    with pytest.raises(SystemExit):
        run.main(["--resume=cut"])
    error = capfd.readouterr().err
    assert "trained by 2 MPI rank(s)" in error and "mpiexec -n 2" in error
    run_ranks("--resume=cut")
    assert results("cut") == results("whole")


LOG = "--log_path=cut"


def ranks_of(process):
    """The processes of a command line that mpiexec started, by their ranks."""
    return {
        child.environ()["PMI_RANK"]: child
        for child in psutil.Process(process.pid).children(recursive=True)
        if "baselines.run" in child.cmdline()
    }


@pytest.mark.slow
def test_killed_a2c_of_two_ranks_goes_on_as_if_it_had_not_been():
    a2c = "--alg=a2c --env=CartPole-v1 --num_env=2 --seed=1 --log_interval=10 "
    a2c += "--num_timesteps=20000 --checkpoint_interval=2000"
    run_ranks(f"{a2c} --log_path=whole")
    arguments = [*a2c.split(), LOG]
    for _ in range(2):
        before = list_manifests("cut/checkpoints")
        process = mpiexec([*RUN.split(), *arguments])
        while list_manifests("cut/checkpoints")[-1:] == before[-1:]:
            assert process.poll() is None
            time.sleep(0.002)
        process.kill()
        finish(process)
        arguments = ["--resume=cut"]
    run_ranks("--resume=cut")
    assert results("cut") == results("whole")


def test_ranks_have_to_train_alike(monkeypatch):
    """They would otherwise wait for each other, or average what does not fit."""
    from toy_envs import CounterEnv

    from baselines.a2c import learn

    arguments = dict(env=CounterEnv(), network="mlp", total_timesteps=100)
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


def test_signal_to_one_rank_stops_all_at_the_same_update():
    arguments = f"{PPO2} --num_timesteps=10_000_000 {LOG}".replace("=400", "=1_000_000")
    process = mpiexec([*RUN.split(), *arguments.split()])
    progress = Path("cut/progress.csv")
    while not (progress.exists() and len(progress.read_text().splitlines()) > 2):
        assert process.poll() is None
        time.sleep(0.01)
    ranks_of(process)["1"].send_signal(signal.SIGTERM)
    status, out, _ = finish(process, timeout=20)
    assert status == 128 + signal.SIGTERM
    assert out.count("SIGTERM after ") == 1
    (manifest,) = list_manifests("cut/checkpoints")
    assert len(json.loads(Path(manifest).read_text())["files"]) == 2


FAILING = """
    import sys
    from toy_envs import FailingEnv
    from baselines import logger
    from baselines.a2c import learn
    from baselines.common import mpi
    from baselines.common.errors import UserValueError

    failing = [int(rank) for rank in sys.argv[1:]]
    env = FailingEnv("step" if mpi.rank in failing else "nowhere")
    learn(env=env, network="mlp", total_timesteps=1_000_000)
"""


@pytest.mark.parametrize(
    "ranks", [["1"], pytest.param(["0", "1"], marks=pytest.mark.slow)]
)
def test_exception_of_a_rank_ends_all(ranks):
    Path("script.py").write_text(textwrap.dedent(FAILING))
    status, out, err = finish(mpiexec(["script.py", *ranks]), timeout=30)
    assert status == 1
    assert err.count("ValueError: the gearbox is on fire") == 1


def test_mistake_of_a_rank_ends_all_with_one_line():
    Path("my_envs.py").write_text(
        textwrap.dedent(
            """
            import gymnasium as gym
            from gymnasium.envs.classic_control import CartPoleEnv
            from baselines.common import mpi
            from baselines.common.errors import UserValueError

            class Lazy(CartPoleEnv):
                def step(self, action):
                    if mpi.rank == 1:
                        raise UserValueError("rank 1 has no wheels")
                    return super().step(action)

            gym.register("Lazy-v0", entry_point=Lazy)
            """
        )
    )
    arguments = [*RUN.split(), "--alg=a2c", "--env=my_envs:Lazy-v0", "--num_env=1"]
    status, out, err = finish(mpiexec(arguments), timeout=30)
    assert status == 2
    assert err.startswith("error: rank 1 has no wheels\n")
    arguments[2] = "--alg=a2d"
    status, out, err = finish(mpiexec(arguments), timeout=30)
    assert status == 2
    assert err.startswith("error: unknown algorithm 'a2d'") and err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("alg", ["ppo2", "a2c"])
def test_two_ranks_learn_cartpole(alg):
    settings = "--num_env=4 --env=CartPole-v1 --seed=0 --log_path=log"
    if alg == "a2c":
        settings += " --value_network=copy --lr=5e-3 --ent_coef=0 --network=mlp"
    steps = {"ppo2": 100_000, "a2c": 150_000}[alg]
    run_ranks(f"--alg={alg} --num_timesteps={steps} {settings}")
    assert float(read_rows("log")[-1]["eprewmean"]) >= 195
