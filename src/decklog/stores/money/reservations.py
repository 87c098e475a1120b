"""Reservations: budget reserved for a call before it is made, so that concurrent workers never exceed it together.

A worker reserves the maximum cost of a call, makes the call, charges its cost, and finalizes. If the worker dies, its
reservation ends at `expires_at` without any clean-up.
"""

from datetime import datetime, timedelta
from typing import Any

from decklog.core.clock import to_text
from decklog.core.errors import Conflict, Invalid
from decklog.db.where import Where
from decklog.journal.attribution import acting
from decklog.records.operations import reads, writes
from decklog.records.record import Page
from decklog.stores.base import Store
from decklog.stores.checks import LONGEST_RESERVATION_SECONDS, check_integer, check_time_zone
from decklog.stores.money.meter import BudgetMeter
from decklog.stores.money.records import (
    MOST,
    BudgetAction,
    BudgetUnit,
    Reservation,
    ReservationState,
    ReservationStateLike,
    budget_place,
    complete_by_task,
)

DEFAULT = timedelta(hours=1)
LONGEST = timedelta(seconds=LONGEST_RESERVATION_SECONDS)


class Reservations(Store):
    """Reserves budget for calls, and releases what they did not use."""

    records = (Reservation,)

    @writes(hands_out=True)
    def reserve(
        self,
        expires_at: datetime | None = None,
        *,
        amount_microdollars: int = 0,
        tokens: int = 0,
        run_id: str | None = None,
        group_id: str | None = None,
        task_id: str | None = None,
        agent: str | None = None,
        holder: str | None = None,
        key: str | None = None,
    ) -> Reservation:
        """Reserve money and tokens for future calls in all budgets that apply, until a time.

        The default is one hour and the maximum seven days; `extend` prolongs it. Raises `BudgetExceeded` if a stopping budget
        has too little left, or nothing. `holder` names the user of the reservation. A known key in the same run returns the
        first reservation.
        """
        expires_at = self._now() + DEFAULT if expires_at is None else expires_at
        self._check_end(expires_at)
        check_integer("amount_microdollars", amount_microdollars, high=MOST)
        check_integer("tokens", tokens, high=MOST)
        given: dict[str, Any] = {"microdollars": amount_microdollars, "tokens": tokens, "holder": holder, "key": key}
        given |= {"run_id": run_id, "group_id": group_id, "task_id": task_id, "agent": agent}
        actor, named = acting.get() or {}, dict(given)
        for name in ("agent", "group_id", "task_id"):
            given[name] = actor.get(name) if given[name] is None else given[name]
        complete_by_task(self._db, given, named)
        run_id = given["run_id"]
        meter = BudgetMeter(self._db, self._clock)
        meter.enter(run_id or "@ledger")
        known = self._find_known(run_id, key)
        return known.mark_already() if known is not None else self._add_reservation(meter, given, expires_at)

    def _check_end(self, expires_at: datetime) -> None:
        """Raise Invalid for a reservation that lasts longer than allowed without an extension."""
        check_time_zone("expires_at", expires_at)
        if expires_at > self._now() + LONGEST:
            raise Invalid(
                f"a reservation ends within {LONGEST.days} days, not at {to_text(expires_at)}",
                hint="Reserve for a shorter time, and extend it during the calls: decklog reservations extend ID UNTIL",
                field="expires_at",
            )

    def _find_known(self, run_id: str | None, key: str | None) -> Reservation | None:
        if key is None:
            return None
        sql = "select * from reservations where coalesce(run_id, '') = :run_id and key = :key"
        return self._first(Reservation, sql, run_id=run_id or "", key=key)

    def _add_reservation(self, meter: BudgetMeter, given: dict[str, Any], expires_at: datetime) -> Reservation:
        budgets = meter.budgets(budget_place(given))
        now = self._now()
        if expires_at <= now:
            raise Invalid(f"a reservation can't expire at {expires_at}, which is past", field="expires_at")
        usages = [meter.usage(budget, now) for budget in budgets]
        for usage in usages:
            amount = given["microdollars" if usage.budget.unit is BudgetUnit.MICRODOLLARS else "tokens"]
            # Without any budget left even a reservation of 0 is refused: the caller is about to spend.
            if usage.budget.action is BudgetAction.STOP and (usage.free <= 0 or amount > usage.free):
                raise usage.exceeded_error(amount)
        held = self._add(
            Reservation,
            id=self._ids.new("reservation"),
            state=ReservationState.OPEN,
            reserved_at=now,
            expires_at=expires_at,
            **given,
        )
        for usage in usages:
            meter.add(usage, now, entry_at=self._last_entry_at(held.run_id or "@ledger"))
        return held

    @writes
    def extend(self, reservation_id: str, expires_at: datetime) -> Reservation:
        """Extend an open reservation to a later time; an expired one can't be extended."""
        self._check_end(expires_at)
        meter = BudgetMeter(self._db, self._clock)
        reservation = self._lock_reservation(meter, reservation_id)
        budgets = meter.budgets(budget_place(reservation.values()))
        if not meter.is_in_force(reservation, [meter.usage(budget, reservation.reserved_at) for budget in budgets]):
            raise Conflict(
                f"reservation {reservation_id} is {reservation.state} and expired at {reservation.expires_at}",
                hint="Reserve again: decklog reservations reserve",
                table="reservations",
                id=reservation_id,
                state=reservation.state.value,
            )
        if expires_at <= reservation.expires_at:
            return reservation.mark_already()
        return self._update(Reservation, reservation_id, {"expires_at": expires_at})

    @writes
    def settle(self, reservation_id: str) -> Reservation:
        """Finalize a reservation after its calls: charges stay, and the unused rest is released."""
        return self._end(reservation_id, ReservationState.SETTLED)

    @writes
    def release(self, reservation_id: str) -> Reservation:
        """Release a reservation without further calls; its charges stay."""
        return self._end(reservation_id, ReservationState.RELEASED)

    def _end(self, reservation_id: str, state: ReservationState) -> Reservation:
        reservation = self._lock_reservation(BudgetMeter(self._db, self._clock), reservation_id)
        # It may have been released before the end of its task; then nothing is left to finalize.
        if reservation.state in (state, ReservationState.RELEASED):
            return reservation.mark_already()
        return self._update(Reservation, reservation_id, {"state": state, "ended_at": self._now()}, condition="state = 'open'")

    def _lock_reservation(self, meter: BudgetMeter, reservation_id: str) -> Reservation:
        """Lock a reservation, its stream first."""
        meter.enter(Reservation.stream_of(self._fetch(Reservation, reservation_id).values()))
        return self._fetch_for_update(Reservation, reservation_id)

    @reads
    def get(self, reservation_id: str) -> Reservation:
        """Get a reservation."""
        return self._fetch(Reservation, reservation_id)

    @reads
    def find(
        self,
        run_id: str | None = None,
        *,
        state: ReservationStateLike | None = None,
        group_id: str | None = None,
        task_id: str | None = None,
        agent: str | None = None,
        holder: str | None = None,
        oldest_first: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Reservation]:
        """List reservations, newest first. An open but expired one reserves nothing."""
        where = Where(Reservation, state=state, run_id=run_id, group_id=group_id)
        where.equal(task_id=task_id, agent=agent, holder=holder)
        return self._page(Reservation, where, order=("reserved_at", "id"), limit=limit, after=after, descending=not oldest_first)
