"""Defaults of ``learn()`` that depend on the kind of environment: as in trpo."""

from baselines.trpo import defaults

atari = defaults.atari
retro = defaults.retro
mujoco = defaults.mujoco
classic_control = defaults.classic_control
box2d = defaults.box2d
small = defaults.small
