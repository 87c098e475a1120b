"""The approval record: a question about one exact subject, the rules for its subject, expiry and answer, and earlier answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, Literal

from decklog.core.clock import from_text, to_text
from decklog.core.errors import Conflict, Damaged, Denied, Invalid
from decklog.db.base import Database
from decklog.journal.blobs import load_blob, store_blob
from decklog.records.fork_rules import Computed, Fork, ForkRule, Refer, Reset
from decklog.records.record import Record
from decklog.records.values import to_json
from decklog.stores import documents
from decklog.stores.checks import check_integer, check_span, check_time_zone, is_same
from decklog.stores.documents import parse_sha256
from decklog.stores.results.approvals import ApprovalSubject, cause_of


class ApprovalState(StrEnum):
    OPEN = "open"
    GRANTED = "granted"
    DENIED = "denied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


ApprovalStateLike = ApprovalState | Literal["open", "granted", "denied", "expired", "withdrawn"]


class Verdict(StrEnum):
    GRANTED = "granted"
    DENIED = "denied"


VerdictLike = Verdict | Literal["granted", "denied"]


UNANSWERED = "nobody answered in time"
MOST_SECONDS = 10 * 365 * 24 * 3600
MOST_USES = 10**6
# Fields of a decided approval that may change without another decision.
_COUNTED = frozenset({"uses"})


@dataclass(frozen=True, kw_only=True)
class Approval(Record):
    """A question and its answer; `subject_digest` names the exact thing, `number` its place among the run's approvals."""

    table = "approvals"
    is_work = True
    fork = ForkRule(
        "A decision was made for its own run: in a fork it is history. What the fork still needs, it asks for itself.",
        fields={"task_id": Refer("tasks"), "proof": Reset(), "uses": Computed("used up"), "max_uses": Computed("used up")},
        left_out="open questions, and grants that can still be used",
        is_left_out=lambda image, fork: _is_in_force(image, fork),
    )
    is_managed = True
    is_guarded = True
    blob_columns = ("about_digest",)

    id: str
    run_id: str
    number: int
    state: ApprovalState
    asked_at: datetime
    question: str | None = None
    subject: str | None = None
    subject_digest: str | None = None
    asked_by: str | None = None
    asked_of: str | None = None
    source: str | None = None
    task_id: str | None = None
    expires_at: datetime | None = None
    default_verdict: Verdict | None = None
    verdict: str | None = None
    decided_by: str | None = None
    decided_at: datetime | None = None
    rationale: str | None = None
    payload: object = field(default_factory=dict)
    key: str | None = None
    proof: str | None = None
    max_uses: int | None = None
    valid_until: datetime | None = None
    uses: int | None = None
    # The digest of the stored subject, which is redacted.
    about_digest: str | None = None
    redacted: bool = False

    @property
    def is_proven(self) -> bool:
        """Whether the owner signed the decision."""
        return self.proof is not None

    @property
    def uses_left(self) -> int | None:
        """How often it may still be used; None means any number of times until `valid_until`. The default is once."""
        if self.state is not ApprovalState.GRANTED:
            return 0
        most = self.max_uses or (1 if self.valid_until is None else None)
        return None if most is None else max(0, most - (self.uses or 0))

    def is_usable(self, now: datetime) -> bool:
        """Return whether it still permits its subject."""
        return self.uses_left != 0 and (self.valid_until is None or now < self.valid_until)

    @classmethod
    def needs_proof(cls, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> bool:
        """Return whether a change needs a signature: a decision, and later changes except uses. Copies of forks need none."""
        if before is None:
            return after.get("proof") is not None or (_is_decision(after) and cls.from_image(after).uses_left != 0)
        if not _is_decision(before) and not _is_decision(after):
            return False
        old, new = cls.upcast(before), cls.upcast(after)
        is_other = "removed" in after or any(old[name] != new[name] for name in old.keys() - _COUNTED)
        return is_other or (new["uses"] or 0) < (old["uses"] or 0)

    @classmethod
    def compute_forked_fields(cls, image: dict[str, Any], _db: Any) -> dict[str, Any]:
        """Return the copy for a fork: a decision applies only to its run, so the copy has no signature and no uses left."""
        if image["state"] != ApprovalState.GRANTED or image["subject_digest"] is None:
            return {**image, "proof": None}
        spent = max(image["uses"] or 0, image["max_uses"] or 1)
        return {**image, "proof": None, "max_uses": spent, "uses": spent}

    @property
    def is_expired(self) -> bool:
        """Whether it expired before anyone answered."""
        unanswered = self.decided_by is None and self.expires_at is not None
        return self.state is ApprovalState.EXPIRED or (unanswered and self.state in (ApprovalState.GRANTED, ApprovalState.DENIED))

    @property
    def needs_reason(self) -> bool:
        """Whether a grant needs a reason: to publish what the review gate blocks."""
        return (self.source, self.subject) == ("review", "publish")

    def seen_at(self, now: datetime) -> "Approval":
        """Return it as of a time: an expired question has its default answer, recorded or not."""
        if self.state is not ApprovalState.OPEN or self.expires_at is None or self.expires_at > now:
            return self
        return replace(
            self,
            state=ApprovalState(self.default_verdict or ApprovalState.EXPIRED),
            verdict=self.default_verdict,
            decided_at=self.expires_at,
            rationale=UNANSWERED,
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            **super().as_dict(),
            "is_expired": self.is_expired,
            "is_proven": self.is_proven,
            "uses_left": self.uses_left,
        }


def _is_in_force(image: dict[str, Any], fork: Fork) -> bool:
    """Return whether a question is open, or a grant is usable."""
    approval = Approval.from_image(image)
    is_grant = approval.subject_digest is not None and approval.is_usable(from_text(fork.now))
    return approval.state is ApprovalState.OPEN or is_grant


def _is_decision(image: Mapping[str, Any]) -> bool:
    """Return whether a snapshot is somebody's answer about one exact subject."""
    return bool(image.get("decided_by") and image.get("subject_digest"))


def question_key(approval_id: str) -> str:
    """Return the key of the message that asks the same question; it is answered together with the approval."""
    return f"approval:{approval_id}"


def compute_digest(about: object) -> str:
    """Return the SHA-256 of the exact subject of an approval, in hexadecimal.

    A text is hashed as its UTF-8 bytes (as `sha256sum` does for a file), bytes unchanged, any other JSON value as canonical
    JSON: sorted keys, no whitespace, non-ASCII characters unescaped.
    """
    if isinstance(about, bytes):
        return sha256(about).hexdigest()
    text = about if isinstance(about, str) else to_json(about)
    try:
        return sha256(text.encode()).hexdigest()
    except UnicodeEncodeError:
        raise Invalid("about contains half of a surrogate pair, which is not text", field="about") from None


def state_condition(state: ApprovalState) -> str:
    """Build the condition for approvals with a state as of :now."""
    match state:
        case ApprovalState.OPEN:
            return "state = :state and (expires_at is null or expires_at > :now)"
        case ApprovalState.WITHDRAWN:
            return "state = :state"
    return "(state = :state or (state = 'open' and expires_at <= :now and coalesce(default_verdict, 'expired') = :state))"


def check_decider(asked: Approval, decider: str) -> None:
    """Raise Denied if the decider is the one who asked."""
    if is_same(asked.asked_by, decider):
        raise Denied(
            f"{decider} asked for approval {asked.id} and can't decide it",
            hint=f"It is for {asked.asked_of} to decide." if asked.asked_of else "Someone else has to decide.",
            id=asked.id,
        )


def check_reason(asked: Approval, verdict: Verdict, rationale: str | None) -> None:
    """Raise Invalid for a grant without a required reason."""
    if asked.needs_reason and verdict is Verdict.GRANTED and asked.state is ApprovalState.OPEN and not (rationale or "").strip():
        raise Invalid(
            f"a grant of approval {asked.id} needs a reason: the gate blocks without one",
            hint=f"Say why: decklog approvals decide {asked.id} granted --by NAME --rationale WHY",
            field="rationale",
            id=asked.id,
        )


def check_digest(asked: Approval, digest: str | None) -> None:
    """Raise Conflict for an answer about another subject."""
    if digest is not None and parse_sha256(digest) != asked.subject_digest:
        raise Conflict(
            f"approval {asked.id} is about {asked.subject_digest}, not {digest}",
            hint="It changed since the question was asked: ask again.",
            id=asked.id,
            digest=asked.subject_digest,
        )


def already_decided(approval: Approval) -> Conflict:
    """Return the error for an approval that is already decided."""
    who = f" by {approval.decided_by}" if approval.decided_by else " because " + UNANSWERED if approval.is_expired else ""
    when = to_text(approval.decided_at) if approval.decided_at else ""
    return Conflict(
        f"approval {approval.id} is {approval.state}{who} since {when}",
        hint="For another decision, ask again.",
        id=approval.id,
        state=approval.state.value,
        decided_by=approval.decided_by,
        decided_at=when,
    )


def resolve_digest(about: object, digest: str | None) -> str:
    """Return the digest of the subject. Raise an error if content and digest do not match."""
    if about is None and digest is None:
        raise Invalid(
            "an approval needs an exact subject: give its content (about) or its SHA-256 (subject_digest)", field="about"
        )
    given = None if digest is None else parse_sha256(digest)
    computed = given if about is None else compute_digest(about)
    if given is not None and given != computed:
        raise Invalid(f"the content has the digest {computed}, not {given}", field="subject_digest")
    return str(computed)


def compute_expiry(now: datetime, at: datetime | None, seconds: float | None, default_verdict: str | None) -> datetime | None:
    """Return the expiry of a question. Raise Invalid for a past time, and for a default without a time."""
    if at is not None and seconds is not None:
        raise Invalid("give expires_at or expires_in_seconds, not both", field="expires_at")
    if seconds is not None:
        check_span(seconds, "expires_in_seconds", most=MOST_SECONDS)
    check_time_zone("expires_at", at)
    end = now + timedelta(seconds=seconds) if seconds is not None else at
    if end is None and default_verdict is not None:
        raise Invalid("a default verdict needs a time limit: expires_at or expires_in_seconds", field="expires_at")
    if end is not None and end <= now:
        raise Invalid(f"{to_text(end)} is past; an approval expires in the future", field="expires_at")
    return end


def grant_limits(verdict: Verdict, now: datetime, uses: int | None, seconds: float | None) -> dict[str, Any]:
    """Return the limits of a grant: one use, unless a number of uses or a time is given."""
    if verdict is not Verdict.GRANTED:
        if uses is not None or seconds is not None:
            raise Invalid("only a grant can have a number of uses or a time limit", field="uses")
        return {"max_uses": None, "valid_until": None}
    if uses is not None:
        check_integer("uses", uses, low=1, high=MOST_USES)
    if seconds is not None:
        check_span(seconds, "valid_seconds", most=MOST_SECONDS)
    until = None if seconds is None else now + timedelta(seconds=seconds)
    return {"max_uses": uses if uses is not None or until is not None else 1, "valid_until": until}


def check_payload(payload: object) -> object:
    """Check a payload; None becomes an empty object."""
    if payload is None:
        return {}
    if not isinstance(payload, (dict, list)):
        raise Invalid("a payload is a JSON object or list", field="payload")
    return payload


class AboutCheck(StrEnum):
    """How the stored subject compares with the digest of the question."""

    MATCHES = "matches"
    REDACTED = "parts redacted"
    ABSENT = "not in the log"


def store_subject(db: Database, about: object) -> dict[str, Any]:
    """Store the redacted subject, and return its fields. The stream must be locked before."""
    if about is None:
        return {}
    if isinstance(about, bytes):
        content, redacted = documents.redact(db, "about", about)
    else:
        text, redacted = db.values.bind_text("about", about) if isinstance(about, str) else db.values.bind_json("about", about)
        content = text.encode()
    return {"about_digest": store_blob(db, content), "redacted": redacted}


def check_content(approval: Approval, content: bytes | None) -> tuple[AboutCheck, bytes | None]:
    """Compare the stored subject with its digest, computed again. Raise an error if it was tampered with."""
    if content is None:
        return AboutCheck.ABSENT, None
    digest = sha256(content).hexdigest()
    if digest != approval.about_digest or (digest != approval.subject_digest and not approval.redacted):
        raise Damaged(
            f"the stored subject of approval {approval.id} was changed: it has the digest {digest}",
            hint="Somebody wrote to the database past Decklog. See: decklog verify",
            id=approval.id,
            digest=digest,
        )
    return (AboutCheck.MATCHES if digest == approval.subject_digest else AboutCheck.REDACTED), content


def check_subject_known(db: Database, approval: Approval, digest: str | None) -> None:
    """Refuse to grant a subject that is not in the log, unless its digest is given."""
    check, _ = check_content(approval, load_blob(db, approval.about_digest) if approval.about_digest else None)
    if check is AboutCheck.ABSENT and approval.subject_digest is not None and digest is None:
        raise Invalid(
            f"the subject of approval {approval.id} is not in the log: to grant it, give the digest of what you checked",
            hint="Compute it (sha256sum) and add: --subject-digest SHA256",
            field="subject_digest",
            id=approval.id,
        )


def show_subject(approval: Approval, content: bytes | None) -> ApprovalSubject:
    """Return the subject of an approval as text or base64, with the result of the check."""
    check, content = check_content(approval, content)
    if content is None:
        return {"check": check.value, "content": None, "encoding": None}
    text, encoding = documents.encode_content(content)
    return {"check": check.value, "content": text, "encoding": encoding}


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
        bound["rule"] = f"%{_escape_like(_rule_prefix(rule))}%"
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


def _rule_prefix(rule: str) -> str:
    """Return the rule as JSON without its end, since a long rule is stored truncated."""
    return to_json({"rule": rule})[1:-2]


def _escape_like(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
