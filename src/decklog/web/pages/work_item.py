"""A work item of a conductor's run, and the whole change of a run: current activity, diff, comments and landing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from decklog.conductor.git.changes import ChangedFile, DiffLine, parse_files
from decklog.conductor.items.item import Item, ItemChange, find_item, find_item_change, list_messages, write_patch
from decklog.conductor.items.watching import item_cost, list_recent_steps
from decklog.conductor.starting import first_commit
from decklog.conductor.status import run_status
from decklog.core.errors import DecklogError, NotFound
from decklog.web import item_actions as acts
from decklog.web.actions import REQUEUE_TASK
from decklog.web.forms import Offer, token_of
from decklog.web.pages.entries import build_row
from decklog.web.pages.run_parts import STAGES, items_of
from decklog.web.rendering import segment
from decklog.web.site import PageView, SiteRequest, command, is_lapsed, public_error

# A longer change is cut; the terminal shows all of it.
MOST_CHARACTERS, MOST_LINES = 600_000, 3000
UNIFIED, SPLIT = "unified", "split"
Place = tuple[str, int]
Pair = tuple[DiffLine | None, DiffLine | None]


@dataclass(frozen=True)
class DiffView:
    """A whole change. `left_out` counts the files that are not shown; `is_cut` is whether the last file is cut."""

    files: list[ChangedFile]
    left_out: int = 0
    is_cut: bool = False

    def count(self, sign: str) -> int:
        """Count the lines with a sign."""
        return sum(file.count(sign) for file in self.files)

    def as_data(self) -> list[dict[str, object]]:
        """Return the files for the page's JSON form."""
        return [
            {"path": one.path, "notes": list(one.notes), "added": one.count("+"), "removed": one.count("-")} for one in self.files
        ]

    @staticmethod
    def pairs(lines: Sequence[DiffLine]) -> Iterator[Pair]:
        """Pair removed lines with the added lines that replace them."""
        gone: list[DiffLine] = []
        come: list[DiffLine] = []
        for line in lines:
            if line.sign == " " or (line.sign == "-" and come):
                yield from zip_longest(gone, come)
                gone, come = [], []
            if line.sign == " ":
                yield line, line
            else:
                (gone if line.sign == "-" else come).append(line)
        yield from zip_longest(gone, come)


def build_diff_view(patch: str) -> DiffView:
    """Build the view of a patch."""
    is_cut = len(patch) > MOST_CHARACTERS
    found = parse_files(patch[: patch.rfind("\n", 0, MOST_CHARACTERS)] if is_cut else patch)
    shown: list[ChangedFile] = []
    left = MOST_LINES
    for one in found:
        size = sum(len(block.lines) for block in one.blocks)
        if left <= 0:
            break
        is_cut |= size > left
        shown.append(one if size <= left else _shortened(one, left))
        left -= size
    return DiffView(shown, len(found) - len(shown), is_cut)


def _shortened(file: ChangedFile, most: int) -> ChangedFile:
    blocks = []
    for block in file.blocks:
        blocks.append(replace(block, lines=block.lines[: max(0, most)]))
        most -= len(block.lines)
    return replace(file, blocks=tuple(block for block in blocks if block.lines))


STEPS, _MOST_OPEN = 40, 200


def read(request: SiteRequest) -> PageView:
    """Load a work item: its state, newest steps, current change and messages."""
    log, run_id = request.log, request.path["run_id"]
    item = find_item(log, run_id, request.path["item"])
    tasks, lapsed = {task.id for task in item.tasks}, [task.id for task in item.tasks if is_lapsed(request, task)]
    steps, messages = list_recent_steps(log, item, STEPS), list_messages(log, item)
    shown: dict[str, Any] = {
        "run": log.runs.get(run_id),
        "item": item,
        "status": next(one for one in run_status(log, run_id).items if one.name == item.name),
        "stages": next(one for one in items_of(list(item.tasks)) if one.name == item.name).stages,
        "stage_names": STAGES,
        "stalled": lapsed,
        "cost": item_cost(log, run_id, tasks),
        "steps": [(False, [build_row(entry) for entry in reversed(steps)])] if steps else [],
        "messages": messages,
        "questions": [one for one in log.approvals.find(run_id, state="open", limit=_MOST_OPEN) if one.task_id in tasks],
        "offers": [] if request.site.is_read_only else [*map(_requeue, lapsed), *acts.offers(item)],
        "last_at": steps[-1].at if steps else None,
    }
    subject = acts.subject_of(item)
    verbs = () if request.site.is_read_only else (acts.COMMENT, acts.MESSAGE)
    shown |= {"subject": subject, "tokens": {verb: request.session.form_token(token_of(verb), subject) for verb in verbs}}
    shown |= _build_change_view(request, _item_change(request, item, messages, shown["tokens"]), acts.page_of(item))
    shell_line = command("run", "watch", subject)
    data = {"item": item.name, "run_id": run_id, "state": vars(shown["status"]), "cost_microdollars": shown["cost"]}
    data |= {"steps": steps, "messages": messages, "files": _files(shown["change"].diff)}
    title = item.landing.title.removeprefix("Land: ")
    return PageView("work/item.html", f"{item.name} · {title}", shell_line, data, shown, place="runs")


