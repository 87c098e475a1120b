"""The inbox: waiting items, their exact requests, earlier decisions, and the form for a signed decision."""

from collections.abc import Sequence
from typing import Any

from decklog import WaitingItem
from decklog.core.errors import Conflict, DecklogError, Denied, Invalid, NotFound
from decklog.log import Decklog
from decklog.web.forms import Paused, form_error, proof_by, proven, reason_of
from decklog.web.site import PageView, SiteRequest, command, http_status, is_lapsed, public_error

PAGE = 50
_DECIDED, _LAPSED = 8, 3
# The possible answers of each kind, as the store names them.
VERDICTS = {"approval": ("granted", "denied"), "effect": ("yes", "no")}
# Form fields that are kept when a form is shown again.
TYPED = ("reason", "typed_digest", "verdict")
VERBS = {"approval": "approvals.decide", "effect": "effects.reconcile"}
# Names for the sources of requests; an unknown source is shown under its own name.
SOURCES = {
    "toolbox": "the guarded tools",
    "conductor.permission": "the conductor, for an agent's tool",
    "conductor": "the conductor's checks",
    "conductor.plan": "the conductor",
    "conductor.stuck": "the conductor",
    "review": "the gate",
    "mend.plan": "the mending loop",
}


def read(request: SiteRequest) -> PageView:
    """Load the waiting items, with the first opened. Decisions come before blocked tasks and stalled runs."""
    page = request.log.overview.waiting(limit=PAGE, after=request.word("after"))
    first = page[0] if page else None
    opened = None if first is None else _item(request, first.kind.value, first.id, page)
    return _view(request, page, opened, "Inbox", "decklog overview waiting", page)


def item(request: SiteRequest, **answer: Any) -> PageView:
    """Load one open or finished item, with the list of the others."""
    kind, item_id = request.path["kind"], request.path["id"]
    page = request.log.overview.waiting(limit=PAGE, after=request.word("after"))
    opened = _item(request, kind, item_id, page) | answer
    shell_line = command("approvals", "show", item_id) if kind == "approval" else command("effects", "show", item_id)
    return _view(request, page, opened, opened["title"], opened.get("command") or shell_line, opened["record"])


def _view(request: SiteRequest, page: Any, opened: dict[str, Any] | None, title: str, shell_line: str, data: Any) -> PageView:
    decided = opened["decided"] if opened is not None and "decided" in opened else _decided(request.log)
    shown = {"items": page, "groups": _groups(page), "opened": opened, "decided": decided, "following": _following(page, opened)}
    # A complete list has all decisions that the navigation bar counts.
    is_whole = page.next is None and request.word("after") is None
    decisions = sum(one.is_decision for one in page) if is_whole else None
    return PageView("inbox.html", title, shell_line, data, shown, page.next, "inbox", decisions)


def _groups(page: Sequence[WaitingItem]) -> list[tuple[str, list[WaitingItem]]]:
    """Group the list; empty groups are left out."""
    groups: dict[str, list[WaitingItem]] = {}
    for item in page:
        groups.setdefault(item.kind.group.value, []).append(item)
    return list(groups.items())


def _following(page: Sequence[WaitingItem], opened: dict[str, Any] | None) -> WaitingItem | None:
    """Return the next decision after the opened one. Those that block a run come first."""
    here = None if opened is None else (opened["kind"], opened["id"])
    others = [item for item in page if item.is_decision and (item.kind.value, item.id) != here]
    return min(others, key=lambda item: (not item.holds_up, item.place), default=None)


def _decided(log: Decklog) -> Any:
    try:
        return log.approvals.answers(limit=_DECIDED).latest
    except DecklogError as problem:
        return public_error(problem)


def _item(request: SiteRequest, kind: str, item_id: str, page: Any) -> dict[str, Any]:
    """Load the opened item, with the ways to answer it. `page` is the list of waiting items."""
    listed = next((one for one in page if (one.kind.value, one.id) == (kind, item_id)), None)
    if kind == "approval":
        found = _approval(request, item_id, listed)
    elif kind == "effect":
        found = _effect(request, item_id, listed)
    else:
        found = _other(request, listed or _find_later(request, kind, item_id, page.next))
    is_open = found["is_open"]
    trust = request.log.trust.status() if is_open else None
    base: dict[str, Any] = {
        "kind": kind,
        "id": item_id,
        "problem": None,
        "typed": dict.fromkeys(TYPED, ""),
        "verdicts": VERDICTS.get(kind, ()),
        # The only verdict of the form if the page was opened for one; Enter then submits it.
        "wanted": wanted if (wanted := request.word("verdict")) in VERDICTS.get(kind, ()) else None,
        "token": None,
    }
    if kind in VERBS and is_open:
        base["token"] = request.session.form_token(VERBS[kind], item_id)
    return base | found | {"trust": trust, "proof": None if trust is None else proof_by(request, trust)}


def _goal(request: SiteRequest, run_id: str, listed: Any) -> str:
    return str(listed.goal if listed is not None else request.log.runs.get(run_id).goal)


