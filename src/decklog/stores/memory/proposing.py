"""Verbs of proposed lessons: gathered from the journal, accepted or dismissed by a person."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from decklog.core.errors import Conflict
from decklog.db.where import Where, parse_enum
from decklog.journal.rows import STREAM_SIZE
from decklog.records.operations import reads_in_steps, writes, writes_in_steps
from decklog.records.record import Page, Record
from decklog.stores.memory import similarity
from decklog.stores.memory.indexing import LessonIndex
from decklog.stores.memory.lesson import Lesson
from decklog.stores.memory.proposals import (
    ENOUGH,
    MOST_EVIDENCE,
    Observation,
    Proposal,
    ProposalKindLike,
    ProposalSources,
    ProposalState,
    ProposalStateLike,
    because,
    confidence_of,
    is_computed,
)
from decklog.stores.memory.text import signature
from decklog.stores.memory.upkeep import LessonUpkeep

MARKS = "proposal_marks"
# The number of entries per transaction.
_BATCH = 2000
# The actor that accepts lessons with computed evidence.
BY_PROOF = "proof"
_EQUIVALENT = 0.8
_COMPARED = 200
_BEHIND = f"""
select s.name, s.no, case when at.hash = m.hash then m.seq else 0 end as mark, s.head_seq as newest
  from stream_heads s
  left join {MARKS} m on m.stream = s.name
  left join entries at on at.pos = s.no * {STREAM_SIZE} + m.seq
 where s.name not in ('@memory', '@ledger', '@workflow')
