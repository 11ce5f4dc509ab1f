"""Small environments with known answers, which worker processes can import."""

import copy
import sys

import gymnasium as gym
import numpy as np
from gymnasium import spaces

PLANE = spaces.Box(-1, 1, (2,), np.float32)
IMAGE = spaces.Box(0, 255, (20, 20, 1), np.uint8)
SIX = spaces.Discrete(6)


class CounterEnv(gym.Env):
    """Counts its steps: the observation after step t is t, and so is the reward.

    Args:
        terminate_after: steps after which an episode ends, or None.
        truncate_after: steps after which an episode is cut short, or None.
        reuse_buffer: whether all observations are one array, written over.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 1}
    action_space = spaces.Discrete(3)
    observation_space = spaces.Box(0, np.inf, (1,), np.float32)

    def __init__(self, terminate_after=None, truncate_after=None, reuse_buffer=False):
        self.terminate_after = terminate_after
        self.truncate_after = truncate_after
        self.reuse_buffer = reuse_buffer
        self.buffer = np.zeros(1, np.float32)
        self.t = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observation(), {}

    def step(self, action):
        self.t += 1
        terminated = self.t == self.terminate_after
        truncated = self.t == self.truncate_after
        info = {"t": self.t, "double": 2 * self.t}
        return self.observation(), float(self.t), terminated, truncated, info

    def observation(self):
        self.buffer[:] = self.t
        return self.buffer if self.reuse_buffer else self.buffer.copy()

    def render(self):
        return np.full((2, 3, 3), self.t, np.uint8)


class RandomEnv(gym.Env):
    """Draws observations, rewards and ends; its infos tell what actions it was given.

    Args:
        observation_space, action_space: its spaces.
        seed: of what it draws.
    """

    metadata = {"render_modes": []}

    def __init__(self, observation_space, action_space, seed=None):
        # Each environment draws from a generator of its own.
        self.observation_space = copy.deepcopy(observation_space)
        self.action_space = action_space
        self.reset(seed=seed)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        action = np.array(action)
        reward = self.np_random.normal()
        terminated, truncated = self.np_random.random(2) < 0.1
        info = {"action": action, "type": action.dtype.str}
        obs = self.observation_space.sample()
        return obs, reward, bool(terminated), bool(truncated), info


class FailingEnv(CounterEnv):
    """Raises ``error`` in its constructor or in its third ``step``."""

    def __init__(self, where, error=ValueError):
        super().__init__()
        self.where = where
        self.error = error
        if where == "constructor":
            self.break_down()

    def step(self, action):
        if self.where == "step" and self.t == 2:
            self.break_down()
        return super().step(action)

    def break_down(self):
        raise self.error("the gearbox is on fire")


BOX = spaces.Box(-np.inf, np.inf, (2,), np.float32)
GOOD = np.zeros(2, np.float32)


class Broken(gym.Env):
    """An environment that returns given values, to break Gymnasium's contract.

    Args:
        space: of observations.
        first: the observation of ``reset``.
        info: what ``reset`` returns beside it, or None for the observation alone.
        step: changes of the five values of ``step``, by position; or all of them.
    """

    action_space = spaces.Discrete(2)

    def __init__(self, space=BOX, first=GOOD, info=(), step=None):
        self.observation_space = space
        self.first = first
        self.info = dict(info) if info is not None else None
        self.results = step if step is not None else {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.first if self.info is None else (self.first, self.info)

    def step(self, action):
        if not isinstance(self.results, dict):
            return self.results
        right = [self.first, 0.0, False, False, {}]
        return tuple(self.results.get(i, value) for i, value in enumerate(right))


class ToyGame(CounterEnv):
    """A CounterEnv whose actions have the names of a game's."""

    def __init__(self, meanings=("NOOP", "FIRE", "RIGHT"), **kwargs):
        super().__init__(**kwargs)
        self.meanings = list(meanings)

    def get_action_meanings(self):
        return self.meanings


class Catch(gym.Env):
    """A ball falls on a screen [84, 84, 1]; caught by the paddle it pays 1, else -1.

    It starts anywhere and falls straight down in 6 steps, in which the paddle, which
    starts in the middle, can reach it.
    """

    SIZE = 84
    UNIT = 12  # pixels that ball and paddle move in a step

    observation_space = spaces.Box(0, 255, (SIZE, SIZE, 1), np.uint8)
    action_space = spaces.Discrete(3)  # left, stay, right

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.ball = int(self.np_random.integers(self.SIZE - self.UNIT))
        self.paddle = (self.SIZE - self.UNIT) // 2
        self.height = 0
        return self._draw(), {}

    def _draw(self):
        screen = np.zeros((self.SIZE, self.SIZE, 1), np.uint8)
        for x, y, grey in (
            (self.ball, self.height, 255),
            (self.paddle, self.SIZE - self.UNIT, 150),
        ):
            screen[y : y + self.UNIT, x : x + self.UNIT] = grey
        return screen

    def step(self, action):
        moved = self.paddle + self.UNIT * (int(action) - 1)
        self.paddle = min(max(moved, 0), self.SIZE - self.UNIT)
        self.height += self.UNIT
        landed = self.height == self.SIZE - self.UNIT
        caught = abs(self.ball - self.paddle) < self.UNIT
        reward = (1.0 if caught else -1.0) if landed else 0.0
        return self._draw(), reward, landed, False, {}


