"""An entry's columns, checked and redacted but for its place and its hash: all that can be done away from the database."""

from typing import TYPE_CHECKING

from decklog.core.errors import Invalid
from decklog.db.where import enum_of
from decklog.journal import chain
from decklog.journal.blobs import INLINE_CHARACTERS
from decklog.journal.entry import Confidence, EntryKind, ReasoningPhase
from decklog.journal.rows import COLUMNS, Rows

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from decklog.records.values import Values

NOTHING: "dict[str, Any]" = dict.fromkeys(COLUMNS)
# So many entries are looked at column by column.
MANY = 64
_INTERACTION = {**NOTHING, "kind": "interaction"}
# What is the same in entries that differ in their bodies alone, and what none of them has.
_SAME = [
    COLUMNS.index(name)
    for name in ("stream", "kind", "subtype", "agent", "agent_id", "group_id", "phase", "confidence", "redacted", "refs")
]
_EMPTY = [
    COLUMNS.index(name)
    for name in ("at", "task_id", "iteration", "key", "record_table", "record_id", "body_digest", "payload_digest", "payload")
]
_BODY, _REDACTED = COLUMNS.index("body"), COLUMNS.index("redacted")
# Any text does for these.
_UNCHECKED = frozenset({"stream", "body", "subtype", "agent", "agent_id", "group_id", "task_id", "key"})
_WRITABLE: "dict[str, str]" = {kind: kind.value for kind in EntryKind if kind is not EntryKind.CHANGE}


def checked(given: "dict[str, Any]") -> "dict[str, Any]":
    """Check what an entry means, and write its enumerations as the columns have them: what is hashed is what will be read."""
    kind = given["kind"]
    plain = _WRITABLE.get(kind) if isinstance(kind, str) else None
    given["kind"] = plain or enum_of(EntryKind, kind, "kind").value
    if given["kind"] == "change":
        raise Invalid("entries of kind change are written by the stores alone; use event for your own")
    payload = given.get("payload")
    if payload is None and given.get("body") is None:
        raise Invalid("an entry needs a body or a payload")
    if payload is not None and not isinstance(payload, (dict, list, tuple)):
        raise Invalid("a payload is a JSON object or list; put plain text in the body", field="payload")
    if (phase := given.get("phase")) is not None:
        given["phase"] = enum_of(ReasoningPhase, phase, "phase").value
    if (confidence := given.get("confidence")) is not None:
        given["confidence"] = enum_of(Confidence, confidence, "confidence").value
    return given


def columns_of(values: "Values", given: "dict[str, Any]") -> "dict[str, Any]":
    """Give a checked entry's columns, in their order, with every secret replaced."""
    # Whoever gives all of them gives them in their order.
    columns = given if len(given) == len(NOTHING) else {**NOTHING, **given}
    columns["redacted"] = int(values.bind_into(columns, given))
    return columns


def rows_of(values: "Values", entries: "list[dict[str, Any]]") -> "Sequence[Collection[Any]]":
    """Check and redact many entries, each an interaction unless it says so; their texts were looked through together."""
    named = set().union(*entries)
    if len(entries) >= MANY and _UNCHECKED.issuperset(named):
        columns = {name: [given.get(name) for given in entries] for name in named}
        if None not in columns.get("body", (None,)) and all(values.are_clean(*one) for one in columns.items()):
            # Nothing is to be checked or replaced, so that it is enough to put them in their places.
            count = len(entries)
            whole: dict[str, list[Any]] = dict.fromkeys(COLUMNS, [None] * count)
            whole.update(columns, redacted=[0] * count, kind=["interaction"] * count)
            return Rows([*whole.values()])
    return [row_of(values, given) for given in entries]


def row_of(values: "Values", given: "dict[str, Any]") -> "Collection[Any]":
    """Check and redact one of many entries, an interaction unless it says so, and give its columns."""
    columns = {**_INTERACTION, **given}
    if columns["body"] is None or not _UNCHECKED.issuperset(given):
        checked(columns)
    columns["redacted"] = int(values.bind_into(columns, given))
    return columns.values()


def prepared(values: "Values", given: "dict[str, Any]") -> "tuple[Any, ...]":
    """Check and redact an entry ahead of its writing, maybe in another process: what is left to do is numbering and hashing."""
    return tuple(columns_of(values, checked(given)).values())


def are_alike(columns: "Sequence[Sequence[Any]]") -> bool:
    """Tell whether entries that were prepared are of one stream and differ in their bodies alone, none of them long."""
    count, bodies = len(columns[0]), columns[_BODY]
    return (
        columns[_REDACTED][0] == 0
        and all(columns[place].count(None) == count for place in _EMPTY)
        and all(columns[place].count(columns[place][0]) == count for place in _SAME)
        and None not in bodies
        and max(map(len, bodies)) <= INLINE_CHARACTERS
    )


def are_sealed_and_short(columns: "Sequence[Sequence[Any]]") -> bool:
    """Tell whether entries are of one stream, each with its seal, and none of their texts has to be moved elsewhere."""
    streams = columns[chain.STREAM]
    if len(columns) == len(COLUMNS) or streams.count(streams[0]) < len(streams):
        return False
    texts = [text for place in (chain.BODY, chain.PAYLOAD) for text in columns[place] if text is not None]
    return max(map(len, texts), default=0) <= INLINE_CHARACTERS


def filled(columns: "Sequence[Sequence[Any]]") -> "tuple[tuple[str, ...], list[tuple[Any, ...]]]":
    """Name the columns of entries that hold anything, and give their rows: what is empty need not be bound."""
    places = [place for place, one in enumerate(columns) if one[0] is not None or one.count(None) < len(one)]
    return tuple([COLUMNS[place] for place in places]), [*zip(*[columns[place] for place in places], strict=True)]


def sealed(values: "Values", given: "dict[str, Any]") -> "tuple[Any, ...]":
    """Do so in another process, and write it as it is hashed, too: what is left to do is numbering and chaining."""
    row = [*columns_of(values, checked(given)).values()]
    row.append(chain.seal(row))
    return tuple(row)


def change_columns(
    table: str, named: "tuple[str, str, str | None, str | None, bool]", image: str, did: str, body: str | None, redacted: bool
) -> "list[Any]":
    """Tell what a record became as an entry's columns, but for its time and who did it.

    Image and ids are made of column values, which were redacted on their way to the row. A record may say so itself, when what
    was redacted is a document it names by its digest.
    """
    stream, record_id, group_id, task_id, is_cut = named
    # In the order of the columns.
    return [
        *(None, stream, None, None, None, "change", did, None, None, group_id, task_id, None, None, None),
        *(1 if redacted or is_cut else 0, None, table, record_id, None, None, None, body, image),
    ]
