"""What waits for a person, such as approvals, unknown side effects and spent budgets; and problems that need attention."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from shlex import quote
from typing import Any

from decklog.core.clock import from_text, to_text
from decklog.db.base import Database, Row
from decklog.records.values import from_json
from decklog.stores.overview.run_facts import RunOverview
from decklog.stores.overview.spending import BudgetOverview
from decklog.stores.overview.view import View
from decklog.stores.results.approvals import ApprovalCause, cause_of


class WaitingKind(StrEnum):
    """Kinds of waiting items."""

    APPROVAL = "approval"
    EFFECT = "effect"
    QUESTION = "question"
    BUDGET = "budget"
    CRITERION = "criterion"
    BLOCKED = "blocked"
    STALLED = "stalled"

    @property
    def group(self) -> "WaitingGroup":
        return {"blocked": WaitingGroup.BLOCKED, "stalled": WaitingGroup.STALLED}.get(self.value, WaitingGroup.DECISIONS)


class WaitingGroup(StrEnum):
    """Groups of waiting items, the most urgent first."""

    DECISIONS = "decisions"
    BLOCKED = "blocked"
    STALLED = "stalled"


# The number of items per kind, the oldest first. Further ones are in the lists of that kind.
MOST = 200
# Longer payloads of approvals are left out here: they may contain whole files, and all are loaded at once.
_LONGEST_PAYLOAD = 4000


@dataclass(frozen=True, kw_only=True)
class WaitingItem(View):
    """One waiting item: what it is, its times, the default without an answer, and the command to answer.

    `cause` is why an approval is required, as the caller stated it: the rule, its reason, and the autonomy level at that time.
    """

    kind: WaitingKind
    id: str
    what: str
    since: datetime
    command: str
    run_id: str | None = None
    task_id: str | None = None
    by: str | None = None
    deadline: datetime | None = None
    default: str | None = None
    digest: str | None = None
    goal: str | None = None
    cause: ApprovalCause = field(default_factory=lambda: cause_of(None))

    @property
    def is_decision(self) -> bool:
        """Whether somebody has to answer. A blocked task or a stalled run only needs attention."""
        return self.kind.group is WaitingGroup.DECISIONS

    @property
    def holds_up(self) -> bool:
        """Whether its run can't continue until somebody answers."""
        return self.is_decision and self.kind is not WaitingKind.CRITERION

    @property
    def place(self) -> tuple[str, str, str, str, str]:
        """The sort key: by group, then by deadline, then by waiting time."""
        group = str(list(WaitingGroup).index(self.kind.group))
        return group, to_text(self.deadline) if self.deadline else "~", to_text(self.since), self.kind.value, self.id


_GOES_ON = "r.status in ('planning', 'active', 'paused')"
# One statement for all kinds, each with a separate index. The columns: kind, id, text and details, start, run, task, author,
# deadline, default, digest of the subject, goal of the run, feedback whose fix is to be merged, and the approval's payload.
_WAITING = f"""
select * from (
  select 'approval', a.id, a.question, null, a.asked_at, a.run_id, a.task_id, a.asked_by, a.expires_at, a.default_verdict,
         a.subject_digest, r.goal, null, case when length(a.payload) between 3 and {_LONGEST_PAYLOAD} then a.payload end
    from approvals a
    join runs r on r.id = a.run_id
   where a.state = 'open' and (a.expires_at is null or a.expires_at > :now)
     -- What a run asked ends with it. A question about a run that is over, such as an override of its review, does not.
     and ({_GOES_ON} or a.asked_at > r.ended_at)
   order by a.asked_at, a.id
   limit {MOST}
) approvals
union all
select * from (
  select 'effect', e.id, e.tool || ' in ' || e.step, e.note, e.intended_at, e.run_id, e.task_id, null, null, null, null, r.goal,
         null, null
    from effects e
    join runs r on r.id = e.run_id
   -- The first condition is that of the index.
   where (e.state = 'intended' or e.state = 'unknown') and e.state = 'unknown'
   order by e.intended_at, e.id
   limit {MOST}
) effects
union all
select * from (
  select 'question', m.id, m.body, null, m.received_at, m.run_id, m.task_id, m.from_handle, null, null, null, null,
         -- A fix that is published asks for its merge; the key of its message has the id of its mend, which is so long.
         (select d.feedback_id from mends d
           where d.id = substr(m.key, 16, 31) and m.key = 'mend-published:' || d.id || ':' || d.head),
         null
    from messages m
   -- What the owner asks is for agents to answer, and so is what names one of them.
   where m.state in ('pending', 'seen') and m.severity in ('question', 'critical') and m.is_authorised = 0 and m.agent is null
     -- What an approval asks is listed once, as that: a message about it has its id as key.
     and not exists (
       select 1 from approvals a where a.id = substr(m.key, 10) and m.key = 'approval:' || a.id and a.state = 'open'
     )
   order by m.received_at, m.id
   limit {MOST}
) questions
union all
select * from (
  select 'criterion', c.run_id || '/' || c.number, c.criterion, c.stale_reason, c.updated_at, c.run_id, null, null, null, null,
         null, r.goal, null, null
    from criteria c
    join runs r on r.id = c.run_id
   where c.is_stale = 1 and c.required = 1 and {_GOES_ON}
   order by c.updated_at, c.run_id, c.number
   limit {MOST}
) criteria
"""
# The label of each kind, and its command.
_SAID = {
    WaitingKind.APPROVAL: ("{what}", "decklog approvals show {id}"),
    WaitingKind.EFFECT: ("Did this happen? {what}", "decklog effects reconcile {id} yes|no --by NAME"),
    WaitingKind.QUESTION: ("{what}", "decklog inbox answer {id} TEXT"),
    WaitingKind.CRITERION: ("Evidence went stale: {what}", "decklog criteria find {run_id} --is-stale"),
}
# A fix is answered by its merge, which this command finds.
_MERGE = "decklog mend {feedback_id}"


