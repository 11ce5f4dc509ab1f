"""VecEnvs: alignment, returned arrays, processes and how they end."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial

import gymnasium as gym
import numpy as np
import psutil
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toy_envs import (
    CounterEnv,
    FailingEnv,
    ModuleLog,
    RandomEnv,
)

from baselines.common.base.errors import (
    DivergedError,
    UserFileError,
    UserTypeError,
    UserValueError,
)
from baselines.common.envs import make_env, make_vec_env
from baselines.common.envs.checked import CheckedEnv
from baselines.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecFrameStack,
    VecMonitor,
    WorkerError,
    subproc_vec_env,
)
from baselines.common.vec_env.gymnasium_vec_env import GymnasiumVecEnv

TIMEOUT_SECONDS = 10  # in which any failure of a worker has to be reported


def vector_env(env_fns, **arguments):
    mode = AutoresetMode.SAME_STEP
    return GymnasiumVecEnv(SyncVectorEnv(env_fns, autoreset_mode=mode, **arguments))


def stacked(env_fns):
    return VecFrameStack(DummyVecEnv(env_fns), 1)


def of_kinds(**kinds):
    return pytest.mark.parametrize("make_venv", kinds.values(), ids=kinds)


two_workers = partial(SubprocVecEnv, num_workers=2)
both_kinds = of_kinds(dummy=DummyVecEnv, subproc=two_workers)


def counters(*settings, **shared):
    return [partial(CounterEnv, **kwargs, **shared) for kwargs in settings]


@contextlib.contextmanager
def interrupt_after(seconds, handler):
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def time_limit(seconds=TIMEOUT_SECONDS):
    """Raises TimeoutError in a block that takes longer."""

    def give_up(*_):
        raise TimeoutError(f"still waiting after {seconds} s")

    return interrupt_after(seconds, give_up)


def worker_of(venv, number):
    """The process of a worker, in the order of its environments."""
    return psutil.Process(venv.unwrapped.worker_pids[number])


def worker_processes(parent=None):
    """The running workers of a process, also of a VecEnv that is still ending."""
    children = psutil.Process(parent).children(recursive=True)
    return [child for child in children if is_running_worker(child)]


def is_running_worker(process):
    try:
        return (
            process.is_running()
            and process.status() != psutil.STATUS_ZOMBIE
            and any("vec_env/worker.py" in word for word in process.cmdline())
        )
    except psutil.NoSuchProcess:
        return False


def wait_until(condition, seconds=TIMEOUT_SECONDS):
    """Whether ``condition()`` comes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not condition():
        time.sleep(0.02)
    return condition()


def shared_memory_files():
    names = os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else []
    return {x for x in names if not x.startswith("mpich")}  # those of other programs


@both_kinds
def test_an_end_returns_the_next_observation_and_the_last_in_its_info(make_venv):
    settings = [
        dict(terminate_after=3),
        dict(truncate_after=2),
        dict(terminate_after=4, truncate_after=4),
        dict(),
    ]
    with make_venv(counters(*settings, reuse_buffer=True)) as venv:
        assert venv.num_envs == 4 and venv.unwrapped is venv
        np.testing.assert_array_equal(venv.reset(), np.zeros((4, 1)))
        for step in range(1, 13):
            obs, rewards, dones, infos = venv.step([0] * 4)
            assert (obs.dtype, rewards.dtype, dones.dtype) == ("f", "f", bool)
            for i, length in enumerate((3, 2, 4, 100)):
                t = (step - 1) % length + 1
                end = t == length
                assert rewards[i] == t
                assert dones[i] == end
                assert obs[i] == (0 if end else t)
                assert infos[i]["t"] == t
                assert ("terminal_observation" in infos[i]) == end
                if end:
                    assert infos[i]["terminal_observation"] == [t]
                    assert infos[i]["TimeLimit.truncated"] is (i == 1)
                else:
                    assert "TimeLimit.truncated" not in infos[i]
        assert venv.reset().tolist() == [[0]] * 4
        assert venv.step([0] * 4)[0].tolist() == [[1]] * 4


