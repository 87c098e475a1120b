"""The hash chain of a stream: how an entry is written down to be hashed. `docs/journal.md` is this file in words."""

from json.encoder import encode_basestring as _quote
from operator import itemgetter

from decklog import digests
from decklog.errors import Damaged
from decklog.stores.journal.rows import COLUMNS
from decklog.values import from_json

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
    return None if text is None else digests.sha256(text.encode()).hexdigest()


def canonical(values: "Mapping[str, Any]") -> str:
    """Write an entry as canonical JSON; `body` and `payload` are given as their digests."""
    parts = [
        start + (_quote(value) if type(value) is str else str(value))
        for start, value in zip(_STARTS, _in_order(values), strict=True)
        if value is not None
    ]
    return "{" + ",".join(parts) + "}"


def link(previous: str, values: "Mapping[str, Any]") -> str:
    """Hash an entry onto the one before it; `redacted` counts only when it is set."""
    return digests.sha256((previous + canonical(values)).encode()).hexdigest()


STREAM, SEQ, AT, HASH = map(COLUMNS.index, ("stream", "seq", "at", "hash"))
RECORD_TABLE, RECORD_ID, BODY, PAYLOAD = map(COLUMNS.index, ("record_table", "record_id", "body", "payload"))
_REDACTED = COLUMNS.index("redacted")
KIND, BODY_DIGEST, PAYLOAD_DIGEST = map(COLUMNS.index, ("kind", "body_digest", "payload_digest"))
_NAMES_KEPT = 4096


class _Fragments(dict):  # type: ignore[type-arg]
    """What stands between the fields of an entry that hardly come twice, by the names in it, which come again and again."""

    def __missing__(self, names: "tuple[Any, ...]") -> "tuple[str, ...]":
        if len(self) >= _NAMES_KEPT:
            self.clear()
        agent, agent_id, confidence, group_id, kind, phase, record_table, refs, stream, subtype = names
        between = (
            _field("confidence", confidence) + _field("group_id", group_id),
            _field("kind", kind),
            _field("phase", phase),
            _field("record_table", record_table),
            f'{_field("refs", refs)}"seq":',
        )
        until_task = f",{_field('stream', stream)}{_field('subtype', subtype)}"
        texts = self[names] = (
            f'{{{_field("agent", agent)}{_field("agent_id", agent_id)}"at":',
            *between,
            until_task,
            # Where nothing stands between them.
            "".join(between),
            f"{until_task[:-1]}}}",
        )
        return texts


_fragments = _Fragments()


def _field(name: str, value: "Any") -> str:
    return "" if value is None else f'"{name}":{_quote(value) if type(value) is str else value},'


class _Differs(Exception):
    """A text of a row is not what its digest says."""


def _text_field(name: str, text: "Any", digest: "Any") -> str:
    """Write a body or a payload by its digest, whether the text itself is there or was dropped or moved."""
    if text is None:
        return _field(name, digest)
    found = digests.sha256(text.encode()).hexdigest() if type(text) is str else None
    if found is None or (digest is not None and digest != found):
        raise _Differs(name)
    return f'"{name}":"{found}",'


def _written(row: "Row | list[Any]") -> str:
    """Write a row as canonical JSON, as `canonical` would write its values."""
    (_, stream, seq, at, _, kind, subtype, agent, agent_id, group_id, task_id, iteration, phase, confidence, redacted, key,
     record_table, record_id, refs, body_digest, payload_digest, body, payload) = row  # fmt: skip
    # In the order of the alphabet, as `FIELDS` has them. Numbers are never looked up, since to a dictionary 1 and 1.0 are the
    # same; nor is what hardly comes twice.
    until_at, until_iteration, until_payload, until_record_id, until_redacted, until_seq, until_task, until_seq_at_once, end = (
        _fragments[agent, agent_id, confidence, group_id, kind, phase, record_table, refs, stream, subtype]
    )
    has_only_body = body_digest is payload_digest is payload is key is iteration is record_id is task_id is None
    if has_only_body and type(body) is str and not redacted:
        # Most entries have a body, and nothing else that is their own.
        return f'{until_at}{_quote(at)},"body":"{digests.sha256(body.encode()).hexdigest()}",{until_seq_at_once}{seq}{end}'
    # What is not there is not asked for: calls are the most of what this takes.
    text = (
        f"{until_at}{_quote(at)},{'' if body is body_digest is None else _text_field('body', body, body_digest)}{until_iteration}"
        f"{'' if iteration is None else _field('iteration', iteration)}{'' if key is None else _field('key', key)}{until_payload}"
        f"{'' if payload is payload_digest is None else _text_field('payload', payload, payload_digest)}{until_record_id}"
        f"{'' if record_id is None else _field('record_id', record_id)}{until_redacted}"
        f"{_field('redacted', redacted) if redacted else ''}{until_seq}{seq}{until_task}"
        f"{'' if task_id is None else _field('task_id', task_id)}"
    )
    return text[:-1] + "}"


def hashed(previous: str, row: "Row | list[Any]") -> str:
    """Hash a row onto the one before it."""
    return digests.sha256((previous + _written(row)).encode()).hexdigest()


def halves(row: "Row") -> tuple[str, str]:
    """Write a row as canonical JSON up to its number and from there on, for a database that numbers it itself."""
    # A text can't hold the mark: its quotes would be escaped.
    before, mark, after = _written((*row[:SEQ], _NUMBER, *row[SEQ + 1 :])).partition(f'"seq":{_NUMBER}')
    return before + mark.removesuffix(str(_NUMBER)), after


def flaw(previous: str, row: "Row") -> str | None:
    """Name what keeps a row from following a hash: its `body` or `payload` is not what its digest says, or its `hash` differs."""
    if type(row[SEQ]) is not int or type(row[AT]) is not str or (row[_REDACTED] != 0 and row[_REDACTED] != 1):
        return "hash"  # a damaged page gives rows of anything
    try:
        return None if hashed(previous, row) == row[HASH] else "hash"
    except _Differs as found:
        return str(found)


def flawed(row: "Row", what: str) -> Damaged:
    """Say in words what `flaw` found."""
    why = "does not match its hash" if what == "hash" else f"has a {what} that does not match its digest"
    return unusable(row, why)


class Stretch:
    """Rows of one stream, each of which follows from the one before it, and the hash that the first follows from."""

    def __init__(self, stream: str, previous: str, rows: "list[Row]", images: "dict[int, Any]") -> None:
        self.stream = stream
        self.previous = previous
        self.rows = rows
        # What records became, by the numbers of the entries that tell so. Read here, since whoever writes them has more to do.
        self.images = images

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
