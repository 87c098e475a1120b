"""A large source's rows, read, mapped and prepared in a process of their own, while this one writes those that came before.

There is no log there: a row whose mapping needs one, or refuses it, comes as it is and is mapped here, as all of a small source
are. What becomes of a row is the same either way.
"""

import marshal
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decklog.core.errors import DecklogError
from decklog.importing import reading_ahead
from decklog.importing.draft import Draft, RecordDraft, only_describes
from decklog.importing.gathering import Gathered
from decklog.importing.landing import Landing
from decklog.importing.link_order import LinkOrder
from decklog.importing.private_folder import PrivateFolder
from decklog.importing.report import Report
from decklog.importing.row import LateRow, Row, read_late
from decklog.importing.source import Source
from decklog.importing.versions import NOTE
from decklog.journal.attribution import acting
from decklog.journal.preparing import prepared
from decklog.records.values import Values, from_json
from decklog.stores.intake import BoundRecord, prepared_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from decklog.importing.importing import Import
    from decklog.importing.landing import Mapping
    from decklog.importing.reading_ahead import Balance
    from decklog.importing.tracker import Tracker

    # A row as it is sent: its id, its columns, which few ask for, what its mapping made of it, and what was made beside that.
    Sent = tuple[str, str | bytes, tuple[Any, ...] | None, Any]

_PART = 500
_REMEMBERED = 8 * 1024**2


@dataclass(frozen=True)
class Asked:
    """Which tables of which file are to be read, by which importer, and what that one knows by now."""

    importer: "type[Import]"
    known: "dict[str, Any]"
    copy: str
    tables: tuple[str, ...]
    limit_bytes: int
    streams: frozenset[str]
    seconds: float


class _LandingAhead(Landing):
    """Describes entries where there is no log."""

    def __init__(self, asked: Asked) -> None:
        self.report = Report(asked.importer.system, asked.copy)
        self.values = Values(asked.limit_bytes, remembered_bytes=_REMEMBERED)
        self._streams = asked.streams

    def has_run(self, run_id: str) -> bool:
        """Say whether a run was here when the reading began."""
        return run_id in self._streams

    def vouch(self, name: str) -> None:
        """Remember that a name holds no secret."""
        self.values.vouch(name)


def _asked(importer: "Import", copy: str, tables: "Iterable[str]") -> Asked:
    known = {name: getattr(importer, name) for name in importer.known_ahead}
    limit, streams = importer.log.db.values.limit_bytes, importer.landing.streams()
    return Asked(type(importer), known, copy, tuple(tables), limit, streams, importer.seconds)


# Here


def rows_of(importer: "Import", source: Source, table: str, mapping: "Mapping") -> "Iterable[Row]":
    """Give a table's rows, with what each is to become where that could be found out ahead."""
    size = os.stat(source.copy).st_size if source.copy and only_describes(mapping) and acting.get() is None else 0
    if size < reading_ahead.WORTH_A_PROCESS:
        return importer.rows_of(table, importer.in_order(source, table))
    parts = reading_ahead.read(read_rows, _asked(importer, source.copy, [table]), size)
    return (row for of_table, part in parts for row in _received(of_table, part))


class HeldRows:
    """The rows that a tracker holds, table by table, mapped ahead where there are many and none of its tasks is here yet.

    Those that are here are compared field by field, which only this process can.
    """

    def __init__(self, tracker: "Tracker") -> None:
        self._gathered = tracker.gathered
        self._folder: PrivateFolder | None = None
        self._part: tuple[str, list[Sent]] | None = None
        self._parts: Iterator[tuple[str, list[Sent]]] = iter(())
        self._tables = [table for table, mapping in tracker.mappings().items() if only_describes(mapping)]
        size = 0 if acting.get() is not None or tracker.has_tasks_here() else self._gathered.size()
        if size < reading_ahead.WORTH_A_PROCESS:
            self._tables = []
            return
        self._folder = PrivateFolder()
        copy = os.path.join(self._folder.path, "held.db")
        self._gathered.copy_to(copy)
        self._parts = reading_ahead.read(read_held, _asked(tracker, copy, self._tables), size)

    def rows(self, table: str) -> "Iterable[Row]":
        """Give a table's rows in their order; the tables are asked for in the order of their mappings."""
        return self._ahead(table) if table in self._tables else self._gathered.rows(table)

    def _ahead(self, table: str) -> "Iterator[Row]":
        while (part := self._part or next(self._parts, None)) is not None:
            self._part = part
            if part[0] != table:
                return
            self._part = None
            yield from _received(*part)

    def close(self) -> None:
        """End the process that reads, and remove what it reads from."""
        if self._folder is not None:
            self._parts.close()  # type: ignore[attr-defined]
            self._folder.remove()


def _received(table: str, part: "list[Sent]") -> "Iterator[Row]":
    for row_id, columns, told, beside in part:
        if told is None:
            yield Row(table, row_id, read_late(columns))
            continue
        *mapped, made = told
        row = LateRow.mapped(table, row_id, columns, mapped)
        row.ahead, row.beside = _ahead_of(row, made), beside
        yield row


