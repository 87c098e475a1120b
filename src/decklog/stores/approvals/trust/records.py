"""Records of trust: the contract with the owner, proposals to change it, and its changes."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from decklog.records.record import Record


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