def decisions(db: Database, now: datetime, budgets: Sequence[BudgetOverview]) -> list[WaitingItem]:
    """List what waits for a decision, by deadline and waiting time. `budgets` are all of the log."""
    found = [_item(row) for row in db.rows(_WAITING, {"now": to_text(now)})[1]]
    return sorted([*found, *_spent(budgets)], key=lambda item: item.place)


def _item(row: Row) -> WaitingItem:
    kind, id, what, more, since, run_id, task_id, by, deadline, default, digest, goal, feedback_id, payload = row
    said, command = _SAID[WaitingKind(kind)]
    # Imported ids may contain anything.
    words = {name: value and quote(value) for name, value in (("id", id), ("run_id", run_id), ("feedback_id", feedback_id))}
    return WaitingItem(
        kind=WaitingKind(kind),
        id=id,
        what=said.format(what=f"{what}: {more}" if more else what),
        since=from_text(since),
        command=(command if feedback_id is None else _MERGE).format(**words),
        run_id=run_id,
        task_id=task_id,
        by=by,
        deadline=from_text(deadline) if deadline else None,
        default=default or ("expired" if deadline else None),
        digest=digest,
        goal=goal,
        cause=cause_of(from_json(payload) if payload else None),
    )


def _spent(budgets: Sequence[BudgetOverview]) -> Iterator[WaitingItem]:
    for budget in budgets:
        if budget.stops:
            yield WaitingItem(
                kind=WaitingKind.BUDGET,
                id=budget.id,
                what=f"The budget of {budget.whose} is spent, and stops: {budget.said}",
                since=budget.last_at,
                command=f"decklog budgets show {quote(budget.id)}",
                run_id=budget.run_id,
            )


def by_run(items: Iterable[WaitingItem]) -> dict[str, int]:
    """Count the items that hold up each run."""
    counts: dict[str, int] = {}
    for item in items:
        if item.run_id is not None and item.holds_up:
            counts[item.run_id] = counts.get(item.run_id, 0) + 1
    return counts


_BLOCKED = f"""
select t.id, t.title, coalesce(t.blocker, t.reason), t.updated_at, t.run_id, r.goal
  from tasks t
  join runs r on r.id = t.run_id
 where t.state = 'blocked' and {_GOES_ON}
 order by t.updated_at, t.id
 limit {MOST}
"""


def blocked(db: Database) -> list[WaitingItem]:
    """List the blocked tasks of unfinished runs, with their blockers."""
    return [
        WaitingItem(
            kind=WaitingKind.BLOCKED,
            id=task_id,
            what=f"{title}: {cause}" if cause else title,
            since=from_text(since),
            command=f"decklog tasks details {quote(task_id)}",
            run_id=run_id,
            task_id=task_id,
            goal=goal,
        )
        for task_id, title, cause, since, run_id, goal in db.rows(_BLOCKED, {})[1]
    ]


def stalled(run: RunOverview) -> WaitingItem:
    """Build the item of a stalled run, with the reason."""
    assert run.stalled_since is not None
    lost = next((task for task in run.working_on if task["lease_ended"]), None)
    why = f"the lease of {lost['worker']} on {lost['title']} ended" if lost else "nothing was written for longer than usual"
    return WaitingItem(
        kind=WaitingKind.STALLED,
        id=run.id,
        what=f"{run.goal} has stalled: {why}",
        since=run.stalled_since,
        command=f"decklog runs show {quote(run.id)}",
        run_id=run.id,
        goal=run.goal,
    )


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
_MOST_CASES = 100
# Checks and reviews are shown for this time; failed runs for a day.
_LOOK_BACK, _ENDED = timedelta(days=7), timedelta(days=1)
# The number of claimable tasks that are searched for failed attempts.
_MOST_READY = 2000
_NEWEST_RUNS = "select id from runs where status in ('planning', 'active', 'paused') order by started_at desc, id desc limit 200"


_TASK = "t.id, t.run_id, t.id as task_id, t.title, coalesce(t.blocker, t.reason), t.updated_at"
_BLOCKED_TASKS = f"tasks t join runs r on r.id = t.run_id where t.state = 'blocked' and {_GOES_ON}"
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
    (AttentionKind.BLOCKED_TASK, _TASK, f"{_BLOCKED_TASKS} and t.failures < t.max_attempts", "t.updated_at"),
    (AttentionKind.FAILED_ATTEMPT, _TASK, f"{_BLOCKED_TASKS} and t.failures >= t.max_attempts", "t.updated_at"),
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
    f"select * from (select '{kind}', {columns} from {source} order by {order} desc limit {_MOST_CASES}) p{number}"
    for number, (kind, columns, source, order) in enumerate(_PARTS)
)


def attention_groups(db: Database, now: datetime) -> list[AttentionGroup]:
    """Load the newest case and the number of cases of each kind, with one statement."""
    by_kind: dict[str, list[Row]] = {}
    for row in db.rows(_SQL, {"since": to_text(now - _LOOK_BACK), "ended_since": to_text(now - _ENDED)})[1]:
        by_kind.setdefault(row[0], []).append(row)
    groups = []
    for kind in filter(by_kind.get, AttentionKind):
        _, id, run_id, task_id, title, cause, at = max(by_kind[kind], key=lambda row: (row[-1], row[1]))
        if kind in (AttentionKind.FAILED_CHECK, AttentionKind.BLOCKED_REVIEW):
            cause = _finding(cause)
        count = min(len(by_kind[kind]), _MOST_CASES)
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
