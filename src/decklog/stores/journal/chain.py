"""The hash chain of a stream: how an entry is written down to be hashed. `docs/journal.md` is this file in words."""

from hashlib import sha256
from json.encoder import encode_basestring as _quote
from operator import itemgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

START = ""
# Stands for a number that is not known yet; no entry has it.
_NUMBER = -1

# Sorted, as they stand in the canonical text. A field without a value is left out, so a field that is added one day changes
# no hash of the past.
FIELDS = (
    "agent",
    "agent_id",
    "at",
    "body",
    "confidence",
    "group_id",
    "iteration",
    "key",
    "kind",
    "payload",
    "phase",
    "record_id",
    "record_table",
    "redacted",
    "refs",
    "seq",
    "stream",
    "subtype",
    "task_id",
)


_STARTS = tuple(f'"{name}":' for name in FIELDS)
_in_order = itemgetter(*FIELDS)


def digest(text: str | None) -> str | None:
    """Digest a body or a payload; the chain holds only this, so that retention may drop the text itself."""
    return None if text is None else sha256(text.encode()).hexdigest()


def canonical(values: "Mapping[str, Any]") -> str:
    """Write an entry as canonical JSON; `body` and `payload` are given as their digests."""
    parts = [
        start + (_quote(value) if type(value) is str else str(value))
        for start, value in zip(_STARTS, _in_order(values), strict=True)
        if value is not None
    ]
    return "{" + ",".join(parts) + "}"


def halves(values: "Mapping[str, Any]") -> tuple[str, str]:
    """Write an entry as canonical JSON up to its number and from there on, for a database that numbers it itself."""
    # A text can't hold the mark: its quotes would be escaped.
    before, mark, after = canonical({**values, "seq": _NUMBER}).partition(f'"seq":{_NUMBER}')
    return before + mark.removesuffix(str(_NUMBER)), after


def link(previous: str, values: "Mapping[str, Any]") -> str:
    """Hash an entry onto the one before it; `redacted` counts only when it is set."""
    return sha256((previous + canonical(values)).encode()).hexdigest()
