"""Signatures of the owner over the exact changes of an owner-only action, and their verification."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeVar

from decklog.core.clock import to_text
from decklog.core.errors import Unavailable, Unproven
from decklog.db.where import Where
from decklog.journal.attribution import OwnerAct, change_digest, owner_act
from decklog.journal.findings import parse_object
from decklog.records.operations import reads
from decklog.records.record import Page, Record
from decklog.records.values import to_json
from decklog.stores.approvals.trust.records import TrustContract
from decklog.stores.approvals.trust.replay import Contracts
from decklog.stores.approvals.trust.signatures import Prover, fingerprint, is_signed
from decklog.stores.base import Store, StoreParts

T = TypeVar("T")
P = TypeVar("P", bound=Any)
Image = dict[str, Any]

_PURPOSE = "decklog-proof-1"

prover: ContextVar[Prover | None] = ContextVar("decklog_prover", default=None)


@dataclass(frozen=True, kw_only=True)
class Proof(Record):
    """What the owner signed: `statement` names the operation and the digest of every change it made. A nonce works once."""

    table = "proofs"
    identity = ("nonce",)
    home = "@desk"

    nonce: str
    contract_id: str
    operation: str
    statement: str
    signature: str
    proved_at: datetime


class Proofs(Store):
    """Keeps the owner's signatures. A log without an owner has none, and its decisions are unsigned."""

    records = (Proof,)

    def __init__(self, parts: StoreParts) -> None:
        super().__init__(parts)
        self._contracts = Contracts(parts.db)

    @reads
    def get(self, nonce: str) -> Proof:
        """Get a proof."""
        return self._fetch(Proof, nonce)

    @reads
    def find(self, *, operation: str | None = None, limit: int = 20, after: str | None = None) -> Page[Proof]:
        """List what the owner proved, newest first; an operation is named like budgets.set."""
        where = Where(Proof, operation=operation)
        return self._page(Proof, where, order=("proved_at", "nonce"), limit=limit, after=after, descending=True)

    # Signing

    def run_signed(self, operation: str, arguments: Mapping[str, Any], act: Callable[[], T]) -> T:
        """Run an owner-only action. If an owner is registered, sign its changes in the same transaction."""
        contract = self._contracts.present(for_update=True)
        if contract is None:
            return act()
        sign = signer_for(contract, operation)
        done = OwnerAct(os.urandom(16).hex())
        token = owner_act.set(done)
        try:
            result = act()
        finally:
            owner_act.reset(token)
        if done.changes:
            self._sign(contract, operation, arguments, done, sign)
        return result

    def _sign(
        self,
        contract: TrustContract,
        operation: str,
        arguments: Mapping[str, Any],
        done: OwnerAct,
        sign: Callable[[str], str],
    ) -> None:
        now = self._now()
        statement = to_json(
            {
                "purpose": _PURPOSE,
                "log": contract.id,
                "revision": contract.revision,
                "owner": contract.handle,
                "key": fingerprint(contract.public_key),
                "operation": operation,
                "arguments": sha256(json.dumps(dict(arguments), sort_keys=True, default=str).encode()).hexdigest(),
                "changes": done.changes,
                "nonce": done.nonce,
                "at": to_text(now),
            }
        )
        signature = sign(statement)
        # Digests, ids and random letters may look like a secret, but the stored text must be the signed text.
        for made in (done.nonce, statement, signature):
            self._db.values.mark_clean(made)
        self._add(
            Proof,
            note=f"{operation} by {contract.handle}",
            nonce=done.nonce,
            contract_id=contract.id,
            operation=operation,
            statement=statement,
            signature=signature,
            proved_at=now,
        )

    # Verifying

    @property
    def is_needed(self) -> bool:
        """Whether an owner is registered, so that only signed decisions count."""
        return self._contracts.present() is not None

    def is_decision_valid(self, record_class: type[Record], record_id: str) -> bool:
        """Return whether a decision counts: the owner signed it, or no owner is registered. All owner-only decisions use this."""
        return not self.is_needed or self.has_valid_signature(record_class, record_id)

    def has_valid_signature(self, record_class: type[Record], record_id: str) -> bool:
        """Return whether the newest decision on a record has a valid signature."""
        sql = "select stream, seq, refs, payload from entries where record_table = :table and record_id = :id order by seq"
        entries = self._db.rows(sql, {"table": record_class.table, "id": record_id})[1]
        check, before, is_proven = _Check(self), None, False
        for stream, _, refs, payload in entries:
            after = json.loads(payload)
            if _is_astray(record_class, stream, after):
                return False
            if record_class.needs_proof(before, after):
                is_proven = check.objection(record_class, record_id, refs, payload) is None
            before = after
        return is_proven

    def without_invalid_proof(self, record: P) -> P:
        """Return a record for display: without its `proof` if that is invalid, or can't be checked here."""
        if record.proof is None:
            return record
        try:
            holds = self.has_valid_signature(type(record), record.id)
        except Unavailable:
            holds = False
        return record if holds else replace(record, proof=None)

    def audit(self, record_classes: Mapping[str, type[Record]]) -> Iterator[dict[str, Any]]:
        """Yield the changes that the owner did not sign: steps of trust without a signature, and changes without a proof."""
        replay = self._contracts.replayed()
        if replay.problem is not None:
            yield {"what": replay.problem, "stream": TrustContract.home, "seq": replay.seq, "table": TrustContract.table}
        yield from replay.strays
        if not replay.images:
            return
        check = _Check(self)
        for record_class in record_classes.values():
            if record_class.is_managed:
                yield from self._unproven(record_class, replay.heads, check)

    def _unproven(self, record_class: type[Record], heads: dict[str, int], check: "_Check") -> Iterator[dict[str, Any]]:
        sql = """
            select record_id, stream, seq, refs, payload
              from entries
             where record_table = :table
             order by record_table, record_id, seq
        """
        last, before = None, None
        for record_id, stream, seq, refs, payload in self._db.each(sql, {"table": record_class.table}):
            after, before = json.loads(payload), before if record_id == last else None
            what = None
            if _is_astray(record_class, stream, after):
                what = "in a stream that is not its own"
            elif seq > heads.get(stream, 0) and record_class.needs_proof(before, after):
                what = check.objection(record_class, record_id, refs, payload)
            if what is not None:
                where = {"stream": stream, "seq": seq, "table": record_class.table, "record_id": record_id}
                yield {"what": f"{record_class.table} {record_id} was changed {what}", **where}
            last, before = record_id, after


