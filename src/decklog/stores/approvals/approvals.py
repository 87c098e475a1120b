"""Approvals: questions to a person or a gate about one exact subject, and their answers."""

import time
from collections.abc import Callable, Generator
from datetime import datetime
from typing import Any, Protocol

from decklog.core.clock import to_text
from decklog.core.errors import Conflict, Denied, Invalid, StillPending
from decklog.db.packing import decompress_bytes
from decklog.db.where import Where, page_size, parse_enum, placed
from decklog.records.operations import WaitStep, check_wait, read_step, reads, wait_step, waits_to_read, writes
from decklog.records.record import Page
from decklog.stores.approvals.approval import (
    MOST_USES,
    UNANSWERED,
    Answers,
    Approval,
    ApprovalState,
    ApprovalStateLike,
    Verdict,
    VerdictLike,
    already_decided,
    check_decider,
    check_digest,
    check_payload,
    check_reason,
    check_subject_known,
    compute_expiry,
    grant_limits,
    question_key,
    read_answers,
    resolve_digest,
    show_subject,
    state_condition,
    store_subject,
)
from decklog.stores.base import Store, StoreParts
from decklog.stores.checks import check_filled, check_time, is_same, normalize_name
from decklog.stores.documents import parse_sha256
from decklog.stores.of_run import next_number
from decklog.stores.results.approvals import ApprovalDetails, ApprovalSubject, cause_of


class QuestionSource(Protocol):
    """Messages to people; implemented by the inbox."""

    def settle(self, key: str, answer: str, *, by: str) -> object: ...


_YES = frozenset({"granted", "approved", "approve", "accepted", "accept", "passed", "pass", "ok", "yes"})
_LONGEST_STEP = 15.0
MOST_SHOWN = 50
_WITH_THINGS = "select a.*, b.bytes, b.size from approvals a left join blobs b on b.digest = a.about_digest where a.id in ({ids})"


