"""Parsing of time limits such as `2d`, `3h` or a day."""

import re
from datetime import datetime, timedelta

from decklog.core.errors import Invalid

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def since_of(text: str | None, now: datetime, field: str) -> datetime | None:
    """Parse a time limit: `2d`, `3h`, `2026-11-15`; None if it is not given."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,4})([mhdw])", text)
    try:
        return now - timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else datetime.fromisoformat(f"{text}T00:00:00+00:00")
    except (ValueError, OverflowError):
        raise Invalid(f"since is {text!r}: write 2d, 3h or a day as 2026-11-15", field=field) from None
