"""Counts, bytes and times as short text."""


def short(number) -> str:
    """Returns a count with at most three significant digits: 950, 12.3k or 10M."""
    units = (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")
    for size, unit in units:
        if number >= 0.9995 * size:  # which rounds up to size
            return f"{number / size:.3g}{unit}"
    return str(number)


def memory(number) -> str:
    """Returns a number of bytes with three significant digits, such as 7.06 GB."""
    for size, unit in (1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e9, "GB"):
        if number >= 0.9995 * size:  # which rounds up to size
            return f"{number / size:.3g} {unit}"
    return f"{number / 1e6:.3g} MB"


def duration(seconds) -> str:
    """Returns a time in its two largest units, such as 1 h 58 min."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = (days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")
    first = next((i for i, (number, _) in enumerate(parts) if number), -1)
    shown = parts[first:][:2]
    return " ".join(f"{number} {unit}" for number, unit in shown if number) or "0 s"
