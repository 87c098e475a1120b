"""A work item of a conductor's run, and the whole change of a run: current activity, diff, comments and landing."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from decklog.conductor.items.item import Item, ItemChange, change_of, find_item, write_patch
from decklog.conductor.items.rounds import messages_of
from decklog.conductor.items.watching import cost_of, recent_steps
from decklog.conductor.starting import first_commit
from decklog.conductor.status import run_status
from decklog.core.errors import DecklogError, NotFound
from decklog.web.actions import items as acts
from decklog.web.actions.forms import token_of
from decklog.web.answers import told
from decklog.web.pages.entries.rows import lines_of, row_of
from decklog.web.pages.items import STAGES, items_of
from decklog.web.rendering import environment, segment
from decklog.web.site import PageView, SiteRequest, command
from decklog.web.work.diff import SPLIT, UNIFIED, DiffOptions, DiffView, Place, view_of

STEPS, _MOST_OPEN = 40, 200


@dataclass(frozen=True)
class ShownChange:
    """A change with its view; `problem` is why it can't be shown on this machine."""

    change: ItemChange | None = None
    diff: DiffView | None = None
    problem: DecklogError | None = None


def read(asked: SiteRequest) -> PageView:
    """Load a work item: its state, newest steps, current change and messages."""
    log, run_id = asked.log, asked.path["run_id"]
    item = find_item(log, run_id, asked.path["item"])
    tasks = {task.id for task in item.tasks}
    steps, messages = recent_steps(log, item, STEPS), messages_of(log, item)
    shown: dict[str, Any] = {
        "run": log.runs.get(run_id),
        "item": item,
        "stands": next(one for one in run_status(log, run_id).items if one.name == item.name),
        "stages": next(one for one in items_of(list(item.tasks)) if one.name == item.name).stages,
        "stage_names": STAGES,
        "cost": cost_of(log, run_id, tasks),
        "steps": lines_of([(False, [row_of(entry) for entry in reversed(steps)])], run_id),
        "messages": messages,
        "questions": [one for one in log.approvals.find(run_id, state="open", limit=_MOST_OPEN) if one.task_id in tasks],
        "offers": [] if asked.site.is_read_only else acts.offers(item),
        "last_at": steps[-1].at if steps else None,
    }
    shown |= _forms(asked, item)
    shown |= _shown(asked, _item_change(asked, item, messages), acts.page_of(item))
    said = command("run", "watch", acts.subject_of(item))
    data = {"item": item.name, "run_id": run_id, "state": vars(shown["stands"]), "cost_microdollars": shown["cost"]}
    data |= {"steps": steps, "messages": messages, "files": _files(shown["change"])}
    title = item.landing.title.removeprefix("Land: ")
    return PageView("work/item.html", f"{item.name} · {title}", said, data, shown, place="runs")


def changes(asked: SiteRequest) -> PageView:
    """Load everything that a run has landed, as one change."""
    run = asked.log.runs.get(asked.path["run_id"])
    if "conductor" not in run.metadata:
        raise NotFound(f"run {run.id} was not started by decklog run, so its commits are not known")
    shown: dict[str, Any] = {"run": run, "items": run_status(asked.log, run.id).items}
    shown |= _shown(asked, _run_change(asked, run), f"/runs/{run.id}/changes")
    data = {"run_id": run.id, "files": _files(shown["change"])}
    said = command("run", "land", run.id, "--dry-run")
    return PageView("work/changes.html", f"Changes · {run.goal}", said, data, shown, place="runs")


def _shown(asked: SiteRequest, change: ShownChange, page: str) -> dict[str, Any]:
    view = SPLIT if asked.word("view") == SPLIT else UNIFIED
    return {"change": change, "view_name": view, "page": segment(page)}


def _files(change: ShownChange) -> list[dict[str, object]]:
    return [] if change.diff is None else [one.as_dict() for one in change.diff.files]


def _forms(asked: SiteRequest, item: Item) -> dict[str, Any]:
    """Return the form tokens of the page; none if the log is read-only."""
    subject = acts.subject_of(item)
    tokens = {verb: asked.session.form_token(token_of(verb), subject) for verb in (acts.COMMENT, acts.MESSAGE)}
    return {"subject": subject, "tokens": {} if asked.site.is_read_only else tokens}


def _item_change(asked: SiteRequest, item: Item, messages: list[Any]) -> ShownChange:
    try:
        context = acts.context_of(asked, item.run_id)
        change = change_of(context, item)
        patch = "" if change is None else write_patch(context, change)
    except (DecklogError, OSError) as problem:
        return ShownChange(problem=_told(problem))
    can_comment = not asked.site.is_read_only
    view = f"view={SPLIT}&" if asked.word("view") == SPLIT else ""
    comment = f"{segment(acts.page_of(item))}?{view}" if can_comment else None
    below = _below(asked, item, messages) if can_comment else {}
    return ShownChange(change, view_of(patch, DiffOptions(bool(view), comment, below)))


def _run_change(asked: SiteRequest, run: Any) -> ShownChange:
    try:
        context = acts.context_of(asked, run.id)
        change = ItemChange(first_commit(run), context.target_commit())
        patch = write_patch(context, change)
    except (DecklogError, OSError) as problem:
        return ShownChange(problem=_told(problem))
    return ShownChange(change, view_of(patch, DiffOptions(is_split=asked.word("view") == SPLIT)))


def _told(problem: DecklogError | OSError) -> DecklogError:
    # Show the message: the reader has to know which folder of which machine is meant.
    return problem if isinstance(problem, DecklogError) else told(problem)


def _below(asked: SiteRequest, item: Item, messages: Iterable[Any]) -> dict[Place, Markup]:
    """Render what is shown below lines: unanswered comments, and the comment form at the selected line."""
    module: Any = environment().get_template("work/parts.html").module
    found: dict[Place, Markup] = {}
    for one in messages:
        path, mark, line = (one.context_url or "").rpartition("#L")
        if mark and line.isdecimal() and one.state.value in ("pending", "seen"):
            found[path, int(line)] = found.get((path, int(line)), Markup("")) + module.comment(one, asked.log.clock.now(), "line")
    path, _, line = (asked.word("on") or "").rpartition(":")
    if path and line.isdecimal() and len(line) < 9:
        forms = _forms(asked, item)
        form = module.comment_form(forms["subject"], forms["tokens"][acts.COMMENT], f"{path}:{line}", segment(acts.page_of(item)))
        found[path, int(line)] = found.get((path, int(line)), Markup("")) + form
    return found
