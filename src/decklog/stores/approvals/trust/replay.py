"""Verification of trust: whether each step of the contract, from the registration on, was signed or needs no signature.

Invariants:

1. Only entries in the stream @desk count, in the order of that stream.
2. A promotion needs a statement signed by the owner's key of the revision before, in the entry just before the step.
3. Each revision of the contract is followed at once by the one `trust_changes` entry that describes it. No other is valid.
4. The registration's heads are those in the `trust_changes` entry that follows the contract's own first entry.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from decklog.core.errors import Damaged
from decklog.db.base import Database
from decklog.records.values import to_json
from decklog.stores.approvals.trust.records import ChangeKind, TrustChange, TrustContract, TrustProposal
from decklog.stores.approvals.trust.signatures import fingerprint, is_signed

Image = dict[str, Any]

_ABOUT_TRUST = f"record_table in ('{TrustContract.table}', '{TrustChange.table}', '{TrustProposal.table}')"
_ENTRIES = f"select stream, seq, at, record_table, record_id, payload from entries where {_ABOUT_TRUST} order by seq"
# Fields that every change sets, and fields that a change without a signature may lower.
_MOVES = {"revision", "updated_at"}
_LOWERED = {"tier", "is_dev_mode", "auto_merge"}
_BEGINNING = {"revision": 1, "tier": 0, "is_dev_mode": 0, "auto_merge": "[]", "reviewers": "[]"}


@dataclass(frozen=True)
class TrustStep:
    """One entry about trust."""

    stream: str
    seq: int
    at: str
    table: str
    record_id: str
    image: "Image"


@dataclass
class Replay:
    """The contract by its entries: one snapshot for each revision, and the first invalid step, if any."""

    images: "list[tuple[int, Image]]" = field(default_factory=list)
    problem: str | None = None
    # The number of the entry that the problem is about.
    seq: int | None = None
    # The last entry of each stream when the owner was registered. Older changes need no signature.
    heads: dict[str, int] = field(default_factory=dict)
    # Entries about trust that no valid step accounts for. Nothing relies on them; `verify` reports them.
    strays: list[dict[str, Any]] = field(default_factory=list)

    def key_at(self, revision: object, seq: int) -> str | None:
        """Return the owner's key of a revision if that revision was in force at entry `seq` of @desk."""
        for place, (since, image) in enumerate(self.images):
            until = self.images[place + 1][0] if place + 1 < len(self.images) else seq + 1
            if image["revision"] == revision and since < seq < until:
                return str(image["public_key"])
        return None


def replay(db: Database) -> Replay:
    """Verify the signatures from the registration on, up to the first invalid step."""
    rows = db.rows(_ENTRIES, {})[1]
    steps = [TrustStep(stream, seq, at, table, record_id, json.loads(image)) for stream, seq, at, table, record_id, image in rows]
    astray = [step for step in steps if step.stream != TrustContract.home]
    found = Replay(strays=[_stray(step, "in a stream that is not its own") for step in astray])
    steps = [step for step in steps if step.stream == TrustContract.home]
    signed = {step.seq: step for step in steps if step.table == TrustProposal.table and step.image.get("signature")}
    nonces: dict[int, str | None] = {}
    for step in steps:
        if step.table != TrustContract.table:
            continue
        found.problem, nonces[step.seq] = _objection(found, step, signed.get(step.seq - 1))
        if found.problem is not None:
            found.problem, found.seq = f"trust_contract {step.image.get('id')} {found.problem}", step.seq
            break
        found.images.append((step.seq, step.image))
    _replay_changes(found, [step for step in steps if step.table == TrustChange.table], nonces)
    return found


def _objection(found: Replay, step: TrustStep, proposal: TrustStep | None) -> tuple[str | None, str | None]:
    """Return the problem of a step of the contract, and the nonce of the statement that permits it."""
    after = step.image
    if not found.images:
        is_first = all(after.get(name) == value for name, value in _BEGINNING.items())
        return None if is_first else "does not begin at tier 0", None
    before = found.images[-1][1]
    if after.get("revision") != before["revision"] + 1:
        return f"goes from revision {before['revision']} to {after.get('revision')}", None
    if _is_lower(before, after):
        return None, None
    changed = _changed(before, after)
    if proposal is not None:
        statement, signature = proposal.image["statement"], proposal.image["signature"]
        # Parse after checking the signature: what the owner signed is well formed, anything else may be any text.
        is_own = is_signed(statement, signature, before["public_key"])
        if is_own and _permits(json.loads(statement), before, after, changed, step.at):
            return None, proposal.record_id
    return f"was changed in {', '.join(sorted(changed))} without a signature of {before['handle']}", None