@of_kinds(
    dummy=DummyVecEnv,
    subproc=two_workers,
    stacked=stacked,
    gymnasium=partial(vector_env, copy=False),
)
def test_returned_arrays_never_change_and_belong_to_the_caller(make_venv):
    with make_venv(counters(dict(truncate_after=4), dict())) as venv:
        arrays = [venv.reset()]
        for _ in range(3):
            arrays += venv.step([0, 0])[:3]
        copies = [array.copy() for array in arrays]
        for _ in range(5):
            *later, infos = venv.step([0, 0])
            if "terminal_observation" in infos[0]:
                arrays.append(infos[0]["terminal_observation"])
                copies.append(arrays[-1].copy())
        venv.reset()
        assert len(arrays) > 10
        for array, copy in zip(arrays, copies):
            np.testing.assert_array_equal(array, copy)
            array[...] = 77
        obs, rewards, dones, _ = venv.step([0, 0])
        assert (obs.tolist(), rewards.tolist()) == ([[1], [1]], [1, 1])
        assert not dones.any()


class InPlaceEnv(CounterEnv):
    """Doubles its action in place, which is its reward."""

    action_space = gym.spaces.Box(-9, 9, (1,), np.float32)

    def step(self, action):
        action *= 2
        obs, _, *others = super().step(action)
        return obs, float(action[0]), *others


@both_kinds
def test_actions_may_be_changed_in_place_and_frames_are_tiled(make_venv):
    actions = np.ones((3, 1), np.float32)
    actions.flags.writeable = False  # as those of a policy
    with make_venv([InPlaceEnv] * 3) as venv:
        venv.reset()
        assert venv.step(actions)[1].tolist() == [2] * 3
        assert actions.tolist() == [[1]] * 3
        image = venv.render()
        assert image.shape == (4, 6, 3) and image.dtype == np.uint8
        assert (image[:2] == 1).all() and (image[2:, :3] == 1).all()
        assert (image[2:, 3:] == 0).all()
        with pytest.raises(DivergedError, match="an action is NaN"):
            venv.step(np.full((3, 1), np.nan))


def test_a_closed_or_deleted_env_has_no_workers():
    venv = SubprocVecEnv([CounterEnv] * 3, num_workers=5)
    assert len(worker_processes()) == 3
    venv.reset()
    venv.step_async([0] * 3)
    assert venv.reset().tolist() == [[0]] * 3
    with pytest.raises(WorkerError, match="needs a step_async"):
        venv.step_wait()
    venv.step_async([0] * 3)
    venv.close()
    venv.close()
    assert worker_processes() == []
    with pytest.raises(WorkerError, match="closed"):
        venv.step([0] * 3)
    venv = SubprocVecEnv([CounterEnv], num_workers=1)
    del venv
    assert wait_until(lambda: not worker_processes())


@both_kinds
def test_what_cannot_be_one_vec_env_is_refused(make_venv):
    env = CounterEnv()
    with pytest.raises(UserValueError, match=r"environment 1 has"):
        make_venv([partial(gym.make, "CartPole-v1"), CounterEnv])
    with pytest.raises(UserValueError, match="an environment of its own"):
        DummyVecEnv([lambda: env] * 2)
    assert worker_processes() == []


