"""What rules tell of: what waits for a person, budgets that warn or stop, work that failed, and runs that are done."""

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from decklog import Decklog

# Older events are not reported.
NEWS = timedelta(days=7)
_MOST = 200


class NotifyEvent(NamedTuple):
    """One thing to tell of, once: `key` names it for ever."""

    key: str
    what: str
    run_id: str | None = None


def events(log: "Decklog", event: str, since: "datetime") -> "list[NotifyEvent]":
    """List what there is to tell of one kind, no older than the rule and a week."""
    start = max(since, log.clock.now() - NEWS)
    found = {"needs_attention": _needs_attention, "budget": _budgets, "failure": _failures, "done": _done}[event]
    return list(found(log, start))


def _needs_attention(log: "Decklog", _since: "datetime") -> "Iterator[NotifyEvent]":
    after: str | None = None
    while True:
        page = log.overview.waiting(limit=_MOST, after=after)
        for item in page:
            if item.is_decision:
                yield NotifyEvent(f"{item.kind}:{item.id}", f"{item.what}\n{item.command}", item.run_id)
        after = page.next
        if after is None:
            return


def _budgets(log: "Decklog", _since: "datetime") -> "Iterator[NotifyEvent]":
    today = log.clock.now().date().isoformat()
    for budget in log.overview.budgets():
        if budget.state != "ok":
            # Once in each of its periods.
            period = {"day": today, "week": f"{log.clock.now():%G-W%V}", "month": today[:7]}.get(budget.period, "")
            verb = "is spent, and stops" if budget.state == "stop" else f"has burned {budget.percent} %"
            said = f"The budget of {budget.whose} {verb}: {budget.said}"
            yield NotifyEvent(f"budget:{budget.id}:{period}:{budget.state}", said, budget.run_id)


def _failures(log: "Decklog", since: "datetime") -> "Iterator[NotifyEvent]":
    for run in log.overview.ended(since, limit=_MOST):
        if run["status"] == "failed":
            yield NotifyEvent(f"run:{run['id']}:{run['ended_at']}", f"Failed: {run['goal']}{_below(run['summary'])}", run["id"])
    for task in log.overview.failed_tasks(since, limit=_MOST):
        said = f"All attempts failed: {task['title']}{_below(task['reason'])}"
        yield NotifyEvent(f"task:{task['id']}:{task['failures']}", said, task["run_id"])


def _done(log: "Decklog", since: "datetime") -> "Iterator[NotifyEvent]":
    for run in log.overview.ended(since, limit=_MOST):
        if run["status"] == "done":
            yield NotifyEvent(f"run:{run['id']}:{run['ended_at']}", f"Done: {run['goal']}{_below(run['summary'])}", run["id"])


def _below(text: str | None) -> str:
    return f"\n{text}" if text else ""
