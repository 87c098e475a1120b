"""Inbox: the exact request, what happens without an answer, and earlier decisions."""

from collections.abc import Sequence
from typing import Any

from decklog import TrustStatus, WaitingItem
from decklog.core.errors import DecklogError, Invalid, NotFound
from decklog.log import Decklog
from decklog.web.answers import told
from decklog.web.pages.tasks import is_lapsed
from decklog.web.site import PageView, SiteRequest, command

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


def read(asked: SiteRequest) -> PageView:
    """Load the waiting items, with the first opened. Decisions come before blocked tasks and stalled runs."""
    page = asked.log.overview.waiting(limit=PAGE, after=asked.word("after"))
    first = page[0] if page else None
    opened = None if first is None else _item(asked, first.kind.value, first.id, page)
    return _view(asked, page, opened, "Inbox", "decklog overview waiting", page)


def item(asked: SiteRequest, **answer: Any) -> PageView:
    """Load one open or finished item, with the list of the others."""
    kind, item_id = asked.path["kind"], asked.path["id"]
    page = asked.log.overview.waiting(limit=PAGE, after=asked.word("after"))
    opened = _item(asked, kind, item_id, page) | answer
    said = command("approvals", "show", item_id) if kind == "approval" else command("effects", "show", item_id)
    return _view(asked, page, opened, opened["title"], opened.get("command") or said, opened["record"])


def _view(asked: SiteRequest, page: Any, opened: dict[str, Any] | None, title: str, said: str, data: Any) -> PageView:
    decided = opened["decided"] if opened is not None and "decided" in opened else _decided(asked.log)
    shown = {"items": page, "groups": _groups(page), "opened": opened, "decided": decided, "following": _following(page, opened)}
    # A complete list has all decisions that the navigation bar counts.
    is_whole = page.next is None and asked.word("after") is None
    decisions = sum(one.is_decision for one in page) if is_whole else None
    return PageView("inbox.html", title, said, data, shown, page.next, "inbox", decisions)


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
        return told(problem)


def _item(asked: SiteRequest, kind: str, item_id: str, page: Any) -> dict[str, Any]:
    """Load the opened item, with the ways to answer it. `page` is the list of waiting items."""
    listed = next((one for one in page if (one.kind.value, one.id) == (kind, item_id)), None)
    if kind == "approval":
        found = _approval(asked, item_id, listed)
    elif kind == "effect":
        found = _effect(asked, item_id, listed)
    else:
        found = _other(asked, listed or _far(asked, kind, item_id, page.next))
    is_open = found["is_open"]
    trust = asked.log.trust.status() if is_open else None
    base: dict[str, Any] = {
        "kind": kind,
        "id": item_id,
        "problem": None,
        "typed": dict.fromkeys(TYPED, ""),
        "verdicts": VERDICTS.get(kind, ()),
        # The only verdict of the form if the page was opened for one; Enter then submits it.
        "wanted": wanted if (wanted := asked.word("verdict")) in VERDICTS.get(kind, ()) else None,
        "token": None,
    }
    if kind in VERBS and is_open:
        base["token"] = asked.session.form_token(VERBS[kind], item_id)
    return base | found | {"trust": trust, "proof": None if trust is None else proof_by(asked, trust)}


def _goal(asked: SiteRequest, run_id: str, listed: Any) -> str:
    return str(listed.goal if listed is not None else asked.log.runs.get(run_id).goal)


def _approval(asked: SiteRequest, approval_id: str, listed: Any) -> dict[str, Any]:
    log = asked.log
    record = log.approvals.show(approval_id)
    rule = record["cause"].get("rule")
    given = {"subject_digest": record["subject_digest"], "rule": rule, "run_id": record["run_id"]}
    answers = log.approvals.answers(**given, limit=_DECIDED)
    found = (("to exactly this", answers.same_thing), ("to requests under this rule", answers.same_rule))
    earlier = [(said, [one for one in same if one.id != approval_id]) for said, same in found]
    return {
        "record": record,
        "title": record["question"] or record["verdict"] or "Approval",
        "goal": _goal(asked, record["run_id"], listed),
        "task_title": log.tasks.get(record["task_id"]).title if record["task_id"] else None,
        "told_by": SOURCES.get(record["source"] or "", record["source"]) or record["asked_by"],
        "earlier": [(said, same) for said, same in earlier if same],
        "decided": answers.latest,
        "is_open": record["state"] == "open",
    }


def _effect(asked: SiteRequest, effect_id: str, listed: Any) -> dict[str, Any]:
    effect = asked.log.effects.get(effect_id)
    return {
        "record": effect,
        "title": f"Did this happen? {effect.tool} in {effect.step}",
        "goal": _goal(asked, effect.run_id, listed),
        "is_open": effect.state.value == "unknown",
    }


def _other(asked: SiteRequest, one: Any) -> dict[str, Any]:
    """Return an item that is answered on another page. A stalled run has the tasks whose lease has expired."""
    running = asked.log.tasks.find(one.run_id, state="running", limit=PAGE) if one.kind.value == "stalled" else []
    lapsed = [task for task in running if is_lapsed(asked, task)][:_LAPSED]
    return {"record": one, "title": one.what, "goal": None, "is_open": False, "command": one.command, "lapsed": lapsed}


def _far(asked: SiteRequest, kind: str, item_id: str, after: str | None) -> Any:
    """Find an item on the following pages of the waiting list."""
    while after is not None:
        page = asked.log.overview.waiting(limit=200, after=after)
        found = [one for one in page if (one.kind.value, one.id) == (kind, item_id)]
        if found:
            return found[0]
        after = page.next
    raise NotFound(f"no {kind} {item_id!r} waits any more", hint="It was answered, or its time is over.")


def proof_of(asked: SiteRequest) -> dict[str, Any]:
    """Return how the owner signs decisions here: by password, by a key's passphrase, or not on this page."""
    return proof_by(asked, asked.log.trust.status())


def proof_by(asked: SiteRequest, shown: TrustStatus) -> dict[str, Any]:
    """Return the same for a known trust status."""
    if asked.site.is_read_only:
        return {
            "how": "none",
            "why": "This log is open for reading only (--read-only, or no permission to write), so nothing can be decided here.",
        }
    if not shown["is_bound"]:
        return {"how": "none", "why": "This log has no owner yet, so no decision can be signed here.", "bind": True}
    if "problem" in shown:
        return {"how": "none", "why": "The record of who the owner is does not verify. For details: decklog verify"}
    found = {"manager": shown["manager"], "why": None}
    if shown["has_password"]:
        return {"how": "password", **found}
    if asked.site.key is not None:
        return {"how": "key", **found}
    why = f"{shown['manager']} signs decisions with a key: start the dashboard with --key FILE, or decide at the terminal."
    return {"how": "none", **found, "why": why}


def verdict_of(asked: SiteRequest, kind: str) -> str:
    verdict = asked.form.get("verdict", "")
    if verdict not in VERDICTS[kind]:
        raise Invalid(f"an answer is one of {', '.join(VERDICTS[kind])}", field="verdict")
    return verdict
