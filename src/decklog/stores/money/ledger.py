"""The ledger: one charge for every model call, checked against its budgets before it is written."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from decklog.core.errors import Conflict, Invalid
from decklog.db.where import Where, parse_enum
from decklog.journal.attribution import acting, held_task
from decklog.journal.entry import EntryKind
from decklog.records.operations import is_late, reads, writes
from decklog.records.record import Page
from decklog.stores.base import Store
from decklog.stores.money.meter import BudgetMeter, Spending
from decklog.stores.money.prices import PriceList
from decklog.stores.money.records import TOKENS, Charge, Reservation, budget_place, check_charge, complete_by_task, format_day
from decklog.stores.results.money import SpendRow, SpendSummary

_SAME = ("model", *TOKENS)
_SPEND = ("key", "calls", *TOKENS, "cost_microdollars", "unpriced_calls")


class SpendBy(StrEnum):
    DAY = "day"
    MODEL = "model"
    AGENT = "agent"
    AGENT_ID = "agent_id"
    TASK = "task"
    GROUP = "group"
    CALL_SITE = "call_site"
    RUN = "run"
    SESSION = "session"
    WORKTREE = "worktree"


SpendByLike = SpendBy | Literal["day", "model", "agent", "agent_id", "task", "group", "call_site", "run", "session", "worktree"]


_GROUPED = {
    SpendBy.DAY: "substr(occurred_at, 1, 10)",
    SpendBy.TASK: "task_id",
    SpendBy.GROUP: "group_id",
    SpendBy.RUN: "run_id",
    # A sub-agent's run counts for the session above it. A fork has a parent too, and counts separately.
    SpendBy.SESSION: """(
        select case when r.parent_seq is null then coalesce(r.parent_run_id, r.id) else r.id end
          from runs r where r.id = charges.run_id
    )""",
    SpendBy.WORKTREE: "(select r.worktree from runs r where r.id = charges.run_id)",
}


class Ledger(Store):
    """Records spending, and adds it up."""

    records = (Charge,)

    @writes(late=True)
    def charge(
        self,
        model: str,
        *,
        input_tokens: int = 0,
        cache_read_tokens: int = 0,
        cache_create_tokens: int = 0,
        output_tokens: int = 0,
        cost_microdollars: int | None = None,
        run_id: str | None = None,
        group_id: str | None = None,
        task_id: str | None = None,
        agent: str | None = None,
        agent_id: str | None = None,
        call_site: str | None = None,
        occurred_at: datetime | None = None,
        reservation_id: str | None = None,
        enforce: bool = True,
        key: str | None = None,
        answer_id: str | None = None,
    ) -> Charge:
        """Record a charge for one model call: its tokens, and its cost, given or by the current prices.

        Raises `BudgetExceeded` if a stopping budget has no room, unless an open reservation covers the charge: the given one,
        or that of the claimed task. With `enforce` off, money already spent is recorded in any case: the charge is marked
        `overdrew`, the owner is notified, and the overdrawn budget refuses the next charge. Budgets count a charge on the day
        of recording, not at `occurred_at`. A charge of a task belongs to its run and group too; another run is an error. A known
        key in the same run, or a known `answer_id` of the provider in any run, returns the first charge.
        """
        tokens = (input_tokens, cache_read_tokens, cache_create_tokens, output_tokens)
        given: dict[str, Any] = dict(zip(TOKENS, tokens, strict=True))
        given |= {"model": model, "cost_microdollars": cost_microdollars, "call_site": call_site, "occurred_at": occurred_at}
        given |= {"run_id": run_id, "group_id": group_id, "task_id": task_id, "agent": agent, "agent_id": agent_id}
        given |= {"reservation_id": reservation_id, "key": key, "answer_id": answer_id}
        check_charge(given)
        # Money that was spent is recorded, even if another worker has the task.
        given["is_late"] = is_late()
        return self._charge(given, enforce and not given["is_late"])

    def _charge(self, given: dict[str, Any], enforce: bool) -> Charge:
        named = dict(given)
        reservation = self._apply_reservation(given)
        self._attribute(given)
        complete_by_task(self._db, given, named, reservation)
        meter, stream = BudgetMeter(self._db, self._clock), given["run_id"] or "@ledger"
        meter.enter(stream, given["answer_id"])
        known = self._find_known(given)
        if known is not None:
            return known.mark_already()
        reservation = reservation or self._find_task_reservation(given)
        if reservation is not None and given["agent"] is None:
            given["agent"] = reservation.agent
        given["occurred_at"] = given["occurred_at"] or self._now()
        tokens = tuple(given[name] for name in TOKENS)
        if given["cost_microdollars"] is None:
            given["cost_microdollars"] = PriceList(self._db, remember=True).cost(given["model"], given["occurred_at"], tokens)
        held = reservation and self._fetch_for_update(Reservation, reservation.id)
        spending = Spending(meter, given, sum(tokens), held, self._now())
        spending.admit(enforce=enforce)
        return self._write(given, spending)

    def _attribute(self, given: dict[str, Any]) -> None:
        """Fill in the attribution of a charge from the context."""
        actor = acting.get() or {}
        # The context's group does not apply to another task that the caller names.
        is_other = actor.get("task_id") is not None and given["task_id"] not in (None, actor["task_id"])
        for name in ("agent", "agent_id") if is_other else ("agent", "agent_id", "group_id", "task_id"):
            given[name] = actor.get(name) if given[name] is None else given[name]

    def _write(self, given: dict[str, Any], spending: Spending) -> Charge:
        held = spending.paying
        if format_day(spending.at) != format_day(given["occurred_at"]):
            given["counted_at"] = spending.at
        charge = self._add(Charge, id=self._ids.new("charge"), overdrew=bool(spending.overdrawn), **given)
        spending.count(self._last_entry_at(Charge.stream_of(given)))
        if held is not None:
            used = {"used_microdollars": charge.cost_microdollars or 0, "used_tokens": charge.tokens}
            self._update(Reservation, held.id, {}, adding=used)
        for subtype, body, payload in spending.build_notices():
            self._journal.append(
                Charge.stream_of(given),
                body,
                kind=EntryKind.EVENT,
                subtype=subtype,
                payload=payload,
                agent=given["agent"],
                group_id=given["group_id"],
                task_id=given["task_id"],
            )
        return charge

    def _apply_reservation(self, given: dict[str, Any]) -> Reservation | None:
        """Take the run, group and task from the named reservation. Raise an error if the charge is for another."""
        if given["reservation_id"] is None:
            return None
        reservation = self._fetch(Reservation, given["reservation_id"])
        for name, held in budget_place(reservation.values()).items():
            # A run and its reservations share a stream, so a missing run must match too.
            if given[name] not in (None, held) and (held is not None or name == "run_id"):
                raise Invalid(
                    f"reservation {reservation.id} is for {name} {held}, and this charge is for {given[name]}",
                    field=name,
                )
            if name != "agent":
                given[name] = held if held is not None else given[name]
        return reservation

    def _find_task_reservation(self, given: dict[str, Any]) -> Reservation | None:
        """Find the open reservation of the claimed task, if this charge is for it.

        A worker that has lost the task has lost its reservation too: another worker may have reserved it.
        """
        task_id, fence = held_task.get() or (None, 0)
        if task_id is None or given["task_id"] != task_id or given["is_late"]:
            return None
        found = self._first(
            Reservation,
            """
            select r.* from tasks t join reservations r on r.id = t.reservation_id
             where t.id = :task_id and t.fence = :fence and t.state = 'running' and r.state = 'open'
            """,
            task_id=task_id,
            fence=fence,
        )
        given["reservation_id"] = found and found.id
        return found

    def _find_known(self, given: dict[str, Any]) -> Charge | None:
        """Find the charge of a repeated call. The same key for another call is an error."""
        if (paid := self._seek_by(Charge, answer_id=given["answer_id"])) is not None:
            return paid
        if given["key"] is None:
            return None
        sql = "select * from charges where coalesce(run_id, '') = :run_id and key = :key"
        found = self._first(Charge, sql, run_id=given["run_id"] or "", key=given["key"])
        if found is None:
            return None
        # Compared as stored: redaction may have changed the model's name.
        same, _ = self._db.values.bind({name: given[name] for name in _SAME})
        different = [name for name in _SAME if getattr(found, name) != same[name]]
        if different:
            raise Conflict(
                f"key {given['key']!r} belongs to charge {found.id}, which differs in {', '.join(different)}",
                hint="Use a different key for every call.",
                id=found.id,
                differs=different,
            )
        return found

    @reads
    def get(self, charge_id: str) -> Charge:
        """Get a charge."""
        return self._fetch(Charge, charge_id)

    @reads
    def find(
        self,
        run_id: str | None = None,
        *,
        group_id: str | None = None,
        task_id: str | None = None,
        agent: str | None = None,
        agent_id: str | None = None,
        call_site: str | None = None,
        model: str | None = None,
        reservation_id: str | None = None,
        answer_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        oldest_first: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Charge]:
        """List charges, newest first."""
        where = Where(Charge, run_id=run_id, group_id=group_id, task_id=task_id, agent=agent, agent_id=agent_id)
        where.equal(call_site=call_site, model=model, reservation_id=reservation_id, answer_id=answer_id)
        where.between("occurred_at", since, until)
        return self._page(Charge, where, order=("occurred_at", "id"), limit=limit, after=after, descending=not oldest_first)

    @reads
    def summary(
        self,
        run_id: str | None = None,
        *,
        by: SpendByLike = SpendBy.MODEL,
        group_id: str | None = None,
        task_id: str | None = None,
        agent: str | None = None,
        agent_id: str | None = None,
        call_site: str | None = None,
        model: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> SpendSummary:
        """Sum charges by day (UTC), model, agent, agent_id, task, group, call_site, run, session or worktree.

        A session is a run with the runs of its sub-agents. A worktree is the folder that a run works in.
        `key` has the name of each row, or null for charges without one. The cost covers calls with a known price;
        `unpriced_calls` counts the others.
        """
        where = Where(Charge, run_id=run_id, group_id=group_id, task_id=task_id, agent=agent, agent_id=agent_id)
        where.equal(call_site=call_site, model=model)
        where.between("occurred_at", since, until)
        by = parse_enum(SpendBy, by, "by")
        rows = self._sum_rows(by, where)
        if by is SpendBy.DAY:
            rows.sort(key=lambda row: row["key"] or "")
        else:
            rows.sort(key=lambda row: (-row["cost_microdollars"], -row["calls"], row["key"] or ""))
        total: Any = {name: sum(row[name] for row in rows) for name in _SPEND[1:]}  # type: ignore[literal-required]
        return {"by": by.value, "rows": rows, "total": total}

    def _sum_rows(self, by: SpendBy, where: Where) -> list[SpendRow]:
        bound, _ = self._db.values.bind(where.bound)
        sums = ", ".join(f"cast(sum({name}) as bigint)" for name in TOKENS)
        _, rows = self._db.rows(
            f"""
            select {_GROUPED.get(by, by.value)} as key, count(*), {sums},
                   cast(coalesce(sum(cost_microdollars), 0) as bigint), count(*) - count(cost_microdollars)
              from charges
              {where.sql}
             group by 1
            """,
            bound,
        )
        found: Any = [dict(zip(_SPEND, row, strict=True)) for row in rows]
        return found  # type: ignore[no-any-return]
