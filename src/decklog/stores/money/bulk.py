"""Bulk writes of entries and charges, in the order in which another program recorded them, each written once.

This needs one statement where the verbs need three each. Charges that a budget counts go through the ledger one by one,
because each changes the budget.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

from decklog.db.base import Row
from decklog.journal import chain
from decklog.journal.attribution import acting
from decklog.journal.rows import RESERVED
from decklog.records.operations import is_late
from decklog.stores.base import StoreParts
from decklog.stores.fields import with_defaults
from decklog.stores.intake import ANY_OF, parameter_batches
from decklog.stores.money.ledger import Ledger
from decklog.stores.money.meter import BudgetMeter
from decklog.stores.money.prices import PriceList
from decklog.stores.money.records import TOKENS, Charge, check_charge, complete_by_task, format_day

BulkItem = dict[str, Any] | tuple[Any, ...]

_PAID = f"select answer_id from charges where answer_id in {ANY_OF}"
_WITH_KEY = f"select {', '.join(Charge.columns())} from charges where coalesce(run_id, '') = :run_id and key in {ANY_OF}"
# Fields that another program may clear later; other fields keep their value.
_NULLABLE = ("task_id", "call_site")
_DEFAULTS: dict[str, Any] = dict.fromkeys(("group_id", "task_id", "call_site", "occurred_at", "cost_microdollars"))
_DEFAULTS.update(dict.fromkeys(("agent", "agent_id", "reservation_id", "key", "answer_id")), **dict.fromkeys(TOKENS, 0))
_FIELDS = Charge.columns()
_tokens = itemgetter(*TOKENS)


class _Batch:
    """Entries that are written together in their order, with the charges of some of them."""

    def __init__(self) -> None:
        self.entries: list[Sequence[Any]] = []
        # Charges with the position of their entry; they are written together, with the same time.
        self.charges: list[tuple[int, dict[str, Any]]] = []

    def reserve_place(self, given: dict[str, Any]) -> None:
        """Reserve the position of a charge's entry."""
        self.charges.append((len(self.entries), given))
        self.entries.append(())