@pytest.mark.parametrize(
    ("shape", "dtype", "nstack"),
    [
        ((6, 5, 1), np.uint8, 4),
        ((6, 5, 3), np.uint8, 4),
        ((7,), np.float32, 3),
    ],
    ids=str,
)
def test_frame_stack_is_its_specification(shape, dtype, nstack):
    """The last frames of each environment, oldest first; zeros before the first."""

    def begin(frame):
        return [np.zeros_like(frame)] * (nstack - 1) + [frame]

    high = 255 if dtype == np.uint8 else np.inf
    frames = spaces.Box(0, high, shape, dtype)
    env_fns = [
        partial(RandomEnv, frames, spaces.Discrete(2), seed) for seed in range(3)
    ]
    plain, stack = DummyVecEnv(env_fns), VecFrameStack(DummyVecEnv(env_fns), nstack)
    space = stack.observation_space
    assert space.shape == (*shape[:-1], shape[-1] * nstack)
    ends = 0
    for _ in range(2):
        frames, obs = plain.reset(), stack.reset()
        stacks = [begin(frame) for frame in frames]
        for _ in range(40):
            assert obs.dtype == dtype
            expected = [np.concatenate(x, axis=-1) for x in stacks]
            np.testing.assert_array_equal(obs, expected)
            assert space.contains(obs[0])
            frames, *results, plain_infos = plain.step([0] * 3)
            obs, *stack_results, infos = stack.step([0] * 3)
            np.testing.assert_array_equal(results, stack_results)
            for i, done in enumerate(results[1]):
                newest = plain_infos[i]["terminal_observation"] if done else frames[i]
                stacks[i] = [*stacks[i][1:], newest]
                if done:
                    ends += 1
                    found = infos[i]["terminal_observation"]
                    last = np.concatenate(stacks[i], axis=-1)
                    np.testing.assert_array_equal(found, last, strict=True)
                    stacks[i] = begin(frames[i])
    assert ends > 20


def test_wrappers_have_the_attributes_of_the_inner_env():
    inner = DummyVecEnv([CounterEnv])
    venv = VecMonitor(VecFrameStack(inner, 2))
    assert venv.envs is inner.envs
    assert venv.unwrapped is inner
    assert venv.nstack == 2
    with pytest.raises(AttributeError, match="no_such_attribute"):
        venv.no_such_attribute  # noqa: B018


@both_kinds
def test_environments_can_be_asked_and_changed(make_venv):
    with VecMonitor(make_venv([CounterEnv] * 3)) as venv:
        venv.reset()
        venv.step([0] * 3)
        assert venv.get_attr("t") == [1, 1, 1]
        venv.set_attr("t", 6, indices=[2, 0])
        assert venv.get_attr("t", indices=[1, 2]) == [1, 6]
        assert venv.step([0] * 3)[1].tolist() == [7, 2, 7]
        assert venv.env_method("observation", indices=1)[0].tolist() == [2]
        assert venv.env_is_wrapped(CheckedEnv) == [True] * 3
        assert venv.env_is_wrapped(gym.wrappers.ClipReward, indices=0) == [False]
        with pytest.raises((AttributeError, WorkerError), match="misspelt"):
            venv.get_attr("misspelt")
        assert venv.get_attr("t") == [7, 2, 7]  # It goes on.


class Forking(CounterEnv):
    """Has a process of its own, which holds the worker's files open."""

    def __init__(self):
        super().__init__()
        multiprocessing.get_context("fork").Process(
            target=time.sleep, args=(20,), daemon=True
        ).start()


@pytest.mark.slow
def test_a_killed_worker_is_noticed_although_its_pipe_is_open():
    with SubprocVecEnv([Forking], num_workers=1) as venv:
        venv.warn = lambda text: None
        venv.reset()
        worker = worker_of(venv, 0)
        child = worker.children()[0]
        worker.kill()
        with time_limit():
            assert venv.step([0])[2].tolist() == [True]
        child.kill()