def _permits(content: dict[str, Any], before: Image, after: Image, changed: set[str], at: str) -> bool:
    """Return whether a statement was written for exactly this step, and had not expired."""
    expected = (before["revision"], before["id"], fingerprint(before["public_key"]))
    if "terms" not in content or (content["revision"], content["log"], content["key"]) != expected:
        return False
    terms = _columns(content)
    fits = changed <= terms.keys() and all(after.get(name) == value for name, value in terms.items())
    return fits and content["expires_at"] > at


def _replay_changes(found: Replay, changes: list[TrustStep], nonces: dict[int, str | None]) -> None:
    """Match each revision with the change that follows it, and take the heads from the first change."""
    expected: dict[int, Image] = {}
    tier = 0
    for seq, image in found.images:
        same = {"contract_id": image["id"], "revision": image["revision"], "handle": image["handle"]}
        expected[seq + 1] = {**same, "from_tier": tier, "to_tier": image["tier"], "nonce": nonces[seq]}
        tier = image["tier"]
    first = found.images[0][0] + 1 if found.images else None
    for change in changes:
        wanted = expected.pop(change.seq, None)
        is_bind = change.image.get("kind") == ChangeKind.BIND
        if wanted is None or is_bind != (change.seq == first) or any(change.image.get(n) != v for n, v in wanted.items()):
            found.strays.append(_stray(change, "which is no step of the contract"))
        elif is_bind:
            found.heads = json.loads(change.image["details"]).get("heads", {})
    if found.problem is None:
        for seq, image in expected.items():
            what = f"revision {image['revision']} of trust_contract has no entry in trust_changes"
            found.strays.append({"what": what, "stream": TrustContract.home, "seq": seq - 1, "table": TrustContract.table})


def _stray(step: TrustStep, what: str) -> dict[str, Any]:
    where = {"stream": step.stream, "seq": step.seq, "table": step.table, "record_id": step.record_id}
    return {"what": f"{step.table} {step.record_id} was written in entry {step.stream}:{step.seq}, {what}", **where}


def _changed(before: Image, after: Image) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} - _MOVES


def _is_lower(before: Image, after: Image) -> bool:
    """Return whether a step only lowers trust, which needs no signature."""
    return (
        _changed(before, after) <= _LOWERED
        and after["tier"] <= before["tier"]
        and after["is_dev_mode"] <= before["is_dev_mode"]
        and after["auto_merge"] in (before["auto_merge"], "[]")
    )


def _columns(content: dict[str, Any]) -> Image:
    """Return the terms of a statement in the form of the contract's columns."""
    terms = {
        name: int(value) if isinstance(value, bool) else to_json(value) if isinstance(value, list) else value
        for name, value in content["terms"].items()
    }
    return {**terms, "phrase": None} if "public_key" in terms else terms


class Contracts:
    """Loads the contract, and verifies it against its signatures."""

    def __init__(self, db: Database) -> None:
        self._db = db
        # The last verification, with the number of entries: most calls find nothing new.
        self._seen: tuple[int, Replay] | None = None

    def replayed(self) -> Replay:
        """Verify the contract's entries, unless nothing was added since the last time."""
        count = (self._db.one(f"select count(*) from entries where {_ABOUT_TRUST}", {}) or (0,))[0]
        if self._seen is None or self._seen[0] != count:
            self._seen = count, replay(self._db)
        return self._seen[1]

    def present(self, *, for_update: bool = False) -> TrustContract | None:
        """Return the contract. Raise `Damaged` if it differs from what was signed."""
        if for_update and self._db.locks_rows:
            self._db.lock_stream(TrustContract.home or "")
        row, problem = self.look(for_update=for_update)
        if problem is not None:
            raise Damaged(problem, hint="Nothing counts on this contract. See: decklog verify", table=TrustContract.table)
        return row

    def look(self, *, for_update: bool = False) -> tuple[TrustContract | None, str | None]:
        """Return the contract's row, and its problem, if any."""
        while True:
            replay = self.replayed()
            row, problem = self._held_against(replay, for_update)
            # A reader may see the entries of an older contract and the row of a newer one.
            if problem is None or self.replayed() is replay:
                return row, problem

    def _held_against(self, replay: Replay, for_update: bool) -> tuple[TrustContract | None, str | None]:
        names, rows = self._db.rows(f"select * from trust_contract{' for update' if for_update else ''}", {})
        if replay.problem is not None:
            return None, replay.problem
        if not replay.images:
            return None, "trust_contract is in no entry" if rows else None
        image = TrustContract.upcast(replay.images[-1][1])
        if not rows:
            return None, f"trust_contract {image['id']} is gone"
        row = dict(zip(names, rows[0], strict=True))
        if differing := [name for name in row if row[name] != image.get(name)]:
            return None, f"trust_contract {image['id']} differs from its newest entry in {', '.join(differing)}"
        return TrustContract.from_row(names, rows[0]), None
