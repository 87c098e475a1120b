"""Actions on budgets: raise one, or set one for a run."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from decklog.core.errors import Invalid, NotFound
from decklog.core.figures import dollars
from decklog.web.actions.forms import ActionForm, FormField, WebAction, signed
from decklog.web.site import SiteRequest, command

RAISE, SET = "raise-budget", "set-budget"
_MICRO = 1_000_000


def _budget(asked: SiteRequest, budget_id: str) -> Any:
    found = next((one for one in asked.log.overview.budgets() if one.id == budget_id), None)
    if found is None:
        raise NotFound(f"there is no budget {budget_id!r} that is in force", hint="See: decklog budgets find")
    return found


def _raising(asked: SiteRequest, budget_id: str) -> ActionForm:
    budget = _budget(asked, budget_id)
    is_money = budget.unit == "microdollars"
    said = f"{budget.ceiling / _MICRO:.2f}" if is_money else str(budget.ceiling)
    option, limit = ("--limit", "DOLLARS") if is_money else ("--limit-tokens", "N")
    scope = (budget.scope, *(("--scope-id", budget.scope_id) if budget.scope_id else ()))
    return ActionForm(
        title="Raise the budget",
        button="Raise budget",
        subject=f"Budget of {budget.whose}",
        link=_link(budget),
        explanation="The new limit replaces the old one at once. What was spent before counts.",
        command=command("budgets", "set", *scope, "--period", budget.period, option, limit),
        fields=(FormField("limit", "New limit", "line", hint=f"now {said}", unit="$" if is_money else "tokens"),),
        facts=(("spent", budget.said), ("used", f"{budget.percent} %")),
        state=f"{budget.ceiling}",
    )


def _link(budget: Any) -> str:
    return f"/runs/{budget.run_id}/spend" if budget.run_id else "/spend"


def _raise(asked: SiteRequest, budget_id: str, given: Mapping[str, str]) -> str:
    budget = _budget(asked, budget_id)
    limit = _limit(given["limit"], budget.unit)
    amount: dict[str, Any] = {"limit_microdollars" if budget.unit == "microdollars" else "limit_tokens": limit}
    kept = {"period": budget.period, "action": budget.action, "warn_percent": budget.warn_percent}
    with signed(asked):
        asked.log.budgets.set(budget.scope, scope_id=budget.scope_id, **amount, **kept)
    return _link(budget)


def _setting(asked: SiteRequest, run_id: str) -> ActionForm:
    run = asked.log.runs.get(run_id)
    spent = int(asked.log.ledger.summary(run_id)["total"]["cost_microdollars"])
    return ActionForm(
        title="Set a budget",
        button="Set budget",
        subject=run.goal,
        link=f"/runs/{run_id}/spend",
        explanation="At the limit no more calls are reserved for the run. You can raise it at any time.",
        command=command("budgets", "set", "run", "--scope-id", run_id, "--limit", "DOLLARS"),
        fields=(FormField("limit", "Limit", "line", unit="$"),),
        facts=(("spent", dollars(spent)),),
    )


def _set(asked: SiteRequest, run_id: str, given: Mapping[str, str]) -> str:
    limit = _limit(given["limit"], "microdollars")
    with signed(asked):
        asked.log.budgets.set("run", scope_id=run_id, limit_microdollars=limit)
    return f"/runs/{run_id}/spend"


def _limit(text: str, unit: str) -> int:
    """Parse an amount of dollars or tokens."""
    try:
        amount = Decimal(text.removeprefix("$").replace(",", ""))
        whole = int(amount * (_MICRO if unit == "microdollars" else 1))
    except (InvalidOperation, ValueError, OverflowError):
        whole = 0
    if whole <= 0:
        raise Invalid(f"a limit is an amount such as 12.50 (got {text!r})", field="limit")
    return whole


ACTIONS = {RAISE: WebAction(_raising, _raise, is_one_change=False), SET: WebAction(_setting, _set, is_one_change=False)}
