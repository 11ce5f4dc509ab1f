"""Times and numbers as short text."""


def duration(seconds) -> str:
    """Returns a time in its two largest units, such as 1 h 58 min."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = (days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")
    first = next((i for i, (number, _) in enumerate(parts) if number), -1)
    shown = parts[first:][:2]
    return " ".join(f"{number} {unit}" for number, unit in shown if number) or "0 s"


def four_digits(value) -> str:
    """Returns a number with four digits, or with all that are before its point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