"""


class LessonProposals(LessonUpkeep):
    """Proposes lessons from the journal, and accepts them."""

    @writes_in_steps
    def propose(self, run_id: str | None = None) -> list[Proposal]:
        """Search new entries of one run or all for lessons; return proposals that are new or more certain.

        Evidence is from checks that were red and then green, attempts that failed and then succeeded, repeated blockers, fixes
        with a regression test, rejecting reviews, and statements of people. A statement of one agent alone is no evidence.
        """
        if self._db.read_only or self._db.is_reading:
            return []
        changed: dict[str, Proposal] = {}
        while self._db.read(lambda: self._behind(run_id)):
            for proposal in self._db.write(lambda: self._step(run_id)):
                changed[proposal.id] = proposal
        shown = (ProposalState.OPEN, ProposalState.ACCEPTED)
        return [proposal for proposal in changed.values() if proposal.state in shown]

    @reads_in_steps
    def proposals(
        self,
        *,
        state: ProposalStateLike = ProposalState.OPEN,
        kind: ProposalKindLike | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Proposal]:
        """List lessons that are proposed, each with the entries that show it; the surest first."""
        self.propose()
        where = Where(Proposal, state=parse_enum(ProposalState, state, "state"), kind=kind)
        order = ("confidence", "proposed_at", "id")
        return self._db.read(lambda: self._page(Proposal, where, order=order, limit=limit, after=after, descending=True))

    @writes
    def accept(
        self,
        proposal_id: str,
        *,
        body: str | None = None,
        topic: str | None = None,
        by: str | None = None,
        reason: str | None = None,
    ) -> Lesson:
        """Accept a proposed lesson, with its text or with BODY; its entries become the evidence."""
        self._lock_memory()
        proposal = self._fetch(Proposal, proposal_id)
        if proposal.state is ProposalState.ACCEPTED and proposal.lesson_id is not None:
            return self._fetch(Lesson, proposal.lesson_id).mark_already()
        lesson = self._learn(proposal, body or proposal.body, topic or proposal.topic)
        self._decide_proposal(proposal, ProposalState.ACCEPTED, by, reason, lesson.id)
        return lesson

    @writes
    def dismiss(self, proposal_id: str, *, by: str | None = None, reason: str | None = None) -> Proposal:
        """Dismiss a proposed lesson; it is not proposed again."""
        self._lock_memory()
        proposal = self._fetch(Proposal, proposal_id)
        if proposal.state is ProposalState.DISMISSED:
            return proposal.mark_already()
        if proposal.state is ProposalState.ACCEPTED:
            raise Conflict(
                f"proposal {proposal_id} is lesson {proposal.lesson_id} already",
                hint=f"Put the lesson aside: decklog memory retire {proposal.lesson_id}",
                id=proposal_id,
                state=proposal.state,
            )
        return self._decide_proposal(proposal, ProposalState.DISMISSED, by, reason, None)

    # Searching the journal

    def _behind(self, run_id: str | None) -> list[tuple[str, int, int, int]]:
        """List the streams with entries after their mark: name, number, mark and newest entry."""
        some, bound = (" and s.name in (:run_id, '@desk')", {"run_id": run_id}) if run_id is not None else ("", {})
        _, rows = self._db.rows(f"select * from ({_BEHIND}{some}) b where b.newest > b.mark order by b.no", bound)
        return [(name, number, mark, newest) for name, number, mark, newest in rows]

    def _step(self, run_id: str | None) -> list[Proposal]:
        """Search one batch of entries, from any number of streams."""
        self._lock_memory()
        changed, left, sources = [], _BATCH, ProposalSources(self._db)
        with LessonIndex(self._db).following():
            for stream, number, mark, newest in self._behind(run_id):
                end, start = min(newest, mark + left), number * STREAM_SIZE
                seen = list(sources.between(start + mark, start + end))
                changed += [proposal for one in seen if (proposal := self._take_in(one)) is not None]
                self._move_mark(stream, start + end)
                left -= end - mark
                if left <= 0:
                    break
        return changed

    def _move_mark(self, stream: str, position: int) -> None:
        self._db.count(
            f"""
            insert into {MARKS} (stream, seq, hash)
            select :stream, e.seq, e.hash from entries e where e.pos = :position
            on conflict (stream) do update set seq = excluded.seq, hash = excluded.hash
            """,
            {"stream": stream, "position": position},
        )

    def _take_in(self, seen: Observation) -> Proposal | None:
        """Add an observation to its proposal, or create one. Return None if it was known."""
        known = self._proposed(seen)
        if known is None:
            proposal = self._add_proposal(seen)
        elif len(known.evidence) >= MOST_EVIDENCE or any(one["refs"] == list(seen.refs) for one in known.evidence):
            return None
        else:
            proposal = self._seen_again(known, seen)
        evidence: Any = proposal.evidence
        if proposal.state is ProposalState.OPEN and is_computed(evidence) and not self._is_contradicted(proposal):
            lesson = self._learn(proposal, proposal.body, proposal.topic)
            return self._decide_proposal(proposal, ProposalState.ACCEPTED, BY_PROOF, because(evidence), lesson.id)
        return proposal

    def _proposed(self, seen: Observation) -> Proposal | None:
        """Find the proposal that states this already, in any words."""
        if (found := self._seek_by(Proposal, subject=_subject(seen))) is not None:
            return found
        where = Where(Proposal, kind=seen.kind)
        where.add("state in ('gathering', 'open')")
        near = self._list(Proposal, where, order="seen_at desc, id desc", limit=_COMPARED)
        return next((one for one in near if _are_equivalent(one.body, seen.body)), None)

    def _add_proposal(self, seen: Observation) -> Proposal:
        evidence, now = [seen.evidence()], self._now()
        known = self._known_lesson(seen)
        confidence = confidence_of(evidence)
        proposed = ProposalState.OPEN if confidence >= ENOUGH else ProposalState.GATHERING
        return self._add(
            Proposal,
            note=seen.body,
            id=self._ids.new("proposal"),
            kind=seen.kind,
            subject=_subject(seen),
            topic=seen.topic,
            body=seen.body,
            payload=seen.payload,
            state=proposed if known is None else ProposalState.KNOWN,
            confidence=confidence,
            because=because(evidence),
            evidence=evidence,
            run_id=seen.run_id,
            task_id=seen.task_id,
            lesson_id=known and known.id,
            proposed_at=now,
            seen_at=now,
        )

    def _known_lesson(self, seen: Observation) -> Lesson | None:
        """Find the lesson that states this already, active or not."""
        body, _ = self._db.values.bind_text("body", seen.body)
        if (same := self._same(seen.topic, None, body)) is not None:
            return same
        near = next((one.id for one in self._near(body, None) if _are_equivalent(one.body, body)), None)
        return None if near is None else self._fetch(Lesson, near)

    def _seen_again(self, known: Proposal, seen: Observation) -> Proposal:
        evidence: list[Any] = [*known.evidence, seen.evidence()]
        confidence = confidence_of(evidence)
        is_shown = known.state is ProposalState.GATHERING and confidence >= ENOUGH
        if known.state is ProposalState.ACCEPTED and known.lesson_id is not None:
            self._confirm(self._fetch(Lesson, known.lesson_id), seen)
        return self._update(
            Proposal,
            known.id,
            {
                "evidence": evidence,
                "confidence": confidence,
                "because": because(evidence),
                "seen_at": self._now(),
                "state": ProposalState.OPEN if is_shown else known.state,
            },
            condition="state = :was",
            note="seen again",
            was=known.state,
        )

    # Accepting

    def _learn(self, proposal: Proposal, body: str, topic: str) -> Lesson:
        """Learn the lesson of a proposal, with its supporting entries."""
        payload = proposal.payload if topic == proposal.topic else {}
        return self.remember(
            topic,
            body,
            payload=payload,
            confidence=proposal.confidence,
            source_kind="proposal",
            source_id=proposal.id,
            run_id=proposal.run_id,
            task_id=proposal.task_id,
            refs=proposal.refs,
            key=f"proposal:{proposal.id}",
        )

    def _confirm(self, lesson: Lesson, seen: Observation) -> None:
        """Count a lesson as seen again; an inactive one stays inactive."""
        given = {
            "body": lesson.body,
            "payload": {},
            "scope": {},
            "confidence": lesson.confidence,
            "source_kind": "proposal",
            "source_id": None,
            "run_id": seen.run_id,
            "task_id": seen.task_id,
        }
        self._see(self._count(lesson, given), given, list(seen.refs), None, again=True)

    def _is_contradicted(self, proposal: Proposal) -> bool:
        return any(similarity.contradiction(proposal.body, other.body) for other in self._near(proposal.body, None))

    def _decide_proposal(
        self, proposal: Proposal, state: ProposalState, by: str | None, reason: str | None, lesson_id: str | None
    ) -> Proposal:
        return self._update(
            Proposal,
            proposal.id,
            {"state": state, "decided_at": self._now(), "decided_by": by, "reason": reason, "lesson_id": lesson_id},
            condition="state = :was",
            note=reason or f"{state}",
            was=proposal.state,
        )

    # Derived tables

    def audit(self, record_classes: Mapping[str, type[Record]]) -> Iterator[dict[str, Any]]:
        """Yield marks without an entry in the journal, and the problems of lessons."""
        yield from super().audit(record_classes)
        strange = f"""
            select m.stream from {MARKS} m
             where not exists (select 1 from streams s join entries e on e.pos = s.no * {STREAM_SIZE} + m.seq
                                where s.name = m.stream and e.hash = m.hash)
             order by m.stream
        """
        for (stream,) in self._db.each_as_is(strange, {}):
            what = f"{stream} was looked through for lessons up to an entry that is not in the journal"
            yield {"what": what, "table": MARKS, "record_id": str(stream), "column": "seq, hash"}

    def _derive_anew(self) -> None:
        super()._derive_anew()
        # Known observations are recognized by their entries, so nothing is proposed twice.
        self._db.count(f"delete from {MARKS}", {})


def _subject(seen: Observation) -> str:
    """Return the key of an observation's subject."""
    about = signature(seen.about).casefold() if seen.topic == "failure_patterns" else " ".join(similarity.essence_of(seen.about))
    return f"{seen.kind}:{sha256(about.encode(errors='surrogatepass')).hexdigest()[:32]}"


def _are_equivalent(one: str, other: str) -> bool:
    return similarity.nearness(one, other) >= _EQUIVALENT and similarity.contradiction(one, other) is None
