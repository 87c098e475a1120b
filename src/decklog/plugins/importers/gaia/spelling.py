"""How gaia-coder spells times and JSON, and which of several spellings an imported line had."""

import json
from typing import TYPE_CHECKING

from decklog.importing.row import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from typing import Any


def time_text(moment: "datetime") -> str:
    """Write a time as its modules do: with Z when it is a whole second, otherwise with microseconds and the offset."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}Z" if moment.microsecond == 0 else moment.isoformat(timespec="microseconds")


def json_text(value: "Any") -> str:
    """Write JSON for a column as its modules do."""
    return json.dumps(value)


def json_or_none(value: "Any") -> str | None:
    """Write JSON for a column; nothing, and what is empty, stays nothing."""
    return None if value is None or value == {} or value == [] else json_text(value)


def times(moment: "datetime") -> "Iterator[str]":
    """Yield the ways in which a log may have spelled a time, its own first."""
    yield time_text(moment)
    for digits in ("microseconds", "milliseconds", "seconds", "minutes"):
        text = moment.isoformat(timespec=digits).removesuffix("+00:00")
        yield from (f"{text}Z", f"{text}+00:00")
    yield f"{moment:%Y-%m-%d}"


def as_it_was(spellings: "Iterable[str]", key: str | None) -> tuple[str, bool]:
    """Choose the spelling that an imported line had, by its key, which ends in the digest of the line as it was.

    Without a key, and when none of them is it, the first is given; also say whether the line is known to be another one now.
    """
    first = None
    for text in spellings:
        first = text if first is None else first
        if key is None or key.endswith(f":{Row('', '', {'line': text}).digest()}"):
            return text, False
    return first or "", True