def test_a_gymnasium_vector_env_returns_last_infos_and_can_be_asked():
    class Successful(CounterEnv):
        def step(self, action):
            obs, reward, terminated, truncated, _ = super().step(action)
            info = {"is_success": self.t == 2, "at": {"t": self.t}}
            return obs, reward, terminated, truncated, info

    env_fns = [lambda: Successful(truncate_after=2), lambda: Successful(None, 3)]
    with vector_env(env_fns) as venv:
        venv.reset()
        venv.step([0, 0])
        *_, infos = venv.step([0, 0])
        assert infos[0]["is_success"] and infos[0]["at"] == {"t": 2}
        assert infos[0]["TimeLimit.truncated"] and infos[1] == {}
        *_, infos = venv.step([0, 0])
        assert infos[0] == {}
        assert not infos[1]["is_success"] and infos[1]["at"] == {"t": 3}
        venv.set_attr("t", 6)
        assert venv.get_attr("t") == [6, 6]
        with pytest.raises(UserTypeError):
            venv.set_attr("t", 7, indices=1)
        with pytest.raises(DivergedError, match="an action is NaN"):
            venv.step(np.array([0, np.nan]))


@pytest.mark.parametrize(
    ("where", "index", "num_workers"), [("constructor", 3, 2), ("step", 2, 1)]
)
def test_an_exception_of_an_environment_is_raised_with_its_traceback(
    where, index, num_workers
):
    env_fns = [CounterEnv] * 4
    # As if the pipe of the worker were broken.
    env_fns[index] = partial(FailingEnv, where, BrokenPipeError)
    with time_limit(), pytest.raises(WorkerError) as error:
        venv = SubprocVecEnv(env_fns, num_workers)
        venv.reset()
        for t in (1, 2):
            assert venv.step([0] * 4)[1].tolist() == [t] * 4
        venv.step([0] * 4)
    message = str(error.value)
    assert f"environment {index} raised" in message
    assert "BrokenPipeError: the gearbox is on fire" in message
    assert "in break_down" in message and "toy_envs.py" in message
    assert worker_processes() == []


def test_a_killed_worker_is_replaced_and_its_episodes_have_no_results():
    inner = two_workers([CounterEnv] * 4)
    warnings = []
    inner.warn = warnings.append
    with VecMonitor(inner, info_keywords=("not_there",)) as venv:
        venv.reset()
        venv.step([0] * 4)
        venv.step([0] * 4)
        worker_of(venv, 1).kill()
        with time_limit():
            obs, rewards, dones, infos = venv.step([0] * 4)
        assert obs.tolist() == [[3], [3], [0], [0]]
        assert rewards.tolist() == [3, 3, 0, 0]
        assert dones.tolist() == [False, False, True, True]
        for info in infos[2:]:
            assert info["TimeLimit.truncated"]
            assert info["terminal_observation"].tolist() == [2]
            assert "episode" not in info
        assert venv.lengths.tolist() == [3, 3, 0, 0] and venv.returns[2] == 0
        obs, rewards, dones, _ = venv.step([0] * 4)
        assert obs.tolist() == [[4], [4], [1], [1]]
        assert rewards.tolist() == [4, 4, 1, 1]
        assert not dones.any()
        worker_of(venv, 0).kill()
        assert venv.reset().tolist() == [[0]] * 4
        assert not venv.step([0] * 4)[2].any()
    assert len(warnings) == 2 and "environments 2 to 3 died" in warnings[0]


def test_a_worker_killed_before_a_checkpoint_is_replaced():
    with SubprocVecEnv([CounterEnv] * 2, num_workers=2) as venv:
        venv.reset()
        venv.step([0, 0])
        worker_of(venv, 1).kill()
        state = venv.get_state()
        obs, _, dones, infos = venv.step([0, 0])
        assert obs.tolist() == [[2], [0]] and dones.tolist() == [False, True]
        assert infos[1]["terminal_observation"].tolist() == [1]
    for make_venv in two_workers, DummyVecEnv:
        with make_venv([CounterEnv] * 2) as resumed:
            resumed.set_state(state)
            state = resumed.get_state()  # No step was made in between.
            obs, _, dones, infos = resumed.step([0, 0])
            assert obs.tolist() == [[2], [0]] and dones.tolist() == [False, True]
            assert infos[1]["terminal_observation"].tolist() == [1]
            assert resumed.step([0, 0])[0].tolist() == [[3], [1]]


