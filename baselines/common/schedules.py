"""Schedules: numbers that change with the fraction of training done, 0 to 1."""

import math

from baselines.common.errors import UserValueError, suggest


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
    """Linear at twice the speed, and 0.125 from where that is reached."""
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


def make_schedule(value, of_numbers="constant", name="the schedule"):
    """Returns a function from the fraction of training done, 0 to 1, to a number.

    Args:
        value: text such as ``linear:2.5e-4``, a schedule and what it begins with; a
            number, which changes as ``of_numbers`` says; or such a function itself.
        of_numbers: name of the schedule that a number alone has.
        name: of the argument, for messages.

    Raises:
        UserValueError: if it is none of these.
    """
    if callable(value):
        return value
    schedule, colon, start = str(value).rpartition(":")
    if not colon:
        schedule = of_numbers
    try:
        start = float(start)
    except ValueError:
        start = math.nan
    if not start >= 0 or math.isinf(start):
        raise UserValueError(
            f"{name} has to be a number of at least 0, or a schedule as linear:2.5e-4, "
            f"received {value!r}"
        )
    if schedule not in SCHEDULES:
        raise UserValueError(
            f"unknown schedule {schedule!r}{suggest(schedule, SCHEDULES)} (known: "
            f"{', '.join(SCHEDULES)})"
        )
    factor = SCHEDULES[schedule]
    return lambda progress: start * factor(progress)


def check_schedule(value, name) -> None:
    """Raises UserValueError unless ``make_schedule`` takes the value."""
    make_schedule(value, name=name)
