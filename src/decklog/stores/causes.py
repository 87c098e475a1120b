"""What made a question wait, as the caller gave it: the rule that held something, its reason, and the tier in force then."""

from decklog.stores.results.approvals import ApprovalCause

# Anybody may write anything to the payload of a question: it is shown, and nothing is decided by it.
_LONGEST_RULE, _LONGEST_REASON = 200, 1000


def cause_of(payload: object) -> ApprovalCause:
    """Return the cause that a payload names: `rule`, `reason` and `tier`, each only where it is given."""
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
