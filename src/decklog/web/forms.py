"""Forms: their fields and tokens, the owner's signature if one is registered, and the equivalent terminal command."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from decklog import TrustStatus
from decklog.core.errors import Conflict, DecklogError, Denied, Invalid, Unproven
from decklog.web.site import PageView, SiteRequest, http_status

LONGEST_TEXT = 4000
# The actor if no owner is registered.
PERSON = "dashboard"


@dataclass(frozen=True)
class FormField:
    """One field: a `text` of several lines, or a `line`. `unit` is written in front of it."""

    name: str
    label: str
    kind: Literal["text", "line"] = "text"
    hint: str = ""
    value: str = ""
    unit: str = ""
    is_required: bool = True


REASON = FormField("reason", "Reason", hint="agents read it")


@dataclass(frozen=True, kw_only=True)
class ActionForm:
    """The content of an action's page. `subject` is the title of its record, and `link` the record's page."""

    title: str
    button: str
    subject: str
    link: str
    explanation: str
    command: str
    fields: tuple[FormField, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    is_signed: bool = True
    # The subject's state when the form was built. The action is refused if the state has changed since.
    state: str = ""


@dataclass(frozen=True)
class Subject:
    """The record of an action, with its title and page. The action is refused if `state` changed since the form was built."""

    record: Any
    title: str
    link: str
    state: str = ""


@dataclass(frozen=True, kw_only=True)
class WebAction:
    """An action as data. Values that depend on the subject are functions of the request and the subject's record.

    `load` finds the subject, and raises Conflict if the action is not possible now. With `is_one_change`, `perform` runs as one
    transaction that the owner signs; otherwise `perform` itself signs its changes.
    """

    load: Callable[[SiteRequest, str], Subject]
    title: str | Callable[[SiteRequest, Any], str]
    button: str
    explanation: str | Callable[[SiteRequest, Any], str]
    command: Callable[[SiteRequest, Any], str]
    perform: Callable[[SiteRequest, Any, Mapping[str, str]], object]
    fields: tuple[FormField, ...] | Callable[[SiteRequest, Any], tuple[FormField, ...]] = ()
    facts: Callable[[SiteRequest, Any], tuple[tuple[str, str], ...]] = lambda _, __: ()
    is_signed: bool = True
    is_one_change: bool = True

    def form(self, request: SiteRequest, subject_id: str) -> ActionForm:
        """Build the form for a subject."""
        subject = self.load(request, subject_id)

        def value(given: Any) -> Any:
            return given(request, subject.record) if callable(given) else given

        return ActionForm(
            title=value(self.title),
            button=self.button,
            subject=subject.title,
            link=subject.link,
            explanation=value(self.explanation),
            command=value(self.command),
            fields=value(self.fields),
            facts=value(self.facts),
            is_signed=self.is_signed,
            state=subject.state,
        )


@dataclass(frozen=True)
class Offer:
    """A link to the form of an action."""

    verb: str
    subject_id: str
    label: str
    is_urgent: bool = field(default=False)


def is_registered(request: SiteRequest) -> bool:
    return bool(request.log.trust.status()["is_bound"])


def signature_of(request: SiteRequest, *, is_needed: bool = True) -> dict[str, Any] | None:
    """Return how the owner signs a form; None if it needs no signature, or no owner is registered."""
    is_signed = request.site.is_read_only or (is_needed and is_registered(request))
    return proof_of(request) if is_signed else None


def token_of(verb: str) -> str:
    """Return the name of a verb in form tokens."""
    return f"act.{verb}"


def build_view(request: SiteRequest, verb: str, form: ActionForm, **answer: Any) -> PageView:
    """Build the page of a form."""
    subject_id = request.path["id"]
    shown: dict[str, Any] = {
        "form": form,
        "verb": verb,
        "subject_id": subject_id,
        "proof": signature_of(request, is_needed=form.is_signed),
        "token": request.session.form_token(token_of(verb), subject_id),
        "typed": {one.name: one.value for one in form.fields},
        "problem": None,
    }
    data = {"verb": verb, "id": subject_id, "title": form.title, "explanation": form.explanation, "command": form.command}
    return PageView("action.html", form.title, form.command, data, shown | answer)


def check_token(request: SiteRequest, verb: str, subject_id: str) -> None:
    if not request.session.is_form_token(request.form.get("token", ""), token_of(verb), subject_id):
        raise Denied("this form belongs to another session", hint="Reload the page and try again.")


def send(request: SiteRequest, verb: str, action: WebAction) -> PageView | str:
    """Perform the action of a form. Return the next address, or the form again with the problem and the typed values."""
    subject_id = request.path["id"]
    check_token(request, verb, subject_id)
    form = action.form(request, subject_id)
    try:
        if request.form.get("state", form.state) != form.state:
            raise Conflict("the record has changed since this page was loaded", hint="Read it again, then decide.")
        given = {one.name: _given(request, one) for one in form.fields}
        return _performed(request, verb, action, form, given)
    except DecklogError as problem:
        typed = {one.name: request.form.get(one.name, "") for one in form.fields}
        view = build_view(request, verb, form, problem=form_error(problem), typed=typed)
        return PageView(**{**vars(view), "status": 429 if isinstance(problem, Paused) else http_status(problem)})


def _performed(request: SiteRequest, verb: str, action: WebAction, form: ActionForm, given: Mapping[str, str]) -> str:
    subject_id = request.path["id"]

    def perform() -> str:
        action.perform(request, action.load(request, subject_id).record, given)
        return form.link

    if not action.is_one_change:
        return perform()
    with signed(request, is_needed=form.is_signed), request.log.transaction():
        return request.log.proofs.run_signed(f"web.{verb}", {"id": subject_id, **given}, perform) if form.is_signed else perform()


@contextmanager
def signed(request: SiteRequest, *, is_needed: bool = True) -> Iterator[str]:
    """Act as the owner inside the block, with the signature of the form. Yield the actor.

    If no owner is registered or no signature is needed, entries name the session.
    """
    if is_needed and is_registered(request):
        with proven(request) as owner:
            yield owner
        return
    if request.site.is_read_only:
        raise Denied("the log is read-only", hint="Start the dashboard without --read-only.")
    with request.log.acting(actor_of(request), agent_id=request.session.name):
        yield actor_of(request)


def actor_of(request: SiteRequest) -> str:
    """Return the actor: the owner if one is registered."""
    trust = request.log.trust.status()
    return str(trust["owner"]) if trust["is_bound"] else PERSON


def _given(request: SiteRequest, one: FormField) -> str:
    text = request.form.get(one.name, "").strip()
    if one.is_required and not text:
        raise Invalid(f"{one.label.lower()} is missing", field=one.name)
    if len(text) > LONGEST_TEXT:
        raise Invalid(f"{one.label.lower()} has at most {LONGEST_TEXT} characters", field=one.name)
    return text


# The owner's signature


def proof_of(request: SiteRequest) -> dict[str, Any]:
    """Return how the owner signs decisions here: by password, by a key's passphrase, or not on this page."""
    return proof_by(request, request.log.trust.status())


