"""Budgets under any sequence of reservations, charges, claims, transactions and forks, while days pass."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from decklog import BudgetExceeded, Conflict, Invalid, LeaseLost, NotFound
from decklog.core.errors import Refused
from decklog.stores.tasks.claim import Claim
from tests.machines.base import WHICH, LogMachine, pick
from tests.machines.money_world import MONEY, TOKENS, Amount, Budget, Held, MoneyWorld, Scope, Spent, Where

HOUR = timedelta(hours=1)
MOST_RUNS, MOST_BUDGETS = 4, 6
PERIODS = st.sampled_from(["day", "week", "month", "forever"])
UNITS = st.sampled_from([MONEY, MONEY, TOKENS])
AMOUNTS = st.sampled_from([0, 1, 5, 20, 60])
COSTS = st.sampled_from([0, 1, 5, 20, 60, None])
AGENTS = st.sampled_from([None, None, "ana", "ben"])
GROUPS = st.sampled_from([None, None, "g", "h"])
WAITS = st.sampled_from([60, 1800, 3600, 50_000, 86_400, 700_000])


class MoneyMachine(LogMachine[MoneyWorld]):
    def begin_world(self) -> None:
        self.world = MoneyWorld()
        self.claims: list[Claim] = []
        for name in ("run_1", "run_2"):
            self.log.runs.start("a machine", run_id=name)
            self.log.tasks.add(name, "in a group", group_id="g", max_attempts=9)
            self.log.tasks.add(name, "in none", max_attempts=9)
            self.meet(name)
        self.log.budgets.set("all", period="day", limit_microdollars=100)
        self.know(Scope("all"), "day", MONEY, 100, True)

    def meet(self, name: str) -> None:
        """Know a run and its tasks."""
        self.world.runs.append(name)
        self.world.tasks |= {task.id: (name, task.group_id) for task in self.log.tasks.find(name)}

    def know(self, scope: Scope, period: str, unit: str, ceiling: int, stops: bool) -> None:
        """Know a budget; one that is new counts what was spent before, as of now."""
        key = (scope, period, unit)
        found = next(one for one in self.log.budgets.find(scope=scope.kind) if same(one, key))
        old = self.world.budgets.get(key)
        days = {one.counted_on for one in self.world.spent.values() if scope.covers(one.where)}
        decided = old.decided if old else dict.fromkeys(days, self.clock.now())
        self.world.budgets[key] = Budget(found.id, scope, period, unit, ceiling, stops, decided)

    def choose_place(self, which: int, group: str | None, agent: str | None) -> Where:
        """Choose a run, a task, both or neither; sometimes a task with a run that is not its own."""
        run, task = pick(which, self.world.runs), pick(which // 2, list(self.world.tasks))
        pairs = [(None, None), (run, None), (None, task), (self.world.tasks[task][0], task), (run, task), (run, "unplanned")]
        place = pick(which, pairs)
        return Where(place[0], group, place[1], agent)

    # Budgets

    @rule(which=WHICH, agent=AGENTS, period=PERIODS, unit=UNITS, ceiling=st.sampled_from([0, 10, 40, 100]), stops=st.booleans())
    def set_budget(self, which: int, agent: str | None, period: str, unit: str, ceiling: int, stops: bool) -> None:
        run, task = pick(which, self.world.runs), pick(which, list(self.world.tasks))
        scopes = [Scope("all"), Scope("run", run), Scope("task", task), Scope("agent", agent or "ana"), Scope("group", "g")]
        scope = pick(which, [*scopes, Scope("group", f"{run}/g")])
        if (scope, period, unit) not in self.world.budgets and len(self.world.budgets) >= MOST_BUDGETS:
            return
        limit = {"limit_microdollars": ceiling} if unit == MONEY else {"limit_tokens": ceiling}
        action = "stop" if stops else "warn"
        act = partial(self.log.budgets.set, scope.kind, scope_id=scope.name, period=period, action=action, **limit)
        if (scope, period, unit) not in self.world.budgets and not self.world.knows(scope):
            self.refused(NotFound, act)
            return
        act()
        self.know(scope, period, unit, ceiling, stops)

    @precondition(lambda self: len(self.world.budgets) > 2)
    @rule(which=WHICH)
    def lift(self, which: int) -> None:
        key = pick(which, list(self.world.budgets))
        self.log.budgets.lift(self.world.budgets.pop(key).id)

    # Reservations

    @rule(which=WHICH, group=GROUPS, agent=AGENTS, money=AMOUNTS, tokens=AMOUNTS, hours=st.sampled_from([-1, 1, 1, 30]))
    def reserve(self, which: int, group: str | None, agent: str | None, money: int, tokens: int, hours: int) -> None:
        requested, now = self.choose_place(which, group, agent), self.clock.now()
        where, amount, until = self.world.placed(requested), Amount(money, tokens), now + hours * HOUR
        act = partial(self.log.reservations.reserve, until, amount_microdollars=money, tokens=tokens, **arguments_of(requested))
        if self.world.is_elsewhere(requested) or until <= now:
            self.refused(Invalid, act)
        elif not self.world.has_room(where, amount, now):
            self.refused(BudgetExceeded, act)
        else:
            self.world.reserve(act().id, where, amount, now, until)

    def refused(self, problem: type[Exception], act: Any) -> None:
        with pytest.raises(problem):
            act()

    @precondition(lambda self: self.world.held)
    @rule(which=WHICH, verb=st.sampled_from(["settle", "release"]))
    def end(self, which: int, verb: str) -> None:
        reservation_id = pick(which, list(self.world.held))
        state, word = self.world.held[reservation_id].state, {"settle": "settled", "release": "released"}[verb]
        act = partial(getattr(self.log.reservations, verb), reservation_id)
        if state in (word, "released"):
            assert act().already
        elif state != "open":
            self.refused(Conflict, act)
        else:
            act()
            self.world.end(reservation_id, word)

    @precondition(lambda self: self.world.held)
    @rule(which=WHICH, hours=st.sampled_from([1, 3]))
    def extend(self, which: int, hours: int) -> None:
        reservation_id = pick(which, list(self.world.held))
        held, until = self.world.held[reservation_id], self.clock.now() + hours * HOUR
        act = partial(self.log.reservations.extend, reservation_id, until)
        if not self.world.is_holding(held, self.clock.now()):
            self.refused(Conflict, act)
        elif until <= held.expires_at:
            assert act().already
        else:
            act()
            self.world.held[reservation_id] = replace(held, expires_at=until)

    # Charges

    @rule(
        which=WHICH,
        group=GROUPS,
        agent=AGENTS,
        money=COSTS,
        tokens=AMOUNTS,
        enforce=st.sampled_from([True, True, False]),
        days=st.sampled_from([0, 0, -40, -1, 2]),
        key=st.sampled_from([None, None, None, "k"]),
    )
    def charge(
        self,
        which: int,
        group: str | None,
        agent: str | None,
        money: int | None,
        tokens: int,
        enforce: bool,
        days: int,
        key: str | None,
    ) -> None:
        """Charge without a reservation."""
        requested, amount = self.choose_place(which, group, agent), Amount(money, tokens)
        more = {"occurred_at": self.clock.now() + timedelta(days=days), "key": key}
        act = partial(self.charged, amount, enforce=enforce, **more, **arguments_of(requested))
        if self.world.is_elsewhere(requested):
            self.refused(Invalid, act)
        else:
            self.spend(act, self.world.placed(requested), amount, enforce=enforce, key=key)

    def charged(self, amount: Amount, **more: Any) -> Any:
        """Charge a call; one whose cost is not told is of a model without a price."""
        return self.log.ledger.charge("unheard-of", input_tokens=amount.tokens, cost_microdollars=amount.microdollars, **more)

    def spend(
        self,
        act: Any,
        where: Where,
        amount: Amount,
        *,
        enforce: bool,
        key: str | None = None,
        reservation: str | None = None,
        late: bool = False,
    ) -> None:
        known, now = self.world.keys.get((where.run, key)) if key else None, self.clock.now()
        if known is not None:
            self.repeat(act, known, amount)
            return
        paying = self.world.paying(reservation, now)
        over = self.world.too_much(where, amount, paying, now)
        if over and enforce and not late:
            self.refused(Refused, act)
            return
        charge = act()
        self.world.charge(charge.id, reservation, Spent(where, amount, now.date(), bool(over), late), now)
        if key:
            self.world.keys[where.run, key] = charge.id

    def repeat(self, act: Any, known: str, amount: Amount) -> None:
        """Charge with a key that is known: the same call is that charge, another one is a mistake."""
        if self.world.spent[known].amount.tokens != amount.tokens:
            self.refused(Conflict, act)
        else:
            again = act()
            assert (again.already, again.id) == (True, known)

    @precondition(lambda self: self.world.held)
    @rule(which=WHICH, place=WHICH, group=GROUPS, agent=AGENTS, money=COSTS, tokens=AMOUNTS, enforce=st.booleans())
    def charge_held(
        self, which: int, place: int, group: str | None, agent: str | None, money: int | None, tokens: int, enforce: bool
    ) -> None:
        """Charge under a reservation, which says where, as far as it does."""
        reservation_id = pick(which, list(self.world.held))
        held, amount = self.world.held[reservation_id].where, Amount(money, tokens)
        requested = self.choose_place(place, group, agent) if place % 3 == 0 else Where(agent=held.agent)
        act = partial(self.charged, amount, reservation_id=reservation_id, enforce=enforce, **arguments_of(requested))
        where = inherited(requested, held)
        if where is None or self.world.is_elsewhere(where) or self.world.placed(where).run != held.run:
            self.refused(Invalid, act)
        else:
            self.spend(act, self.world.placed(where), amount, enforce=enforce, reservation=reservation_id)

    # Claims with money

    @rule(which=WHICH, money=st.sampled_from([None, 5, 40]))
    def claim(self, which: int, money: int | None) -> None:
        run, now = pick(which, self.world.runs), self.clock.now()
        ready = self.log.tasks.ready(run)["ready"]
        act = partial(self.log.tasks.claim, run, worker="ana", lease_seconds=3600, reserve_microdollars=money)
        if not ready:
            assert act() is None
            return
        where, amount = self.world.placed(Where(run, None, ready[0]["id"], "ana")), Amount(money or 0)
        if money is not None and not self.world.has_room(where, amount, now):
            self.refused(BudgetExceeded, act)
            return
        claim = act()
        assert claim.id == where.task
        self.world.claims |= {len(self.claims)}
        self.claims.append(claim)
        self.world.of_task[claim.id] = claim.reservation_id
        if money is not None:
            self.world.reserve(claim.reservation_id, where, amount, now, now + HOUR)

    def a_claim(self, which: int) -> tuple[Claim, bool]:
        """Choose a claim; say whether it still holds its task."""
        claim = self.claims[pick(which, sorted(self.world.claims))]
        task = self.log.tasks.get(claim.id)
        return claim, task.state == "running" and task.fence == claim.fence

    @precondition(lambda self: self.world.claims)
    @rule(which=WHICH, verb=st.sampled_from(["release", "fail", "extend", "extend"]))
    def go_on(self, which: int, verb: str) -> None:
        claim, is_held = self.a_claim(which)
        act, reserved = getattr(claim, verb), self.world.of_task[claim.id]
        if not is_held:
            self.refused(LeaseLost, act)
        elif verb != "extend":
            act()
            self.world.end(reserved, "settled")
        else:
            act()
            if reserved is not None:
                self.hold_on(claim, reserved)

    def hold_on(self, claim: Claim, reserved: str) -> None:
        """Hold a task's money for as long as its lease: what is over by now is held anew, if there is room for it."""
        held, now = self.world.held[reserved], self.clock.now()
        left = Amount(held.left(MONEY), held.left(TOKENS))
        if self.world.is_holding(held, now):
            self.world.held[reserved] = replace(held, expires_at=max(held.expires_at, now + HOUR))
        elif held.state == "open" and self.world.has_room(held.where, left, now):
            assert claim.reservation_id != reserved
            self.world.of_task[claim.id] = claim.reservation_id
            self.world.reserve(claim.reservation_id, held.where, left, now, now + HOUR)

    @precondition(lambda self: self.world.claims)
    @rule(which=WHICH)
    def pause(self, which: int) -> None:
        claim, _ = self.a_claim(which)
        if self.log.tasks.get(claim.id).state in ("pending", "running"):
            self.log.tasks.pause(claim.id, reason="x")
            self.log.tasks.resume(claim.id)
            self.world.end(self.world.of_task[claim.id], "settled")

    @precondition(lambda self: self.world.claims)
    @rule(which=WHICH, money=COSTS, tokens=AMOUNTS, enforce=st.booleans(), held=st.booleans())
    def charge_as_worker(self, which: int, money: int | None, tokens: int, enforce: bool, held: bool) -> None:
        """Charge in the name of a task; money that is gone is put down even when the task is lost."""
        claim, is_held = self.a_claim(which)
        where, amount = self.world.placed(Where(None, None, claim.id, "ana")), Amount(money, tokens)
        reserved = claim.reservation_id if held else None
        with self.log.acting("ana", task_id=claim.id, fence=claim.fence):
            act = partial(self.charged, amount, enforce=enforce, reservation_id=reserved)
            self.spend(act, where, amount, enforce=enforce, reservation=reserved, late=not is_held)

    # Time and forks

    @rule(seconds=WAITS)
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)

    @rule()
    def set_clock_back(self) -> None:
        """Read a clock that is behind: what has been seen to expire stays so."""
        self.clock.advance(minutes=-20)

    @precondition(lambda self: len(self.world.runs) < MOST_RUNS)
    @rule(which=WHICH, back=st.integers(0, 6))
    def fork(self, which: int, back: int) -> None:
        """Fork a run: its tasks come along, and no money."""
        run = pick(which, self.world.runs)
        seq = next(head["seq"] for head in self.log.journal.heads() if head["stream"] == run)
        self.meet(self.log.runs.fork(run, at=str(max(1, seq - back))).id)

    # What must hold

    def compare(self) -> None:
        now = self.clock.now()
        stands = {row["budget_id"]: (row["ceiling"], row["spent"], row["reserved"]) for row in self.log.budgets.burn()}
        due = [self.world.standing(budget, now, now) for budget in self.world.budgets.values()]
        assert stands == {one.budget.id: (one.budget.ceiling, one.spent, one.reserved) for one in due}
        total = self.log.ledger.summary()["total"]
        costs = [one.amount.microdollars for one in self.world.spent.values()]
        found = (total["cost_microdollars"], total["unpriced_calls"], total["calls"])
        assert found == (sum(cost or 0 for cost in costs), costs.count(None), len(costs))

    def at_end(self) -> None:
        assert self.log.budgets.check()["problems"] == []
        held = {one.id: held_of(one) for one in self.log.reservations.find(limit=1000)}
        assert held == self.world.held
        charges = {
            one.id: (place(one), one.cost_microdollars, one.tokens, one.overdrew, one.is_late)
            for one in self.log.ledger.find(limit=1000)
        }
        assert charges == {
            name: (one.where, one.amount.microdollars, one.amount.tokens, one.overdrew, one.is_late)
            for name, one in self.world.spent.items()
        }
        super().at_end()


def same(budget: Any, key: tuple[Scope, str, str]) -> bool:
    return (Scope(budget.scope, budget.scope_id), budget.period, budget.unit) == key


def arguments_of(where: Where) -> dict[str, Any]:
    return {"run_id": where.run, "group_id": where.group, "task_id": where.task, "agent": where.agent}


def place(record: Any) -> Where:
    return Where(record.run_id, record.group_id, record.task_id, record.agent)


def held_of(one: Any) -> Held:
    used = Amount(one.used_microdollars, one.used_tokens)
    return Held(place(one), Amount(one.microdollars, one.tokens), one.reserved_at, one.expires_at, one.state.value, used)


def inherited(requested: Where, held: Where) -> Where | None:
    """Complete a place by that of its reservation; None when the two disagree. A run is a value even when there is none."""
    found = {}
    for name in ("run", "group", "task", "agent"):
        one, other = getattr(requested, name), getattr(held, name)
        if one not in (None, other) and (other is not None or name == "run"):
            return None
        found[name] = other if other is not None else one
    return Where(**found)
