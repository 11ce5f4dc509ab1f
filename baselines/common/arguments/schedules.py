"""Schedules: numbers that change with the fraction of training done, 0 to 1."""

import math
from collections.abc import Callable

from baselines.common.base.errors import UserValueError, shown, suggest


def constant(progress):
    """1 throughout."""
    return 1.0


def linear(progress):
    """From 1 down to 0."""
    return 1.0 - progress


def middle_drop(progress):
    """Linear for the first quarter, then 0.075."""
    return 1.0 - progress if progress <= 0.25 else 0.075


def double_linear_con(progress):
    """Linear at twice the speed, down to 0.125."""
    return max(1.0 - 2.0 * progress, 0.125)


def double_middle_drop(progress):
    """Linear for the first quarter, 0.075 to three quarters, then 0.125."""
    if progress <= 0.25:
        return 1.0 - progress
    return 0.075 if progress <= 0.75 else 0.125


SCHEDULES = {
    fn.__name__: fn
    for fn in (constant, linear, middle_drop, double_linear_con, double_middle_drop)
}


def make_schedule(
    value: float | str | Callable,
    of_numbers: str = "constant",
    name: str = "the schedule",
) -> Callable:
    """Returns a function from the fraction of training done, 0 to 1, to a number.

    Args:
        value: text such as ``linear:2.5e-4``, a schedule and its initial value; a
            number, which follows ``of_numbers``; or such a function itself.
        of_numbers: name of the schedule for a plain number.
        name: of the argument, for messages.

    Raises:
        UserValueError: if it is none of these.
    """
    if callable(value):
        return lambda progress: float(value(progress))
    schedule, colon, start = str(value).rpartition(":")
    if not colon:
        schedule = of_numbers
    try:
        start = float(start)
    except ValueError:
        start = math.nan
    if not start >= 0 or math.isinf(start):
        raise UserValueError(
            f"{name} has to be a number of at least 0, or a schedule such as "
            f"linear:2.5e-4, received {shown(value)}"
        )
    if schedule not in SCHEDULES:
        raise UserValueError(
            f"unknown schedule {schedule!r}{suggest(schedule, SCHEDULES)} (known: "
            f"{', '.join(SCHEDULES)})"
        )
    factor = SCHEDULES[schedule]
    return lambda progress: start * factor(progress)


def check_schedule(value, name) -> None:
    """Raises UserValueError unless ``make_schedule`` accepts the value.

    A function is called with 0, so that one that fails does so before a log is opened.
    """
    make_schedule(value, name=name)(0.0)


def check_lrschedule(lr, lrschedule, *defaults) -> None:
    """Raises UserValueError if ``lrschedule`` is not a default and has no effect.

    Args:
        lr: as in ``make_schedule``; unless it is a number, it has its own schedule.
        lrschedule: name of the schedule for a plain number.
        defaults: the names that ``lrschedule`` has by default.
    """
    if lrschedule not in defaults and has_schedule(lr):
        raise UserValueError(
            f"lr {lr!r} has a schedule of its own; leave out lrschedule {lrschedule!r}"
        )


def has_schedule(value) -> bool:
    """Whether a value for ``make_schedule`` is more than a number."""
    return callable(value) or ":" in str(value)