class GoalEnv(gym.Env):
    """A state that is to become a goal; a step costs 1 unless it reaches the goal.

    Args:
        part: space of states and goals.
        action_space: its space of actions.
        limit: steps after which an episode is cut short.
    """

    ends_at_goal = False

    def __init__(self, part, action_space, limit):
        keys = "observation", "achieved_goal", "desired_goal"
        self.observation_space = spaces.Dict(dict.fromkeys(keys, part))
        self.action_space = action_space
        self.dtype, self.limit = part.dtype, limit

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.goal = self.draw()
        self.t = 0
        return self._obs(), {}

    def _obs(self):
        state, goal = self.state.astype(self.dtype), self.goal.astype(self.dtype)
        return {"observation": state, "achieved_goal": state, "desired_goal": goal}

    def step(self, action):
        self.move(action)
        self.t += 1
        reward = float(self.compute_reward(self.state, self.goal, {}))
        reached = reward == 0
        ends = reached and self.ends_at_goal, self.t == self.limit
        return self._obs(), reward, *ends, {"is_success": reached}


class BitFlips(GoalEnv):
    """Bits, one of which is flipped in a step, until they are those of a goal.

    Andrychowicz et al. 2017; it takes at most ``bits`` steps.
    """

    ends_at_goal = True  # Otherwise some bit would have to be flipped again.

    def __init__(self, bits=5):
        super().__init__(spaces.MultiBinary(bits), spaces.Discrete(bits), bits)

    def draw(self):
        return self.np_random.integers(2, size=(2, self.limit))

    def move(self, action):
        self.state[action] ^= 1

    def compute_reward(self, achieved_goal, desired_goal, info):
        return -(achieved_goal != desired_goal).any(axis=-1).astype(float)


class PointReach(GoalEnv):
    """A point on a square that moves to a goal."""

    def __init__(self):
        square, push = (spaces.Box(-1, 1, (2,), np.float32) for _ in range(2))
        super().__init__(square, push, limit=20)

    def draw(self):
        return self.np_random.uniform(-1, 1, (2, 2)).astype("f")

    def move(self, action):
        self.state = np.clip(self.state + 0.2 * action, -1, 1).astype("f")

    def compute_reward(self, achieved_goal, desired_goal, info):
        distances = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
        return -(distances > 0.1).astype(float)


class ActionLog(gym.Wrapper):
    """Records the actions since the last reset."""

    def __init__(self, env):
        super().__init__(env)
        self.actions = []

    def reset(self, **kwargs):
        self.actions = []
        return self.env.reset(**kwargs)

    def step(self, action):
        self.actions.append(action)
        return self.env.step(action)


class ModuleLog(gym.Wrapper):
    """Returns in info which modules its process has imported."""

    def step(self, action):
        *results, info = self.env.step(action)
        return *results, {**info, "modules": sorted(sys.modules)}


gym.register("CounterByName-v0", entry_point="toy_envs:CounterEnv")
gym.register("CounterByClass-v0", entry_point=CounterEnv)
gym.register("BitFlips-v0", entry_point="toy_envs:BitFlips")
gym.register("PointReach-v0", entry_point="toy_envs:PointReach")


class Reach(gym.Env):
    """A camera sees the target; joints say where the hand is; it moves by 0.2 a step.

    The reward is minus the distance, so that 20 steps give about -17 at random, and -3
    at best. A Tuple of actions has a brake first: moves count while it is off.

    Args:
        actions: the action space, ``PLANE`` or a nest with one.
    """

    def __init__(self, actions=PLANE):
        self.observation_space = spaces.Dict(
            camera=IMAGE,
            arm=spaces.Dict(joints=PLANE, loads=spaces.Box(0, 9, (1,), np.uint8)),
            phase=spaces.Discrete(2),
        )
        self.action_space = actions

    def observe(self):
        image = np.zeros((20, 20, 1), np.uint8)
        x, y = ((self.target + 1) / 2 * 15).astype(int)
        image[y : y + 5, x : x + 5] = 255
        loads = np.array([self.t % 9], np.uint8)
        joints = self.joints.astype(np.float32)
        arm = {"joints": joints, "loads": loads}
        return {"camera": image, "arm": arm, "phase": self.t % 2}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        self.joints, self.target = self.np_random.uniform(-1, 1, (2, 2))
        return self.observe(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        move = action
        if isinstance(action, tuple):
            move = action[1] * (action[0] == 1)
        if isinstance(action, dict):
            move = np.concatenate([action["x"], action["y"]])
        self.joints = np.clip(self.joints + 0.2 * move, -1, 1)
        self.t += 1
        distance = np.linalg.norm(self.joints - self.target)
        return self.observe(), -float(distance), False, self.t == 20, {}


def seeded(env, seed) -> gym.Env:
    env.reset(seed=seed)
    return env


class Masked(gym.Env):
    """Raises for an invalid action; about half of all are, others in each step.

    The reward is the number of the action, as a share of the highest.
    """

    def __init__(self, action_space=SIX):
        self.action_space = action_space
        n = spaces.flatdim(action_space)
        self.observation_space = spaces.Dict(
            action_mask=spaces.MultiBinary(n), t=spaces.Box(0, 1, (2,))
        )

    def draw(self):
        self.mask = self.np_random.integers(
            2, size=self.observation_space["action_mask"].n
        )
        if isinstance(self.action_space, spaces.MultiDiscrete):
            self.mask[np.cumsum(self.action_space.nvec) - 1] = 1
        else:
            self.mask[self.np_random.integers(len(self.mask))] = 1
        t = np.full(2, self.t / 10, np.float32)
        return {"action_mask": self.mask.astype(np.int8), "t": t}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.draw(), {}

    def step(self, action):
        chosen = spaces.flatten(self.action_space, action)
        if (chosen > self.mask).any():
            raise RuntimeError(f"{action} is invalid: {self.mask}")
        self.t += 1
        reward = float(np.dot(chosen, np.arange(len(chosen))) / len(chosen))
        return self.draw(), reward, False, self.t == 10, {}
