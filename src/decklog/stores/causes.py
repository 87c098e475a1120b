"""Why an approval is required, as the caller stated it: the rule, its reason, and the autonomy level at that time."""

from decklog.stores.results.approvals import ApprovalCause

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
