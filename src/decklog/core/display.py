"""Format money, times, sizes and numbers for people, name states with a tone, draw small charts, reveal hidden characters."""

from datetime import timedelta

# A dollar and a cent: amounts are stored in microdollars.
DOLLAR, _CENT = 1_000_000, 10_000
_EIGHTHS = "·▁▂▃▄▅▆▇█"
# The tones of words for a state, the same in the terminal, the dashboard and reports.
NEED, BAD, WARN, BUSY, HOLD, GOOD, DIM = "need", "bad", "warn", "busy", "hold", "good", "dim"
_WORDS = {
    # Only a person can continue this.
    NEED: ("needs attention", "open", "stop"),
    BAD: (
        *("stalled", "failed", "blocked", "given up", "fail", "error", "block", "damaged"),
        *("denied", "expired", "stale", "unknown", "lost"),
    ),
    WARN: ("warn", "critical", "flaky", "unproven", "request-changes", "not verified"),
    BUSY: ("running", "active", "planning", "in progress", "verifying", "work", "check", "plan", "landing"),
    HOLD: ("waiting", "paused"),
    GOOD: (
        *("done", "completed", "landed", "granted", "met", "ok", "pass", "passed", "succeeded", "answered", "sent", "verified"),
    ),
    DIM: ("idle", "pending", "waits", "ready", "cancelled", "abandoned", "skipped", "released", "superseded", "withdrawn"),
}
TONES = {word: tone for tone, words in _WORDS.items() for word in words}
# Control characters except tab and newline, and those that change the direction of writing.
_COMMANDS = (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x061C, *range(0x200E, 0x2010), *range(0x2028, 0x202F))
OBEYED = (*_COMMANDS, *range(0x2066, 0x206A))
# Zero-width blanks, joiners and non-joiners, tags and variation selectors.
UNSEEN = (
    *(0x00AD, 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, *range(0x200B, 0x200E), *range(0x2060, 0x2065), 0x3164, 0xFEFF),
    *(0xFFA0, *range(0xE0000, 0xE0080), *range(0xE0100, 0xE01F0)),
)
_WRITTEN_OUT = {code: f"⟨U+{code:04X}⟩" for code in (*OBEYED, *UNSEEN)}


def dollars(microdollars: int, *, exact: bool = False) -> str:
    """Format microdollars: `$16.97`, `$1,250.00`, and `$0.0042` for less than a cent; all digits if `exact`."""
    sign, amount = "-" if microdollars < 0 else "", abs(microdollars)
    if not exact:
        # Round half a cent up. Less than a cent gets two significant digits, so that it is never shown as zero.
        step = _CENT if amount >= _CENT else 10 ** max(0, len(str(amount)) - 2)
        amount = (amount + step // 2) // step * step
    whole, fraction = divmod(amount, DOLLAR)
    digits = f"{fraction:06}".rstrip("0").ljust(2, "0")
    return f"{sign}${whole:,}.{digits}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Format a number with its noun: `1 task`, `2 tasks`, `1,200 entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def one_line(text: str) -> str:
    """Return a text on one line, with single blanks."""
    return " ".join(text.split())


def shorten(text: str, longest: int) -> str:
    """Cut a text to a length, with a mark."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


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


def revealed(text: str, *, tabs: bool = False) -> str:
    """Replace control and invisible characters by their code points, so that people decide on the text that they see."""
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\t", "    " if tabs else " ").translate(_WRITTEN_OUT)
