"""Inbox: what exactly is asked, what happens if nobody says anything, and what was said before."""

from collections.abc import Sequence
from typing import Any

from decklog import TrustStatus, WaitingItem
from decklog.core.errors import DecklogError, Invalid, NotFound
from decklog.log import Decklog
from decklog.web.answers import told
from decklog.web.site import PageView, SiteRequest, command

PAGE = 50
_DECIDED = 8
# What the form of each kind asks, as the store spells the answers.
VERDICTS = {"approval": ("granted", "denied"), "effect": ("yes", "no")}
# What is kept of a form that could not be taken.
TYPED = ("reason", "typed_digest", "verdict")
VERBS = {"approval": "approvals.decide", "effect": "effects.reconcile"}
# Who asks in whose name, in words; what is not among them is called as it calls itself.
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
    """Read what waits, with the first decision opened; a blocked task or a stalled run only where no decision waits."""
    page = asked.log.overview.waiting(limit=PAGE, after=asked.word("after"))
    first = page[0] if page else None
    opened = None if first is None else _item(asked, first.kind.value, first.id, page)
    return _view(asked, page, opened, "Inbox", "decklog overview waiting", page)


def item(asked: SiteRequest, **answer: Any) -> PageView:
    """Read one thing that waits, or waited, beside the list of the others."""
    kind, item_id = asked.path["kind"], asked.path["id"]
    page = asked.log.overview.waiting(limit=PAGE, after=asked.word("after"))
    opened = _item(asked, kind, item_id, page) | answer
    said = command("approvals", "show", item_id) if kind == "approval" else command("effects", "show", item_id)
    return _view(asked, page, opened, opened["title"], opened.get("command") or said, opened["record"])


def _view(asked: SiteRequest, page: Any, opened: dict[str, Any] | None, title: str, said: str, data: Any) -> PageView:
    decided = opened["decided"] if opened is not None and "decided" in opened else _decided(asked.log)
    shown = {"items": page, "groups": _groups(page), "opened": opened, "decided": decided, "following": _following(page, opened)}
    # Where the list is whole, it has everything that is counted in the bar.
    is_whole = page.next is None and asked.word("after") is None
    decisions = sum(one.is_decision for one in page) if is_whole else None
    return PageView("inbox.html", title, said, data, shown, page.next, "inbox", decisions)


def _groups(page: Sequence[WaitingItem]) -> list[tuple[str, list[WaitingItem]]]:
    """Part the list into its groups; those without anything are left out."""
    groups: dict[str, list[WaitingItem]] = {}
    for item in page:
        groups.setdefault(item.kind.group.value, []).append(item)
    return list(groups.items())


def _following(page: Sequence[WaitingItem], opened: dict[str, Any] | None) -> WaitingItem | None:
    """Return the decision to go on to after the opened one; what holds a run up comes first."""
    here = None if opened is None else (opened["kind"], opened["id"])
    others = [item for item in page if item.is_decision and (item.kind.value, item.id) != here]
    return min(others, key=lambda item: (not item.holds_up, item.place), default=None)


def _decided(log: Decklog) -> Any:
    try:
        return log.approvals.answers(limit=_DECIDED).latest
    except DecklogError as problem:
        return told(problem)


def _item(asked: SiteRequest, kind: str, item_id: str, page: Any) -> dict[str, Any]:
    """Read what is opened, with how it can be answered from here; `page` is the list beside it."""
    listed = next((one for one in page if (one.kind.value, one.id) == (kind, item_id)), None)
    if kind == "approval":
        found = _approval(asked, item_id, listed)
    elif kind == "effect":
        found = _effect(asked, item_id, listed)
    else:
        found = _other(listed or _far(asked, kind, item_id, page.next))
    is_open = found["is_open"]
    trust = asked.log.trust.status() if is_open else None
    base: dict[str, Any] = {
        "kind": kind,
        "id": item_id,
        "problem": None,
        "typed": dict.fromkeys(TYPED, ""),
        "verdicts": VERDICTS.get(kind, ()),
        # The form's only intent, when the page was opened for one; Enter then submits what its button reads.
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
    found = (("to exactly this", answers.same_thing), ("to what this rule held", answers.same_rule))
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


def _other(one: Any) -> dict[str, Any]:
    """Show what is answered elsewhere."""
    return {"record": one, "title": one.what, "goal": None, "is_open": False, "command": one.command}


def _far(asked: SiteRequest, kind: str, item_id: str, after: str | None) -> Any:
    """Find something among what waits further down in the list."""
    while after is not None:
        page = asked.log.overview.waiting(limit=200, after=after)
        found = [one for one in page if (one.kind.value, one.id) == (kind, item_id)]
        if found:
            return found[0]
        after = page.next
    raise NotFound(f"no {kind} {item_id!r} waits any more", hint="It was answered, or its time is over.")


def proof_of(asked: SiteRequest) -> dict[str, Any]:
    """Return how the manager proves a decision here: by a password, by the passphrase of a key, or not on this page."""
    return proof_by(asked, asked.log.trust.status())


def proof_by(asked: SiteRequest, shown: TrustStatus) -> dict[str, Any]:
    """Say it where it is known who the manager is."""
    if asked.site.is_read_only:
        return {
            "how": "none",
            "why": "This log is open for reading only, by --read-only or since it may not be written here: nothing is decided.",
        }
    if not shown["is_bound"]:
        return {"how": "none", "why": "No manager is bound to this log, so nobody can prove a decision here.", "bind": True}
    if "problem" in shown:
        return {"how": "none", "why": "The record of who the manager is does not hold: decklog verify says more."}
    found = {"manager": shown["manager"], "why": None}
    if shown["has_password"]:
        return {"how": "password", **found}
    if asked.site.key is not None:
        return {"how": "key", **found}
    why = f"{shown['manager']} proves decisions with a key: start with --key FILE, or decide at the terminal."
    return {"how": "none", **found, "why": why}


def verdict_of(asked: SiteRequest, kind: str) -> str:
    verdict = asked.form.get("verdict", "")
    if verdict not in VERDICTS[kind]:
        raise Invalid(f"an answer is one of {', '.join(VERDICTS[kind])}", field="verdict")
    return verdict
