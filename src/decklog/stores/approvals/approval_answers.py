"""What was answered before: lately, to exactly the same thing, and to what the same rule held."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from decklog.core.clock import to_text
from decklog.db.base import Database
from decklog.records.values import to_json
from decklog.stores.approvals.approval import Approval
from decklog.stores.causes import cause_of

# No index has the thing or the rule over all runs: so many of the newest answers are looked at.
MOST_LOOKED_AT = 300
# A payload that is longer holds a whole file, and is not read through for its rule.
_LONGEST_PAYLOAD = 4000
_OVER = "(state <> 'open' or expires_at <= :now)"
_NEWEST = "order by asked_at desc, run_id desc, number desc"
_ANSWERED = f"from approvals where {_OVER} {_NEWEST}"
_LATEST = f"select id from approvals where {_OVER} {_NEWEST} limit :most"
_SAME_THING = f"""
select id from (select id, subject_digest {_ANSWERED} limit {MOST_LOOKED_AT}) a where subject_digest = :digest limit :most
"""
# Of one run an index has it.
_SAME_THING_HERE = f"""
select id from approvals where run_id = :run_id and subject_digest = :digest and {_OVER} order by number desc limit :most
"""
# Canonical JSON spells a field in one way only. It may be one of another object inside, so whoever reads it looks again.
_SAME_RULE = f"""
select id from (
  select id, case when length(payload) <= {_LONGEST_PAYLOAD} then payload end as payload {_ANSWERED} limit {MOST_LOOKED_AT}
) a where payload like :rule escape '!' limit :most
"""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What was answered, newest question first: lately, to exactly the same thing, and to other things that a rule held."""

    latest: list[Approval]
    same_thing: list[Approval]
    same_rule: list[Approval]

    def as_dict(self) -> dict[str, Any]:
        return {name: [one.as_dict() for one in found] for name, found in vars(self).items()}


def read(db: Database, now: datetime, most: int, digest: str | None, rule: str | None, run_id: str | None) -> Answers:
    """Read them all by one statement."""
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
        # By the text of the time: one that can't be read must not take all the others with it.
        listed.sort(key=lambda one: (_asked_at(one), one.run_id, one.number), reverse=True)
    same = {one.id for one in found["same_thing"]}
    others = [one for one in found["same_rule"] if one.id not in same and cause_of(one.payload).get("rule") == rule]
    return Answers(latest=found["latest"], same_thing=found["same_thing"][:most], same_rule=others)


def _asked_at(approval: Approval) -> str:
    held = approval.as_held("asked_at")
    return held if isinstance(held, str) else to_text(held)


def _field(rule: str) -> str:
    """Write the rule as a payload has it, without its end: a long one is told cut off."""
    return to_json({"rule": rule})[1:-2]


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
