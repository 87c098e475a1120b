"""Decisions on the web: the exact subject that was read, a reason and the owner's signature. The password is never stored."""

from contextlib import AbstractContextManager
from typing import Any

from decklog.core.errors import Conflict, DecklogError, Denied, Invalid, NotFound, Unproven
from decklog.web.answers import status_of
from decklog.web.pages import inbox
from decklog.web.site import PageView, SiteRequest

_TOO_LARGE_A_REASON = 4000


class Paused(Denied):
    """Too many signatures were wrong; none is accepted for a moment."""

    code = "paused"


def decide(asked: SiteRequest) -> PageView | str:
    """Record the decision of a form. Return the next address, or the page again with the problem and the typed values."""
    kind, item_id = asked.path["kind"], asked.path["id"]
    if kind not in inbox.VERBS:
        raise NotFound(f"a {kind} is not decided here")
    if not asked.session.is_form_token(asked.form.get("token", ""), inbox.VERBS.get(kind, ""), item_id):
        raise Denied("this form is not of this session", hint="Reload the page and answer again.")
    try:
        (_decide_approval if kind == "approval" else _reconcile)(asked, item_id)
    except DecklogError as problem:
        return _again(asked, problem)
    return f"/inbox/{kind}/{item_id}"


def _again(asked: SiteRequest, problem: DecklogError) -> PageView:
    typed = {name: asked.form.get(name, "") for name in inbox.TYPED}
    wanted = typed["verdict"] if typed["verdict"] in inbox.VERDICTS[asked.path["kind"]] else None
    view = inbox.item(asked, problem=form_error(problem), typed=typed, wanted=wanted)
    status = 429 if isinstance(problem, Paused) else status_of(problem)
    return PageView(**{**vars(view), "status": status})


def form_error(problem: DecklogError) -> DecklogError:
    """Return the problem of a form as a page shows it. A wrong signature is reported without any detail."""
    return Unproven("Wrong password.", hint="Nothing was decided.") if _is_wrong_proof(problem) else problem


def _decide_approval(asked: SiteRequest, approval_id: str) -> None:
    verdict, reason = inbox.verdict_of(asked, "approval"), reason_of(asked)
    record = asked.log.approvals.show(approval_id)
    if asked.form.get("digest", "") != (record["subject_digest"] or ""):
        raise Conflict("what is asked about is no longer what this page showed", hint="Reload the page and read it again.")
    if verdict == "denied" and not reason:
        raise Invalid("give a reason to deny it: the agent that asked reads it", field="reason")
    digest = record["subject_digest"]
    if verdict == "granted" and record["about"]["check"] == "not in the log":
        digest = asked.form.get("typed_digest", "").strip()
        if not digest:
            raise Invalid("only a digest was given with this question: type the digest of what you looked at", field="digest")
    with proven(asked) as manager:
        asked.log.approvals.decide(approval_id, verdict, by=manager, rationale=reason or None, subject_digest=digest)  # type: ignore[arg-type]


def _reconcile(asked: SiteRequest, effect_id: str) -> None:
    answer, reason = inbox.verdict_of(asked, "effect"), reason_of(asked)
    if not reason:
        raise Invalid("say how you know", field="reason")
    with proven(asked) as manager:
        asked.log.effects.reconcile(effect_id, answer, by=manager, reason=reason)  # type: ignore[arg-type]


def reason_of(asked: SiteRequest) -> str:
    reason = asked.form.get("reason", "").strip()
    if len(reason) > _TOO_LARGE_A_REASON:
        raise Invalid(f"a reason has at most {_TOO_LARGE_A_REASON} characters", field="reason")
    return reason


class proven(AbstractContextManager[str]):
    """Context manager that acts as the owner with the password or key of the form. A wrong one is counted."""

    def __init__(self, asked: SiteRequest) -> None:
        self._guesses = asked.site.sessions.proofs
        wait = self._guesses.pause()
        if wait > 0:
            raise Paused(f"too many wrong passwords: wait {wait:.0f} s")
        proof = inbox.proof_of(asked)
        if proof["how"] == "none":
            raise Denied(proof["why"], hint="At the terminal: decklog approvals decide")
        self._manager = str(proof["manager"])
        self._blocks = _blocks(asked, proof["how"], self._manager)

    def __enter__(self) -> str:
        for block in self._blocks:
            block.__enter__()
        return self._manager

    def __exit__(self, kind: Any, problem: BaseException | None, trace: Any) -> None:
        for block in reversed(self._blocks):
            block.__exit__(None, None, None)
        if problem is None:
            self._guesses.forget_wrong()
        elif _is_wrong_proof(problem):
            self._guesses.count_wrong()


def _blocks(asked: SiteRequest, how: str, manager: str) -> list[AbstractContextManager[None]]:
    given = asked.form.get("proof", "")
    if not given:
        raise Invalid("type the owner's password" if how == "password" else "type the key's passphrase", field="proof")
    log = asked.log
    proving = log.proving(password=given) if how == "password" else log.proving(key=asked.site.key, passphrase=given)
    return [log.acting(manager, agent_id=asked.session.name), proving]


def _is_wrong_proof(problem: BaseException) -> bool:
    return isinstance(problem, Unproven) or (isinstance(problem, Denied) and "path" in problem.details)
