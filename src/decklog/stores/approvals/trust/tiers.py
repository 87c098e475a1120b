"""Autonomy levels: what each permits, loaded from data, independent of a log."""

import json
import os
from collections.abc import Collection
from functools import lru_cache
from typing import Any

from decklog.core.errors import Invalid
from decklog.stores.results.approvals import ActionPermission, TierExplanation

_FILE = os.path.join(os.path.dirname(__file__), "tiers.json")
HIGHEST = 5


@lru_cache
def _data() -> dict[str, Any]:
    with open(_FILE, encoding="utf-8") as file:
        data: dict[str, Any] = json.load(file)
    return data


def name_of(tier: int) -> str:
    """Return a level's name."""
    return str(_tier(tier)["name"])


def listable_classes() -> list[str]:
    """Return the fix classes that an owner may allow to merge automatically."""
    return list(_data()["auto_merge_classes"])


def explain(tier: int) -> TierExplanation:
    """Return what a level permits, what it adds to the one below, and what it does not permit yet."""
    found, actions = _tier(tier), _data()["actions"]
    return {
        "tier": tier,
        "name": found["name"],
        "adds": found["adds"],
        "may": [name for name, rule in actions.items() if rule["tier"] is not None and rule["tier"] <= tier],
        "may_not_yet": [name for name, rule in actions.items() if rule["tier"] is not None and rule["tier"] > tier],
        "needs_approval": [name for name, rule in actions.items() if rule.get("needs_approval")],
        "never": [name for name, rule in actions.items() if rule["tier"] is None],
    }


def decide(
    action: str,
    tier: int,
    *,
    is_approved: bool = False,
    is_dev_mode: bool = False,
    listed: Collection[str] = (),
    fix_class: str | None = None,
) -> ActionPermission:
    """Return whether an action is permitted, with the reason. Unknown actions are not permitted."""
    rule = _data()["actions"].get(action)
    needed = rule and rule["tier"]
    why = _objection(action, rule, tier, is_approved, is_dev_mode, fix_class in listed)
    return {
        "action": action,
        "allowed": why is None,
        "reason": why or f"tier {tier} ({name_of(tier)}) permits {action}",
        "tier": tier,
        "needed": needed,
        "needs_approval": bool(rule and rule.get("needs_approval")),
    }


def _objection(
    action: str, rule: dict[str, Any] | None, tier: int, is_approved: bool, is_dev_mode: bool, is_listed: bool
) -> str | None:
    if rule is None:
        return f"{action} is not an action that any tier knows"
    needed = rule["tier"]
    if needed is None:
        return f"no tier permits {action}; a person does it"
    if tier < needed:
        return f"{action} needs tier {needed} ({name_of(needed)}), and this is tier {tier} ({name_of(tier)})"
    if rule.get("needs_dev_mode") and not is_dev_mode:
        return f"{action} needs dev mode, which is off; the owner can sign it on"
    if rule.get("needs_listed_class") and not is_listed:
        return f"{action} needs a fix class that the owner has listed for it"
    if rule.get("needs_approval") and not is_approved:
        return f"{action} always needs an approval, at every tier; ask for one"
    return None


def _tier(tier: int) -> dict[str, Any]:
    if not 0 <= tier <= HIGHEST:
        raise Invalid(f"there is no tier {tier}; tiers go from 0 to {HIGHEST}", field="tier")
    found: dict[str, Any] = _data()["tiers"][tier]
    return found