def changes(request: SiteRequest) -> PageView:
    """Load everything that a run has landed, as one change."""
    run = request.log.runs.get(request.path["run_id"])
    if "conductor" not in run.metadata:
        raise NotFound(f"run {run.id} was not started by decklog run, so its commits are not known")
    shown: dict[str, Any] = {"run": run, "items": run_status(request.log, run.id).items}
    shown |= _build_change_view(request, _run_change(request, run), f"/runs/{run.id}/changes")
    data = {"run_id": run.id, "files": _files(shown["change"].diff)}
    shell_line = command("run", "land", run.id, "--dry-run")
    return PageView("work/changes.html", f"Changes · {run.goal}", shell_line, data, shown, place="runs")


def _requeue(task_id: str) -> Offer:
    return Offer(REQUEUE_TASK, task_id, "Requeue…", is_urgent=True)


def _visible_error(problem: DecklogError | OSError) -> DecklogError:
    # Show the message: the reader has to know which folder of which machine is meant.
    return problem if isinstance(problem, DecklogError) else public_error(problem)


@dataclass(frozen=True)
class Commenting:
    """The unanswered comments by line, and the form for a new one at the line `on`. `address` begins the link of a line."""

    subject: str
    token: str
    address: str
    comments: Mapping[Place, Sequence[Any]]
    on: Place | None


@dataclass(frozen=True)
class ShownChange:
    """A change with its view, or the problem why it can't be shown here. Without `commenting` nobody can comment."""

    change: ItemChange | None = None
    diff: DiffView | None = None
    problem: DecklogError | None = None
    commenting: Commenting | None = None


def _build_change_view(request: SiteRequest, change: ShownChange, page: str) -> dict[str, Any]:
    view = SPLIT if request.word("view") == SPLIT else UNIFIED
    return {"change": change, "view_name": view, "page": segment(page)}


def _item_change(request: SiteRequest, item: Item, messages: list[Any], tokens: Mapping[str, str]) -> ShownChange:
    try:
        context = acts.context_of(request, item.run_id)
        change = find_item_change(context, item)
        patch = "" if change is None else write_patch(context, change)
    except (DecklogError, OSError) as problem:
        return ShownChange(problem=_visible_error(problem))
    commenting = None
    if tokens:
        address = f"{segment(acts.page_of(item))}?" + (f"view={SPLIT}&" if request.word("view") == SPLIT else "")
        on = _place(request.word("on"), ":")
        commenting = Commenting(acts.subject_of(item), tokens[acts.COMMENT], address, _unanswered(messages), on)
    return ShownChange(change, build_diff_view(patch), commenting=commenting)


def _place(text: str | None, mark: str) -> Place | None:
    """Parse a path and a line number, separated by a mark."""
    path, _, line = (text or "").rpartition(mark)
    return (path, int(line)) if path and line.isdecimal() and len(line) < 9 else None


def _unanswered(messages: Iterable[Any]) -> dict[Place, list[Any]]:
    """Return the comments that are still to be answered, by the line that they are about."""
    found: dict[Place, list[Any]] = {}
    for one in messages:
        place = _place(one.context_url, "#L")
        if place is not None and one.state.value in ("pending", "seen"):
            found.setdefault(place, []).append(one)
    return found


def _run_change(request: SiteRequest, run: Any) -> ShownChange:
    try:
        context = acts.context_of(request, run.id)
        change = ItemChange(first_commit(run), context.target_commit())
        return ShownChange(change, build_diff_view(write_patch(context, change)))
    except (DecklogError, OSError) as problem:
        return ShownChange(problem=_visible_error(problem))


def _files(diff: DiffView | None) -> list[dict[str, object]]:
    return [] if diff is None else diff.as_data()
