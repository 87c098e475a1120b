"""Trust: the owner, the autonomy level of agents, and the owner's signature for every promotion."""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from decklog.core.clock import to_text
from decklog.core.errors import Conflict, Denied, Invalid, Refused
from decklog.db.where import Where, parse_enum, placed
from decklog.journal.entry import EntryKind
from decklog.records.operations import reads, writes, writes_in_steps
from decklog.records.record import Page
from decklog.records.values import from_json, to_json
from decklog.stores.approvals.trust import records, signatures, tiers
from decklog.stores.approvals.trust.proofs import signer_for
from decklog.stores.approvals.trust.records import (
    ChangeKind,
    ChangeKindLike,
    SignedChange,
    SignedChangeLike,
    TrustChange,
    TrustContract,
    TrustProposal,
)
from decklog.stores.approvals.trust.replay import Contracts
from decklog.stores.base import Store, StoreParts
from decklog.stores.checks import check_filled, check_integer
from decklog.stores.results.approvals import ActionPermission, TierExplanation, TrustDetails, TrustStatus

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class ApprovalReader(Protocol):
    """Uses granted approvals; implemented by the approvals store."""

    def use_for(self, approval_id: str, action: str) -> bool: ...


_QUESTION = "Who is the owner of this log? Bind a handle, a channel and an ed25519 public key."