class Bulk(Ledger):
    """Writes what programs recorded of their sessions."""

    def __init__(self, parts: StoreParts) -> None:
        super().__init__(parts)
        self._prices = PriceList(self._db, remember=True)

    def take(self, items: Sequence[BulkItem], bound: Collection[str] = ()) -> int:
        """Write the new ones of some entries and charges in order, in the caller's transaction. Return their number.

        A charge is identified by the provider's answer id and was already spent, so no budget refuses it. Names in `bound` are
        redacted already.
        """
        # Redact everything together, and only once.
        unbound = [one for one in items if type(one) is dict and ("model" not in one or one["answer_id"] not in bound)]
        with self._db.values.scan_batch(unbound):
            if unbound:
                items = [self._with_stored_answer_id(one) if type(one) is dict and "model" in one else one for one in items]
            return self._take_new(items)

    def _take_new(self, items: Sequence[BulkItem]) -> int:
        answers = [one["answer_id"] for one in items if type(one) is dict and "model" in one]
        self._lock_targets(items, answers)
        # Answers that were charged before, by any run.
        paid = {answer for (answer,) in self._select_matching(_PAID, answers)}
        new, meter, batch = 0, self._meter, _Batch()
        for one in items:
            if isinstance(one, tuple):
                batch.entries.append(one)
            elif "model" not in one:
                batch.entries.append(self._writer.prepare({**one, "at": one.get("at") or self._now()}))
            elif one["answer_id"] not in paid:
                paid.add(one["answer_id"])
                given = self._complete(one)
                if meter.budgets(given):
                    new += self._flush(batch) + 1
                    batch = _Batch()
                    self._charge(given, enforce=False)
                else:
                    batch.reserve_place(given)
        return new + self._flush(batch)

    def charge_all(self, items: Sequence[dict[str, Any]]) -> list[bool]:
        """Write charges in the caller's transaction, each once by its run and key. Return for each whether it is new.

        A charge with a known key is compared with the recorded one, as the verb does.
        """
        all_given = [self._complete(one) for one in items]
        known, new, batch = set(self.known(all_given)), list[bool](), _Batch()
        self._meter.pass_gates({given["run_id"] or "@ledger" for given in all_given})
        for given in all_given:
            place = (given["run_id"] or "", given["key"])
            if place in known or self._meter.budgets(given):
                self._flush(batch)
                batch = _Batch()
                new.append(not self._charge(given, enforce=False).already)
            else:
                batch.reserve_place(given)
                new.append(True)
            known.add(place)
        self._flush(batch)
        return new

    def known(self, items: Sequence[dict[str, Any]]) -> dict[tuple[str, str], Charge]:
        """Return the existing charges for the keys of some items, by run and key. Call it in a transaction."""
        self._lock_all({one["run_id"] or "@ledger" for one in items})
        # By run: the keys as they are stored, each with its given spelling.
        keys: dict[str, dict[str, str]] = {}
        for one in items:
            stored = self._db.values.bind_text("key", one["key"])[0]
            keys.setdefault(one["run_id"] or "", {})[stored] = one["key"]
        found: dict[tuple[str, str], Charge] = {}
        for run_id, named in keys.items():
            charges = Charge.from_rows(Charge.columns(), list(self._select_matching(_WITH_KEY, [*named], run_id=run_id)))
            found |= {(run_id, named[str(charge.key)]): charge for charge in charges}
        return found

    def correct(self, charge: Charge, items: dict[str, Any], *, note: str) -> bool:
        """Correct a charge to the values that another program records now, also in its budgets. Return whether anything differed.

        Values that are not given are kept: a price that was looked up, and the actor. Call it in a transaction.
        """
        given = self._complete(items)
        names = [name for name in items if name not in ("run_id", "key") and (items[name] is not None or name in _NULLABLE)]
        bound = self._db.values.bind({name: given[name] for name in names})[0]
        if bound == self._db.values.bind({name: getattr(charge, name) for name in names})[0]:
            return False
        fields = {name: given[name] for name in names}
        counted = charge.counted_at or charge.occurred_at
        if format_day(counted) != format_day(fields.get("occurred_at", charge.occurred_at)):
            fields["counted_at"] = counted
        changed = self._update(Charge, charge.id, fields, note=note)
        meter, entry_at = self._meter, self._last_entry_at(charge.run_id or "@ledger")
        meter.pass_gates({charge.run_id or "@ledger"})
        meter.move(charge, changed, counted, entry_at)
        return True

    def _with_stored_answer_id(self, charge: dict[str, Any]) -> dict[str, Any]:
        """Return the charge with its answer id as stored."""
        return {**charge, "answer_id": self._db.values.bind_text("answer_id", charge["answer_id"])[0]}

    @property
    def _meter(self) -> BudgetMeter:
        return BudgetMeter(self._db, self._clock)

    def _lock_targets(self, items: Sequence[BulkItem], answers: Sequence[str]) -> None:
        """Lock the streams, then the gates of charges, in the common order."""
        streams = {one[chain.STREAM] if isinstance(one, tuple) else _target_stream(one) for one in items}
        self._lock_all(streams)
        if answers:
            self._meter.pass_gates({*streams, *answers})

    def _lock_all(self, streams: set[str]) -> None:
        for stream in sorted(streams):
            # A stream without a run that does not exist yet starts at the time of its first entry.
            if stream not in RESERVED or self._db.lock_stream(stream) is not None:
                self._db.memo["head", stream] = self._writer.lock_head(stream)

    def _select_matching(self, sql: str, values: Sequence[str], **bound: str) -> Iterator[Row]:
        """Yield the rows that have any of some values, in batches of one size."""
        for some in parameter_batches(values):
            yield from self._db.rows(sql, {**bound, **some})[1]

    def _complete(self, items: dict[str, Any]) -> dict[str, Any]:
        given = {**_DEFAULTS, **items}
        check_charge(given)
        given["is_late"] = is_late()
        if acting.get() is not None:
            self._attribute(given)
        if given["task_id"] is not None:
            complete_by_task(self._db, given, {**_DEFAULTS, **items})
        return given

    def _build_rows(self, batch: _Batch) -> list[tuple[Any, ...]]:
        """Build the rows of charges without a budget, and put their entries into the batch."""
        rows: list[tuple[Any, ...]] = []
        now = self._now()
        ids = self._ids.several("charge", len(batch.charges))
        for charge_id, (place, given) in zip(ids, batch.charges, strict=True):
            bound, redacted = self._db.values.bind(with_defaults(Charge, self._fields(given, charge_id, now)))
            rows.append(tuple(bound.values()))
            batch.entries[place] = tuple(self._writer.build_change_entry(Charge, _FIELDS, rows[-1], "added", None, redacted))
        return rows

    def _fields(self, given: dict[str, Any], charge_id: str, now: datetime) -> dict[str, Any]:
        occurred = given["occurred_at"] or now
        cost = given["cost_microdollars"]
        if cost is None:
            cost = self._prices.cost(given["model"], occurred, _tokens(given))
        fields = {**given, "id": charge_id, "occurred_at": occurred, "cost_microdollars": cost}
        if format_day(occurred) != format_day(now):
            fields["counted_at"] = now
        return fields

    def _flush(self, batch: _Batch) -> int:
        if batch.charges:
            self._db.insert(Charge.table, _FIELDS, self._build_rows(batch))
        return len(batch.entries) - len(self._writer.write(batch.entries).known) if batch.entries else 0


def _target_stream(one: dict[str, Any]) -> str:
    return str(one["stream"]) if "stream" in one else one["run_id"] or "@ledger"