def test_a_worker_that_dies_in_every_step_is_reported():
    class Fatal(CounterEnv):
        def step(self, action):
            os._exit(7)

    with two_workers([CounterEnv, Fatal]) as venv:
        venv.reset()
        expected = "exit status 7, as did those before it"
        with time_limit(20), pytest.raises(WorkerError, match=expected):
            for _ in range(10):
                venv.step([0, 0])
        assert worker_processes() == []


def test_a_replaced_worker_continues_its_monitor_files(tmp_path):
    with make_vec_env(
        "CartPole-v1", num_env=2, seed=0, num_workers=2, log_dir=str(tmp_path)
    ) as venv:
        venv.reset()
        for _ in range(100):
            venv.step([0, 0])
        before = (tmp_path / "0.1.monitor.csv").read_bytes()
        worker_of(venv, 1).kill()
        with open(tmp_path / "0.1.monitor.csv", "ab") as file:
            file.write(b"12.0,1")  # It was writing a row.
        first_obs = venv.step([0, 0])[0][1]
        for _ in range(50):
            venv.step([0, 0])
    after = (tmp_path / "0.1.monitor.csv").read_bytes()
    assert after.startswith(before) and after.count(b"#") == 1
    assert after.count(b"\n") > before.count(b"\n") + 2
    assert b"12.0,1" not in after
    with make_vec_env("CartPole-v1", num_env=2, seed=0) as venv:
        assert (venv.reset()[1] != first_obs).any()  # not the same episodes again


def test_a_worker_that_hangs_is_ended(capsys):
    with two_workers([CounterEnv] * 4) as venv:
        venv.worker_timeout = 1  # To start takes longer.
        venv.reset()
        venv.step([0] * 4)
        stopped = worker_of(venv, 1)
        stopped.suspend()
        message = "environments 2 to 3 did not respond for 1 s and was ended"
        with time_limit():
            assert venv.step([0] * 4)[2].tolist() == [False, False, True, True]
        assert message in capsys.readouterr().err
        assert not stopped.is_running()
        assert venv.step([0] * 4)[0].tolist() == [[3], [3], [1], [1]]


@pytest.mark.slow
def test_a_worker_that_stops_taking_a_large_request_is_ended():
    with SubprocVecEnv([CounterEnv], worker_timeout=4) as venv:
        venv.reset()
        state = venv.get_state() | {"envs": [np.zeros(10**7)]}
        (worker,) = worker_processes()
        worker.suspend()
        message = "environment 0 did not respond for 4 s and was ended"
        with time_limit(), pytest.raises(WorkerError, match=message):
            venv.set_state(state)
        assert worker_processes() == []


def test_an_interrupted_step_ends_the_workers_which_ignore_it_themselves():
    class Slow(CounterEnv):
        def step(self, action):
            time.sleep(0.4 if self.t else 0)
            return super().step(action)

    def ctrl_c(*_):
        raise KeyboardInterrupt

    with SubprocVecEnv([Slow] * 2, num_workers=2) as venv:
        venv.reset()
        for worker in worker_processes():
            worker.send_signal(signal.SIGINT)
        assert venv.step([0, 0])[0].tolist() == [[1], [1]]
        with pytest.raises(KeyboardInterrupt), interrupt_after(0.1, ctrl_c):
            venv.step([0, 0])
        # The answers of that step would be taken for those of later calls.
        assert worker_processes() == []
        for call in (venv.reset, partial(venv.step, [0, 0]), venv.get_state):
            with pytest.raises(WorkerError, match="closed"):
                call()


def test_memory_that_is_full_is_an_error(monkeypatch):
    with open("/dev/full", "wb") as full:
        monkeypatch.setattr(subproc_vec_env.tempfile, "TemporaryFile", lambda dir: full)
        with pytest.raises(UserFileError, match="bytes for observations"):
            SubprocVecEnv([CounterEnv])
    assert worker_processes() == []


