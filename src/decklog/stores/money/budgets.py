"""Budgets: limits by scope and period, and their usage."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from decklog.core.errors import Invalid, NotFound
from decklog.db.where import Where, parse_enum
from decklog.journal.rows import newest_time
from decklog.records.operations import reads, writes
from decklog.records.record import Record
from decklog.records.values import to_json
from decklog.stores.base import Store
from decklog.stores.checks import check_integer
from decklog.stores.money.meter import GATES, BudgetMeter, PeriodUsage
from decklog.stores.money.records import (
    Budget,
    BudgetAction,
    BudgetActionLike,
    BudgetPeriod,
    BudgetPeriodLike,
    BudgetScope,
    BudgetScopeLike,
    BudgetUnit,
)
from decklog.stores.results.money import BudgetCheck, BudgetDay, BudgetDifference, BudgetRebuild, BudgetState, BudgetUsage

MOST = 10**15
CHART_DAYS = 14
_SUMS = ("microdollars", "tokens", "calls", "unpriced_calls")
# Queries that check whether a scope exists: by its record, or by tasks or charges with its name.
_KNOWN = {
    BudgetScope.RUN: "select 1 from runs where id = :id",
    BudgetScope.TASK: "select 1 from tasks where id = :id union all select 1 from charges where task_id = :id",
    BudgetScope.GROUP: " union all ".join(
        f"select 1 from {table} where group_id = :id or run_id || '/' || group_id = :id"
        for table in ("groups", "tasks", "charges")
    ),
}


class Budgets(Store):
    """Sets budgets and shows their usage. Only the owner sets, raises or lifts one; agents can read them all."""

    records = (Budget,)
    derived = ("budget_days", "budget_gates")

    @writes(owner_only=True)
    def set(
        self,
        scope: BudgetScopeLike,
        *,
        scope_id: str | None = None,
        period: BudgetPeriodLike = BudgetPeriod.FOREVER,
        limit_microdollars: int | None = None,
        limit_tokens: int | None = None,
        action: BudgetActionLike = BudgetAction.STOP,
        warn_percent: int = 80,
    ) -> Budget:
        """Set the limit of a run, group, task, agent or `all` per period, in money or tokens. Periods are UTC, weeks from Monday.

        A group is written RUN/GROUP; GROUP alone means that group in every run. A budget for the same scope, period and unit is
        replaced. Earlier spending counts too. An unknown run, group or task is an error.
        """
        unit, ceiling = _parse_limit(limit_microdollars, limit_tokens)
        scope = parse_enum(BudgetScope, scope, "scope")
        if (scope is BudgetScope.ALL) != (scope_id is None) or scope_id == "":
            raise Invalid(f"a budget for {scope} needs {'no' if scope is BudgetScope.ALL else 'a'} scope_id", field="scope_id")
        given = {
            "scope": scope,
            "scope_id": scope_id,
            "period": parse_enum(BudgetPeriod, period, "period"),
            "unit": unit,
            "ceiling": ceiling,
            "action": parse_enum(BudgetAction, action, "action"),
            "warn_percent": check_integer("warn_percent", warn_percent, low=1, high=100),
        }
        meter = self._lock_all()
        return self._replace(given) or self._add_budget(meter, given)

    def _check_known(self, scope: BudgetScope, scope_id: str | None) -> None:
        """Raise an error for an unknown scope. Agents are not checked: they have no record before they begin."""
        sql = _KNOWN.get(scope)
        if sql is not None and self._db.one(f"{sql} limit 1", {"id": scope_id}) is None:
            from decklog.db.where import suggest_id

            otherwise = "Start or add it first; write a group of one run as RUN/GROUP."
            raise NotFound(
                f"there is no {scope} {scope_id}, so a budget for it would have no effect",
                hint=suggest_id(self._db, "runs", scope_id, otherwise) if scope is BudgetScope.RUN else otherwise,
                scope=scope.value,
                scope_id=scope_id,
            )

    def _lock_all(self) -> BudgetMeter:
        """Acquire all locks in the common order, so that nothing is spent meanwhile."""
        meter = BudgetMeter(self._db, self._clock)
        meter.enter("@ledger")
        meter.close_gates()
        return meter

    def _replace(self, given: dict[str, Any]) -> Budget | None:
        where = Where(Budget, period=given["period"], unit=given["unit"])
        where.add("(scope || ' ' || coalesce(scope_id, '')) = :whose", whose=f"{given['scope']} {given['scope_id'] or ''}")
        present = self._list(Budget, where, order="id")
        if not present:
            return None
        changes = {name: given[name] for name in ("ceiling", "action", "warn_percent")}
        return self._update(Budget, present[0].id, {**changes, "set_at": self._now(), "proof": self._nonce()})

    def _add_budget(self, meter: BudgetMeter, given: dict[str, Any]) -> Budget:
        self._check_known(given["scope"], given["scope_id"])
        budget = self._add(Budget, id=self._ids.new("budget"), set_at=self._now(), proof=self._nonce(), **given)
        meter.recount(budget, self._last_entry_at("@ledger"))
        return budget

    @writes(owner_only=True)
    def lift(self, budget_id: str) -> Budget:
        """Remove a budget."""
        self._lock_all()
        return self._remove_one(Budget, budget_id)

    @reads
    def get(self, budget_id: str) -> Budget:
        """Get a budget."""
        return self._proofs().without_invalid_proof(self._fetch(Budget, budget_id))

    @reads
    def find(self, *, scope: BudgetScopeLike | None = None, scope_id: str | None = None) -> list[Budget]:
        """List the budgets, those for everything first."""
        where = Where(Budget, scope=scope, scope_id=scope_id)
        found = self._list(Budget, where, order="id")
        order, checked = list(BudgetScope), self._proofs().without_invalid_proof
        return sorted(map(checked, found), key=lambda budget: order.index(budget.scope))

    @reads
    def burn(self, *, scope: BudgetScopeLike | None = None, scope_id: str | None = None) -> list[BudgetUsage]:
        """Show the usage of each budget in its current period, and its spending on each of the last 14 days."""
        meter, now = BudgetMeter(self._db, self._clock), self._now()
        shown: list[BudgetUsage] = []
        for budget in self.find(scope=scope, scope_id=scope_id):
            usage = meter.usage(budget, now)
            shown.append({**usage.as_details(), **_describe_state(usage), "days": self._load_days(budget, now)})
        return shown

    def _load_days(self, budget: Budget, now: datetime) -> list[BudgetDay]:
        days = [(now - timedelta(days=back)).date().isoformat() for back in reversed(range(CHART_DAYS))]
        _, rows = self._db.rows(
            f"select day, {budget.unit} from budget_days where budget_id = :id and day >= :first and day <= :last",
            {"id": budget.id, "first": days[0], "last": days[-1]},
        )
        spent: dict[str, int] = dict(rows)
        return [{"day": day, "spent": spent.get(day, 0)} for day in days]

    @reads
    def check(self) -> BudgetCheck:
        """Compare the sums of every budget with its charges, and list the days that differ."""
        meter, budgets = BudgetMeter(self._db, self._clock), self.find()
        problems = [problem for budget in budgets for problem in self._compare_sums(meter, budget)]
        return {"ok": not problems, "budgets": len(budgets), "problems": problems}

    def _compare_sums(self, meter: BudgetMeter, budget: Budget) -> list[BudgetDifference]:
        rows = self._db.each_as_is(
            "select day, microdollars, tokens, calls, unpriced_calls from budget_days where budget_id = :id",
            {"id": budget.id},
        )
        kept = {day: list(sums) for day, *sums in rows}
        true = {day: list(sums) for day, *sums in meter.sum_by_day(budget)}
        nothing = [0, 0, 0, 0]
        return [
            {"budget_id": budget.id, "day": day, "kept": kept.get(day, nothing), "charged": true.get(day, nothing)}
            for day in sorted(kept.keys() | true.keys(), key=str)
            if kept.get(day, nothing) != true.get(day, nothing)
        ]

    def audit(self, _record_classes: Mapping[str, type[Record]]) -> Iterator[dict[str, Any]]:
        yield from self._find_lock_row_problems("budget_gates", "no", range(GATES))
        meter, budgets = BudgetMeter(self._db, self._clock), self.find()
        for budget in budgets:
            for wrong in self._compare_sums(meter, budget):
                columns = [name for name, *sums in zip(_SUMS, wrong["kept"], wrong["charged"], strict=True) if sums[0] != sums[1]]
                yield _day_problem(budget.id, wrong["day"], "differs from the charges of that day", ", ".join(columns))
        yield from self._find_stray_days(meter, {budget.id: budget for budget in budgets})

    def _find_stray_days(self, meter: BudgetMeter, budgets: dict[str, Budget]) -> Iterator[dict[str, Any]]:
        """Yield days without a budget, days without activity, and times without an entry."""
        sql = "select budget_id, day, calls, as_of from budget_days order by budget_id, day"
        rows = list(self._db.each_as_is(sql, {}))
        entry_times = meter.known_entry_times({row[3] for row in rows})
        for budget_id, day, calls, as_of in rows:
            budget = budgets.get(budget_id)
            if budget is None:
                yield _day_problem(budget_id, day, "belongs to no budget", "budget_id")
            elif not calls and day not in meter.days_of_reservations(budget):
                yield _day_problem(budget_id, day, "is a day without charges or reservations", "day")
            if as_of not in entry_times:
                yield _day_problem(budget_id, day, f"has the time {as_of}, which no entry has", "as_of")

    def derive(self) -> None:
        self._db.write(lambda: self._restore_lock_rows("budget_gates", "no", range(GATES)))
        self.rebuild()

    @writes
    def rebuild(self) -> BudgetRebuild:
        """Rebuild the sums of every budget from its charges, as after an import; return the corrections."""
        meter, budgets = self._lock_all(), self.find()
        wrong = [problem for budget in budgets for problem in self._compare_sums(meter, budget)]
        as_of = newest_time(self._db)  # keeps expired reservations expired
        for budget in budgets:
            meter.recount(budget, as_of)
        return {"budgets": len(budgets), "corrected": wrong}


def _day_problem(budget_id: str, day: str, what: str, column: str) -> dict[str, Any]:
    where = {"table": "budget_days", "record_id": to_json([str(budget_id), str(day)]), "column": column}
    return {"what": f"budget_days {budget_id} {day} {what}", **where}


def _parse_limit(microdollars: int | None, tokens: int | None) -> tuple[BudgetUnit, int]:
    if (microdollars is None) == (tokens is None):
        raise Invalid("a budget has one limit: give limit_microdollars or limit_tokens", field="limit_microdollars")
    if microdollars is None:
        return BudgetUnit.TOKENS, check_integer("limit_tokens", tokens, high=MOST)
    return BudgetUnit.MICRODOLLARS, check_integer("limit_microdollars", microdollars, high=MOST)


def _describe_state(usage: PeriodUsage) -> BudgetState:
    """Return the status of a budget: ok, warn, or stop if nothing more may be spent."""
    budget, spent = usage.budget, usage.spent
    percent = spent * 100 // budget.ceiling if budget.ceiling else 100
    state = "warn" if percent >= budget.warn_percent else "ok"
    if budget.action is BudgetAction.STOP and usage.free <= 0:
        state = "stop"
    return {
        "action": budget.action.value,
        "warn_percent": budget.warn_percent,
        "percent": percent,
        "state": state,
        "is_overdrawn": spent > budget.ceiling,
        "unpriced_calls": usage.unpriced_calls,
    }
