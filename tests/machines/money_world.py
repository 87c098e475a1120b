"""What must be true of money: what was spent and held, how every budget stands, and who may spend more. It knows no database."""

from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

MONEY, TOKENS = "microdollars", "tokens"


@dataclass(frozen=True)
class Where:
    """Where money is spent or held."""

    run: str | None = None
    group: str | None = None
    task: str | None = None
    agent: str | None = None


@dataclass(frozen=True)
class Scope:
    """What a budget is for: everything, or a run, a group of all runs or of one, a task or an agent."""

    kind: str
    name: str | None = None

    def covers(self, where: Where) -> bool:
        if self.kind == "all":
            return True
        if self.kind == "group" and self.name == f"{where.run}/{where.group}":
            return where.group is not None
        return getattr(where, self.kind) == self.name


@dataclass(frozen=True)
class Amount:
    """What a call used. Money is None where its price is not known."""

    microdollars: int | None = 0
    tokens: int = 0

    def of(self, unit: str) -> int | None:
        return self.microdollars if unit == MONEY else self.tokens


@dataclass(frozen=True)
class Spent:
    where: Where
    amount: Amount
    counted_on: date
    overdrew: bool = False
    is_late: bool = False


@dataclass(frozen=True)
class Held:
    """A reservation."""

    where: Where
    amount: Amount
    reserved_at: datetime
    expires_at: datetime
    state: str = "open"
    used: Amount = Amount()

    def left(self, unit: str) -> int:
        return max(0, (self.amount.of(unit) or 0) - (self.used.of(unit) or 0))

    def using(self, amount: Amount) -> "Held":
        money = (self.used.microdollars or 0) + (amount.microdollars or 0)
        return replace(self, used=Amount(money, self.used.tokens + amount.tokens))


@dataclass(frozen=True)
class Budget:
    id: str
    scope: Scope
    period: str
    unit: str
    ceiling: int
    stops: bool
    # By which time it was last decided, on each day.
    decided: dict[date, datetime] = field(default_factory=dict)

    def span(self, at: datetime) -> tuple[date, date]:
        """Give the first day of the period that a time is in, and the first day after it."""
        today = at.date()
        if self.period == "day":
            return today, today + timedelta(days=1)
        if self.period == "week":
            monday = today - timedelta(days=today.weekday())
            return monday, monday + timedelta(days=7)
        if self.period == "month":
            first = today.replace(day=1)
            return first, (first + timedelta(days=31)).replace(day=1)
        return date.min, date.max


@dataclass(frozen=True)
class Standing:
    budget: Budget
    spent: int
    reserved: int
    as_of: datetime

    @property
    def free(self) -> int:
        return self.budget.ceiling - self.spent - self.reserved


