"""Proposed lessons: the record, and the entries of the journal that support one."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, TypeGuard

from decklog.core.display import one_line, shorten
from decklog.db.base import Database
from decklog.journal.entry import Entry
from decklog.journal.rows import COLUMNS, load_entries, load_entry
from decklog.records.record import Record
from decklog.records.values import from_json
from decklog.stores.memory.text import signature, split_words


class ProposalKind(StrEnum):
    """What a lesson is proposed from."""

    CHECK = "check"
    ATTEMPT = "attempt"
    BLOCKER = "blocker"
    FIX = "fix"
    REVIEW = "review"
    CORRECTION = "correction"


ProposalKindLike = ProposalKind | Literal["check", "attempt", "blocker", "fix", "review", "correction"]


class ProposalState(StrEnum):
    """State of a proposal: `gathering` has too little evidence to show, and `known` matches an existing lesson."""

    GATHERING = "gathering"
    OPEN = "open"
    KNOWN = "known"
    ACCEPTED = "accepted"
    DISMISSED = "dismissed"


ProposalStateLike = ProposalState | Literal["gathering", "open", "known", "accepted", "dismissed"]


class ShownBy(StrEnum):
    """Kinds of evidence for a lesson."""

    SIGNED = "signed"
    RED_THEN_GREEN = "red-then-green"
    TESTED = "tested"
    RECOGNISED = "recognised"
    CHECKED = "checked"
    UNPROVEN = "unproven"
    STOPPED = "stopped"
    SAID = "said"


# The confidence that one sighting gives, by kind of evidence. An agent's statement alone is not enough.
_WORTH = {
    ShownBy.SIGNED: (80, "the owner signed it"),
    ShownBy.RED_THEN_GREEN: (70, "the same check was red, then green"),
    ShownBy.TESTED: (65, "a regression test holds it"),
    ShownBy.RECOGNISED: (65, "said by the owner or a reviewer"),
    ShownBy.CHECKED: (60, "a check passed afterwards"),
    ShownBy.UNPROVEN: (50, "said by somebody whose name nothing proves"),
    ShownBy.STOPPED: (30, "work was stopped by it"),
    ShownBy.SAID: (30, "a worker said so"),
}
_EACH_FURTHER, _SUREST = 20, 95
ENOUGH = 50
# More sightings than this do not raise the confidence.
MOST_EVIDENCE = 20


@dataclass(frozen=True)
class Observation:
    """One piece of evidence for a lesson. Two with the same `about` support the same lesson."""

    kind: ProposalKind
    topic: str
    about: str
    body: str
    proof: ShownBy
    refs: tuple[str, ...]
    work: str
    by: str | None = None
    payload: dict[str, Any] = field(default_factory=dict)
    run_id: str | None = None
    task_id: str | None = None

    def evidence(self) -> dict[str, Any]:
        """Return it as an item of a proposal's evidence."""
        stated = {"proof": self.proof.value, "refs": list(self.refs), "work": self.work, "by": self.by}
        return {name: value for name, value in stated.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Proposal(Record):
    """A lesson that is proposed. `evidence` names the entries that show it, and `because` explains its confidence."""

    table = "proposals"
    home = "@memory"

    id: str
    kind: ProposalKind
    subject: str
    topic: str
    body: str
    payload: dict[str, object] = field(default_factory=dict)
    state: ProposalState
    confidence: int
    because: str
    evidence: list[dict[str, object]] = field(default_factory=list)
    run_id: str | None = None
    task_id: str | None = None
    lesson_id: str | None = None
    proposed_at: datetime
    seen_at: datetime
    decided_at: datetime | None = None
    decided_by: str | None = None
    reason: str | None = None

    @property
    def refs(self) -> list[str]:
        """The supporting entries, in order."""
        named: list[Any] = [ref for one in self.evidence for ref in one["refs"]]  # type: ignore[attr-defined]
        return list(dict.fromkeys(named))


def confidence_of(evidence: Sequence[dict[str, Any]]) -> int:
    """Return the confidence of some evidence: by its strongest item and the number of independent sightings."""
    return min(max(_WORTH[ShownBy(one["proof"])][0] for one in evidence) + _EACH_FURTHER * (_independent(evidence) - 1), _SUREST)


def _independent(evidence: Sequence[dict[str, Any]]) -> int:
    """Count independent sightings: by different work or different authors. For mere statements both must differ."""
    works, sayers = {one["work"] for one in evidence}, {one.get("by") for one in evidence}
    is_only_said = all(one["proof"] == ShownBy.SAID for one in evidence)
    return min(len(works), len(sayers)) if is_only_said else max(len(works), len(sayers))


def because(evidence: Sequence[dict[str, Any]]) -> str:
    """Explain the confidence in words."""
    strongest = max(evidence, key=lambda one: _WORTH[ShownBy(one["proof"])][0])
    works = len({one["work"] for one in evidence})
    return _WORTH[ShownBy(strongest["proof"])][1] + (f"; seen in {works} items of work" if works > 1 else "")


def is_computed(evidence: Sequence[dict[str, Any]]) -> bool:
    """Return whether the evidence needs no statement: a check was red and then green in at least two work items."""
    return len({one["work"] for one in evidence if one["proof"] == ShownBy.RED_THEN_GREEN}) > 1


_LONGEST = 400
_MOST_LOOKED_AT = 50
# A text with fewer different words is too short to follow.
_FEWEST_WORDS = 3
# Severities of review findings that block a change.
_HELD_FOR = ("blocking", "significant")
_ADVICE = re.compile(
    r"\b(always|never|do not|don['’]t|must|should|instead|rather than|prefer|avoid|make sure|stop|only|use|keep"
    r"|needs? to|ha(?:s|ve) to)\b",
    re.IGNORECASE,
)
# Changes of tasks are relevant if they ended badly, or ended well after that. The expressions on the table name prevent
# the use of an index, so both engines read the entries between the positions.
_EVIDENCE_ENTRIES = f"""
select {", ".join(f"e.{name}" for name in COLUMNS)}
  from entries e
 where e.pos > :start and e.pos <= :end
   and (e.record_table || '' in ('verdicts', 'approvals', 'messages', 'feedback', 'reviews')
        or (e.record_table || '' = 'tasks'
            and (e.payload is null or e.payload like '%"outcome":"failed"%' or e.payload like '%"outcome":"blocked"%'
                 or (e.payload like '%"outcome":"done"%' and e.payload not like '%"attempts":1,%'))))
 order by e.pos
"""


class ProposalSources:
    """Finds evidence for lessons in the journal."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._read: dict[str, Callable[[Entry, dict[str, Any], dict[str, Any]], Iterable[Observation]]] = {
            "verdicts": self._of_verdict,
            "tasks": self._of_task,
            "approvals": self._of_approval,
            "messages": self._of_message,
            "feedback": self._of_feedback,
            "reviews": self._of_review,
        }

    def between(self, start: int, end: int) -> Iterator[Observation]:
        """Yield the observations from the entries between two positions."""
        for row in self._db.rows(_EVIDENCE_ENTRIES, {"start": start, "end": end})[1]:
            entry = load_entry(self._db, row)
            image: Any = entry.payload
            if isinstance(image, dict) and not image.get("removed"):
                yield from self._read[str(entry.record_table)](entry, image, self._before(entry))

    def _before(self, entry: Entry) -> dict[str, Any]:
        """Return a record before an entry; empty if the entry is its first, or the earlier one is gone."""
        found = self._entries(str(entry.record_table), str(entry.record_id), "and e.seq < :seq", {"seq": entry.seq}, 1)
        before: Any = found[0].payload if found else None
        return before if isinstance(before, dict) else {}

    def _entries(self, table: str, record_id: str, also: str, bound: dict[str, Any], limit: int) -> list[Entry]:
        """List entries of a record, newest first."""
        _, rows = self._db.rows(
            f"""
            select {", ".join(f"e.{name}" for name in COLUMNS)}
              from entries e
             where e.record_table = :record_table and e.record_id = :record_id {also}
             order by e.seq desc
             limit {limit}
            """,
            {"record_table": table, "record_id": record_id, **bound},
        )
        return load_entries(self._db, rows)

    # Checks

    def _of_verdict(self, entry: Entry, verdict: dict[str, Any], _before: dict[str, Any]) -> Iterator[Observation]:
        """Return the failure that a passing check had earlier in the same work item."""
        if verdict["outcome"] != "pass" or (work := self._work_of(verdict.get("task_id"))) is None:
            return
        red = self._red_before(verdict, work)
        if red is None:
            return
        verdict_id, finding = red
        first = self._entries("verdicts", verdict_id, "", {}, 1)
        name = verdict["name"]
        yield Observation(
            ProposalKind.CHECK,
            "failure_patterns",
            f"{name}: {signature(finding)}",
            f"The check {name} fails on this, look before you end: {_line(finding)}",
            ShownBy.RED_THEN_GREEN,
            (*(one.id for one in first), entry.id),
            work,
            payload={"error_signature": finding},
            run_id=verdict["run_id"],
            task_id=verdict["task_id"],
        )

    def _red_before(self, verdict: dict[str, Any], work: str) -> tuple[str, str] | None:
        """Find the last failure of a check in a work item, and its first finding."""
        _, rows = self._db.rows(
            f"""
            select v.id, v.task_id, v.findings from verdicts v
             where v.run_id = :run_id and v.created_at <= :at and v.name = :name and v.environment = :environment
               and v.outcome = 'fail'
             order by v.created_at desc, v.id desc
             limit {_MOST_LOOKED_AT}
            """,
            {
                "run_id": verdict["run_id"],
                "at": verdict["created_at"],
                "name": verdict["name"],
                "environment": verdict["environment"],
            },
        )
        for verdict_id, task_id, findings in rows:
            said = [one for one in from_json(findings) if isinstance(one, str) and split_words(one)]
            if said and self._work_of(task_id) == work:
                return verdict_id, said[0]
        return None

    def _work_of(self, task_id: str | None) -> str | None:
        """Return the work item of a task: each of its rounds is a separate task."""
        row = None if task_id is None else self._db.one("select run_id, inputs from tasks where id = :id", {"id": task_id})
        if row is None:
            return None
        inputs = from_json(row[1])
        item = inputs.get("item") if isinstance(inputs, dict) else None
        return f"{row[0]}/{item}" if item else task_id

    # The review gate

    def _of_review(self, entry: Entry, review: dict[str, Any], _before: dict[str, Any]) -> Iterator[Observation]:
        """Yield the findings for which the review gate rejected a change before the same work passed."""
        held = self._held_before(review) if review["verdict"] == "pass" else None
        if held is None:
            return
        review_id, work, findings, computed = held
        first = self._entries("reviews", review_id, "", {}, 1)
        for finding in findings:
            text, remedy = finding["text"], finding.get("remedy")
            yield Observation(
                ProposalKind.REVIEW,
                "review_patterns",
                f"{finding['kind']}: {signature(text)}",
                f"The review turns this down ({finding['kind']}): {_line(text)}"
                + (f". What mends it: {_line(remedy)}" if remedy else ""),
                # A finding that a model no longer reports is weaker evidence than a rule that no longer matches.
                ShownBy.RED_THEN_GREEN if finding["pass"] in computed else ShownBy.CHECKED,
                (*(one.id for one in first), entry.id),
                work,
                payload={"verdict": "request-changes"},
                run_id=review["run_id"],
                task_id=review.get("task_id"),
            )

    def _held_before(self, review: dict[str, Any]) -> tuple[str, str, list[dict[str, Any]], set[int]] | None:
        """Find the last rejection of the same work: its id, the work, the findings, and which are not from a model."""
        _, rows = self._db.rows(
            f"""
            select r.id, r.task_id, r.passes, r.findings from reviews r
             where r.base = :base and r.created_at <= :at and r.tree <> :tree and r.verdict in ('block', 'request-changes')
             order by r.created_at desc, r.id desc
             limit {_MOST_LOOKED_AT}
            """,
            {"base": review["base"], "at": review["created_at"], "tree": review["tree"]},
        )
        # A change without a task is identified by its base commit.
        work = self._work_of(review.get("task_id")) or review["base"]
        for review_id, task_id, passes, findings in rows:
            stated = [one for one in from_json(findings) if one["severity"] in _HELD_FOR and _has_enough_words(one["text"])]
            if stated and (self._work_of(task_id) or review["base"]) == work:
                return review_id, work, stated, {one["pass"] for one in from_json(passes) if not one["by"]}
        return None

    # Attempts

    def _of_task(self, entry: Entry, task: dict[str, Any], before: dict[str, Any]) -> Iterator[Observation]:
        if before.get("state") != "running":
            return
        worker = before.get("worker")
        if task.get("outcome") == "done":
            yield from self._overcome(entry, task, worker)
            return
        why = task.get("blocker") or task.get("summary")
        if task.get("outcome") not in ("failed", "blocked") or not _has_enough_words(why):
            return
        body = f"Work like this was stopped by: {_line(why)}"
        yield self._observed(ProposalKind.BLOCKER, task, worker, why, body, ShownBy.STOPPED, entry.id)

    def _overcome(self, entry: Entry, task: dict[str, Any], worker: str | None) -> Iterator[Observation]:
        """Return how a task was done that had failed before, if its worker described it."""
        also = """and e.seq < :seq and (e.payload like '%"outcome":"failed"%' or e.payload like '%"outcome":"blocked"%')"""
        failed = self._entries("tasks", task["id"], also, {"seq": entry.seq}, 1)
        last: Any = failed[0].payload if failed else {}
        why, how = last.get("blocker") or last.get("summary"), task.get("summary")
        if not _has_enough_words(why) or not _has_enough_words(how):
            return
        passed = self._db.one(
            """
            select v.id from verdicts v
             where v.run_id = :run_id and v.created_at >= :failed_at and v.task_id = :task_id and v.outcome = 'pass'
             order by v.created_at, v.id
             limit 1
            """,
            {"run_id": task["run_id"], "failed_at": last["updated_at"], "task_id": task["id"]},
        )
        refs = [failed[0].id, *(one.id for one in (self._entries("verdicts", passed[0], "", {}, 1) if passed else ())), entry.id]
        body = f"{_line(why)}. What got past it: {_line(how)}"
        proof = ShownBy.CHECKED if passed else ShownBy.SAID
        yield self._observed(ProposalKind.ATTEMPT, task, worker, why, body, proof, *refs)

    def _observed(
        self, kind: ProposalKind, task: dict[str, Any], worker: str | None, why: str, body: str, proof: ShownBy, *refs: str
    ) -> Observation:
        work, payload = self._work_of(task["id"]) or task["id"], {"error_signature": why}
        about, run_id = signature(why), task["run_id"]
        return Observation(kind, "failure_patterns", about, body, proof, refs, work, worker, payload, run_id, task["id"])

    # Statements of people

    def _of_approval(self, entry: Entry, asked: dict[str, Any], before: dict[str, Any]) -> Iterator[Observation]:
        why = asked.get("rationale")
        is_turned_down = asked["state"] == "denied" and before.get("state") != "denied" and asked.get("decided_by")
        if not is_turned_down or not _has_enough_words(why):
            return
        question = asked.get("question")
        yield Observation(
            ProposalKind.REVIEW,
            "review_patterns",
            why,
            f"Turned down in a review: {_line(why)}" + (f" (asked: {_line(question)})" if question else ""),
            ShownBy.SIGNED if asked.get("proof") else self._whose(False),
            (entry.id,),
            asked["id"],
            asked["decided_by"],
            {"verdict": "rejected", "em_comment": why},
            asked["run_id"],
            asked.get("task_id"),
        )

    def _of_message(self, entry: Entry, message: dict[str, Any], before: dict[str, Any]) -> Iterator[Observation]:
        if before or message["severity"] == "question":
            return
        yield from self._correction(entry, message, self._whose(bool(message["is_authorised"])))

    def _of_feedback(self, entry: Entry, feedback: dict[str, Any], before: dict[str, Any]) -> Iterator[Observation]:
        if not before and feedback.get("message_id") is None:
            yield from self._correction(entry, feedback, self._whose(False))
            return
        cause, test = feedback.get("root_cause"), feedback.get("regression_test_path")
        if feedback["state"] != "verified" or before.get("state") == "verified" or not _has_enough_words(cause):
            return
        filed = self._entries("feedback", feedback["id"], "and e.subtype = 'added'", {}, 1)
        yield Observation(
            ProposalKind.FIX,
            "failure_patterns",
            feedback["body"],
            f"{_line(feedback['body'])}. The cause: {_line(cause)}. The test that holds it: {test}",
            ShownBy.TESTED,
            (*(one.id for one in filed), entry.id),
            feedback["id"],
            feedback["from_handle"],
            {
                "error_signature": feedback["body"],
                "root_cause": cause,
                "regression_test_path": test,
                "feedback_body": feedback["body"],
            },
        )

    def _correction(self, entry: Entry, said: dict[str, Any], proof: ShownBy) -> Iterator[Observation]:
        body = said["body"]
        if not _has_enough_words(body) or not _ADVICE.search(body) or len(body) > _LONGEST:
            return
        yield Observation(
            ProposalKind.CORRECTION,
            "em_preferences",
            body,
            body,
            proof,
            (entry.id,),
            said["id"],
            said["from_handle"],
            {"preference": body},
            said.get("run_id"),
            said.get("task_id"),
        )

    def _whose(self, is_recognised: bool) -> ShownBy:
        """Return the weight of somebody's statement: if an owner is registered, others count as mere statements."""
        if is_recognised:
            return ShownBy.RECOGNISED
        return ShownBy.SAID if self._db.one("select id from trust_contract", {}) else ShownBy.UNPROVEN


def _has_enough_words(text: str | None) -> TypeGuard[str]:
    """Return whether a text has enough words to follow."""
    return text is not None and len(set(split_words(text))) >= _FEWEST_WORDS


def _line(text: str) -> str:
    """Return a text as one line of limited length, without its final period."""
    return shorten(one_line(text).rstrip("."), _LONGEST)
