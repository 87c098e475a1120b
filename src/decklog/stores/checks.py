"""Checks of single values; each raises Invalid with the name of the field."""

import re
from datetime import datetime

from decklog.core.clock import from_text
from decklog.core.display import one_line
from decklog.core.errors import Invalid

LONGEST_NAME = 200
_GROUP_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def normalize_name(text: str, field: str) -> str:
    """Normalize a name: single spaces, none at the ends, and no invisible characters."""
    if not text.isascii():
        from unicodedata import category, normalize

        text = "".join(char for char in normalize("NFKC", text) if category(char) != "Cf")
    name = one_line(text)
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise Invalid(f"{field} is {text[:50]!r}; a name has 1 to {LONGEST_NAME} visible characters", field=field)
    return name


def check_group_id(text: object) -> str:
    """Check the id of a group."""
    if not isinstance(text, str) or not _GROUP_ID.fullmatch(text):
        raise Invalid(f"{str(text)[:80]!r} can't be a group's id: 1 to 64 letters, digits, _ and -", field="group_id")
    return text


def is_same(one: str | None, other: str | None) -> bool:
    """Return whether two names are equal, ignoring case."""
    return one is not None and other is not None and one.casefold() == other.casefold()


LARGEST = 2**63 - 1
LONGEST_SECONDS = 366 * 86400.0
# A reservation blocks budget for others, so it ends soon unless it is extended.
LONGEST_RESERVATION_SECONDS = 7 * 86400.0


def check_integer(name: str, value: object, *, low: int = 0, high: int = LARGEST) -> int:
    """Check an integer; a boolean is refused."""
    if type(value) is not int or not low <= value <= high:
        if high == LARGEST:
            raise Invalid(f"{name} is a whole number, {low} or more; got {value!r}", field=name)
        # The command line writes the bound of an amount in dollars.
        raise Invalid(f"{name} is a whole number, {low} to {high}; got {value!r}", field=name, most=high)
    return value


def check_boolean(name: str, value: object) -> bool:
    """Check a boolean."""
    if not isinstance(value, bool):
        raise Invalid(f"{name} is true or false; got {value!r}", field=name)
    return value


def check_filled(name: str, value: object) -> str:
    """Check a text that is not blank."""
    if not check_text(name, value).strip():
        raise Invalid(f"{name} can't be blank", field=name)
    return check_text(name, value)


def check_text(name: str, value: object) -> str:
    """Check a text, which may be empty."""
    if not isinstance(value, str):
        raise Invalid(f"{name} is a text; got {value!r}", field=name)
    return value


def check_texts(name: str, value: object) -> list[str]:
    """Check a list of texts; it may be empty, and none of them may be blank."""
    if not isinstance(value, (list, tuple)):
        raise Invalid(f"{name} is a list of texts; got {value!r}", field=name)
    return [check_filled(f"each of {name}", item) for item in value]


def check_object(name: str, value: object) -> dict[str, object]:
    """Check a JSON object."""
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise Invalid(f"{name} is a JSON object; got {value!r}", field=name)
    return value


def check_time(name: str, value: object) -> datetime:
    """Check a time, given as datetime or as ISO 8601 text."""
    if isinstance(value, datetime):
        return value
    try:
        return from_text(check_filled(name, value))
    except ValueError:
        raise Invalid(f"{name} is a time such as 2026-11-15T08:30:00Z; got {value!r}", field=name) from None


def check_time_zone(name: str, value: datetime | None) -> None:
    """Raise Invalid for a time without a time zone."""
    if value is not None and value.tzinfo is None:
        raise Invalid(f"{name} needs a time zone; use datetime.now(UTC)", field=name)


def check_share(name: str, value: float) -> None:
    """Raise Invalid for a number outside of 0 to 1."""
    if not 0 <= value <= 1:
        raise Invalid(f"{name} is {value}; it goes from 0 to 1", field=name)


def check_span(seconds: float, field: str, *, most: float = LONGEST_SECONDS) -> None:
    """Raise Invalid for a time span that is not positive or too long."""
    if not 0 < seconds <= most:
        raise Invalid(f"{field} is {seconds:g}; it goes from more than 0 to {most:g}", field=field)