class Trust(Store):
    """Binds the log to one owner. A promotion needs a signature; a demotion needs none and happens at once.

    A refused attempt is an event in the stream @desk, unless the caller's transaction is rolled back.
    """

    records = (TrustContract, TrustProposal, TrustChange)

    def __init__(self, parts: StoreParts, *, approvals: Callable[[], ApprovalReader]) -> None:
        super().__init__(parts)
        self._approvals = approvals
        self._contracts = Contracts(parts.db)

    # Reading

    @reads
    def show(self) -> TrustDetails:
        """Show the owner, the tier and what it permits; without an owner, the question to ask."""
        contract, problem = self._contracts.look()
        tier, last = tiers.explain(contract.tier if contract else 0), self._last_moves()
        status = _status(contract, problem)
        shown: TrustDetails = {**status, "may": tier["may"], "may_not_yet": tier["may_not_yet"]}  # type: ignore[typeddict-item]
        if contract is None:
            return shown if problem else {**shown, "question": _QUESTION}
        return {
            **shown,
            "log_id": contract.id,
            "channel": contract.channel,
            "fingerprint": signatures.fingerprint(contract.public_key),
            "persona_name": contract.persona_name,
            "is_dev_mode": contract.is_dev_mode,
            "auto_merge": contract.auto_merge,
            "reviewers": contract.reviewers,
            "last_promotion": last.get(ChangeKind.PROMOTE),
            "last_demotion": last.get(ChangeKind.DEMOTE),
        }

    @reads
    def status(self) -> TrustStatus:
        """Return the owner, how the owner signs, and the tier of agents; `show` has more."""
        return _status(*self._contracts.look())

    @reads
    def history(self, *, kind: ChangeKindLike | None = None, limit: int = 20, after: str | None = None) -> Page[TrustChange]:
        """List every change of trust, oldest first."""
        where = Where(TrustChange, kind=kind)
        return self._page(TrustChange, where, order=("revision",), limit=limit, after=after)

    @reads
    def proposals(self, *, limit: int = 20, after: str | None = None) -> Page[TrustProposal]:
        """List the proposed changes that wait for the owner's signature and still hold, oldest first."""
        contract = self._contract()
        where = Where(TrustProposal)
        where.add("applied_at is null and expires_at > :now", now=to_text(self._now()))
        page = self._page(TrustProposal, where, order=("proposed_at", "nonce"), limit=limit, after=after)
        revision = contract.revision if contract else None
        return Page([one for one in page if from_json(one.statement)["revision"] == revision], next=page.next)

    @reads
    def explain(self, tier: int) -> TierExplanation:
        """Explain what a tier permits, what it adds, and what it does not permit yet."""
        return tiers.explain(tier)

    @reads
    def may(self, action: str, *, fix_class: str | None = None) -> ActionPermission:
        """Answer whether an action is permitted now, and why or why not; an unknown action is not.

        Without an owner the tier is 0, and so it is where the contract is not what the owner signed. Some actions also need
        dev mode, or a fix class the owner listed. One that needs an approval is permitted by `permit` alone.
        """
        return self._answer(action, fix_class, is_approved=False)

    @writes
    def permit(self, action: str, *, fix_class: str | None = None, approval_id: str | None = None) -> ActionPermission:
        """Permit an action that is about to be done, or refuse it (`Refused`); the approval it needs is used up by that.

        Call it before acting, so that one grant allows one act. An approval is one that was granted for this action as its
        subject; where the action needs none, or is refused all the same, it stays as it is.
        """
        answer = self._answer(action, fix_class, is_approved=approval_id is not None)
        if answer["allowed"] and answer["needs_approval"]:
            assert approval_id is not None
            if not self._approvals().use_for(approval_id, action):
                answer = self._answer(action, fix_class, is_approved=False)
        if not answer["allowed"]:
            raise Refused(
                f"{action} is not permitted: {answer['reason']}",
                hint="Do what is permitted, or ask: decklog approvals ask RUN QUESTION --subject ACTION",
                rule="trust",
                action=action,
                approval_id=approval_id,
            )
        return {**answer, "approval_id": approval_id} if answer["needs_approval"] else answer

    def _answer(self, action: str, fix_class: str | None, *, is_approved: bool) -> ActionPermission:
        contract, problem = self._contracts.look()
        answer = tiers.decide(
            action,
            contract.tier if contract else 0,
            is_approved=is_approved,
            is_dev_mode=contract is not None and contract.is_dev_mode,
            listed=contract.auto_merge if contract else (),
            fix_class=fix_class,
        )
        return answer if problem is None else {**answer, "reason": f"{answer['reason']}; {problem}"}

    @reads
    def recognises(self, handle: str) -> bool:
        """Check whether a handle is the owner's or a reviewer's."""
        contract = self._contract()
        known = [contract.handle, *contract.reviewers] if contract else []
        return any(records.is_same_handle(handle, one) for one in known)

    # Writing

    @writes_in_steps(owner_only=True)
    def bind(
        self,
        handle: str,
        channel: str,
        public_key: str | None = None,
        *,
        password: str | None = None,
        persona_name: str | None = None,
    ) -> TrustContract:
        """Bind the log to its owner, once; from then on only the owner's signature hands it over.

        The owner's key is an Ed25519 key, or derived from a password; the log keeps only scrypt's salt and the public key. From
        now on the owner's verbs need a signature.
        """
        if (public_key is None) == (password is None):
            raise Invalid("an owner has a public key or a password", field="public_key")
        made = {"public_key": public_key, "phrase": None} if public_key is not None else _key_of(password or "")
        asked = {"handle": handle, "channel": channel, **made}
        return self._attempt("bind", asked, lambda: self._bind(asked, persona_name))

    def _bind(self, asked: dict[str, Any], persona_name: str | None) -> TrustContract:
        self._refuse_second_bind()
        fields: dict[str, Any] = {
            "id": self._ids.new("log"),
            "handle": records.normalize_handle(asked["handle"]),
            "channel": check_filled("channel", asked["channel"]).strip(),
            "public_key": signatures.public_key_of(asked["public_key"]),
            "phrase": asked["phrase"],
            "persona_name": persona_name,
        }
        self._db.values.mark_clean(fields["public_key"])  # random letters that may look like a token
        now = self._now()
        note = f"bound to {fields['handle']}"
        try:
            contract = self._db.write(lambda: self._add(TrustContract, note=note, bound_at=now, updated_at=now, **fields))
        except Conflict:
            self._refuse_second_bind()
            raise
        self._remember(contract, ChangeKind.BIND, 0, note, by=contract.handle, details={"heads": self._heads()})
        return contract

    def _heads(self) -> dict[str, int]:
        """Return the last entries of owner-only records by stream: later changes need a signature."""
        managed = [table for table, record_class in self._journal.record_classes().items() if record_class.is_managed]
        marks, bound = placed(managed)
        sql = f"""
            select stream, max(seq)
              from entries
             where record_table in ({marks})
             group by stream
             order by stream
        """
        return dict(self._db.rows(sql, bound)[1])

    def _refuse_second_bind(self) -> None:
        contract = self._contract()
        if contract is not None:
            raise Denied(
                f"this log is bound to {contract.handle} already, and is bound only once",
                hint="A hand-over signed by the owner changes that: decklog trust propose hand-over REASON",
            )

    @writes_in_steps
    def propose(
        self,
        change: SignedChangeLike,
        reason: str,
        *,
        to_tier: int | None = None,
        handle: str | None = None,
        channel: str | None = None,
        public_key: str | None = None,
        fix_classes: list[str] | None = None,
        is_on: bool | None = None,
        reviewers: list[str] | None = None,
        expires_in_seconds: int = 3600,
        by: str | None = None,
    ) -> TrustProposal:
        """Propose a change for the owner to sign: `statement` is the text, which works once and until it expires.

        promote goes up one tier; hand-over takes handle, channel and public_key; auto-merge fix_classes; dev-mode is_on;
        reviewers their handles. Nothing changes until the signature is there.
        """
        change = parse_enum(SignedChange, change, "change")
        check_filled("reason", reason)
        check_integer("expires_in_seconds", expires_in_seconds, low=1, high=24 * 3600)
        given = {
            "to_tier": to_tier,
            "handle": handle,
            "channel": channel,
            "public_key": public_key,
            "fix_classes": fix_classes,
            "is_on": is_on,
            "reviewers": reviewers,
        }
        asked = {"change": change.value, "reason": reason, **{name: value for name, value in given.items() if value is not None}}
        return self._attempt("propose", asked, lambda: self._propose(change, reason.strip(), given, expires_in_seconds, by))

    def _propose(self, change: SignedChange, reason: str, given: dict[str, Any], seconds: int, by: str | None) -> TrustProposal:
        contract, now = self._bound(), self._now()
        terms = self._without_secrets(records.parse_terms(change, contract, given))
        nonce, expires = os.urandom(16).hex(), now + timedelta(seconds=seconds)
        stored_reason, _ = self._db.values.bind_text("reason", reason)
        text = to_json(records.statement_of(change, contract, terms, reason=stored_reason, nonce=nonce, expires_at=expires))
        # Texts of others are redacted already. The rest is random, and the text must be stored as it is signed.
        for made in (nonce, text):
            self._db.values.mark_clean(made)
        return self._add(
            TrustProposal,
            note=f"{change}: {reason}",
            nonce=nonce,
            contract_id=contract.id,
            change=change,
            statement=text,
            proposed_by=by,
            proposed_at=now,
            expires_at=expires,
        )

    def _without_secrets(self, terms: dict[str, Any]) -> dict[str, Any]:
        values = self._db.values
        if "public_key" in terms:
            values.mark_clean(terms["public_key"])

        def redacted(name: str, term: Any) -> Any:
            if isinstance(term, list):
                return [redacted(name, one) for one in term]
            return values.bind_text(name, term)[0] if isinstance(term, str) else term

        return {name: redacted(name, term) for name, term in terms.items()}

    def sign(self, statement: str, private_key_path: str, passphrase: str | None = None) -> str:
        """Sign a proposed statement with the owner's key. It writes nothing."""
        return signatures.sign(statement, private_key_path, passphrase)

    def make_key(self, path: str, passphrase: str | None) -> str:
        """Create a private key file that only its user can read, with the public key next to it. Return the public key."""
        return signatures.make_key_file(path, passphrase)

    @writes_in_steps(owner_only=True)
    def apply(self, statement: str, signature: str | None = None) -> TrustContract:
        """Apply a proposed change, given its exact statement and the owner's signature.

        A statement works once, in this log, before it expires, and only on the contract it was written for. Without a signature
        it is signed now, by the key or the password that the owner proves with.
        """
        asked = {"statement": records.excerpt(statement), "signature": records.excerpt(signature or "")}
        return self._attempt("apply", asked, lambda: self._apply(statement, signature))

    def _apply(self, statement: str, signature: str | None) -> TrustContract:
        contract = self._bound()
        proposal, content = self._proposal(statement)
        records.check(contract, proposal, content, self._now())
        if signature is None:
            signature = signer_for(contract, "trust.apply")(statement)
        if not signatures.is_signed(statement, signature, contract.public_key):
            raise Denied(f"the signature is not {contract.handle}'s of this statement", owner=contract.handle)
        for proven in (signature, content["terms"].get("public_key")):
            if proven is not None:
                self._db.values.mark_clean(proven)
        self._update(
            TrustProposal,
            proposal.nonce,
            {"signature": signature, "applied_at": self._now()},
            condition="applied_at is null",
            note=f"signed by {contract.handle}",
        )
        # A new owner has a separate key, independent of how the former key was created.
        terms = {**content["terms"], "phrase": None} if proposal.change is SignedChange.HAND_OVER else content["terms"]
        changed = self._set(contract, terms, f"{content['change']}: {content['reason']}")
        self._remember(
            changed,
            ChangeKind(proposal.change.value),
            contract.tier,
            content["reason"],
            by=contract.handle,
            details=content["terms"],
            nonce=proposal.nonce,
        )
        return changed

    def _proposal(self, statement: str) -> tuple[TrustProposal, dict[str, Any]]:
        """Find the proposal of a statement."""
        try:
            content = from_json(statement)
        except (ValueError, RecursionError):
            content = None
        nonce = content.get("nonce") if isinstance(content, dict) else None
        if not isinstance(nonce, str) or not nonce.isalnum() or not nonce.isascii():
            raise Denied("this is not a statement that the log wrote; use the one that propose gave")
        found = self._seek_by(TrustProposal, for_update=True, nonce=nonce)
        if found is None:
            raise Denied("this log never wrote this statement; use the one that propose gave here", nonce=nonce)
        if found.statement != statement:
            raise Denied("the statement was altered; sign it exactly as propose gave it", nonce=nonce)
        return found, content

    @writes_in_steps
    def demote(self, *, to_tier: int | None = None, reason: str = "no reason given", by: str | None = None) -> TrustContract:
        """Lower the tier at once: by one, or to a lower one that is named. No signature is needed.

        Dev mode and the auto-merge list go with it, and have to be signed again. At tier 0 there is nothing to lower.
        """
        return self._attempt("demote", {"to_tier": to_tier, "reason": reason}, lambda: self._demote(to_tier, reason, by))

    def _demote(self, to_tier: int | None, reason: str, by: str | None) -> TrustContract:
        contract = self._contract(for_update=True)
        if contract is None or contract.tier == 0:
            raise Conflict("the tier is 0, which is the lowest", tier=0)
        to = contract.tier - 1 if to_tier is None else to_tier
        if not 0 <= to < contract.tier:
            raise Denied(f"the tier is {contract.tier}; a demotion goes below it, not to {to}", tier=contract.tier, wanted=to)
        changed = self._set(contract, {"tier": to, "is_dev_mode": False, "auto_merge": []}, f"demote: {reason}")
        self._remember(changed, ChangeKind.DEMOTE, contract.tier, reason, by=by)
        return changed

    @writes
    def stop_dev_mode(self, *, reason: str = "no reason given", by: str | None = None) -> TrustContract:
        """Switch dev mode off at once, without a signature."""
        contract = self._bound()
        if not contract.is_dev_mode:
            return contract.mark_already()
        changed = self._set(contract, {"is_dev_mode": False}, f"dev mode off: {reason}")
        self._remember(changed, ChangeKind.DEV_MODE, contract.tier, reason, by=by, details={"is_dev_mode": False})
        return changed

    # The contract

    def _contract(self, *, for_update: bool = False) -> TrustContract | None:
        return self._contracts.present(for_update=for_update)

    def _bound(self) -> TrustContract:
        contract = self._contract(for_update=True)
        if contract is None:
            raise Denied("no owner is bound, so nothing can be changed", hint="decklog trust bind HANDLE CHANNEL PUBLIC_KEY")
        return contract

    def _set(self, contract: TrustContract, terms: dict[str, Any], note: str) -> TrustContract:
        unchanged: dict[str, Any] = {"condition": "revision = :revision", "revision": contract.revision}
        return self._update(TrustContract, contract.id, terms, adding={"revision": 1}, note=note, **unchanged)

    def _remember(self, contract: TrustContract, kind: ChangeKind, from_tier: int, reason: str, **more: Any) -> None:
        self._add(
            TrustChange,
            note=f"{kind}: {reason}",
            id=self._ids.new("tc"),
            contract_id=contract.id,
            revision=contract.revision,
            kind=kind,
            from_tier=from_tier,
            to_tier=contract.tier,
            handle=contract.handle,
            reason=reason,
            at=self._now(),
            **more,
        )

    def _last_moves(self) -> dict[ChangeKind, dict[str, Any]]:
        """Return the last promotion and the last demotion."""
        found = (self._seek_by(TrustChange, order="revision desc", kind=kind) for kind in (ChangeKind.PROMOTE, ChangeKind.DEMOTE))
        return {change.kind: change.as_dict() for change in found if change is not None}

    def _attempt(self, verb: str, asked: dict[str, Any], job: Callable[[], T]) -> T:
        """Run the job in a transaction. A refusal is recorded in a separate transaction."""
        try:
            return self._db.write(job)
        except Denied as refusal:
            why = refusal.message
            self._db.write(lambda: self._record_refusal(verb, asked, why))
            raise

    def _record_refusal(self, verb: str, asked: dict[str, Any], why: str) -> None:
        payload = {"verb": verb, "why": why, "asked": {name: records.excerpt(value) for name, value in asked.items()}}
        self._journal.append("@desk", f"refused to {verb}: {why}", kind=EntryKind.EVENT, subtype="trust.refused", payload=payload)


def _key_of(password: str) -> dict[str, Any]:
    """Derive an owner's key from a password, which is not stored."""
    if len(password) < signatures.SHORTEST_PASSWORD:
        raise Invalid(f"a password has at least {signatures.SHORTEST_PASSWORD} characters", field="password")
    phrase = signatures.new_phrase()
    return {"public_key": signatures.signer_of_password(password, phrase).public_key, "phrase": phrase}


def _status(contract: TrustContract | None, problem: str | None) -> TrustStatus:
    tier = contract.tier if contract else 0
    is_bound = contract is not None or problem is not None
    known: TrustStatus = {"is_bound": is_bound, "tier": tier, "tier_name": tiers.name_of(tier)}
    if contract is None:
        return {**known, "problem": problem} if problem else known
    return {**known, "owner": contract.handle, "has_password": contract.phrase is not None}
