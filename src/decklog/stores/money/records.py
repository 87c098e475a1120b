"""Records of budgets and reservations: limits per period, and amounts reserved for unfinished calls.

Periods are in UTC: a day starts at midnight, a week on Monday, a month on its first day.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from decklog.core.clock import to_text
from decklog.core.display import dollars
from decklog.core.errors import Invalid
from decklog.db.base import Database
from decklog.records.fork_rules import not_copied
from decklog.records.record import Record
from decklog.stores.checks import check_integer, check_time_zone


class BudgetScope(StrEnum):
    ALL = "all"
    RUN = "run"
    GROUP = "group"
    TASK = "task"
    AGENT = "agent"


BudgetScopeLike = BudgetScope | Literal["all", "run", "group", "task", "agent"]


class BudgetPeriod(StrEnum):
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    FOREVER = "forever"


BudgetPeriodLike = BudgetPeriod | Literal["day", "week", "month", "forever"]


class BudgetUnit(StrEnum):
    MICRODOLLARS = "microdollars"
    TOKENS = "tokens"


class BudgetAction(StrEnum):
    WARN = "warn"
    STOP = "stop"


BudgetActionLike = BudgetAction | Literal["warn", "stop"]


class ReservationState(StrEnum):
    OPEN = "open"
    SETTLED = "settled"
    RELEASED = "released"


ReservationStateLike = ReservationState | Literal["open", "settled", "released"]


# The column of a charge or a reservation that decides whether it is in a budget's scope.
COLUMNS = {BudgetScope.RUN: "run_id", BudgetScope.GROUP: "group_id", BudgetScope.TASK: "task_id", BudgetScope.AGENT: "agent"}


@dataclass(frozen=True, kw_only=True)
class Budget(Record):
    """A spending limit per period for a run, group, task, agent or everything, in microdollars or tokens."""

    table = "budgets"
    home = "@ledger"
    is_managed = True
    is_guarded = True

    id: str
    scope: BudgetScope
    scope_id: str | None = None
    period: BudgetPeriod
    unit: BudgetUnit
    ceiling: int
    action: BudgetAction
    warn_percent: int
    set_at: datetime
    proof: str | None = None

    @property
    def is_proven(self) -> bool:
        """Whether the owner signed it."""
        return self.proof is not None

    def as_dict(self) -> dict[str, Any]:
        return {**super().as_dict(), "is_proven": self.is_proven}

    def covers(self, place: Mapping[str, Any]) -> bool:
        """Return whether a run, group, task and agent are in the scope of the budget."""
        if self.scope is BudgetScope.ALL or place.get(COLUMNS[self.scope]) == self.scope_id:
            return True
        # Groups of two runs may have the same id; a budget may be for one of them.
        return self.scope is BudgetScope.GROUP and f"{place.get('run_id')}/{place.get('group_id')}" == self.scope_id

    @property
    def title(self) -> str:
        whose = "everything" if self.scope is BudgetScope.ALL else f"{self.scope} {self.scope_id}"
        return f"{whose}, {self.period}" if self.period is BudgetPeriod.FOREVER else f"{whose}, per {self.period}"

    def format_amount(self, amount: int, *, exact: bool = False) -> str:
        """Format an amount of this budget's unit for people."""
        return dollars(amount, exact=exact) if self.unit is BudgetUnit.MICRODOLLARS else f"{amount} tokens"


@dataclass(frozen=True, kw_only=True)
class Reservation(Record):
    """Money and tokens reserved for calls until `expires_at`, and the used part."""

    table = "reservations"
    fork = not_copied("Money is reserved once.")

    id: str
    state: ReservationState
    microdollars: int
    tokens: int
    used_microdollars: int = 0
    used_tokens: int = 0
    reserved_at: datetime
    expires_at: datetime
    ended_at: datetime | None = None
    run_id: str | None = None
    group_id: str | None = None
    task_id: str | None = None
    agent: str | None = None
    holder: str | None = None
    key: str | None = None

    @classmethod
    def stream_of(cls, values: Mapping[str, Any]) -> str:
        return values["run_id"] or "@ledger"

    def left(self, unit: BudgetUnit) -> int:
        if unit is BudgetUnit.MICRODOLLARS:
            return max(0, self.microdollars - self.used_microdollars)
        return max(0, self.tokens - self.used_tokens)