def proof_by(request: SiteRequest, shown: TrustStatus) -> dict[str, Any]:
    """Return the same for a known trust status."""
    if request.site.is_read_only:
        return {
            "how": "none",
            "why": "The log is read-only (--read-only, or no write permission), so nothing can be decided here.",
        }
    if not shown["is_bound"]:
        return {"how": "none", "why": "This log has no owner yet, so no decision can be signed here.", "bind": True}
    if "problem" in shown:
        return {"how": "none", "why": "The owner's registration does not verify. For details: decklog verify"}
    found = {"owner": shown["owner"], "why": None}
    if shown["has_password"]:
        return {"how": "password", **found}
    if request.site.key is not None:
        return {"how": "key", **found}
    why = f"{shown['owner']} signs decisions with a key: start the dashboard with --key FILE, or decide at the terminal."
    return {"how": "none", **found, "why": why}


class Paused(Denied):
    """Raised after too many wrong signatures; none is accepted for a while."""

    code = "paused"


def form_error(problem: DecklogError) -> DecklogError:
    """Return the error to show on a form. A wrong signature is reported without details."""
    return Unproven("Wrong password.", hint="Nothing was decided.") if _is_wrong_proof(problem) else problem


def reason_of(request: SiteRequest) -> str:
    reason = request.form.get("reason", "").strip()
    if len(reason) > LONGEST_TEXT:
        raise Invalid(f"a reason has at most {LONGEST_TEXT} characters", field="reason")
    return reason


class proven(AbstractContextManager[str]):
    """Context manager that acts as the owner with the password or key of the form. A wrong one is counted."""

    def __init__(self, request: SiteRequest) -> None:
        self._guesses = request.site.sessions.proofs
        wait = self._guesses.pause()
        if wait > 0:
            raise Paused(f"too many wrong passwords: wait {wait:.0f} s")
        proof = proof_of(request)
        if proof["how"] == "none":
            raise Denied(proof["why"], hint="In the terminal, run: decklog approvals decide")
        self._owner = str(proof["owner"])
        self._blocks = _blocks(request, proof["how"], self._owner)

    def __enter__(self) -> str:
        for block in self._blocks:
            block.__enter__()
        return self._owner

    def __exit__(self, kind: Any, problem: BaseException | None, trace: Any) -> None:
        for block in reversed(self._blocks):
            block.__exit__(None, None, None)
        if problem is None:
            self._guesses.forget_wrong()
        elif _is_wrong_proof(problem):
            self._guesses.count_wrong()


def _blocks(request: SiteRequest, how: str, owner: str) -> list[AbstractContextManager[None]]:
    given = request.form.get("proof", "")
    if not given:
        raise Invalid("type the owner's password" if how == "password" else "type the key's passphrase", field="proof")
    log = request.log
    proving = log.proving(password=given) if how == "password" else log.proving(key=request.site.key, passphrase=given)
    return [log.acting(owner, agent_id=request.session.name), proving]


def _is_wrong_proof(problem: BaseException) -> bool:
    return isinstance(problem, Unproven) or (isinstance(problem, Denied) and "path" in problem.details)