def _approval(request: SiteRequest, approval_id: str, listed: Any) -> dict[str, Any]:
    log = request.log
    record = log.approvals.show(approval_id)
    rule = record["cause"].get("rule")
    given = {"subject_digest": record["subject_digest"], "rule": rule, "run_id": record["run_id"]}
    answers = log.approvals.answers(**given, limit=_DECIDED)
    found = (("to exactly this", answers.same_thing), ("to requests under this rule", answers.same_rule))
    earlier = [(label, [one for one in same if one.id != approval_id]) for label, same in found]
    return {
        "record": record,
        "title": record["question"] or record["verdict"] or "Approval",
        "goal": _goal(request, record["run_id"], listed),
        "task_title": log.tasks.get(record["task_id"]).title if record["task_id"] else None,
        "told_by": SOURCES.get(record["source"] or "", record["source"]) or record["asked_by"],
        "earlier": [(label, same) for label, same in earlier if same],
        "decided": answers.latest,
        "is_open": record["state"] == "open",
    }


def _effect(request: SiteRequest, effect_id: str, listed: Any) -> dict[str, Any]:
    effect = request.log.effects.get(effect_id)
    return {
        "record": effect,
        "title": f"Did this happen? {effect.tool} in {effect.step}",
        "goal": _goal(request, effect.run_id, listed),
        "is_open": effect.state.value == "unknown",
    }


def _other(request: SiteRequest, one: Any) -> dict[str, Any]:
    """Return an item that is answered on another page. A stalled run has the tasks whose lease has expired."""
    running = request.log.tasks.find(one.run_id, state="running", limit=PAGE) if one.kind.value == "stalled" else []
    lapsed = [task for task in running if is_lapsed(request, task)][:_LAPSED]
    return {"record": one, "title": one.what, "goal": None, "is_open": False, "command": one.command, "lapsed": lapsed}


def _find_later(request: SiteRequest, kind: str, item_id: str, after: str | None) -> Any:
    """Find an item on the following pages of the waiting list."""
    while after is not None:
        page = request.log.overview.waiting(limit=200, after=after)
        found = [one for one in page if (one.kind.value, one.id) == (kind, item_id)]
        if found:
            return found[0]
        after = page.next
    raise NotFound(f"{kind} {item_id!r} is not waiting any more", hint="It was answered, or it has expired.")


def verdict_of(request: SiteRequest, kind: str) -> str:
    verdict = request.form.get("verdict", "")
    if verdict not in VERDICTS[kind]:
        raise Invalid(f"an answer is one of {', '.join(VERDICTS[kind])}", field="verdict")
    return verdict


# Decisions


def decide(request: SiteRequest) -> PageView | str:
    """Record the decision of a form. Return the next address, or the page again with the problem and the typed values."""
    kind, item_id = request.path["kind"], request.path["id"]
    if kind not in VERBS:
        raise NotFound(f"a {kind} is not decided here")
    if not request.session.is_form_token(request.form.get("token", ""), VERBS.get(kind, ""), item_id):
        raise Denied("the form belongs to another session", hint="Reload the page and answer again.")
    try:
        (_decide_approval if kind == "approval" else _reconcile)(request, item_id)
    except DecklogError as problem:
        return _show_again(request, problem)
    return f"/inbox/{kind}/{item_id}"


def _show_again(request: SiteRequest, problem: DecklogError) -> PageView:
    typed = {name: request.form.get(name, "") for name in TYPED}
    wanted = typed["verdict"] if typed["verdict"] in VERDICTS[request.path["kind"]] else None
    view = item(request, problem=form_error(problem), typed=typed, wanted=wanted)
    status = 429 if isinstance(problem, Paused) else http_status(problem)
    return PageView(**{**vars(view), "status": status})


def _decide_approval(request: SiteRequest, approval_id: str) -> None:
    verdict, reason = verdict_of(request, "approval"), reason_of(request)
    record = request.log.approvals.show(approval_id)
    if request.form.get("digest", "") != (record["subject_digest"] or ""):
        raise Conflict("the question has changed since this page was shown", hint="Reload the page and read it again.")
    if verdict == "denied" and not reason:
        raise Invalid("a denial needs a reason, which the agent reads", field="reason")
    digest = record["subject_digest"]
    if verdict == "granted" and record["about"]["check"] == "not in the log":
        digest = request.form.get("typed_digest", "").strip()
        if not digest:
            raise Invalid("the question has only a digest: type the digest of the subject that you checked", field="digest")
    with proven(request) as owner:
        request.log.approvals.decide(approval_id, verdict, by=owner, rationale=reason or None, subject_digest=digest)  # type: ignore[arg-type]


def _reconcile(request: SiteRequest, effect_id: str) -> None:
    answer, reason = verdict_of(request, "effect"), reason_of(request)
    if not reason:
        raise Invalid("give the evidence for your answer", field="reason")
    with proven(request) as owner:
        request.log.effects.reconcile(effect_id, answer, by=owner, reason=reason)  # type: ignore[arg-type]
