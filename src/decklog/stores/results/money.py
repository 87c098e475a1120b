"""What the verbs of budgets and the ledger return."""

from typing import TypedDict


class BudgetDay(TypedDict):
    """The spending of a budget on a day."""

    day: str
    spent: int


class BudgetFigures(TypedDict):
    """A budget with its spending and reservations of the current period."""

    budget_id: str
    scope: str
    scope_id: str | None
    period: str
    unit: str
    ceiling: int
    spent: int
    reserved: int
    left: int
    renews_at: str | None


class BudgetState(TypedDict):
    """Whether a budget warns or stops: `state` is ok, warn or stop."""

    action: str
    warn_percent: int
    percent: int
    state: str
    is_overdrawn: bool
    unpriced_calls: int


class BudgetUsage(BudgetFigures, BudgetState):
    """How far a budget is used, with the last 14 days."""

    days: list[BudgetDay]


class BudgetDifference(TypedDict):
    """A day on which a budget's running sums differ from its charges."""

    budget_id: str
    day: str
    kept: list[int]
    charged: list[int]


class BudgetCheck(TypedDict):
    """The result of comparing all budgets with their charges."""

    ok: bool
    budgets: int
    problems: list[BudgetDifference]


class BudgetRebuild(TypedDict):
    """The result of computing all budgets' sums again."""

    budgets: int
    corrected: list[BudgetDifference]


class SpendTotal(TypedDict):
    """The sums of some charges."""

    calls: int
    input_tokens: int
    cache_read_tokens: int
    cache_create_tokens: int
    output_tokens: int
    cost_microdollars: int
    unpriced_calls: int


class SpendRow(SpendTotal):
    """The sums of the charges with one key."""

    key: str | None


class SpendSummary(TypedDict):
    """Charges added up by a key, and in total."""

    by: str
    rows: list[SpendRow]
    total: SpendTotal
