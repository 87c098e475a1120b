"""Earlier answers: the latest ones, and those about the same subject or the same rule."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from decklog.core.clock import to_text
from decklog.db.base import Database
from decklog.records.values import to_json
from decklog.stores.approvals.approval import Approval
from decklog.stores.results.approvals import cause_of

# The subject and the rule have no index over all runs, so this number of the newest answers is checked.
MOST_LOOKED_AT = 300
# Longer payloads contain whole files, and are not searched for a rule.
_LONGEST_PAYLOAD = 4000
_OVER = "(state <> 'open' or expires_at <= :now)"
_NEWEST = "order by asked_at desc, run_id desc, number desc"
_ANSWERED = f"from approvals where {_OVER} {_NEWEST}"
_LATEST = f"select id {_ANSWERED} limit :most"
_SAME_THING = f"""
select id from (select id, subject_digest {_ANSWERED} limit {MOST_LOOKED_AT}) a where subject_digest = :digest limit :most
"""
# An index exists for one run.
_SAME_THING_HERE = f"""
select id from approvals where run_id = :run_id and subject_digest = :digest and {_OVER} order by number desc limit :most
"""
# Canonical JSON has one spelling of a field. It may be in a nested object, so the caller checks again.
_SAME_RULE = f"""
select id from (
  select id, case when length(payload) <= {_LONGEST_PAYLOAD} then payload end as payload {_ANSWERED} limit {MOST_LOOKED_AT}
) a where payload like :rule escape '!' limit :most
"""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Answers, newest question first: the latest, those for the same subject, and those for the same rule."""

    latest: list[Approval]
    same_thing: list[Approval]
    same_rule: list[Approval]

    def as_dict(self) -> dict[str, Any]:
        return {name: [one.as_dict() for one in found] for name, found in vars(self).items()}


def read_answers(db: Database, now: datetime, most: int, digest: str | None, rule: str | None, run_id: str | None) -> Answers:
    """Load all of them with one statement."""
    parts, bound = {"latest": _LATEST}, {"now": to_text(now), "most": most}
    if digest is not None:
        parts["same_thing"] = _SAME_THING
        bound["digest"] = digest
        if run_id is not None:
            parts["same_thing"] = f"select * from ({_SAME_THING}) there union select * from ({_SAME_THING_HERE}) here"
            bound["run_id"] = run_id
    if rule is not None:
        parts["same_rule"] = _SAME_RULE
        bound["rule"] = f"%{_escaped(_field(rule))}%"
    sql = " union all ".join(
        f"select '{name}', a.* from approvals a where a.id in (select id from ({part}) {name})" for name, part in parts.items()
    )
    names, rows = db.rows(sql, bound)
    found: dict[str, list[Approval]] = {name: [] for name in ("latest", "same_thing", "same_rule")}
    for part, *row in rows:
        found[part].append(Approval.from_row(names[1:], row).seen_at(now))
    for listed in found.values():
        # Sorted by the text of the time, so that one invalid time does not fail the whole list.
        listed.sort(key=lambda one: (_asked_time(one), one.run_id, one.number), reverse=True)
    same = {one.id for one in found["same_thing"]}
    others = [one for one in found["same_rule"] if one.id not in same and cause_of(one.payload).get("rule") == rule]
    return Answers(latest=found["latest"], same_thing=found["same_thing"][:most], same_rule=others)


def _asked_time(approval: Approval) -> str:
    held = approval.raw("asked_at")
    return held if isinstance(held, str) else to_text(held)


def _field(rule: str) -> str:
    """Return the rule as JSON without its end, since a long rule is stored truncated."""
    return to_json({"rule": rule})[1:-2]


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
