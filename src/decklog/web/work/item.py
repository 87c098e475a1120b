"""A work item of a conductor's run, and the whole change of a run: current activity, diff, comments and landing."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import zip_longest
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from decklog.conductor.git.changes import ChangedFile, NumberedLine, files_of
from decklog.conductor.items.change import ItemChange, change_of, write_patch
from decklog.conductor.items.item import Item, find_item
from decklog.conductor.items.rounds import messages_of
from decklog.conductor.items.watching import cost_of, recent_steps
from decklog.conductor.starting import first_commit
from decklog.conductor.status import run_status
from decklog.core.characters import revealed
from decklog.core.errors import DecklogError, NotFound
from decklog.web.actions import items as acts
from decklog.web.actions.forms import Offer, token_of
from decklog.web.actions.tasks import REQUEUE
from decklog.web.answers import told
from decklog.web.pages.entries.rows import lines_of, row_of
from decklog.web.pages.run_parts import STAGES, items_of
from decklog.web.pages.tasks import is_lapsed
from decklog.web.rendering import environment, name_of, segment
from decklog.web.site import PageView, SiteRequest, command

# A longer change is cut; the terminal shows all of it.
MOST_CHARACTERS, MOST_LINES = 600_000, 3000
UNIFIED, SPLIT = "unified", "split"
_PLAIN = re.compile("[ !#-%(-;=?-~]*")
_CLASSES = {"+": "d-add", "-": "d-del", " ": "d-same"}
Place = tuple[str, int]


@dataclass(frozen=True)
class DiffOptions:
    """How a change is shown. `comment` is the address to which `path:line` is added; None if comments are not possible.

    `below` has the HTML below each line: its comments, and the form for a new one.
    """

    is_split: bool = False
    comment: str | None = None
    below: Mapping[Place, Markup] | None = None


@dataclass(frozen=True)
class FileView:
    """One file: `rows` is the body of its table."""

    number: int
    path: str
    notes: tuple[str, ...]
    added: int
    removed: int
    rows: Markup

    def as_dict(self) -> dict[str, object]:
        return {"path": self.path, "notes": list(self.notes), "added": self.added, "removed": self.removed}


@dataclass(frozen=True)
class DiffView:
    """A whole change. `left_out` counts the files that are not shown; `is_cut` is whether the last file is cut."""

    files: list[FileView]
    left_out: int = 0
    is_cut: bool = False

    @property
    def added(self) -> int:
        return sum(one.added for one in self.files)

    @property
    def removed(self) -> int:
        return sum(one.removed for one in self.files)


def view_of(patch: str, options: DiffOptions) -> DiffView:
    """Build the view of a patch."""
    is_cut = len(patch) > MOST_CHARACTERS
    found = files_of(patch[: patch.rfind("\n", 0, MOST_CHARACTERS)] if is_cut else patch)
    shown: list[FileView] = []
    left = MOST_LINES
    for number, one in enumerate(found):
        size = sum(len(block.lines) for block in one.blocks)
        if left <= 0:
            break
        is_cut |= size > left
        shown.append(_file(number, one if size <= left else _shortened(one, left), options))
        left -= size
    return DiffView(shown, len(found) - len(shown), is_cut)


def _shortened(file: ChangedFile, most: int) -> ChangedFile:
    blocks = []
    for block in file.blocks:
        blocks.append(replace(block, lines=block.lines[: max(0, most)]))
        most -= len(block.lines)
    return replace(file, blocks=tuple(block for block in blocks if block.lines))


def _file(number: int, file: ChangedFile, options: DiffOptions) -> FileView:
    rows: list[str] = []
    write = _split_rows if options.is_split else _unified_rows
    for block in file.blocks:
        start = next((line.new for line in block.lines if line.new is not None), 0)
        said = f"line {start}" + (f" · {block.heading}" if block.heading else "")
        rows.append(f'<tr class="d-head"><td colspan="4">{_code(said)}</td></tr>\n')
        rows += write(number, file.path, block.lines, options)
    return FileView(number, file.path, file.notes, file.count("+"), file.count("-"), Markup("".join(rows)))


def _unified_rows(number: int, path: str, lines: Sequence[NumberedLine], options: DiffOptions) -> Iterable[str]:
    for line in lines:
        yield (
            f'<tr class="{_CLASSES[line.sign]}"{_id(number, line)}><td class="no">{"" if line.old is None else line.old}</td>'
            f'<td class="no">{_number(path, line, options)}</td><td class="sg">{line.sign.strip()}</td>'
            f'<td class="code">{_code(line.text)}</td></tr>\n'
        )
        yield from _below_diff(path, line, options)


def _split_rows(number: int, path: str, lines: Sequence[NumberedLine], options: DiffOptions) -> Iterable[str]:
    for old, new in _pairs(lines):
        left = '<td class="no"></td><td class="code d-none"></td>'
        if old is not None:
            left = f'<td class="no">{old.old}</td><td class="code {_CLASSES[old.sign]}">{_signed(old)}</td>'
        right = '<td class="no"></td><td class="code d-none"></td>'
        if new is not None:
            shown = f'<td class="code {_CLASSES[new.sign]}">{_signed(new)}</td>'
            right = f'<td class="no">{_number(path, new, options)}</td>{shown}'
        yield f"<tr{_id(number, new) if new is not None else ''}>{left}{right}</tr>\n"
        if new is not None:
            yield from _below_diff(path, new, options)


def _pairs(lines: Sequence[NumberedLine]) -> Iterable[tuple[NumberedLine | None, NumberedLine | None]]:
    """Pair removed lines with the added lines that replace them."""
    gone: list[NumberedLine] = []
    come: list[NumberedLine] = []
    for line in lines:
        if line.sign == " " or (line.sign == "-" and come):
            yield from zip_longest(gone, come)
            gone, come = [], []
        if line.sign == " ":
            yield line, line
        else:
            (gone if line.sign == "-" else come).append(line)
    yield from zip_longest(gone, come)


def _id(number: int, line: NumberedLine) -> str:
    return "" if line.new is None else f' id="l-{number}-{line.new}" data-row'


def _number(path: str, line: NumberedLine, options: DiffOptions) -> str:
    if line.new is None or options.comment is None:
        return "" if line.new is None else str(line.new)
    place = quote(f"{path}:{line.new}", safe="/:")
    said = f"Comment on line {line.new} of {name_of(revealed(path))}"
    href = name_of(f"{options.comment}on={place}#comment")
    return f'<a class="on" href="{href}" aria-label="{said}">{line.new}</a>'


def _below_diff(path: str, line: NumberedLine, options: DiffOptions) -> Iterable[str]:
    found = (options.below or {}).get((path, line.new or 0))
    if found and line.new is not None:
        yield f'<tr class="d-note"><td colspan="4">{found}</td></tr>\n'


def _signed(line: NumberedLine) -> str:
    """Write a line with a hidden word for its sign, for readers who don't see colours."""
    sign = {"+": "added: ", "-": "removed: "}.get(line.sign)
    return (f'<span class="unseen">{sign}</span>' if sign else "") + _code(line.text)