@dataclass(frozen=True)
class PeriodSpan:
    """One period, from its first day up to its end, exclusive. The texts can be compared with times and days."""

    start: str
    end: str
    renews_at: datetime | None

    @property
    def days(self) -> dict[str, str]:
        return {"start": self.start, "end": self.end}


_FOREVER = PeriodSpan("", "~", None)


def period_at(period: BudgetPeriod, at: datetime) -> PeriodSpan:
    """Return the period of a time."""
    today = at.astimezone(UTC).date()
    match period:
        case BudgetPeriod.FOREVER:
            return _FOREVER
        case BudgetPeriod.DAY:
            return _span(today, today + timedelta(days=1))
        case BudgetPeriod.WEEK:
            monday = today - timedelta(days=today.weekday())
            return _span(monday, monday + timedelta(days=7))
        case BudgetPeriod.MONTH:
            first = today.replace(day=1)
            return _span(first, (first + timedelta(days=31)).replace(day=1))


def _span(start: date, end: date) -> PeriodSpan:
    return PeriodSpan(start.isoformat(), end.isoformat(), datetime(end.year, end.month, end.day, tzinfo=UTC))


def format_day(moment: datetime) -> str:
    """Return the day of a time."""
    return to_text(moment)[:10]


def budget_place(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that decide which budgets apply."""
    return {column: values[column] for column in COLUMNS.values()}


def complete_by_task(
    db: Database, given: dict[str, Any], named: Mapping[str, Any], reservation: Reservation | None = None
) -> None:
    """Add the run and the group of a task, so that their budgets apply even if the caller leaves them out.

    A task that is named with another run is refused. The task of the context does not apply to charges of another run.
    A task that is not planned in this log may belong to any run.
    """
    if given["task_id"] is None:
        return
    row = db.one("select run_id, group_id from tasks where id = :id", {"id": db.values.bind({"id": given["task_id"]})[0]["id"]})
    if row is None:
        return
    run_id, group_id = row
    other = given["run_id"] if reservation is None else reservation.run_id
    if other != run_id and (other is not None or reservation is not None):
        if named["task_id"] is None and (reservation is None or reservation.task_id is None):
            group_id = named["group_id"] if reservation is None or reservation.group_id is None else reservation.group_id
            given |= {"task_id": None, "group_id": group_id}
            return
        whose = f"reservation {reservation.id} is for {other or 'no run'}" if reservation is not None else f"this is for {other}"
        raise Invalid(f"task {given['task_id']} belongs to run {run_id}, but {whose}", field="task_id")
    given["run_id"] = run_id
    if given["group_id"] is None:
        given["group_id"] = group_id


# Small enough that the sum of nine million such charges fits.
MOST = 10**12
TOKENS = ("input_tokens", "cache_read_tokens", "cache_create_tokens", "output_tokens")
_FIGURES = (*TOKENS, "cost_microdollars")


@dataclass(frozen=True, kw_only=True)
class Charge(Record):
    """The tokens and cost of one model call. The cost is None if the model has no known price.

    `counted_at` is the time at which budgets count it, if on another day: of its recording, or of the reservation that paid
    for it. `overdrew` is true if it exceeded a stopping budget, or had no price; `is_late` if its task was no longer claimed by
    the worker. `answer_id` is the id of the answer at the provider.
    """

    table = "charges"
    fork = not_copied("Money is spent once.")

    id: str
    occurred_at: datetime
    model: str
    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_create_tokens: int = 0
    output_tokens: int = 0
    cost_microdollars: int | None = None
    call_site: str | None = None
    agent: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    group_id: str | None = None
    task_id: str | None = None
    reservation_id: str | None = None
    counted_at: datetime | None = None
    overdrew: bool = False
    is_late: bool = False
    key: str | None = None
    answer_id: str | None = None

    @classmethod
    def stream_of(cls, values: Mapping[str, Any]) -> str:
        return values["run_id"] or "@ledger"

    @property
    def tokens(self) -> int:
        """The sum of all four kinds, which budgets in tokens count."""
        return self.input_tokens + self.cache_read_tokens + self.cache_create_tokens + self.output_tokens


def check_charge(given: Mapping[str, Any]) -> None:
    """Raise Invalid for impossible tokens or costs."""
    if not given["model"].strip():
        raise Invalid("a charge needs the name of its model", field="model")
    for name in TOKENS if given["cost_microdollars"] is None else _FIGURES:
        check_integer(name, given[name], high=MOST)
    check_time_zone("occurred_at", given["occurred_at"])
