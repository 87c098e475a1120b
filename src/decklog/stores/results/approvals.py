"""What the verbs of approvals and trust return."""

from typing import NotRequired, TypedDict

from decklog.records.record import RecordJson


class ApprovalSubject(TypedDict):
    """What an approval is about, and how it compares with the digest that was asked about."""

    check: str
    content: str | None
    encoding: str | None


class ApprovalCause(TypedDict, total=False):
    """Why an approval was requested."""

    rule: str
    reason: str
    tier: int


class ApprovalDetails(TypedDict):
    """An approval as JSON, with its cause and what it is about."""

    id: str
    run_id: str
    number: int
    state: str
    asked_at: str
    question: str | None
    subject: str | None
    subject_digest: str | None
    asked_by: str | None
    asked_of: str | None
    source: str | None
    task_id: str | None
    expires_at: str | None
    default_verdict: str | None
    verdict: str | None
    decided_by: str | None
    decided_at: str | None
    rationale: str | None
    payload: object
    key: str | None
    proof: str | None
    max_uses: int | None
    valid_until: str | None
    uses: int | None
    about_digest: str | None
    redacted: bool
    is_expired: bool
    is_proven: bool
    uses_left: int | None
    needs_reason: bool
    cause: ApprovalCause
    about: ApprovalSubject


class TrustStatus(TypedDict):
    """The owner, how a decision is proven, and the tier of agents."""

    is_bound: bool
    tier: int
    tier_name: str
    # Why the contract is invalid. Without a valid contract there is no owner.
    problem: NotRequired[str]
    owner: NotRequired[str]
    has_password: NotRequired[bool]


class TrustDetails(TrustStatus):
    """The trust status with what the tier permits, and the contract where there is one."""

    may: list[str]
    may_not_yet: list[str]
    # What to ask if no owner is registered.
    question: NotRequired[str]
    log_id: NotRequired[str]
    channel: NotRequired[str | None]
    fingerprint: NotRequired[str]
    persona_name: NotRequired[str | None]
    is_dev_mode: NotRequired[bool]
    auto_merge: NotRequired[list[str]]
    reviewers: NotRequired[list[str]]
    last_promotion: NotRequired[RecordJson | None]
    last_demotion: NotRequired[RecordJson | None]


class TierExplanation(TypedDict):
    """What a tier permits."""

    tier: int
    name: str
    adds: str
    may: list[str]
    may_not_yet: list[str]
    needs_approval: list[str]
    never: list[str]


class ActionPermission(TypedDict):
    """Whether an action is permitted, and why or why not."""

    action: str
    allowed: bool
    reason: str
    tier: int
    needed: int | None
    needs_approval: bool
    approval_id: NotRequired[str | None]


# The payload of an approval may contain anything. It is shown only, and never used for a decision.
_LONGEST_RULE, _LONGEST_REASON = 200, 1000


def cause_of(payload: object) -> ApprovalCause:
    """Return the cause in a payload: `rule`, `reason` and `tier`, each if given."""
    cause: ApprovalCause = {}
    if not isinstance(payload, dict):
        return cause
    rule, reason, tier = payload.get("rule"), payload.get("reason"), payload.get("tier")
    if isinstance(rule, str) and rule:
        cause["rule"] = rule[:_LONGEST_RULE]
    if isinstance(reason, str) and reason:
        cause["reason"] = reason[:_LONGEST_REASON]
    if type(tier) is int:
        cause["tier"] = tier
    return cause
