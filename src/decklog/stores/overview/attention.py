"""Problems that need attention: each kind with its count and its newest case."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from decklog.core.clock import from_text, to_text
from decklog.db.base import Database, Row
from decklog.records.values import from_json
from decklog.stores.overview.view import View


class AttentionKind(StrEnum):
    """Kinds of problems, the most urgent first."""

    FAILED_RUN = "failed run"
    BLOCKED_TASK = "blocked task"
    FAILED_ATTEMPT = "failed attempt"
    FAILED_CHECK = "failed check"
    BLOCKED_REVIEW = "blocked review"
    FEEDBACK = "severe feedback"


@dataclass(frozen=True, kw_only=True)
class AttentionGroup(View):
    """One kind of problem: the number of cases, up to 100, and the newest with its cause."""

    kind: AttentionKind
    count: int
    id: str
    title: str
    cause: str | None
    at: datetime
    run_id: str | None = None
    task_id: str | None = None


# The number of cases that are counted per kind.
MOST = 100
# Checks and reviews are shown for this time; failed runs for a day.
_LOOK_BACK, _ENDED = timedelta(days=7), timedelta(days=1)
# The number of claimable tasks that are searched for failed attempts.
_MOST_READY = 2000
_GOES_ON = "r.status in ('planning', 'active', 'paused')"
_NEWEST_RUNS = "select id from runs where status in ('planning', 'active', 'paused') order by started_at desc, id desc limit 200"


_TASK = "t.id, t.run_id, t.id as task_id, t.title, coalesce(t.blocker, t.reason), t.updated_at"
_BLOCKED = f"tasks t join runs r on r.id = t.run_id where t.state = 'blocked' and {_GOES_ON}"
# Of checks and reviews, those of unfinished tasks without a newer one.
_UNSOLVED = f"""
  left join tasks t on t.id = v.task_id
 where v.run_id in ({_NEWEST_RUNS}) and v.created_at >= :since and {{condition}}
   and (t.id is null or t.state not in ('done', 'abandoned'))
   and not exists (select 1 from {{table}} n
                    where n.run_id = v.run_id and n.created_at > v.created_at{{same}}
                      and coalesce(n.task_id, '') = coalesce(v.task_id, ''))
"""
_CHECKS = _UNSOLVED.format(table="verdicts", condition="v.outcome in ('fail', 'error')", same=" and n.name = v.name")
_REVIEWS = _UNSOLVED.format(table="reviews", condition="v.verdict = 'block'", same="")
# Each part: its kind, columns, source and time. All have the same columns: kind, id, run, task, title, cause, time. A cause may
# be a JSON list of findings.
_PARTS = (
    (
        AttentionKind.FAILED_RUN,
        "id, id as run_id, null as task_id, goal, summary, ended_at",
        "runs where ended_at is not null and ended_at >= :ended_since and status = 'failed'",
        "ended_at",
    ),
    (AttentionKind.BLOCKED_TASK, _TASK, f"{_BLOCKED} and t.failures < t.max_attempts", "t.updated_at"),
    (AttentionKind.FAILED_ATTEMPT, _TASK, f"{_BLOCKED} and t.failures >= t.max_attempts", "t.updated_at"),
    (
        AttentionKind.FAILED_ATTEMPT,
        _TASK,
        f"tasks t where t.state = 'running' and t.failures > 0 and t.run_id in ({_NEWEST_RUNS})",
        "t.updated_at",
    ),
    (
        AttentionKind.FAILED_ATTEMPT,
        _TASK,
        f"""(select * from tasks
              where state = 'pending' and open_dependencies = 0 and run_id in ({_NEWEST_RUNS})
              limit {_MOST_READY}) t
           where t.failures > 0""",
        "t.updated_at",
    ),
    (
        AttentionKind.FAILED_CHECK,
        "v.id, v.run_id, v.task_id, v.name, v.findings, v.created_at",
        f"verdicts v {_CHECKS}",
        "v.created_at",
    ),
    (
        AttentionKind.BLOCKED_REVIEW,
        "v.id, v.run_id, v.task_id, coalesce(t.title, v.verdict), v.findings, v.created_at",
        f"reviews v {_REVIEWS}",
        "v.created_at",
    ),
    (
        AttentionKind.FEEDBACK,
        "id, null as run_id, null as task_id, body, null as cause, received_at",
        "feedback where state = 'pending' and severity in ('high', 'critical')",
        "received_at",
    ),
)
_SQL = " union all ".join(
    f"select * from (select '{kind}', {columns} from {source} order by {order} desc limit {MOST}) p{number}"
    for number, (kind, columns, source, order) in enumerate(_PARTS)
)


def read(db: Database, now: datetime) -> list[AttentionGroup]:
    """Load the newest case and the number of cases of each kind, with one statement."""
    by_kind: dict[str, list[Row]] = {}
    for row in db.rows(_SQL, {"since": to_text(now - _LOOK_BACK), "ended_since": to_text(now - _ENDED)})[1]:
        by_kind.setdefault(row[0], []).append(row)
    groups = []
    for kind in filter(by_kind.get, AttentionKind):
        _, id, run_id, task_id, title, cause, at = max(by_kind[kind], key=lambda row: (row[-1], row[1]))
        if kind in (AttentionKind.FAILED_CHECK, AttentionKind.BLOCKED_REVIEW):
            cause = _finding(cause)
        count = min(len(by_kind[kind]), MOST)
        group = AttentionGroup(
            kind=kind, count=count, id=id, title=title, cause=cause, at=from_text(at), run_id=run_id, task_id=task_id
        )
        groups.append(group)
    return groups


def _finding(text: str | None) -> str | None:
    """Return the text of the first finding of a check or a review."""
    findings: Any = from_json(text or "[]")
    first = findings[0] if isinstance(findings, list) and findings else None
    found = first.get("text") if isinstance(first, dict) else first
    return found if isinstance(found, str) else None
