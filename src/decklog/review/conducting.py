"""The gate in a run of the conductor: a green change is reviewed before it can land, each patch once."""

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from decklog.conductor.checks.examination import Examination
from decklog.conductor.git.repository import ref_part
from decklog.conductor.git.workspaces import remove_folder
from decklog.conductor.settings import NAME
from decklog.core.errors import Unavailable
from decklog.records.values import to_json
from decklog.review import settings as review_settings
from decklog.review.change import Change
from decklog.review.result import ACTIONABLE, had_outage
from decklog.review.reviewing import build_gate
from decklog.stores.workflow.reviews import Review, ReviewVerdict

if TYPE_CHECKING:
    from decklog.conductor.context import RunContext
    from decklog.review.settings import ReviewSettings
    from decklog.stores.tasks.task import Task


def review_attempt(
    context: "RunContext", task: "Task", base: str, tip: str, wanted_end: Callable[[], str | None], **given: Any
) -> Examination:
    """Review a change of a run. One to be changed goes back to its worker; an unproven one waits for a person."""
    change = Change(context.repository, base, tip, (task.title.partition(": ")[2] or task.title,))
    settings = _settings(context)
    known = _known(context, change, settings)
    if known is None:
        known = _review(context, task, change, settings, wanted_end, **given)
    findings = _findings(known)
    if known.verdict is ReviewVerdict.UNPROVEN and had_outage(known):
        # A transient failure uses no attempt.
        raise Unavailable(f"a model of the review can't be asked now: {findings[0]['text']}", hint="It is tried again.")
    if not known.verdict.holds:
        is_pass = known.verdict is ReviewVerdict.PASS
        return Examination("green" if is_pass else "red", [] if is_pass else findings)
    if known.verdict is ReviewVerdict.BLOCK:
        return Examination("red", findings)
    about = to_json({"base": change.base, "tree": change.tree, "patch": change.patch, "review": known.id}).encode()
    is_granted = context.log.approvals.granted_for(context.run_id, hashlib.sha256(about).hexdigest()) is not None
    return Examination("green" if is_granted else "held", findings, about)


def _settings(context: "RunContext") -> "ReviewSettings":
    """Return the settings of the commit that the run started from."""
    facts: Any = context.log.runs.get(context.run_id).metadata["conductor"]
    return review_settings.read(context.repository.read(str(facts["commit"]), NAME))


def _known(context: "RunContext", change: Change, settings: "ReviewSettings") -> Review | None:
    """Return the review of the same patch in this run; a merge does not change its lines."""
    found = context.log.reviews.find(context.run_id, patch=change.patch, limit=1)
    if not found or found[0].settings != settings.digest or had_outage(found[0]):
        return None
    if not found[0].verdict.holds and not context.log.reviews.lets_pass(found[0].id):
        return None
    if found[0].tree == change.tree and found[0].base == change.base:
        return found[0]
    # For another tree only a pass counts, and only for the same lines: git's patch id ignores white space.
    is_same = not found[0].verdict.holds and _lines(context, found[0]) == change.lines
    return found[0] if is_same else None


def _lines(context: "RunContext", review: Review) -> str | None:
    try:
        return Change(context.repository, review.base, review.head).lines
    except Unavailable:
        return None  # git has removed its objects


def _review(
    context: "RunContext",
    task: "Task",
    change: Change,
    settings: "ReviewSettings",
    wanted_end: Callable[[], str | None],
    **given: Any,
) -> Review:
    folder = context.checks_folder / context.holder / f"review-{ref_part(task.id)}-{task.fence}"
    try:
        gate = build_gate(
            context.log,
            change,
            settings,
            folder,
            run_id=context.run_id,
            task_id=task.id,
            fence=task.fence,
            wanted_end=wanted_end,
            **given,
        )
        return gate.review()
    finally:
        if folder.exists():
            remove_folder(folder)


def _findings(review: Review) -> list[dict[str, Any]]:
    """Return the findings as the next round, or a person, gets them."""
    actionable: list[Any] = [one for one in review.findings if one["severity"] in ACTIONABLE]  # type: ignore[index]
    found = [
        {
            "check": f"review.{one['pass']}",
            "kind": one["kind"],
            "text": one["text"],
            "paths": [":".join(str(part) for part in (one["file"], one["line"]) if part)] if one["file"] else [],
            "output": one["remedy"],
        }
        for one in actionable
    ]
    if found:
        return found
    stages: list[Any] = review.passes
    unproven = [one for one in stages if one["status"] == "unproven"]
    return [{"check": f"review.{one['pass']}", "kind": "unproven", "text": one["why"]} for one in unproven] or [
        {"check": "review.6", "kind": "score", "text": f"the review's verdict is {review.verdict}"}
    ]