def _ahead_of(row: Row, made: "Any") -> "Draft | RecordDraft":
    if isinstance(made, dict):
        return Draft(row, made)
    kind, *rest = made
    if kind is None:
        [columns] = rest
        return Draft(row, {}, prepared=columns)
    if isinstance(rest[0], BoundRecord):
        return RecordDraft(row, kind, {}, bound=rest[0])
    fields, clock, at_first, stays, is_placed_there = rest
    return RecordDraft(row, kind, fields, clock, at_first, stays, is_placed_there=is_placed_there)


# There


def read_rows(asked: Asked, balance: "Balance") -> "Iterator[tuple[str, list[Sent]]]":
    """Read a table, part by part."""
    importer, [table] = _without_log(asked), asked.tables
    with Source(asked.copy, seconds=asked.seconds, is_private=True) as source:
        rows = ((row, None) for row in importer.rows_of(table, importer.in_order(source, table)))
        yield from _parts(importer, table, rows, balance)


def read_held(asked: Asked, balance: "Balance") -> "Iterator[tuple[str, list[Sent]]]":
    """Read what a tracker holds, table by table and part by part."""
    tracker: Any = _without_log(asked)
    tracker.gathered = Gathered(asked.copy)
    tracker.links = LinkOrder(tracker.gathered, tracker.items, is_judged=True)
    for table in asked.tables:
        rows = ((Row(table, row_id, from_json(text)), text) for row_id, text in tracker.gathered.texts(table))
        yield from _parts(tracker, table, rows, balance)


def _without_log(asked: Asked) -> "Import":
    importer = object.__new__(asked.importer)
    vars(importer).update(asked.known)
    importer.landing = _LandingAhead(asked)
    return importer


def _parts(
    importer: "Import", table: str, rows: "Iterable[tuple[Row, str | None]]", balance: "Balance"
) -> "Iterator[tuple[str, list[Sent]]]":
    mapping = importer.mappings()[table]
    part: list[tuple[Row, str | None, Draft | RecordDraft | None]] = []
    for row, text in rows:
        part.append((row, text, _described(row, mapping)))
        if len(part) >= _PART:
            yield table, _handed_on(importer, table, part, balance)
            part = []
    if part:
        yield table, _handed_on(importer, table, part, balance)


def _described(row: Row, mapping: "Mapping") -> "Draft | RecordDraft | None":
    try:
        draft: Draft | RecordDraft = mapping(row)
    except (DecklogError, AttributeError):
        # It asked for the log, or is refused: whoever writes finds out, and says so in its place.
        row.begin_again()
        return None
    return draft


def _handed_on(
    importer: "Import", table: str, part: "list[tuple[Row, str | None, Draft | RecordDraft | None]]", balance: "Balance"
) -> "list[Sent]":
    if not balance.is_mine():
        return [_sent(row, text, draft and _as_it_is(draft)) for row, text, draft in part]
    values: Values = importer.landing.values  # type: ignore[attr-defined]
    wholes = [None if draft is None else _whole(draft) for _, _, draft in part]
    values.look_through(whole for whole in wholes if whole is not None)
    besides = iter(importer.beside_all(table, [row for row, _, draft in part if draft is not None], values))
    sent = []
    for (row, text, draft), whole in zip(part, wholes, strict=True):
        if draft is None:
            sent.append(_sent(row, text, None))
        else:
            made = _as_it_is(draft) if whole is None else _bound(values, draft, whole)
            sent.append(_sent(row, text, made, next(besides)))
    values.let_go()
    return sent


def _sent(row: Row, text: str | None, made: "Any", beside: "Any" = None) -> "Sent":
    # What a table holds is plain, and written in two thirds of the time that pickling takes.
    columns = marshal.dumps(row.columns) if text is None else text
    return row.id, columns, made and (*row.mapping(), made), beside


def _as_it_is(draft: "Draft | RecordDraft") -> "Any":
    if isinstance(draft, Draft):
        return draft.entry
    return draft.record_class, draft.fields, draft.clock, draft.at_first, draft.stays, draft.is_placed_there


def _whole(draft: "Draft | RecordDraft") -> "dict[str, Any] | None":
    """Give all that is to be bound; None where only the log knows it."""
    if isinstance(draft, Draft):
        return draft.entry
    return None if draft.is_placed_there else {**draft.fields, **draft.at_first}


def _bound(values: Values, draft: "Draft | RecordDraft", whole: "dict[str, Any]") -> "Any":
    try:
        if isinstance(draft, RecordDraft):
            bound = prepared_record(values, draft.record_class, whole, NOTE)
            return _as_it_is(draft) if bound is None else (draft.record_class, bound)
        # A charge is bound once its price is known.
        return whole if draft.is_charge else (None, prepared(values, whole))
    except DecklogError:
        return _as_it_is(draft)
