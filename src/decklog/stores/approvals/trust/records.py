"""Records of trust: the contract with the owner, proposals to change it, and its changes; and the terms of a signed change."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from decklog.core.clock import to_text
from decklog.core.errors import Denied, Invalid
from decklog.records.record import Record
from decklog.records.values import to_json
from decklog.stores.approvals.trust import tiers
from decklog.stores.approvals.trust.signatures import fingerprint, public_key_of


class SignedChange(StrEnum):
    """The changes that need the owner's signature."""

    PROMOTE = "promote"
    HAND_OVER = "hand-over"
    AUTO_MERGE = "auto-merge"
    DEV_MODE = "dev-mode"
    REVIEWERS = "reviewers"


SignedChangeLike = SignedChange | Literal["promote", "hand-over", "auto-merge", "dev-mode", "reviewers"]


class ChangeKind(StrEnum):
    BIND = "bind"
    PROMOTE = "promote"
    DEMOTE = "demote"
    HAND_OVER = "hand-over"
    AUTO_MERGE = "auto-merge"
    DEV_MODE = "dev-mode"
    REVIEWERS = "reviewers"


ChangeKindLike = ChangeKind | Literal["bind", "promote", "demote", "hand-over", "auto-merge", "dev-mode", "reviewers"]


@dataclass(frozen=True, kw_only=True)
class TrustContract(Record):
    """The one row that names the log's owner. Its id is the log's, which statements name."""

    table = "trust_contract"
    home = "@desk"

    id: str
    handle: str
    channel: str
    public_key: str
    bound_at: datetime
    updated_at: datetime
    one: int = 1
    persona_name: str | None = None
    tier: int = 0
    is_dev_mode: bool = False
    auto_merge: list[str] = field(default_factory=list)
    reviewers: list[str] = field(default_factory=list)
    revision: int = 1
    # How the key is derived from the owner's password, if it is: the parameters and the salt of scrypt.
    phrase: str | None = None


@dataclass(frozen=True, kw_only=True)
class TrustProposal(Record):
    """A change that waits for its signature. `statement` is the exact text to sign."""

    table = "trust_proposals"
    identity = ("nonce",)
    home = "@desk"
    is_guarded = True

    nonce: str
    contract_id: str
    change: SignedChange
    statement: str
    proposed_at: datetime
    expires_at: datetime
    proposed_by: str | None = None
    signature: str | None = None
    applied_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class TrustChange(Record):
    """One step of the trust contract, as it was made."""

    table = "trust_changes"
    home = "@desk"

    id: str
    contract_id: str
    revision: int
    kind: ChangeKind
    from_tier: int
    to_tier: int
    handle: str
    reason: str
    at: datetime
    by: str | None = None
    details: dict[str, object] = field(default_factory=dict)
    nonce: str | None = None


_PURPOSE = "decklog-trust-1"
# ASCII only: handles that look equal must be equal.
_HANDLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")


# The arguments of each change.
_TAKES = {
    SignedChange.PROMOTE: ("to_tier",),
    SignedChange.HAND_OVER: ("handle", "channel", "public_key"),
    SignedChange.AUTO_MERGE: ("fix_classes",),
    SignedChange.DEV_MODE: ("is_on",),
    SignedChange.REVIEWERS: ("reviewers",),
}


def normalize_handle(text: str) -> str:
    """Check a handle: ASCII letters, digits and . _ @ + -, without a leading @."""
    handle = text.strip().removeprefix("@")
    if not _HANDLE.fullmatch(handle):
        raise Invalid(f"{text[:50]!r} is not a handle: 1 to 100 of A-Z a-z 0-9 . _ @ + -", field="handle")
    return handle


def is_same_handle(one: str, other: str) -> bool:
    """Compare handles, ignoring case; a text with non-ASCII characters never matches."""
    one = one.strip().removeprefix("@")
    return one.isascii() and one.lower() == other.lower()


