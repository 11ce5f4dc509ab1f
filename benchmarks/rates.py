"""Rates in agent steps a second, measured after a warm-up."""

import json
import sys
import time

import numpy as np

WARM_UP = 0.2  # as a fraction of the measurement


class Clock:
    """Measures a rate from counts of agent steps, after a warm-up.

    The warm-up begins with the first count, because seconds of compilation may come
    before it.

    Args:
        seconds: how long to measure.
        first_steps: agent steps that come before the warm-up.

    Attributes:
        warm: whether the warm-up is over.
        steps: agent steps since the warm-up.
        rate: agent steps a second since the warm-up.
    """

    def __init__(self, seconds, first_steps=0):
        self.seconds = seconds
        self.first_steps = first_steps
        self.begun = None
        self.warm = False

    def is_over(self, steps_done) -> bool:
        """Takes the number of agent steps done so far; returns whether time is up."""
        now = time.perf_counter()
        if steps_done < self.first_steps:
            return False
        if self.begun is None:
            self.begun = now
        if not self.warm:
            self.warm = now - self.begun >= WARM_UP * self.seconds
            self.start, self.steps_before = now, steps_done
            return False
        self.steps = steps_done - self.steps_before
        self.rate = self.steps / (now - self.start)
        return now - self.start >= self.seconds


def rate_of_env(env, seconds) -> float:
    """Returns agent steps/s of a VecEnv alone, ours or one with the same interface."""
    space, num_envs = env.action_space, env.num_envs
    actions = np.array([[space.sample() for _ in range(num_envs)] for _ in range(64)])
    env.reset()
    clock, count = Clock(seconds), 0
    while not clock.is_over(count * num_envs):
        env.step(actions[count % len(actions)])
        count += 1
    return clock.rate


def serve(make_measures) -> None:
    """Prints agent steps a second for each name on a line of stdin, until it closes.

    The other side of ``peers.PeerProgram``.

    Args:
        make_measures: function that takes the work, which is the program's argument in
            JSON, and returns a dict of functions that measure, by name.
    """
    measures = make_measures(json.loads(sys.argv[1]))
    for line in sys.stdin:
        print(measures[line.strip()](), flush=True)
