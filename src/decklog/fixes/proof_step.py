"""The step of proof: tries a fix once for each tree and remembers what came of it."""

import hashlib
import json
from typing import TYPE_CHECKING, Any

from decklog.conductor.checks.examination import environment_digest
from decklog.records.values import to_json
from decklog.review.change import Change
from decklog.review.proof.judging import FixProof, Refusal
from decklog.review.proof.proving import Proving
from decklog.stores.workflow.mends import MendState, MendWait
from decklog.stores.workflow.verdicts import CheckOutcome

if TYPE_CHECKING:
    from decklog.fixes.ground import FixContext
    from decklog.stores.workflow.mends import Mend

NAME = "proof"
# What may be otherwise the next time: these say something of the machine, and not of the fix.
_TRIED_AGAIN = (Refusal.NOT_RUN, Refusal.HANGS)


def prove(ground: "FixContext") -> "Mend":
    """Prove the fix. One that is not goes back to its agent while there are rounds left, and then waits for a better one."""
    proof = proof_of(ground, ground.change)
    log, mend = ground.log, ground.mend
    if proof.is_given:
        return log.mends.move(mend, MendState.PROVEN, proof=proof.as_dict(), tests=list(proof.tests), findings=[])
    finding = {"kind": str(proof.refused), "text": proof.text, "remedy": proof.as_dict()["remedy"]}
    return sent_back(ground, [finding], MendWait.FIX, f"not proven, {proof.refused}: {proof.text}", proof=proof.as_dict())


def sent_back(ground: "FixContext", findings: list[Any], waits: MendWait, reason: str, **changes: Any) -> "Mend":
    """Give a fix back to the agent that made it with what was found; without one, or after the last round, it waits."""
    log, mend = ground.log, ground.mend
    if mend.branch is None and mend.rounds + 1 < ground.rules.rounds:
        again = {"rounds": mend.rounds + 1, "fix_run_id": None, "head": None, "findings": findings}
        return log.mends.move(mend, MendState.FIXING, **{**changes, **again})
    return log.mends.move(mend, waits_for=waits, reason=reason[:1000], findings=findings, **changes)


def proof_of(ground: "FixContext", change: Change) -> FixProof:
    """Return what is on record of exactly these files, or what comes of trying them now."""
    log, runner = ground.log, ground.runner()
    bound: dict[str, Any] = {"definition": _definition(ground, change), "environment": environment_digest(runner)}
    run_id = ground.mend.run_id
    known = log.verdicts.known(run_id, change.tree, **bound)
    if known is not None and known.outcome is not CheckOutcome.ERROR and known.artifact_id:
        return _read(log.artifacts.content_bytes(known.artifact_id))
    proof = Proving(log, ground.settings, runner, run_id, ground.say).prove(change)
    outcome = CheckOutcome.ERROR if proof.refused in _TRIED_AGAIN else CheckOutcome.FAIL
    with log.transaction():
        path = f"proofs/{change.tree}-{bound['definition'][:12]}.json"
        kept = log.artifacts.add(run_id, "proof", path, content=to_json(proof.as_dict()))
        log.verdicts.record(
            run_id,
            NAME,
            CheckOutcome.PASS if proof.is_given else outcome,
            findings=[f"{proof.refused}: {proof.text}"] if proof.refused else [],
            artifact_id=kept.id,
            tree=change.tree,
            **bound,
        )
    return proof


def _definition(ground: "FixContext", change: Change) -> str:
    """Name what a proof depends on besides the files: those of the base, and the rules."""
    facts = [NAME, ground.repository.tree(change.base), ground.settings.digest]
    return hashlib.sha256(to_json(facts).encode()).hexdigest()


def _read(content: bytes) -> FixProof:
    told = json.loads(content)
    return FixProof(
        refused=None if told["refused"] is None else Refusal(told["refused"]),
        text=told["text"],
        tests=tuple(told["tests"]),
        touches=told["touches"],
        outcomes=tuple(told["outcomes"]),
    )
