"""Counts and times as short text."""


def short(number) -> str:
    """Returns a count in at most four digits, such as 950, 12.3k or 10M."""
    for size, unit in (1e9, "G"), (1e6, "M"), (1e3, "k"):
        if number >= 0.9995 * size:  # which is rounded up
            return f"{number / size:.3g}{unit}"
    return str(number)


def duration(seconds) -> str:
    """Returns a time in its two largest units, such as 1 h 58 min."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = (days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")
    first = next((i for i, (number, _) in enumerate(parts) if number), -1)
    shown = parts[first:][:2]
    return " ".join(f"{number} {unit}" for number, unit in shown if number) or "0 s"
