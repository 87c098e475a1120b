"""Writes records as given, for importers. Each still gets its entry."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

from decklog.journal.new_entry import Identity, find_positions
from decklog.journal.rows import rows_at
from decklog.records.record import Record
from decklog.stores.base import Store

if TYPE_CHECKING:
    # Only the base of the stores may use the writer.
    from decklog.journal.writer import WrittenEntries

R = TypeVar("R", bound=Record)

# Looked up in batches, padded with nulls, so that one statement is prepared once.
_BATCH_SIZE = 128
_MARKS = [f"a{number}" for number in range(_BATCH_SIZE)]
# For use after `in`.
ANY_OF = f"({', '.join(':' + mark for mark in _MARKS)})"


class Intake(Store):
    """Low-level writes for importers, which have whole records."""

    seek = Store._seek
    select = Store._select
    change_all = Store._change_all
    remove = Store._remove

    def add(self, record_class: type[R], *, note: str | None = None, new_stream: bool = False, **fields: Any) -> R:
        """Insert a record as another program wrote it, with its own task."""
        return self._insert(record_class, fields, note=note, new_stream=new_stream)

    def add_all(self, record_class: type[Record], records: list[dict[str, Any]], *, note: str | None = None) -> None:
        """Insert many records of existing streams, and their entries."""
        self._add_all(record_class, [(one, note) for one in records])

    def prepared_all(self, given: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """Return the columns of entries that are given as arguments of `append`."""
        return self._writer.prepare_many(given)

    def known_rows(self, identities: Iterable[Identity]) -> dict[Identity, tuple[Any, ...]]:
        """Return the existing entries with some keys as whole rows, by stream, subtype, group and key."""
        known = find_positions(self._db, identities)
        found = rows_at(self._db, [*known.values()])
        return {identity: found[position] for identity, position in known.items()}

    def append_all(self, prepared: list[tuple[Any, ...]]) -> "WrittenEntries":
        """Append prepared entries to existing streams."""
        return self._writer.write(prepared)

    def seek_all(self, record_class: type[R], identities: Sequence[Sequence[str]]) -> dict[tuple[Any, ...], R]:
        """Load many records by identity; missing ones are left out."""
        sql = f"select * from {record_class.table} where {record_class.identity[0]} in {ANY_OF}"
        wanted = {tuple(identity) for identity in identities}
        found: dict[tuple[Any, ...], R] = {}
        for asked in parameter_batches([*dict.fromkeys(identity[0] for identity in identities)]):
            for record in self._select(record_class, sql, **asked):
                identity = tuple(getattr(record, name) for name in record_class.identity)
                if identity in wanted:
                    found[identity] = record
        return found


def parameter_batches(values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield values in batches, as the parameters of `ANY_OF`."""
    for start in range(0, len(values), _BATCH_SIZE):
        yield dict(zip_longest(_MARKS, values[start : start + _BATCH_SIZE]))
