"""Budget metering: spending and reservations of each budget, read and updated only inside the spending transaction.

Spending is stored as one row per budget and day, so that a check costs the same after a thousand or a million charges.
These rows are not in the journal: they are sums of charges, which are, and can be rebuilt (`budgets check`, `budgets
rebuild`).

Reserved amounts are summed up from open reservations, because a reservation expires without a write.

Decisions about one budget are serialized by the lock of its row. Each stores its time (`as_of`), and no later decision uses
an earlier time: a reservation that one process has seen expire is expired for all, even if clocks differ. It is the time of
an entry, so that `verify` can check it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from operator import itemgetter
from typing import Any
from zlib import crc32

from decklog.core.clock import Clock, to_text
from decklog.core.errors import BudgetExceeded, Refused
from decklog.db.base import Database
from decklog.stores.intake import ANY_OF, parameter_batches
from decklog.stores.money.records import (
    COLUMNS,
    Budget,
    BudgetAction,
    BudgetScope,
    BudgetUnit,
    Charge,
    PeriodSpan,
    Reservation,
    ReservationState,
    budget_place,
    format_day,
    period_at,
)
from decklog.stores.of_run import run_not_found
from decklog.stores.results.money import BudgetFigures

GATES = 32
_MAX_CACHED_PLACES = 1000
_select_columns = itemgetter(*COLUMNS.values())
_BUDGETS = f"""
select *
  from budgets
 where (scope || ' ' || coalesce(scope_id, '')) in (
   :everything, :group_of_run, {", ".join(":" + column for column in COLUMNS.values())}
 )
 order by id
   for update
"""
_SPENT = {
    unit: f"""
    select cast(coalesce(sum({unit}), 0) as bigint), cast(coalesce(sum(unpriced_calls), 0) as bigint), max(as_of)
      from budget_days
     where budget_id = :budget_id and day >= :start and day < :end
    """
    for unit in BudgetUnit
}
_ADD = """
insert into budget_days (budget_id, day, microdollars, tokens, calls, unpriced_calls, as_of)
values (:budget_id, :day, :microdollars, :tokens, :calls, :unpriced_calls, :as_of)
on conflict (budget_id, day) do update set
  microdollars = budget_days.microdollars + :microdollars,
  tokens = budget_days.tokens + :tokens,
  calls = budget_days.calls + :calls,
  unpriced_calls = budget_days.unpriced_calls + :unpriced_calls,
  as_of = :as_of
