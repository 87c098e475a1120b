"""Base of all stores: add, change and find records. There is no other way to write."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from decklog.core.clock import Clock
from decklog.core.errors import Conflict, Damaged, DecklogError, Invalid, NotFound
from decklog.core.ids import Ids
from decklog.db.base import Database
from decklog.db.where import Where, page_size, suggest_id
from decklog.journal import chain
from decklog.journal.attribution import fill_context_task, owner_act
from decklog.journal.journal import Journal
from decklog.journal.writer import Writer
from decklog.records.record import Page, Record
from decklog.records.values import from_json, to_json
from decklog.stores.fields import bind_with_defaults, check_fields, check_identity, facts_of

T = TypeVar("T")
R = TypeVar("R", bound=Record)


class SignatureChecks(Protocol):
    """Runs owner-only actions under a signature; implemented by the store of signatures."""

    def run_signed(self, operation: str, arguments: Mapping[str, Any], act: Callable[[], T]) -> T: ...
    @property
    def is_needed(self) -> bool: ...
    def has_valid_signature(self, record_class: type[Record], record_id: str) -> bool: ...
    def is_decision_valid(self, record_class: type[Record], record_id: str) -> bool: ...
    def without_invalid_proof(self, record: T) -> T: ...


@dataclass(frozen=True)
class StoreParts:
    """The shared parts of a log that every store uses."""

    db: Database
    clock: Clock
    ids: Ids
    writer: Writer
    journal: Journal
    # The owner's signatures.
    proofs: Callable[[], SignatureChecks]


class Store:
    """One noun of a log. `records` has the record classes that it stores."""

    records = ()  # type: tuple[type[Record], ...]
    # Tables derived from records: `audit` compares them, and `derive` rebuilds them.
    derived = ()  # type: tuple[str, ...]

    def __init__(self, parts: StoreParts) -> None:
        self._db = parts.db
        self._writer = parts.writer
        self._journal = parts.journal
        self._clock = parts.clock
        self._ids = parts.ids
        self._proofs = parts.proofs

    def _run_signed(self, operation: str, arguments: Mapping[str, Any], act: Callable[[], T]) -> T:
        """Run an owner-only action. If an owner is registered, its signature is stored in the same transaction."""
        return self._proofs().run_signed(operation, arguments, act)

    def _nonce(self) -> str | None:
        """Return the nonce of the signature of the current verb, for its records."""
        act = owner_act.get()
        return None if act is None else act.nonce

    def _now(self) -> datetime:
        return self._clock.now()

    def _steady_now(self) -> datetime:
        """Return the time of the lease clock, which nobody can set."""
        return self._clock.steady()

    def _last_entry_at(self, stream: str) -> str:
        """Return the time of the entry that was just written to a stream."""
        return str(self._writer.lock_head(stream)[2])

    # Derived tables

    def audit(self, _record_classes: Mapping[str, type[Record]]) -> Iterator[dict[str, Any]]:
        """Yield the problems of this store's derived tables."""
        return iter(())

    def derive(self) -> None:
        """Rebuild the derived tables, for example after an import from another log."""

    def _find_lock_row_problems(self, table: str, column: str, expected: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yield differences of a table whose rows exist only as locks."""
        found = [row[0] for row in self._db.each_as_is(f"select {column} from {table} order by 1", {})]
        for value in sorted({*found, *expected}, key=str):
            if (value in found) is not (value in expected):
                what = "is gone" if value in expected else "was added"
                yield {"what": f"{table} {value} {what}", "table": table, "record_id": str(value), "column": column}

    def _restore_lock_rows(self, table: str, column: str, expected: Sequence[int]) -> None:
        """Restore the rows of a table whose rows exist only as locks."""
        if not any(self._find_lock_row_problems(table, column, expected)):
            return
        self._db.count(f"delete from {table}", {})
        self._db.many(f"insert into {table} ({column}) values (:value)", [{"value": value} for value in expected])

    # Writing

    def _add(self, record_class: type[R], *, note: str | None = None, new_stream: bool = False, **fields: Any) -> R:
        """Insert a record and its entry; missing fields get their defaults.

        A record of work without a task gets the task of the context.
        """
        return self._insert(record_class, fill_context_task(record_class, fields), note=note, new_stream=new_stream)

    def _insert(self, record_class: type[R], fields: dict[str, Any], *, note: str | None = None, new_stream: bool = False) -> R:
        """Insert a record and its entry exactly as given."""
        bound, redacted = bind_with_defaults(self._db.values, record_class, fields)
        if redacted:
            check_identity(record_class, fields, bound)
        self._lock_stream(record_class, bound)
        self._db.count(facts_of(record_class).insert, bound)
        return self._write_added(record_class, bound, note, redacted, new_stream)

    def _add_all(self, record_class: type[Record], records: Sequence[tuple[dict[str, Any], str | None]]) -> None:
        """Insert many records of existing streams, each with its note, and their entries."""
        names, values = record_class.columns(), self._db.values
        rows, entries = [], []
        with values.scan_batch([given for given, _ in records]):
            for given, note in records:
                bound, redacted = bind_with_defaults(values, record_class, given)
                rows.append(tuple(bound.values()))
                entries.append(self._writer.build_change_entry(record_class, names, rows[-1], "added", note, redacted))
        # Lock before the rows, in a common order.
        for stream in sorted({entry[chain.STREAM] for entry in entries}):
            self._db.memo["head", stream] = self._writer.lock_head(stream)
        self._db.insert(record_class.table, names, rows)
        self._writer.write(entries)

    def _put(self, record_class: type[R], image: dict[str, Any], *, note: str | None = None, new_stream: bool = False) -> R:
        """Insert a record from already bound column values."""
        self._lock_stream(record_class, image)
        self._db.count(facts_of(record_class).insert, image)
        return self._write_added(record_class, image, note, False, new_stream)

    def _write_added(
        self, record_class: type[R], bound: Mapping[str, Any], note: str | None, redacted: bool, new_stream: bool = False
    ) -> R:
        """Write the entry of an inserted row."""
        names, row = tuple(bound), tuple(bound.values())
        entry = self._writer.build_change_entry(record_class, names, row, "added", note, redacted)
        self._writer.write([entry], new_stream=new_stream)
        return record_class.from_row(names, row)

    def _find_or_add(self, find: Callable[[], R | None], add: Callable[[], R]) -> R:
        """Return the existing record, marked as such, or add it. Concurrent calls get the same record."""
        found = find()
        if found is None:
            try:
                return self._db.write(add)
            except Conflict:
                found = find()
                if found is None:
                    raise
        return found.mark_already()

    def _update(self, record_class: type[R], record_id: str | Sequence[str], changes: Mapping[str, Any], **how: Any) -> R:
        """Update a record as `_try_update` does. Raise `NotFound` if it is missing, `Conflict` in another state."""
        changed = self._try_update(record_class, record_id, changes, **how)
        if changed is None:
            raise self._refusal(record_class, record_id)
        return changed

    def _try_update(
        self,
        record_class: type[R],
        record_id: str | Sequence[str],
        changes: Mapping[str, Any],
        *,
        condition: str = "",
        adding: Mapping[str, int] | None = None,
        note: str | None = None,
        **parameters: Any,
    ) -> R | None:
        """Set columns of one record and its time of change; return None if it does not exist or does not meet the condition.

        `adding` names columns to add numbers to.
        """
        if "updated_at" in record_class.columns():
            changes = {**changes, "updated_at": self._now()}
        # Bound by their own names, which errors mention.
        check_fields(record_class, changes)
        new, is_redacted = self._db.values.bind(changes)
        bound, was_redacted = self._db.values.bind({**_identity_values(record_class, record_id), **parameters})
        adding = adding or {}
        bound |= {f"new_{name}": value for name, value in new.items()} | {f"add_{name}": by for name, by in adding.items()}
        assignments = [f"{name} = :new_{name}" for name in new] + [f"{name} = {name} + :add_{name}" for name in adding]
        meets = [*(f"{name} = :{name}" for name in record_class.identity), *([condition] if condition else [])]
        sql = f"update {record_class.table} set {', '.join(assignments)} where {' and '.join(meets)} returning *"
        return next(iter(self._run_change(record_class, sql, bound, note, is_redacted or was_redacted)), None)

    def _change_all(self, record_class: type[R], sql: str, *, note: str | None = None, **parameters: Any) -> list[R]:
        """Run an `update … returning *` or an upsert on records of one stream, and write an entry for each.

        The parameters include the run, or the record's `id`.
        """
        check_fields(record_class, parameters)
        redacted = self._db.values.bind_into(parameters, parameters)
        return self._run_change(record_class, sql, parameters, note, redacted)

    def _run_change(self, record_class: type[R], sql: str, bound: dict[str, Any], note: str | None, redacted: bool) -> list[R]:
        """Run a change whose parameters are bound, and write an entry for each changed record."""
        if self._db.locks_rows:
            self._lock_stream(record_class, bound)
        if record_class.is_guarded and all(name in bound for name in record_class.identity):
            self._check_unaltered(record_class, bound)
        names, rows = self._db.rows(sql, bound)
        return self._record_changes(record_class, names, rows, note, redacted)

    def _upsert(
        self,
        record_class: type[R],
        fields: Mapping[str, Any],
        *,
        keep: Collection[str] = (),
        update: Mapping[str, str] | None = None,
        note: str | None = None,
    ) -> R:
        """Insert a record, or change the one with its identity: fields in `keep` stay, those in `update` get that SQL."""
        table, key = record_class.table, record_class.identity
        changes = {name: f"excluded.{name}" for name in fields if name not in (*key, *keep)} | dict(update or {})
        sql = f"""
            insert into {table} ({", ".join(fields)}) values ({", ".join(f":{name}" for name in fields)})
            on conflict ({", ".join(key)}) do update set {", ".join(f"{name} = {value}" for name, value in changes.items())}
            returning *
        """
        return self._change_all(record_class, sql, note=note, **fields)[0]

    def _record_changes(
        self, record_class: type[R], names: tuple[str, ...], rows: list[tuple[Any, ...]], note: str | None, redacted: bool
    ) -> list[R]:
        """Write an entry for each changed record."""
        if rows:
            build_entry = self._writer.build_change_entry
            self._writer.write([build_entry(record_class, names, row, "changed", note, redacted) for row in rows])
        return record_class.from_rows(names, rows)

    def _check_unaltered(self, record_class: type[R], bound: Mapping[str, Any]) -> None:
        """Raise an error if a row differs from its newest entry: the next entry would make the difference permanent."""
        condition = " and ".join(f"{name} = :{name}" for name in record_class.identity)
        key = {name: bound[name] for name in record_class.identity}
        names, rows = self._db.rows(f"select * from {record_class.table} where {condition} for update", key)
        sql = "select payload from entries where record_table = :table and record_id = :id order by seq desc limit 1"
        table, record_id = record_class.table, record_class.id_of(key)
        newest = self._db.one(sql, {"table": table, "id": record_id})
        if not rows or newest is None:
            return
        row, image = dict(zip(names, rows[0], strict=True)), record_class.upcast(from_json(newest[0]))
        if differing := [name for name in record_class.columns() if row[name] != image[name]]:
            raise Damaged(
                f"{table} {record_id} differs from its newest entry in {', '.join(differing)}, so nothing is built on it",
                hint="Somebody wrote to the database past Decklog. See: decklog verify",
                table=table,
                id=record_id,
                differs=differing,
            )

    def _remove(self, record_class: type[R], sql: str, *, note: str | None = None, **parameters: Any) -> list[R]:
        """Run a `delete … returning *`. The entries record the removal with the last values."""
        bound, redacted = self._db.values.bind(parameters)
        self._lock_stream(record_class, bound)
        names, rows = self._db.rows(sql, bound)
        for row in rows:
            entry = self._writer.build_change_entry(record_class, (*names, "removed"), (*row, True), "removed", note, redacted)
            self._writer.write([entry])
        return record_class.from_rows(names, rows)

    def _remove_one(self, record_class: type[R], record_id: str | Sequence[str], *, note: str | None = None) -> R:
        """Remove a record. Raise `NotFound` if it does not exist."""
        key = _identity_values(record_class, record_id)
        condition = " and ".join(f"{name} = :{name}" for name in key)
        gone = self._remove(record_class, f"delete from {record_class.table} where {condition} returning *", note=note, **key)
        if not gone:
            raise self._not_found(record_class, record_id)
        return gone[0]

    def _lock_stream(self, record_class: type[R], bound: Mapping[str, Any]) -> None:
        """Lock the stream of a record before the record.

        Every change appends an entry, and a transaction may have appended one before, so the other order deadlocks.
        """
        db = self._db
        if not db.locks_rows:
            return
        if record_class.home is not None or "run_id" in bound or record_class.table == "runs":
            db.lock_stream_next(record_class.stream_of(bound))
        elif "id" in bound:
            db.lock_stream_of_next(record_class.table, bound["id"])

    def _refusal(self, record_class: type[R], record_id: str | Sequence[str]) -> DecklogError:
        """Return the error for a conditional change that matched no row."""
        present = self._seek(record_class, record_id)
        if present is None:
            return self._not_found(record_class, record_id)
        state = getattr(present, "state", None) or getattr(present, "status", None)
        return Conflict(
            f"{record_class.noun()} {record_id} is {state or 'in another state'}, which does not allow this",
            table=record_class.table,
            id=record_id,
            state=state,
        )

    # Reading

    def _stored(self, name: str, value: Any) -> Any:
        """Return a value as its column stores it. Values that redaction changes are compared in this form."""
        return self._db.values.bind({name: value})[0][name]

    def _differing_fields(self, record: Record, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the changes that differ from a record, compared as stored."""
        return {name: value for name, value in changes.items() if self._stored(name, value) != record.raw(name)}

    def _seek(self, record_class: type[R], record_id: str | Sequence[str]) -> R | None:
        """Return a record, or None if it does not exist."""
        return self._seek_by(record_class, **_identity_values(record_class, record_id))

    def _seek_by(self, record_class: type[R], *, order: str = "", for_update: bool = False, **columns: Any) -> R | None:
        """Return the first record with these values; None if there is none, or if one of the values is None."""
        found = self._select_by(record_class, order=f"{order} limit 1" if order else "", for_update=for_update, **columns)
        return found[0] if found else None

    def _seek_known(self, record_class: type[R], record_id: str | None, **columns: Any) -> R | None:
        """Return the record with an id, or else the one with these values, such as an idempotency key."""
        known = None if record_id is None else self._seek(record_class, record_id)
        return known if known is not None else self._seek_by(record_class, **columns)

    def _fetch(self, record_class: type[R], record_id: str | Sequence[str]) -> R:
        """Return a record. Raise `NotFound` if it does not exist."""
        found = self._seek(record_class, record_id)
        if found is None:
            raise self._not_found(record_class, record_id)
        return found

    def _fetch_for_update(self, record_class: type[R], record_id: str | Sequence[str]) -> R:
        """Return a record and lock it until the transaction ends."""
        found = self._seek_by(record_class, for_update=True, **_identity_values(record_class, record_id))
        if found is None:
            raise self._not_found(record_class, record_id)
        return found

    def _not_found(self, record_class: type[R], record_id: str | Sequence[str]) -> NotFound:
        """Return a NotFound error that suggests the closest existing id."""
        table, is_plain = record_class.table, isinstance(record_id, str)
        shown = record_id if is_plain else ", ".join(map(str, record_id))
        hint = suggest_id(self._db, table, record_id, column=record_class.identity[0]) if is_plain else None
        return NotFound(f"there is no {record_class.noun()} {shown}", hint=hint, table=table, id=record_id)

    def _select(self, record_class: type[R], sql: str, **parameters: Any) -> list[R]:
        """Run a query for whole records. A locking query locks their stream first."""
        bound, _ = self._db.values.bind(parameters)
        if " for update" in sql:
            self._lock_stream(record_class, bound)
        names, rows = self._db.rows(sql, bound)
        return record_class.from_rows(names, rows)

    def _select_by(self, record_class: type[R], *, order: str = "", for_update: bool = False, **columns: Any) -> list[R]:
        """Return the records with these values; none if one of the values is None."""
        if None in columns.values():
            return []
        condition = " and ".join(f"{name} = :{name}" for name in columns)
        ending = (f" order by {order}" if order else "") + (" for update" if for_update else "")
        return self._select(record_class, f"select * from {record_class.table} where {condition}{ending}", **columns)

    def _list(self, record_class: type[R], where: Where, *, order: str, limit: int | None = None) -> list[R]:
        """Return the matching records in an order, or the first of them."""
        ending = "" if limit is None else f" limit {limit}"
        return self._select(
            record_class, f"select * from {record_class.table} {where.sql} order by {order}{ending}", **where.bound
        )

    def _first(self, record_class: type[R], sql: str, **parameters: Any) -> R | None:
        """Run a query for whole records and return the first, or None."""
        return next(iter(self._select(record_class, sql, **parameters)), None)

    def _page(
        self,
        record_class: type[R],
        where: Where,
        *,
        order: Sequence[str],
        limit: int,
        after: str | None,
        descending: bool = False,
    ) -> Page[R]:
        """List records ordered by columns that are unique together. The cursor has their values in the last row."""
        size = page_size(limit)
        if after is not None:
            place = {f"after_{name}": value for name, value in zip(order, _parse_cursor(after, len(order)), strict=True)}
            marks = ", ".join(f":{name}" for name in place)
            where.add(f"({', '.join(order)}) {'<' if descending else '>'} ({marks})", **place)
        direction = " desc" if descending else ""
        by = ", ".join(name + direction for name in order)
        bound, _ = self._db.values.bind(where.bound)
        names, rows = self._db.rows(f"select * from {record_class.table} {where.sql} order by {by} limit {size + 1}", bound)
        last = dict(zip(names, rows[size - 1], strict=True)) if len(rows) > size else None
        more = to_json([last[name] for name in order]) if last else None
        return Page(record_class.from_rows(names, rows[:size]), next=more)


def _parse_cursor(cursor: str, parts: int) -> list[Any]:
    try:
        place = from_json(cursor)
    except (ValueError, RecursionError):
        place = None
    if not isinstance(place, list) or len(place) != parts:
        raise Invalid(f"{cursor!r} is not a cursor; use the `next` of the previous page", field="after")
    return place


def _identity_values(record_class: type[Record], record_id: str | Sequence[str]) -> dict[str, Any]:
    parts = (record_id,) if isinstance(record_id, str) else tuple(record_id)
    return dict(zip(record_class.identity, parts, strict=True))
