"""Decide by the hash chain which of the found entries are unaltered."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain as joined
from itertools import pairwise
from typing import Any

from decklog.core.clock import from_text
from decklog.core.errors import DecklogError
from decklog.journal import chain
from decklog.journal.rows import COLUMNS
from decklog.transfer.recover.findings import RecoveredRows, Version, in_digits
from decklog.transfer.recover.pages import UNREADABLE, spans_of, value_of

Values = dict[str, Any]

_INTEGERS = ("seq", "iteration", "redacted")
_PLACE = ("pos", "stream", "seq")
# Two hashes that differ in at most this number of digits are the same one, damaged.
_FEW_DIGITS = 4
_ZEROS = "0" * 16
_MOST_TRIES = 100_000


class EntryCertainty(StrEnum):
    """What the hash chain proves about an entry: unaltered, unknown or altered."""

    PROVEN = "proven"
    UNPROVEN = "unproven"
    ALTERED = "altered"


@dataclass(frozen=True, kw_only=True)
class RecoveredEntry:
    """A recovered entry, and its certainty."""

    values: Values
    standing: EntryCertainty = EntryCertainty.PROVEN

    @property
    def seq(self) -> int:
        return int(self.values["seq"])

    @property
    def is_altered(self) -> bool:
        return self.standing is EntryCertainty.ALTERED


class BitRepair:
    """Finds a flipped bit in an entry: only the correct bit gives the correct hash."""

    def __init__(self) -> None:
        self._tries_left = _MOST_TRIES

    def mended(self, version: Version, previous: str) -> Values | None:
        tries = 8 * len(version.payload)
        if tries > self._tries_left:
            return None
        self._tries_left -= tries
        return next((values for values in _flipped(version) if follows(previous, values)), None)


def _flipped(version: Version) -> Iterator[Values]:
    """Yield the valid values of an entry with each one of its bits flipped."""
    payload = version.payload
    try:
        spans = spans_of(payload)
    except UNREADABLE:
        spans = []
    # A bit of the header may change the borders of values, so decode the whole row again.
    head = spans[0][1] if spans else len(payload)
    for flipped in _flips(payload[:head]):
        values = version.values(flipped + payload[head:])
        if values is not None and is_sound(values):
            yield values
    if len(spans) == len(COLUMNS):
        yield from _flipped_values(version, spans)


def _flipped_values(version: Version, spans: list[tuple[int, int, int]]) -> Iterator[Values]:
    """Yield an entry with one bit of one value flipped; the other values are decoded once."""
    parts = [(kind, version.payload[start:end]) for kind, start, end in spans]
    values = version.placed([_read(*part) for part in parts])
    unsound = {name for name in values if not _may_hold(name, values[name])}
    for name, (kind, data) in zip(COLUMNS, parts, strict=True):
        # The position of an entry is known, and one bit can't repair two values.
        if name in _PLACE or unsound - {name}:
            continue
        for flipped in _flips(data):
            value = _read(kind, flipped)
            if _may_hold(name, value := in_digits(value) if name == "hash" else value):
                yield {**values, name: value}


def _flips(data: bytes) -> Iterator[bytes]:
    for place, byte in enumerate(data):
        for bit in range(8):
            yield data[:place] + bytes([byte ^ 1 << bit]) + data[place + 1 :]


def _read(kind: int, data: bytes) -> Any:
    """Decode one value; leave invalid text as bytes, which no column accepts."""
    try:
        return value_of(kind, data)
    except UNREADABLE:
        return data


class StreamProof:
    """Reads one stream, and chooses the version of each entry that fits its neighbours."""

    def __init__(self, findings: RecoveredRows, stream: str, mending: BitRepair) -> None:
        self._entries = findings.entries(stream)
        self._mending = mending
        self._before: RecoveredEntry | None = None
        # The hashes of rejected versions: entries that follow from one of them belong to another history.
        self._passed_over: set[str] = set()

    def run(self) -> Iterator[RecoveredEntry]:
        """Yield the entries in order; missing numbers are lost entries."""
        for (seq, versions), following in pairwise(joined(self._entries, [(0, [])])):
            found = self._chosen(seq, versions, following[1] if following[0] == seq + 1 else [])
            hashes = {values["hash"] for values in _readable(versions)}
            self._passed_over = hashes - {found.values["hash"]} if found is not None else hashes
            self._before = found
            if found is not None:
                yield found

    def _chosen(self, seq: int, versions: list[Version], after: list[Version]) -> RecoveredEntry | None:
        before = self._before if self._before is not None and self._before.seq == seq - 1 else None
        previous = chain.START if seq == 1 else before.values["hash"] if before is not None else None
        readable, following = _readable(versions), _readable(after)
        if previous is not None:
            values = _choose_linked(previous, readable, following)
            if values is not None:
                return RecoveredEntry(values=values)
            if any(follows(other, values) for other in self._passed_over for values in readable):
                return None
            for version in versions:
                if (values := self._mending.mended(version, previous)) is not None:
                    return RecoveredEntry(values=values)
            if before is None or before.standing is EntryCertainty.PROVEN:
                return _read_altered(versions, is_surrounded=bool(after))
        return _choose_unproven(versions, following) or _read_altered(versions, is_surrounded=False)


def _readable(versions: list[Version]) -> list[Values]:
    found = (version.values() for version in versions)
    return [values for values in found if values is not None and is_sound(values)]


def _choose_linked(previous: str, readable: list[Values], following: list[Values]) -> Values | None:
    """Choose the version that follows from the previous hash; recompute its own hash if that is damaged."""
    fitting = [values for values in readable if follows(previous, values)]
    if fitting:
        return next((one for one in fitting if any(follows(one["hash"], after) for after in following)), fitting[0])
    for values in readable:
        hash = _link(previous, values)
        if hash is not None and (_is_nearly(hash, values["hash"]) or any(follows(hash, after) for after in following)):
            return {**values, "hash": hash}
    return None


def _choose_unproven(versions: list[Version], following: list[Values]) -> RecoveredEntry | None:
    """Choose the version that the next entry follows from."""
    usable = _readable([version for version in versions if not version.is_doubtful])
    chosen = next(
        (one for one in usable if any(follows(one["hash"], after) for after in following)), usable[0] if usable else None
    )
    return RecoveredEntry(values=chosen, standing=EntryCertainty.UNPROVEN) if chosen is not None else None


def _read_altered(versions: list[Version], *, is_surrounded: bool) -> RecoveredEntry | None:
    """Return the readable values of an altered entry; use a doubtful version only between two known entries."""
    for version in versions:
        if (is_surrounded or not version.is_doubtful) and (values := version.values(errors="replace")) is not None:
            return RecoveredEntry(values={**values, "hash": str(values["hash"])}, standing=EntryCertainty.ALTERED)
    return None


def _is_nearly(hash: str, other: str) -> bool:
    return len(hash) == len(other) and sum(map(str.__ne__, hash, other)) <= _FEW_DIGITS


def _link(previous: str, values: Values) -> str | None:
    try:
        return chain.hash_entry(previous, values)
    except (DecklogError, UnicodeEncodeError):
        return None


def follows(previous: str, values: Values) -> bool:
    """Return whether an entry's hash follows from the one before it."""
    return bool(_link(previous, values) == values["hash"])


def is_sound(values: Values) -> bool:
    """Return whether all columns have possible values."""
    return all(_may_hold(name, value) for name, value in values.items())


def _may_hold(name: str, value: Any) -> bool:
    if name in _INTEGERS:
        return type(value) is int and value in (0, 1) if name == "redacted" else type(value) in (int, type(None))
    if value is None:
        return name not in ("at", "hash")
    # No valid text has a NUL. Zeroed bytes decode as NULs, or in a hash as more zeros than chance gives.
    if type(value) is not str or "\0" in value:
        return False
    return _is_time(value) if name == "at" else name != "hash" or _ZEROS not in value


def _is_time(text: str) -> bool:
    try:
        from_text(text)
    except ValueError:
        return False
    return True