"""


@dataclass(frozen=True)
class PeriodUsage:
    """The usage of a budget in one of its periods, at a time."""

    budget: Budget
    span: PeriodSpan
    spent: int
    unpriced_calls: int
    reserved: int
    # The time of this decision, and of the latest earlier one.
    as_of: str
    seen: str

    @property
    def free(self) -> int:
        return self.budget.ceiling - self.spent - self.reserved

    def exceeded_error(self, amount: int) -> BudgetExceeded:
        """Return the error for an amount that this budget does not allow."""
        budget = self.budget
        renews = f"it renews at {to_text(self.span.renews_at)}" if self.span.renews_at else "it never renews"
        # Exact amounts: rounded, the rest and the needed amount could look equal.
        left, ceiling, needed = (budget.format_amount(one, exact=True) for one in (max(0, self.free), budget.ceiling, amount))
        return BudgetExceeded(
            f"the budget of {budget.title}, has {left} left of {ceiling} and this needs {needed}; {renews}",
            hint="Ask the owner to raise it, or wait until it renews or reservations end. See them: decklog budgets find",
            **self.as_details(),
            asked=amount,
        )

    def as_details(self) -> BudgetFigures:
        budget = self.budget
        return {
            "budget_id": budget.id,
            "scope": budget.scope.value,
            "scope_id": budget.scope_id,
            "period": budget.period.value,
            "unit": budget.unit.value,
            "ceiling": budget.ceiling,
            "spent": self.spent,
            "reserved": self.reserved,
            "left": max(0, self.free),
            "renews_at": to_text(self.span.renews_at) if self.span.renews_at else None,
        }


class BudgetMeter:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    # Locks

    def enter(self, stream: str, answer_id: str | None = None) -> None:
        """Lock the stream, then gates, in the common order. No budget is added until the transaction ends.

        Charges of the same answer to different runs use the same gate of the answer.
        """
        if ("head", stream) not in self._db.memo and self._db.lock_stream(stream) is None and stream[0] != "@":
            raise run_not_found(self._db, stream)
        self.pass_gates({stream, answer_id or stream})

    def pass_gates(self, names: set[str]) -> None:
        """Lock the gates of streams and answers in order. The streams must be locked."""
        for no in sorted({crc32(name.encode()) % GATES for name in names}):
            if ("gate", no) not in self._db.memo:
                self._db.rows("select no from budget_gates where no = :no for update", {"no": no})
                self._db.memo["gate", no] = True

    def close_gates(self) -> None:
        """Wait for all running charges and block new ones, so that budgets can change."""
        self._db.lock_stream("@ledger")
        self._db.rows("select no from budget_gates order by no for update", {})
        self._db.memo.pop("budgets", None)

    def budgets(self, place: Mapping[str, Any]) -> list[Budget]:
        """Find and lock the budgets that apply. They do not change while the caller has a gate."""
        whose = _select_columns(place)
        known: dict[Any, list[Budget]] = self._db.memo.setdefault("budgets", {})
        found = known.get(whose)
        if found is None:
            if len(known) >= _MAX_CACHED_PLACES:
                known.clear()
            found = known[whose] = self._load_and_lock(place)
        return found

    def _load_and_lock(self, place: Mapping[str, Any]) -> list[Budget]:
        bound, _ = self._db.values.bind({column: place[column] for column in COLUMNS.values()})
        sought = {column: bound[column] and f"{scope} {bound[column]}" for scope, column in COLUMNS.items()}
        one = f"{BudgetScope.GROUP} {bound['run_id']}/{bound['group_id']}" if bound["run_id"] and bound["group_id"] else None
        names, rows = self._db.rows(_BUDGETS, {"everything": f"{BudgetScope.ALL} ", "group_of_run": one, **sought})
        return Budget.from_rows(names, rows)

    # The status of a budget

    def _now(self) -> str:
        """Return the clock's time. Call it after locking: an earlier time could revive expired reservations."""
        return to_text(self._clock.now())

    def usage(self, budget: Budget, at: datetime) -> PeriodUsage:
        """Return the usage of a budget in the period of a time."""
        span = period_at(budget.period, at)
        row = self._db.one(_SPENT[budget.unit], {"budget_id": budget.id, **span.days})
        assert row is not None
        seen = row[2] or ""
        as_of = max(self._now(), seen)
        return PeriodUsage(budget, span, row[0], row[1], self._reserved(budget, span, as_of), as_of, seen)

    def is_in_force(self, reservation: Reservation, usages: list[PeriodUsage]) -> bool:
        """Return whether a reservation is open and not expired, by the latest time that any of its budgets recorded."""
        if reservation.state is not ReservationState.OPEN:
            return False
        return to_text(reservation.expires_at) > max([self._now(), *(usage.as_of for usage in usages)])

    def _reserved(self, budget: Budget, span: PeriodSpan, as_of: str) -> int:
        unit, bound = budget.unit, {**span.days, "as_of": as_of, "scope_id": budget.scope_id}
        row = self._db.one(
            f"""
            select cast(coalesce(sum({unit} - used_{unit}), 0) as bigint)
              from reservations
             where state = 'open' and expires_at > :as_of
               and {unit} > used_{unit}
               and reserved_at >= :start and reserved_at < :end
               and {_scope_condition(budget)}
            """,
            bound,
        )
        assert row is not None
        return int(row[0])

    # Counting

    def add(
        self,
        usage: PeriodUsage,
        at: datetime,
        *,
        entry_at: str,
        microdollars: int | None = None,
        tokens: int = 0,
        calls: int = 0,
    ) -> None:
        """Count a charge, or a decision without a charge, on the day of a time. `entry_at` is the time of its entry.

        With `calls` of -1 an earlier charge is subtracted.
        """
        self._db.count(
            _ADD,
            {
                "budget_id": usage.budget.id,
                "day": format_day(at),
                "microdollars": microdollars or 0,
                "tokens": tokens,
                "calls": calls,
                "unpriced_calls": calls if microdollars is None else 0,
                "as_of": max(usage.seen, entry_at),
            },
        )

    def move(self, before: Charge, after: Charge, at: datetime, entry_at: str) -> None:
        """Replace the amounts of a corrected charge on the day on which it was counted."""
        for charge, sign in ((before, -1), (after, 1)):
            for budget in self.budgets(budget_place(charge.values())):
                cost = None if charge.cost_microdollars is None else sign * charge.cost_microdollars
                usage = self.usage(budget, at)
                self.add(usage, at, entry_at=entry_at, microdollars=cost, tokens=sign * charge.tokens, calls=sign)
                if sign < 0 and format_day(at) not in self.days_of_reservations(budget):
                    # A day without a call or a reservation has no row.
                    sql = "delete from budget_days where budget_id = :id and day = :day and calls = 0"
                    self._db.count(sql, {"id": budget.id, "day": format_day(at)})

    def sum_by_day(self, budget: Budget) -> list[tuple[Any, ...]]:
        """Sum a budget's charges by day: day, microdollars, tokens, calls, calls without a price."""
        _, rows = self._db.rows(
            f"""
            select substr(coalesce(counted_at, occurred_at), 1, 10) as day,
                   cast(coalesce(sum(cost_microdollars), 0) as bigint),
                   cast(sum(input_tokens + cache_read_tokens + cache_create_tokens + output_tokens) as bigint),
                   count(*),
                   count(*) - count(cost_microdollars)
              from charges
             where {_scope_condition(budget)}
             group by 1
             order by 1
            """,
            {"scope_id": budget.scope_id},
        )
        return rows

    def days_of_reservations(self, budget: Budget) -> set[str]:
        """Return the days with reservations of a budget."""
        sql = f"select distinct substr(reserved_at, 1, 10) from reservations where {_scope_condition(budget)}"
        return {row[0] for row in self._db.rows(sql, {"scope_id": budget.scope_id})[1]}

    def known_entry_times(self, times: set[str]) -> set[str]:
        """Return the times that belong to entries."""
        sql = f"select distinct at from entries where at in {ANY_OF}"
        return {row[0] for some in parameter_batches(sorted(map(str, times))) for row in self._db.rows(sql, some)[1]}

    def recount(self, budget: Budget, as_of: str) -> None:
        """Rebuild a budget's days from its charges, as of the time of an entry. The gates must be closed."""
        self._db.count("delete from budget_days where budget_id = :budget_id", {"budget_id": budget.id})
        names = ("day", "microdollars", "tokens", "calls", "unpriced_calls")
        rows = [dict(zip(names, row, strict=True)) for row in self.sum_by_day(budget)]
        if rows:
            self._db.many(_ADD, [{"budget_id": budget.id, "as_of": as_of, **row} for row in rows])