class _Check:
    """Checks entries against their signatures. Each signed change counts once."""

    def __init__(self, proofs: Proofs) -> None:
        self._db = proofs._db
        self._replay = proofs._contracts.replayed()
        self._left: dict[str, Counter[str]] = {}

    def objection(self, record_class: type[Record], record_id: str, refs: str | None, payload: str) -> str | None:
        """Return the problem of a change's signature; None if it is valid."""
        nonces = [ref[6:] for ref in json.loads(refs or "[]") if ref.startswith("proof:")]
        if not nonces:
            return "without a proof of the owner"
        if nonces[0] not in self._left:
            self._left[nonces[0]] = Counter(self._changes(nonces[0]))
        left, digest = self._left[nonces[0]], change_digest(record_class.table, record_id, payload)
        if left[digest] < 1:
            return f"under proof {nonces[0]}, which does not cover it"
        left[digest] -= 1
        return None

    def _changes(self, nonce: str) -> list[str]:
        """List the changes that a signature covers; none if it is invalid."""
        row = self._db.one(
            """
            select seq, payload
              from entries
             where record_table = 'proofs' and record_id = :nonce and stream = :stream
             order by seq
             limit 1
            """,
            {"nonce": nonce, "stream": Proof.home},
        )
        if row is None:
            return []
        image = json.loads(row[1])
        content = parse_object(image["statement"]) or {}
        key = self._replay.key_at(content.get("revision"), row[0])
        if key is None or not is_signed(image["statement"], image["signature"], key):
            return []
        # The rest was signed by the owner, for this log or another.
        expected = (_PURPOSE, nonce, image["operation"], self._replay.images[0][1]["id"])
        is_meant = tuple(map(content.get, ("purpose", "nonce", "operation", "log"))) == expected
        return list(content["changes"]) if is_meant else []


def _is_astray(record_class: type[Record], stream: str, image: Image) -> bool:
    """Return whether an entry about a record is in the wrong stream."""
    return record_class.stream_of(record_class.upcast(image)) != stream


def signer_for(contract: TrustContract, operation: str) -> Callable[[str], str]:
    """Return the signing function of the owner in this context. Raise Unproven without one."""
    given = prover.get()
    if given is None:
        raise Unproven(
            f"{operation} is for {contract.handle} alone, who has to prove it",
            hint="At a terminal you are asked for the password or the key; in Python: with log.proving(key=PATH), or password=…",
            operation=operation,
            owner=contract.handle,
        )
    signer = given.signer(contract.phrase)
    if signer.public_key != contract.public_key:
        raise Unproven(
            f"this is not the {'password' if given.password else 'key'} of {contract.handle}",
            operation=operation,
            owner=contract.handle,
        )
    return signer.sign
