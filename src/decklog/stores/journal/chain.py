"""The hash chain of a stream: how an entry is written down to be hashed. `docs/journal.md` is this file in words."""

from dataclasses import dataclass
from hashlib import sha256
from json.encoder import encode_basestring as _quote
from operator import itemgetter

from decklog.errors import Damaged
from decklog.records import from_json
from decklog.stores.journal.rows import COLUMNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Row = tuple[Any, ...]


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


STREAM, SEQ, AT, HASH = map(COLUMNS.index, ("stream", "seq", "at", "hash"))
RECORD_TABLE, RECORD_ID, BODY, PAYLOAD = map(COLUMNS.index, ("record_table", "record_id", "body", "payload"))
_NAMES_KEPT = 4096


class _Fragment(dict):  # type: ignore[type-arg]
    """Canonical text of fields that stand side by side, by their values: names come again and again, so most is looked up."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, key: "Any") -> str:
        if len(self) >= _NAMES_KEPT:
            self.clear()
        values = key if len(self._names) > 1 else (key,)
        known = [(name, value) for name, value in zip(self._names, values, strict=True) if value is not None]
        text = self[key] = "".join(_field(name, value) for name, value in known)
        return text


_who, _group, _kind = _Fragment("agent", "agent_id"), _Fragment("confidence", "group_id"), _Fragment("key", "kind")
_phase, _table, _refs, _place = _Fragment("phase"), _Fragment("record_table"), _Fragment("refs"), _Fragment("stream", "subtype")


def _field(name: str, value: "Any") -> str:
    return f'"{name}":{_quote(value) if type(value) is str else value},'


def flaw(previous: str, row: "Row") -> str | None:
    """Name what keeps a row from following a hash: its `body` or `payload` is not what its digest says, or its `hash` differs."""
    (_, stream, seq, at, hash, kind, subtype, agent, agent_id, group_id, task_id, iteration, phase, confidence, redacted, key,
     record_table, record_id, refs, body_digest, payload_digest, body, payload) = row  # fmt: skip
    if type(seq) is not int or type(at) is not str:
        return "hash"  # a damaged page gives rows of anything
    if body is None:
        body_text = "" if body_digest is None else _field("body", body_digest)
    else:
        digest = sha256(body.encode()).hexdigest() if type(body) is str else None
        if digest is None or (body_digest is not None and body_digest != digest):
            return "body"
        body_text = f'"body":"{digest}",'
    if payload is None:
        payload_text = "" if payload_digest is None else _field("payload", payload_digest)
    else:
        digest = sha256(payload.encode()).hexdigest() if type(payload) is str else None
        if digest is None or (payload_digest is not None and payload_digest != digest):
            return "payload"
        payload_text = f'"payload":"{digest}",'
    # In the order of the alphabet, as `chain` has them. Numbers are never looked up: to a dictionary, 1 and 1.0 are the same.
    text = (
        f'{previous}{{{_who[agent, agent_id]}"at":{_quote(at)},{body_text}{_group[confidence, group_id]}'
        f"{'' if iteration is None else _field('iteration', iteration)}{_kind[key, kind]}{payload_text}{_phase[phase]}"
        f"{'' if record_id is None else _field('record_id', record_id)}{_table[record_table]}"
        f'{_field("redacted", redacted) if redacted else ""}{_refs[refs]}"seq":{seq},{_place[stream, subtype]}'
        f"{'' if task_id is None else _field('task_id', task_id)}"
    )
    return None if sha256((text[:-1] + "}").encode()).hexdigest() == hash else "hash"


def flawed(row: "Row", what: str) -> Damaged:
    """Say in words what `flaw` found."""
    why = "does not match its hash" if what == "hash" else f"has a {what} that does not match its digest"
    return unusable(row, why)


@dataclass(frozen=True)
class Stretch:
    """Rows of one stream, each of which follows from the one before it, and the hash that the first follows from."""

    stream: str
    previous: str
    rows: "list[Row]"
    # What records became, by the numbers of the entries that tell so. Read here, since whoever writes them has more to do.
    images: "dict[int, Any]"

    @classmethod
    def checked(cls, stream: str, previous: str, rows: "list[Row]") -> "Stretch":
        """Walk the rows, and refuse them at the first that does not follow."""
        last = previous
        if type(rows[0][SEQ]) is not int:
            raise flawed(rows[0], "hash")
        for seq, row in enumerate(rows, rows[0][SEQ]):
            what = flaw(last, row)
            if what is not None or row[STREAM] != stream or row[SEQ] != seq:
                raise flawed(row, what or "hash")
            last = row[HASH]
        images = {row[SEQ]: image_of(row) for row in rows if row[RECORD_TABLE] is not None}
        return cls(stream, previous, rows, images)

    @property
    def size(self) -> int:
        """Estimate the characters of its entries."""
        return size_of(self.rows)


def image_of(row: "Row") -> "dict[str, Any]":
    """Read what a record became from the entry that tells so."""
    try:
        image = from_json(row[PAYLOAD])
    except (TypeError, ValueError):
        image = None
    if not isinstance(image, dict):
        raise unusable(row, "tells of a change, and its payload is no JSON object")
    return image


def unusable(row: "Row", why: str) -> Damaged:
    return Damaged(f"entry {row[STREAM]}:{row[SEQ]} {why}", stream=row[STREAM], seq=row[SEQ])


def size_of(rows: "list[Row]") -> int:
    """Estimate the characters of some entries."""
    return 500 * len(rows) + sum(len(row[BODY] or "") + len(row[PAYLOAD] or "") for row in rows)
