"""Figures for people: money and times in words, and small charts made of text."""

from datetime import timedelta

_EIGHTHS = "·▁▂▃▄▅▆▇█"


_CENT = 10_000


def dollars(microdollars: int, *, exact: bool = False) -> str:
    """Write micro-dollars for people: `$16.97`, `$1,250.00`, and `$0.0042` for less than a cent; all digits if `exact`."""
    sign, amount = "-" if microdollars < 0 else "", abs(microdollars)
    if not exact:
        # Half a cent goes up; of less than a cent two digits tell enough, and something is never written as nothing.
        step = _CENT if amount >= _CENT else 10 ** max(0, len(str(amount)) - 2)
        amount = (amount + step // 2) // step * step
    whole, fraction = divmod(amount, 1_000_000)
    digits = f"{fraction:06}".rstrip("0").ljust(2, "0")
    return f"{sign}${whole:,}.{digits}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Write a number with its noun: `1 task`, `2 tasks`, `1,200 entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def compact(number: int) -> str:
    """Write a large number in few characters: `950`, `41k`, `3.1M`, `1.2B`."""
    size, units = float(number), ("", "k", "M", "B")
    place = 0
    while size >= 999.5 and place < len(units) - 1:
        size, place = size / 1000, place + 1
    return f"{size:.1f}{units[place]}" if place > 0 and size < 9.95 else f"{size:.0f}{units[place]}"


def span(passed: timedelta) -> str:
    """Format a duration in its largest useful unit: `41 s`, `12 min`, `2 h`, `3 d`."""
    seconds = max(0, int(passed.total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size * (2 if unit == "d" else 1):
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def took(passed: timedelta) -> str:
    """Write how long something took, as exactly as a person would say it: `41.2 s`, `112 min`, `3.5 h`, `2.1 days`."""
    seconds = passed.total_seconds()
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def sized(count: int) -> str:
    """Write how large something is: `640 bytes`, `1.3 MB`, `42 GB`."""
    size, units = float(count), ("bytes", "kB", "MB", "GB", "TB")
    place = 0
    while size >= 999.5 and place < len(units) - 1:
        size, place = size / 1000, place + 1
    return f"{size:.1f} {units[place]}" if place > 0 and size < 9.95 else f"{size:.0f} {units[place]}"


def bar(percent: float, width: int = 20) -> str:
    """Draw how full something is, from 0 to 100 percent; more than that is drawn as full."""
    if width < 1:
        raise ValueError(f"a bar is at least 1 character wide, not {width}")
    filled = round(min(max(percent, 0), 100) * width / 100)
    # Something is never drawn as nothing, and not quite full never as full.
    if percent > 0:
        filled = max(filled, 1)
    if percent < 100:
        filled = min(filled, width - 1)
    return "█" * filled + "░" * (width - filled)


def sparkline(values: list[int]) -> str:
    """Draw a row of values, one character each, against the largest: a dot for nothing, and never one for something."""
    most = max(values, default=0)
    return "".join(_EIGHTHS[0 if value <= 0 else max(1, value * 8 // most)] for value in values)
