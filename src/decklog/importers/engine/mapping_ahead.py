"""A large table's rows, read, mapped and prepared in a process of their own, while this one writes those that came before.

There is no log there: a row whose mapping needs one, or refuses it, comes as it is and is mapped here, as all of a small table
are.
"""

import os

from decklog.dataclass import dataclass
from decklog.errors import DecklogError
from decklog.importers.engine import reading_ahead
from decklog.importers.engine.draft import Draft, only_describes
from decklog.importers.engine.landing import Landing
from decklog.importers.engine.report import Report
from decklog.importers.engine.row import Row
from decklog.importers.engine.source import Source
from decklog.stores.journal.attribution import acting
from decklog.stores.journal.preparing import prepared
from decklog.values import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from decklog.importers.engine.importing import Import
    from decklog.importers.engine.landing import Mapping
    from decklog.importers.engine.reading_ahead import Balance

_PART = 500
_REMEMBERED = 8 * 1024**2


@dataclass(frozen=True)
class Asked:
    """Which table of which file is to be read, by which importer, and what that one knows by now."""

    importer: "type[Import]"
    known: "dict[str, Any]"
    copy: str
    table: str
    limit_bytes: int
    streams: frozenset[str]
    seconds: float


class _LandingAhead(Landing):
    """Describes entries where there is no log."""

    def __init__(self, asked: Asked) -> None:
        self.report = Report(asked.importer.system, asked.copy)
        self.values = Values(asked.limit_bytes, remembered_characters=_REMEMBERED)
        self._streams = asked.streams

    def has_run(self, run_id: str) -> bool:
        """Say whether a run was here when the reading began."""
        return run_id in self._streams

    def vouch(self, name: str) -> None:
        """Remember that a name holds no secret."""
        self.values.vouch(name)


def rows_of(importer: "Import", source: Source, table: str, mapping: "Mapping") -> "Iterable[Row]":
    """Give a table's rows, with what each is to become where that could be found out ahead."""
    size = os.stat(source.copy).st_size if source.copy and only_describes(mapping) and acting.get() is None else 0
    if size < reading_ahead.WORTH_A_PROCESS:
        return importer.rows_of(table, importer.in_order(source, table))
    known = {name: getattr(importer, name) for name in importer.known_ahead}
    limit, streams = importer.log.db.values.limit_bytes, importer.landing.streams()
    asked = Asked(type(importer), known, source.copy, table, limit, streams, importer.seconds)
    return _received(table, reading_ahead.read(read_rows, asked, size))


def _received(table: str, parts: "Iterator[list[tuple[Any, ...]]]") -> "Iterator[Row]":
    for part in parts:
        for row_id, columns, told in part:
            if told is None:
                yield Row(table, row_id, columns)
                continue
            *mapped, entry = told
            row = Row.mapped(table, row_id, columns, mapped)
            row.ahead = Draft(row, entry) if isinstance(entry, dict) else Draft(row, {}, prepared=entry)
            yield row


def read_rows(asked: Asked, balance: "Balance") -> "Iterator[list[tuple[Any, ...]]]":
    """Read a table, part by part."""
    importer = object.__new__(asked.importer)
    vars(importer).update(asked.known)
    landing = importer.landing = _LandingAhead(asked)
    mapping = importer.mappings()[asked.table]
    part: list[tuple[Row, Draft | None]] = []
    with Source(asked.copy, seconds=asked.seconds, is_private=True) as source:
        for row in importer.rows_of(asked.table, importer.in_order(source, asked.table)):
            part.append((row, _described(row, mapping)))
            if len(part) >= _PART:
                yield _handed_on(part, landing.values, balance)
                part = []
        yield _handed_on(part, landing.values, balance)


def _described(row: Row, mapping: "Mapping") -> Draft | None:
    try:
        draft: Draft = mapping(row)
    except (DecklogError, AttributeError):
        # It asked for the log, or is refused: whoever writes finds out, and says so in its place.
        return None
    return draft


def _handed_on(part: "list[tuple[Row, Draft | None]]", values: Values, balance: "Balance") -> "list[tuple[Any, ...]]":
    if not balance.is_mine():
        return [_told(row, draft and draft.entry) for row, draft in part]
    values.look_through(draft.entry for _, draft in part if draft is not None)
    return [_told(row, draft and _prepared(values, draft.entry)) for row, draft in part]


def _prepared(values: Values, entry: "dict[str, Any]") -> "tuple[Any, ...] | dict[str, Any]":
    try:
        # A charge is bound once its price is known.
        return entry if "model" in entry else prepared(values, dict(entry))
    except DecklogError:
        return entry


def _told(row: Row, entry: "Any") -> "tuple[Any, ...]":
    return row.id, row.columns, entry and (row.stream, row.left, row.instead, entry)