def run_script(folder, text, **kwargs):
    path = folder / "script.py"
    path.write_text(textwrap.dedent(text))
    return subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **kwargs,
    )


def test_a_killed_parent_leaves_no_process_and_no_memory(tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    before = shared_memory_files()
    script = """
        from baselines.common.envs import make_vec_env
        venv = make_vec_env("CartPole-v1", num_env=4, num_workers=3)
        venv.reset()
        print("ready", flush=True)
        while True:
            venv.step([0] * 4)
        """
    env = {**os.environ, "TMPDIR": str(temporary)}
    with run_script(tmp_path, script, env=env) as parent:
        assert parent.stdout.readline() == "ready\n"
        workers = worker_processes(parent.pid)
        assert len(workers) == 3
        workers[1].suspend()
        parent.kill()
    assert wait_until(lambda: not any(map(is_running_worker, workers)))
    assert shared_memory_files() <= before
    assert os.listdir(temporary) == []


def test_a_script_needs_no_main_guard_and_runs_once_wherever_it_is(tmp_path):
    (tmp_path / "numpy.py").write_text("raise ImportError('not this one')")
    folder = tmp_path / "scripts"
    folder.mkdir()
    script = """
        print("started", flush=True)
        import gymnasium as gym
        from gymnasium import spaces
        from toy_envs import CounterEnv  # of the search path
        from baselines.common.vec_env import SubprocVecEnv

        class OwnSpace(spaces.Discrete):
            pass

        class Mine(CounterEnv):
            action_space = observation_space = OwnSpace(4)
            def reset(self, *, seed=None, options=None):
                return 1, {}
            def step(self, action):
                return int(action), 2.0, False, False, {"f": lambda: 7}

        venv = SubprocVecEnv([Mine, lambda: Mine()], num_workers=2)
        assert type(venv.action_space) is OwnSpace
        obs, (next_obs, rewards, _, infos) = venv.reset(), venv.step([3, 0])
        print(obs, next_obs, rewards, infos[1]["f"](), flush=True)
        venv.step_async([0, 0])
        """
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    env = {**os.environ, "PYTHONPATH": path}
    with run_script(folder, script, cwd=tmp_path, env=env) as process:
        out, err = process.communicate(timeout=60)
    assert err == ""
    assert out == "started\n[1 1] [3 0] [2. 2.] 7\n"
    assert process.returncode == 0


def test_workers_are_small_and_import_no_framework():
    before = shared_memory_files()
    env_fns = [lambda: ModuleLog(make_env("PongNoFrameskip-v4"))] * 4
    with SubprocVecEnv(env_fns, num_workers=2) as venv:
        venv.reset()
        *_, infos = venv.step([0] * 4)
        # Pages of libraries count by the share of each process: how many of them the
        # kernel maps ahead depends on its page cache, by 30 MB and more.
        sizes = [worker.memory_full_info().pss for worker in worker_processes()]
        assert len(sizes) == 2
        assert max(sizes) < 80e6
        assert shared_memory_files() <= before
    modules = {name.split(".")[0] for name in infos[0]["modules"]}
    assert "ale_py" in modules
    assert not modules & {"keras", "tensorflow", "torch", "jax"}


@both_kinds
def test_environments_get_actions_as_they_were_given(make_venv):
    plane = spaces.Box(-1, 1, (1,))
    with make_venv([partial(RandomEnv, plane, plane)] * 2) as venv:
        venv.reset()
        for dtype in np.float32, np.float64, np.float32:
            *_, infos = venv.step(np.zeros((2, 1), dtype))
            assert [info["type"] for info in infos] == [np.dtype(dtype).str] * 2


def test_workers_are_woken_without_eventfds(monkeypatch):
    monkeypatch.delattr(os, "eventfd", raising=False)
    with two_workers([CounterEnv] * 2) as venv:
        venv.reset()
        assert venv.step([0, 0])[1].tolist() == [1, 1]
    assert worker_processes() == []
