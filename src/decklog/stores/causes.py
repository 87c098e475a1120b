"""What made a question wait, as whoever asked told it: the rule that held something, its reason, and the tier in force then."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What a question's payload says of it. Anybody may ask, and so write anything there: it is told, and nothing is decided by it.
_TEXTS = {"rule": 200, "reason": 1000}
_TIER = "tier"


def cause_of(payload: object) -> "dict[str, Any]":
    """Give what a payload tells of the cause: `rule`, `reason` and `tier`, each where it is there; nothing where none is."""
    if not isinstance(payload, dict):
        return {}
    told = {name: payload[name][:most] for name, most in _TEXTS.items() if isinstance(payload.get(name), str) and payload[name]}
    tier = payload.get(_TIER)
    return {**told, _TIER: tier} if type(tier) is int else told