def _scope_condition(budget: Budget) -> str:
    if budget.scope is BudgetScope.ALL:
        return "1 = 1"
    if budget.scope is BudgetScope.GROUP and "/" in (budget.scope_id or ""):
        return "(group_id = :scope_id or run_id || '/' || group_id = :scope_id)"
    return f"{COLUMNS[budget.scope]} = :scope_id"


class Spending:
    """Checks one charge against its budgets. `paying` is the reservation that covers it, if any."""

    def __init__(
        self, meter: BudgetMeter, given: Mapping[str, Any], tokens: int, reservation: Reservation | None, now: datetime
    ) -> None:
        self._meter = meter
        self._place = budget_place(given)
        self._model: str = given["model"]
        self._cost: int | None = given["cost_microdollars"]
        self._tokens = tokens
        # Counted at the time of recording: a time from the caller could be in a period with money left.
        self.at = now
        self.paying: Reservation | None = None
        self.overdrawn: list[PeriodUsage] = []
        self._usages = self._load_usages(meter.budgets(self._place), reservation)

    def _load_usages(self, budgets: list[Budget], reservation: Reservation | None) -> list[PeriodUsage]:
        """Load the usage of the budgets: in the period of the paying reservation, or else in the current one.

        A reservation from yesterday is paid from yesterday's budget, so that a call over midnight stays covered.
        """
        if reservation is not None:
            usages = [self._meter.usage(budget, reservation.reserved_at) for budget in budgets]
            if self._meter.is_in_force(reservation, usages):
                self.at, self.paying = reservation.reserved_at, reservation
                return usages
        return [self._meter.usage(budget, self.at) for budget in budgets]

    def admit(self, *, enforce: bool) -> None:
        """Raise an error if a stopping budget has no room for the charge. Without `enforce`, record that it is overdrawn."""
        for usage in self._usages:
            if usage.budget.action is not BudgetAction.STOP:
                continue
            amount = self._amount(usage.budget)
            if amount is None:
                if enforce:
                    raise self._no_price(usage)
                # It is unknown whether it fits, so it counts as overdrawn.
                self.overdrawn.append(usage)
                continue
            extra = amount - self._covered(usage.budget, amount)
            if extra > max(0, usage.free):
                if enforce:
                    raise usage.exceeded_error(extra)
                self.overdrawn.append(usage)

    def _amount(self, budget: Budget) -> int | None:
        return self._cost if budget.unit is BudgetUnit.MICRODOLLARS else self._tokens

    def _covered(self, budget: Budget, amount: int) -> int:
        """Return the part of an amount that the reservation covers in this budget."""
        if self.paying is None or not budget.covers(self.paying.values()):
            return 0
        return min(amount, self.paying.left(budget.unit))

    def _no_price(self, usage: PeriodUsage) -> Refused:
        return Refused(
            f"the price of {self._model!r} is not known, so the budget of {usage.budget.title}, can't be enforced",
            hint="Ask the owner to set the price (decklog prices set), give cost_microdollars, or record it with enforce off.",
            **usage.as_details(),
            model=self._model,
        )

    def count(self, entry_at: str) -> None:
        """Add this charge to the budgets' running sums, with the time of its entry."""
        for usage in self._usages:
            self._meter.add(usage, self.at, entry_at=entry_at, microdollars=self._cost, tokens=self._tokens, calls=1)

    def build_notices(self) -> Iterator[tuple[str, str, BudgetFigures]]:
        """Yield notices for the owner as kind, text and figures: budgets that are overdrawn, passed or nearly used up."""
        for before in self._usages:
            budget, amount = before.budget, self._amount(before.budget) or 0
            spent = before.spent + amount
            after = replace(before, spent=spent, reserved=before.reserved - self._covered(budget, amount))
            limit = budget.format_amount(budget.ceiling)
            words = f"the budget of {budget.title}, has spent {budget.format_amount(spent)} of {limit}"
            if before in self.overdrawn and self._amount(budget) is None:
                yield "budget_unpriced", f"{words}, and one more call has no known price", after.as_details()
            elif before in self.overdrawn:
                yield "budget_overdrawn", words, after.as_details()
            elif before.spent <= budget.ceiling < spent:
                yield "budget_passed", words, after.as_details()
            elif before.spent * 100 < budget.warn_percent * budget.ceiling <= spent * 100:
                yield "budget_warning", words, after.as_details()