@dataclass
class MoneyWorld:
    # Tasks by their ids, with their run and group.
    runs: list[str] = field(default_factory=list)
    tasks: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    budgets: dict[tuple[Scope, str, str], Budget] = field(default_factory=dict)
    spent: dict[str, Spent] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)
    keys: dict[tuple[str | None, str], str] = field(default_factory=dict)
    # What was reserved with the last claim of each task.
    of_task: dict[str, str | None] = field(default_factory=dict)
    # Claims, by their place in the list of all that were made.
    claims: frozenset[int] = frozenset()

    def copy(self) -> "MoneyWorld":
        return MoneyWorld(
            list(self.runs),
            dict(self.tasks),
            dict(self.budgets),
            dict(self.spent),
            dict(self.held),
            dict(self.keys),
            dict(self.of_task),
            self.claims,
        )

    def placed(self, where: Where) -> Where:
        """Complete a place by what is known of its task: it is of one run, and of a group unless another is named."""
        if where.task not in self.tasks:
            return where
        run, group = self.tasks[where.task]
        return replace(where, run=where.run or run, group=where.group or group)

    def is_elsewhere(self, where: Where) -> bool:
        """Tell whether a task is named together with a run that it is not of."""
        return where.task in self.tasks and where.run is not None and where.run != self.tasks[where.task][0]

    def knows(self, scope: Scope) -> bool:
        """Tell whether anything was planned or spent in a scope; a group is known by nothing else."""
        planned = [Where(run, group) for run, group in self.tasks.values()]
        spent = [one.where for one in self.spent.values()]
        return scope.kind != "group" or any(scope.covers(where) for where in [*planned, *spent])

    # How budgets stand

    def standing(self, budget: Budget, at: datetime, now: datetime) -> Standing:
        start, end = budget.span(at)
        as_of = max([now, *(moment for day, moment in budget.decided.items() if start <= day < end)])
        spent = sum(
            one.amount.of(budget.unit) or 0
            for one in self.spent.values()
            if budget.scope.covers(one.where) and start <= one.counted_on < end
        )
        reserved = sum(
            one.left(budget.unit)
            for one in self.held.values()
            if one.state == "open"
            and one.expires_at > as_of
            and budget.scope.covers(one.where)
            and start <= one.reserved_at.date() < end
        )
        return Standing(budget, spent, reserved, as_of)

    def standings(self, where: Where, at: datetime, now: datetime) -> list[Standing]:
        return [self.standing(budget, at, now) for budget in self.budgets.values() if budget.scope.covers(where)]

    def decide(self, standings: list[Standing], at: datetime) -> None:
        for standing in standings:
            budget = standing.budget
            key = (budget.scope, budget.period, budget.unit)
            self.budgets[key] = replace(budget, decided={**budget.decided, at.date(): standing.as_of})

    def is_holding(self, held: Held, now: datetime) -> bool:
        """Tell whether a reservation still holds, by the latest time that any of its budgets has seen."""
        if held.state != "open":
            return False
        return held.expires_at > max([now, *(one.as_of for one in self.standings(held.where, held.reserved_at, now))])

    # Who may spend

    def has_room(self, where: Where, amount: Amount, now: datetime) -> bool:
        """Tell whether so much can be reserved; where nothing is left, not even nothing can."""
        stopping = [one for one in self.standings(where, now, now) if one.budget.stops]
        return all(one.free > 0 and (amount.of(one.budget.unit) or 0) <= one.free for one in stopping)

    def reserve(self, reservation_id: str, where: Where, amount: Amount, now: datetime, until: datetime) -> None:
        self.decide(self.standings(where, now, now), now)
        self.held[reservation_id] = Held(where, amount, now, until)

    def paying(self, reservation_id: str | None, now: datetime) -> Held | None:
        held = self.held.get(reservation_id or "")
        return held if held is not None and self.is_holding(held, now) else None

    def too_much(self, where: Where, amount: Amount, paying: Held | None, now: datetime) -> list[Standing]:
        """List the budgets that stop and have no room for a charge, or can't tell for want of a price."""
        found = []
        for one in self.standings(where, paying.reserved_at if paying else now, now):
            wanted = amount.of(one.budget.unit)
            is_covered = paying is not None and one.budget.scope.covers(paying.where)
            covered = min(wanted or 0, paying.left(one.budget.unit)) if paying is not None and is_covered else 0
            if one.budget.stops and (wanted is None or wanted - covered > max(0, one.free)):
                found.append(one)
        return found

    def charge(self, charge_id: str, reservation_id: str | None, spent: Spent, now: datetime) -> None:
        paying = self.paying(reservation_id, now)
        at = paying.reserved_at if paying else now
        self.decide(self.standings(spent.where, at, now), at)
        self.spent[charge_id] = replace(spent, counted_on=at.date())
        if paying is not None and reservation_id is not None:
            self.held[reservation_id] = paying.using(spent.amount)

    def end(self, reservation_id: str | None, state: str) -> None:
        held = self.held.get(reservation_id or "")
        if held is not None and held.state == "open":
            self.held[reservation_id or ""] = replace(held, state=state)
