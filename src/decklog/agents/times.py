"""Parsing of timestamps that programs write."""

from datetime import UTC, datetime
from typing import Any


def as_time(text: Any) -> datetime | None:
    """Parse a timestamp; return None if it is invalid."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is UTC:
            return found
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        # Near the limits of datetime, the time in UTC may be out of range.
        return None
