"""Records written as they are told, for those who take over what another product kept. Each still has its entry."""

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from decklog.journal import chain
from decklog.journal.attribution import acting, proving
from decklog.journal.preparing import change_columns
from decklog.journal.rows import rows_at
from decklog.stores.base import Store, bound_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypeVar

    from decklog.journal.known_keys import Identity
    from decklog.journal.writer import Written
    from decklog.records.record import Record
    from decklog.records.values import Values

    R = TypeVar("R", bound=Record)

# Asked for together, filled up with nulls: one text is planned once.
_TOGETHER = 128
_MARKS = [f"a{number}" for number in range(_TOGETHER)]
# To be put behind `in`.
ANY_OF = f"({', '.join(':' + mark for mark in _MARKS)})"


class BoundRecord(NamedTuple):
    """A record's columns, checked and redacted, maybe in another process; by what it is known, and whether it was redacted.

    One of another process has its entry, too.
    """

    identity: tuple[str, ...]
    row: tuple[Any, ...]
    redacted: bool
    entry: tuple[Any, ...] | None = None


def bound_record(values: "Values", record_class: "type[Record]", given: "dict[str, Any]") -> BoundRecord:
    """Check and redact a record; what is not given has its default."""
    bound, redacted = bound_whole(values, record_class, given)
    return BoundRecord(tuple([given[name] for name in record_class.identity]), tuple(bound.values()), redacted)


def prepared_record(values: "Values", record_class: "type[Record]", given: "dict[str, Any]", note: str) -> BoundRecord | None:
    """Check and redact a record without a log, and build its entry. Return None if its identity would change."""
    bound, redacted = bound_whole(values, record_class, given)
    identity = tuple([given[name] for name in record_class.identity])
    if identity != tuple([bound[name] for name in record_class.identity]):
        return None
    row = tuple(bound.values())
    body, is_cut = values.text("note", note)
    shape = record_class.shape_of(record_class.columns())
    entry = tuple(change_columns(record_class.table, shape.named(row), shape.image(row), "added", body, redacted or is_cut))
    return BoundRecord(identity, row, redacted, entry)


class Intake(Store):
    """The writing that stores keep to themselves, for importers: they know the whole record, and no verb would."""

    seek = Store._seek
    select = Store._select
    change_all = Store._change_all
    remove = Store._remove

    def add(self, record_class: "type[R]", *, note: str | None = None, new_stream: bool = False, **fields: "Any") -> "R":
        """Insert a record as another program wrote it: it says itself which task it is about."""
        return self._insert(record_class, fields, note=note, new_stream=new_stream)

    def add_all(
        self, record_class: "type[Record]", records: "list[dict[str, Any] | BoundRecord]", *, note: str | None = None
    ) -> None:
        """Insert many records of streams that are there, and their entries: what is one statement here is three for each."""
        names, values = record_class.columns(), self._db.values
        # Entries of elsewhere tell of nobody who acts here.
        is_nobody = acting.get() is None and proving.get() is None
        rows: list[tuple[Any, ...]] = []
        entries: list[tuple[Any, ...]] = []
        values.look_through(one for one in records if isinstance(one, dict))
        for one in records:
            bound = one if isinstance(one, BoundRecord) else bound_record(values, record_class, one)
            rows.append(bound.row)
            if bound.entry is not None and is_nobody:
                entries.append(bound.entry)
            else:
                entries.append(tuple(self._as_entry(record_class, names, bound.row, "added", note, bound.redacted)))
        values.let_go()
        # Before the rows, in an order that all keep to.
        for stream in sorted({entry[chain.STREAM] for entry in entries}):
            self._db.memo["head", stream] = self._writer.head(stream)
        self._db.insert(record_class.table, names, rows)
        self._writer.append_many(entries)

    def prepared_all(self, given: "Sequence[dict[str, Any] | tuple[Any, ...]]") -> "list[tuple[Any, ...]]":
        """Give the columns of entries that are given as the arguments of `append`, or as columns that were prepared elsewhere."""
        fresh = iter(self._writer.prepared_many([one for one in given if isinstance(one, dict)]))
        return [tuple(next(fresh)) if isinstance(one, dict) else one for one in given]

    def known_rows(self, identities: "Iterable[Identity]") -> "dict[Identity, tuple[Any, ...]]":
        """Give the entries that are here with some keys, as whole rows, each by its stream, subtype, group and key."""
        from decklog.journal import known_keys

        known = known_keys.positions(self._db, identities)
        found = rows_at(self._db, [*known.values()])
        return {identity: found[position] for identity, position in known.items()}

    def append_all(self, prepared: "list[tuple[Any, ...]]") -> "Written":
        """Append entries of streams that are there, as they were prepared."""
        return self._writer.append_many(prepared)

    def seek_all(
        self, record_class: "type[R]", identities: "Sequence[Sequence[str]]", *, are_bound: bool = False
    ) -> "dict[tuple[Any, ...], R]":
        """Look many records up by their identities; those that are not there are left out.

        What is bound is what a column holds, and is not looked through once more.
        """
        sql = f"select * from {record_class.table} where {record_class.identity[0]} in {ANY_OF}"
        wanted = {tuple(identity) for identity in identities}
        found: dict[tuple[Any, ...], R] = {}
        for asked in together([*dict.fromkeys(identity[0] for identity in identities)]):
            found_now = record_class.from_rows(*self._db.rows(sql, asked)) if are_bound else None
            for record in self._select(record_class, sql, **asked) if found_now is None else found_now:
                identity = tuple(getattr(record, name) for name in record_class.identity)
                if identity in wanted:
                    found[identity] = record
        return found


def together(values: "Sequence[Any]") -> "Iterator[dict[str, Any]]":
    """Give values some at a time, as the parameters of `ANY_OF`."""
    for start in range(0, len(values), _TOGETHER):
        yield dict(zip_longest(_MARKS, values[start : start + _TOGETHER]))