def parse_terms(change: SignedChange, contract: TrustContract, given: dict[str, Any]) -> dict[str, Any]:
    """Check the arguments of a change and return its terms. Raise an error for what no signature can permit."""
    known = {name: value for name, value in given.items() if value is not None}
    unknown = [name for name in known if name not in _TAKES[change]]
    if unknown:
        raise Invalid(f"{change} takes {', '.join(_TAKES[change])}, not {', '.join(unknown)}", field=unknown[0])
    missing = [name for name in _TAKES[change] if name not in known]
    if missing and change is not SignedChange.PROMOTE:
        raise Invalid(f"{change} needs {', '.join(missing)}", field=missing[0])
    match change:
        case SignedChange.PROMOTE:
            return {"tier": _next_tier(contract.tier, known.get("to_tier"))}
        case SignedChange.HAND_OVER:
            return _new_owner(contract, known)
        case SignedChange.AUTO_MERGE:
            return {"auto_merge": _listable(known["fix_classes"])}
        case SignedChange.DEV_MODE:
            return {"is_dev_mode": bool(known["is_on"])}
        case SignedChange.REVIEWERS:
            return {"reviewers": sorted({normalize_handle(handle) for handle in known["reviewers"]})}


def _next_tier(present: int, wanted: int | None) -> int:
    """Return the next level. A promotion raises one level at a time, each with a separate decision."""
    wanted = present + 1 if wanted is None else wanted
    if wanted != present + 1 or wanted > tiers.HIGHEST:
        raise Denied(
            f"the tier is {present}, and a promotion goes to the next one, not to {wanted}",
            hint="Promote step by step; demote to go down.",
            tier=present,
            wanted=wanted,
        )
    return wanted


def _listable(classes: list[str]) -> list[str]:
    refused = [name for name in classes if name not in tiers.listable_classes()]
    if refused:
        raise Denied(
            f"{', '.join(refused)} can never merge without a person; only {', '.join(tiers.listable_classes())} can be listed",
            refused=refused,
        )
    return sorted(set(classes))


def _new_owner(contract: TrustContract, known: dict[str, Any]) -> dict[str, Any]:
    handle, key = normalize_handle(known["handle"]), public_key_of(known["public_key"])
    if not known["channel"].strip():
        raise Invalid("an owner needs a channel", field="channel")
    if is_same_handle(handle, contract.handle) and key == contract.public_key:
        raise Invalid(f"{handle} is the owner already, with this key", field="handle")
    return {"handle": handle, "channel": known["channel"].strip(), "public_key": key}


def statement_of(
    change: SignedChange, contract: TrustContract, terms: dict[str, Any], *, reason: str, nonce: str, expires_at: datetime
) -> dict[str, Any]:
    """Build the statement of a change, so that its signature is valid only for this log, contract and change."""
    return {
        "purpose": _PURPOSE,
        "log": contract.id,
        "revision": contract.revision,
        "owner": contract.handle,
        "key": fingerprint(contract.public_key),
        "change": change.value,
        "terms": terms,
        "tier_before": contract.tier,
        "tier_after": terms.get("tier", contract.tier),
        "reason": reason,
        "nonce": nonce,
        "expires_at": to_text(expires_at),
    }


def check(contract: TrustContract, proposal: TrustProposal, content: dict[str, Any], now: datetime) -> None:
    """Raise Denied for a statement that was used, is expired, or is for another contract."""
    if proposal.applied_at is not None:
        raise Denied(f"this statement was used at {to_text(proposal.applied_at)}, and works once", nonce=proposal.nonce)
    # The signed text decides, not its row.
    if to_text(now) >= content["expires_at"]:
        raise Denied(f"this statement expired at {content['expires_at']}; propose the change again", nonce=proposal.nonce)
    if content["log"] != contract.id:
        raise Denied("this statement was written for another log", nonce=proposal.nonce)
    if content["revision"] != contract.revision or content["tier_before"] != contract.tier:
        raise Denied(
            f"trust has changed since this statement was written (tier {content['tier_before']} then, {contract.tier} now)",
            hint="Propose the change again.",
            nonce=proposal.nonce,
        )


def excerpt(value: object) -> str:
    """Return an excerpt of a request that any column can store, even for hostile input."""
    text = value if isinstance(value, str) else to_json(value)
    return "".join(char if char.isascii() and char.isprintable() and char != "\\" else "?" for char in text[:600])