def _code(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else escape(revealed(text, tabs=True))


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
    tasks, lapsed = {task.id for task in item.tasks}, [task.id for task in item.tasks if is_lapsed(asked, task)]
    steps, messages = recent_steps(log, item, STEPS), messages_of(log, item)
    shown: dict[str, Any] = {
        "run": log.runs.get(run_id),
        "item": item,
        "stands": next(one for one in run_status(log, run_id).items if one.name == item.name),
        "stages": next(one for one in items_of(list(item.tasks)) if one.name == item.name).stages,
        "stage_names": STAGES,
        "stalled": lapsed,
        "cost": cost_of(log, run_id, tasks),
        "steps": lines_of([(False, [row_of(entry) for entry in reversed(steps)])], run_id),
        "messages": messages,
        "questions": [one for one in log.approvals.find(run_id, state="open", limit=_MOST_OPEN) if one.task_id in tasks],
        "offers": [] if asked.site.is_read_only else [*map(_requeue, lapsed), *acts.offers(item)],
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


def _requeue(task_id: str) -> Offer:
    return Offer(REQUEUE, task_id, "Requeue…", is_urgent=True)


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
        return ShownChange(problem=_visible_error(problem))
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
        return ShownChange(problem=_visible_error(problem))
    return ShownChange(change, view_of(patch, DiffOptions(is_split=asked.word("view") == SPLIT)))


def _visible_error(problem: DecklogError | OSError) -> DecklogError:
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
