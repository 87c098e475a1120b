"""Format money, times, sizes and numbers for people, and draw small charts as text."""

from datetime import timedelta

_EIGHTHS = "·▁▂▃▄▅▆▇█"


_CENT = 10_000


def dollars(microdollars: int, *, exact: bool = False) -> str:
    """Format microdollars: `$16.97`, `$1,250.00`, and `$0.0042` for less than a cent; all digits if `exact`."""
    sign, amount = "-" if microdollars < 0 else "", abs(microdollars)
    if not exact:
        # Round half a cent up. Less than a cent gets two significant digits, so that it is never shown as zero.
        step = _CENT if amount >= _CENT else 10 ** max(0, len(str(amount)) - 2)
        amount = (amount + step // 2) // step * step
    whole, fraction = divmod(amount, 1_000_000)
    digits = f"{fraction:06}".rstrip("0").ljust(2, "0")
    return f"{sign}${whole:,}.{digits}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Format a number with its noun: `1 task`, `2 tasks`, `1,200 entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def compact(number: int) -> str:
    """Format a large number in few characters: `950`, `41k`, `3.1M`, `1.2B`."""
    return _scaled(number, ("", "k", "M", "B"))


def _scaled(number: int, units: tuple[str, ...]) -> str:
    """Write a number with two digits, or whole, in the largest unit that it fills."""
    size, place = float(number), 0
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
    """Format a duration with the precision that people use: `41.2 s`, `112 min`, `3.5 h`, `2.1 days`."""
    seconds = passed.total_seconds()
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def sized(count: int) -> str:
    """Format a size: `640 bytes`, `1.3 MB`, `42 GB`."""
    return _scaled(count, (" bytes", " kB", " MB", " GB", " TB"))


def bar(percent: float, width: int = 20) -> str:
    """Draw a bar of 0 to 100 percent; more is drawn as full."""
    if width < 1:
        raise ValueError(f"a bar is at least 1 character wide, not {width}")
    filled = round(min(max(percent, 0), 100) * width / 100)
    # Never draw more than 0 as empty, or less than 100 as full.
    if percent > 0:
        filled = max(filled, 1)
    if percent < 100:
        filled = min(filled, width - 1)
    return "█" * filled + "░" * (width - filled)


def sparkline(values: list[int]) -> str:
    """Draw values as one character each, scaled to the largest; only zero is a dot."""
    most = max(values, default=0)
    return "".join(_EIGHTHS[0 if value <= 0 else max(1, value * 8 // most)] for value in values)