class Approvals(Store):
    """Asks people and gates for approval of one exact thing, and keeps their answers."""

    records = (Approval,)

    def __init__(self, parts: StoreParts, *, inbox: Callable[[], QuestionSource]) -> None:
        super().__init__(parts)
        self._inbox = inbox

    @writes
    def ask(
        self,
        run_id: str,
        question: str,
        *,
        by: str,
        about: bytes | object = None,
        subject_digest: str | None = None,
        subject: str | None = None,
        asked_of: str | None = None,
        source: str | None = None,
        task_id: str | None = None,
        expires_at: datetime | None = None,
        expires_in_seconds: float | None = None,
        default_verdict: VerdictLike | None = None,
        payload: object = None,
        key: str | None = None,
        approval_id: str | None = None,
    ) -> Approval:
        """Ask for approval of one exact thing, given as its content (`about`) or its SHA-256 (`subject_digest`).

        The content is stored for the decider, without its secrets. An approval is valid only for its own digest, so ask again
        after a change. A known key or id returns the first question. `default_verdict` applies if the time runs out without
        an answer.
        """
        now = self._now()
        fields = {
            "question": check_filled("question", question),
            "subject": subject,
            "subject_digest": resolve_digest(about, subject_digest),
            "expires_at": compute_expiry(now, expires_at, expires_in_seconds, default_verdict),
            "default_verdict": default_verdict and parse_enum(Verdict, default_verdict, "default_verdict"),
            "source": source,
            "task_id": task_id,
            "payload": check_payload(payload),
            "key": key,
            **_parties(by, asked_of),
        }
        self._record_lapsed(run_id)
        return self._ask_once(run_id, approval_id, {**fields, "state": ApprovalState.OPEN, "asked_at": now}, about)

    def _ask_once(self, run_id: str, approval_id: str | None, fields: dict[str, Any], about: object = None) -> Approval:
        approval = self._find_or_add(
            lambda: self._seek_known(Approval, approval_id, run_id=run_id, key=fields["key"]),
            lambda: self._add(
                Approval,
                note=fields.get("question") or fields.get("verdict"),
                id=approval_id or self._ids.new("apr"),
                run_id=run_id,
                number=next_number(self._db, Approval, run_id),
                **store_subject(self._db, about),
                **fields,
            ),
        )
        if approval.run_id != run_id or approval.subject_digest != fields.get("subject_digest"):
            raise Conflict(
                f"approval {approval.id} already has this id or key, for another subject",
                hint="A changed question needs another key.",
                id=approval.id,
                digest=approval.subject_digest,
            )
        return approval.seen_at(self._now()).mark_already() if approval.already else approval

    @writes
    def record(
        self,
        run_id: str,
        source: str,
        verdict: str,
        *,
        rationale: str | None = None,
        payload: object = None,
        by: str | None = None,
        counts_as: VerdictLike | None = None,
        task_id: str | None = None,
        key: str | None = None,
        approval_id: str | None = None,
        at: datetime | None = None,
    ) -> Approval:
        """Record a verdict that was given without a question.

        The words granted, approved, accepted, passed, ok and yes count as granted and all others as denied, unless `counts_as` is
        given. Such a verdict has no digest, so `granted_for` never returns it.
        """
        check_filled("verdict", verdict)
        plain = Verdict.GRANTED if verdict.strip().casefold() in _YES else Verdict.DENIED
        given_at = self._now() if at is None else check_time("at", at)
        fields: dict[str, Any] = {
            "state": ApprovalState(parse_enum(Verdict, counts_as or plain, "counts_as")),
            "source": check_filled("source", source).strip(),
            "verdict": verdict,
            "rationale": rationale,
            "payload": check_payload(payload),
            "decided_by": by and normalize_name(by, "by"),
            "task_id": task_id,
            "asked_at": given_at,
            "decided_at": given_at,
            "key": key,
        }
        self._record_lapsed(run_id)
        return self._ask_once(run_id, approval_id, fields)

    @writes(owner_only=True)
    def decide(
        self,
        approval_id: str,
        verdict: VerdictLike,
        *,
        by: str,
        rationale: str | None = None,
        subject_digest: str | None = None,
        uses: int | None = None,
        valid_seconds: float | None = None,
    ) -> Approval:
        """Grant or deny an open approval. The one who asked can't decide it.

        `subject_digest` is the digest of what the decider saw; another digest is a `Conflict`. A grant needs it if the content
        is not in the log. Repeating the same answer by the same decider changes nothing. A grant is valid for one use, unless
        `uses` or `valid_seconds` is given.
        """
        chosen, decider = parse_enum(Verdict, verdict, "verdict"), normalize_name(by, "by")
        grant = grant_limits(chosen, self._now(), uses, valid_seconds)
        asked = self._fetch(Approval, approval_id)
        check_decider(asked, decider)
        check_digest(asked, subject_digest)
        check_reason(asked, chosen, rationale)
        if chosen is Verdict.GRANTED:
            check_subject_known(self._db, asked, subject_digest)
        self._record_lapsed(asked.run_id)
        changes = {
            "state": chosen,
            "verdict": chosen,
            "decided_by": decider,
            "decided_at": self._now(),
            "rationale": rationale,
            "proof": self._nonce(),
            **grant,
        }
        note = f"{chosen} by {decider}"
        changed = self._try_update(Approval, approval_id, changes, condition="state = 'open'", note=note)
        return self._answer_message(changed) if changed is not None else self._repeated(approval_id, chosen, decider)

    def _repeated(self, approval_id: str, verdict: Verdict, decider: str) -> Approval:
        present = self._fetch(Approval, approval_id)
        if present.state == verdict.value and is_same(present.decided_by, decider):
            return present.mark_already()
        raise already_decided(present)

    @writes
    def withdraw(self, approval_id: str, *, reason: str | None = None) -> Approval:
        """Withdraw an open question; a withdrawn one is returned unchanged."""
        asked = self._fetch_for_update(Approval, approval_id)
        if asked.state is ApprovalState.WITHDRAWN:
            return asked.mark_already()
        self._record_lapsed(asked.run_id)
        changes = {"state": "withdrawn", "decided_at": self._now(), "rationale": reason}
        changed = self._try_update(Approval, approval_id, changes, condition="state = 'open'", note=reason)
        if changed is None:
            raise already_decided(self._fetch(Approval, approval_id))
        return self._answer_message(changed)

    def _answer_message(self, approval: Approval) -> Approval:
        """Answer the message of the same question, if there is an open one."""
        by = approval.decided_by or approval.asked_by or "decklog"
        why = f": {approval.rationale}" if approval.rationale else ""
        self._inbox().settle(question_key(approval.id), f"{approval.state}{why}", by=by)
        return approval

    @writes
    def expire(self, run_id: str | None = None) -> list[Approval]:
        """Record the default answers of all expired open questions, of one run or of all.

        A default answer applies from its expiry on, recorded or not. Asking, deciding and withdrawing record it too.
        """
        return self._record_lapsed(run_id)

    def _record_lapsed(self, run_id: str | None) -> list[Approval]:
        if run_id is None:
            sql = "select distinct run_id from approvals where state = 'open' and expires_at <= :now order by run_id"
            _, runs = self._db.rows(sql, self._db.values.bind({"now": self._now()})[0])
            return [approval for (each,) in runs for approval in self._record_lapsed(each)]
        lapsed = self._change_all(
            Approval,
            """
            update approvals
               set state = coalesce(default_verdict, 'expired'),
                   verdict = default_verdict,
                   decided_at = expires_at,
                   rationale = :unanswered
             where state = 'open' and expires_at <= :now and run_id = :run_id
            returning *
            """,
            note=UNANSWERED,
            unanswered=UNANSWERED,
            now=self._now(),
            run_id=run_id,
        )
        return [
            self._answer_message(approval) for approval in sorted(lapsed, key=lambda approval: (approval.run_id, approval.number))
        ]

    @waits_to_read
    def wait(self, approval_id: str, timeout_seconds: float) -> Generator[WaitStep, Any, Approval]:
        """Wait until an approval is answered, withdrawn or expired; raise `StillPending` when the time is over first."""
        if not timeout_seconds >= 0:
            raise Invalid(f"timeout_seconds is {timeout_seconds}; it is 0 or more", field="timeout_seconds")
        if timeout_seconds > 0:
            check_wait(self._db)
        end = time.monotonic() + timeout_seconds
        while (approval := (yield read_step(lambda: self.get(approval_id)))).state is ApprovalState.OPEN:
            left = end - time.monotonic()
            if left <= 0:
                raise StillPending(
                    f"approval {approval_id} is still open after {timeout_seconds:g} seconds",
                    hint=f"Wait again, or ask {approval.asked_of or 'an owner'} directly.",
                    id=approval_id,
                )
            yield wait_step(min(left, self._until_expiry(approval), _LONGEST_STEP), approval.run_id)
        return approval  # type: ignore[no-any-return]

    def _until_expiry(self, approval: Approval) -> float:
        if approval.expires_at is None:
            return _LONGEST_STEP
        return max(0.001, (approval.expires_at - self._now()).total_seconds())

    @reads
    def get(self, approval_id: str) -> Approval:
        """Get an approval as it counts now."""
        return self._proofs().without_invalid_proof(self._fetch(Approval, approval_id)).seen_at(self._now())

    @reads
    def show(self, approval_id: str) -> ApprovalDetails:
        """Show an approval with the exact thing it is about, whose digest is computed anew and compared with the one asked about.

        `check` is: matches; parts redacted, where the thing had secrets; or not in the log, where only its digest was given.
        `cause` is why it waits, as the asker gave it: the rule, its reason, and the tier at that time.
        """
        found = self._with_things([approval_id]) or [(self._fetch(Approval, approval_id), None)]
        approval, content = found[0]
        known: Any = self._proofs().without_invalid_proof(approval).seen_at(self._now()).as_dict()
        known |= {"needs_reason": approval.needs_reason, "cause": cause_of(approval.payload)}
        known["about"] = show_subject(approval, content)
        details: ApprovalDetails = known
        return details

    @reads
    def abouts(self, approval_ids: list[str]) -> dict[str, ApprovalSubject]:
        """Show the exact things that some approvals are about, up to 50 at once, each compared with the digest asked about."""
        if len(approval_ids) > MOST_SHOWN:
            raise Invalid(f"ask for the things of up to {MOST_SHOWN} approvals at once", field="approval_ids")
        return {approval.id: show_subject(approval, content) for approval, content in self._with_things(approval_ids)}

    def _with_things(self, approval_ids: list[str]) -> list[tuple[Approval, bytes | None]]:
        """Load approvals with their stored subjects."""
        if not approval_ids:
            return []
        marks, ids = placed(approval_ids)
        names, rows = self._db.rows(_WITH_THINGS.format(ids=marks), self._db.values.bind(ids)[0])
        found = [(Approval.from_row(names[:-2], row[:-2]), row[-2], row[-1]) for row in rows]
        return [(one, None if stored is None else decompress_bytes(bytes(stored), size)) for one, stored, size in found]

    @reads
    def find(
        self,
        run_id: str | None = None,
        *,
        state: ApprovalStateLike | None = None,
        asked_of: str | None = None,
        source: str | None = None,
        task_id: str | None = None,
        subject_digest: str | None = None,
        oldest_first: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Approval]:
        """List approvals as they count now, newest first."""
        now = self._now()
        where = Where(
            Approval, run_id=run_id, asked_of=asked_of and normalize_name(asked_of, "asked_of"), source=source, task_id=task_id
        )
        where.equal(subject_digest=subject_digest and parse_sha256(subject_digest))
        if state is not None:
            where.add(state_condition(parse_enum(ApprovalState, state, "state")), state=state, now=to_text(now))
        order = ("number",) if run_id is not None else ("asked_at", "run_id", "number")
        page = self._page(Approval, where, order=order, limit=limit, after=after, descending=not oldest_first)
        return Page((approval.seen_at(now) for approval in page), next=page.next)

    @reads
    def answers(
        self, *, subject_digest: str | None = None, rule: str | None = None, run_id: str | None = None, limit: int = 8
    ) -> Answers:
        """List what was answered, newest question first: lately, and to exactly this thing or to what this rule held.

        Answers to a thing or a rule are looked for among the newest 300; with a run, all of that run's to the thing too.
        """

        digest = subject_digest and parse_sha256(subject_digest)
        return read_answers(self._db, self._now(), page_size(limit), digest, rule, run_id)

    @reads
    def latest(self, run_id: str, source: str) -> Approval | None:
        """Get a run's newest approval from one source, or null."""
        found = self._seek_by(Approval, order="number desc", run_id=run_id, source=source.strip())
        return None if found is None else found.seen_at(self._now())

    @reads
    def grants(self, approval_id: str, action: str) -> bool:
        """Check whether an approval was granted for exactly this action as its subject, and is not used up."""
        approval = self._seek(Approval, approval_id)
        if approval is None or approval.decided_by is None:
            return False  # no answer is no approval, even if the question has a default
        return approval.subject == action and self._counts(approval)

    @reads
    def granted_for(self, run_id: str, subject_digest: str, *, or_by_default: bool = False) -> Approval | None:
        """Get the approval that lets exactly this digest pass, or null. Reading it does not use it up: `use` does.

        The newest answer counts. Silence never does, unless nobody answered at all and `or_by_default` lets the default stand.
        Where an owner is bound, only what the owner proved counts.
        """
        asked = self._select_by(Approval, run_id=run_id, subject_digest=parse_sha256(subject_digest))
        settled_now = [approval.seen_at(self._now()) for approval in asked]
        answers = [approval for approval in settled_now if approval.verdict and not approval.is_expired]
        if or_by_default and not answers:
            answers = [approval for approval in settled_now if approval.verdict]
        newest = max(answers, key=lambda approval: (approval.decided_at, approval.number), default=None)
        return newest if newest is not None and self._counts(newest) else None

    @writes(hands_out=True)
    def use(self, run_id: str, subject_digest: str) -> Approval | None:
        """Use the approval of exactly this digest once; null if there is none, or if it is used up or over.

        Call it before acting on an approval, so that one grant allows one act.
        """
        # Lock before reading, so that concurrent users of one grant see each other's uses.
        self._db.lock_stream(run_id)
        found = self.granted_for(run_id, subject_digest)
        return None if found is None else self._used(found)

    def use_for(self, approval_id: str, action: str) -> bool:
        """Use an approval once that was granted for this action as subject. Return False if there is none."""
        found = self._seek(Approval, approval_id)
        if found is None:
            return False
        self._db.lock_stream(found.run_id)
        return self.grants(approval_id, action) and self._used(found) is not None

    def _used(self, found: Approval) -> Approval | None:
        """Count one more use of a grant that has one left."""
        changed = self._change_all(
            Approval,
            """
            update approvals set uses = coalesce(uses, 0) + 1
             where id = :id and state = 'granted'
               and (valid_until is null or valid_until > :now)
               and coalesce(uses, 0) < coalesce(max_uses, case when valid_until is null then 1 else :most end)
            returning *
            """,
            note="used",
            id=found.id,
            now=self._now(),
            most=MOST_USES,
        )
        return changed[0] if changed else None

    def _counts(self, approval: Approval) -> bool:
        """Return whether a grant is usable, and signed by the owner if one is registered."""
        return approval.is_usable(self._now()) and self._proofs().is_decision_valid(Approval, approval.id)


def _parties(by: str, asked_of: str | None) -> dict[str, str | None]:
    asker, answerer = normalize_name(by, "by"), asked_of and normalize_name(asked_of, "asked_of")
    if is_same(asker, answerer):
        raise Denied(f"{asker} can't ask {asker} for approval", hint="Ask someone else, or a gate.", field="asked_of")
    return {"asked_by": asker, "asked_of": answerer}
