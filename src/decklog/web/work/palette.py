"""Command palette: pages, runs, tasks and actions that match the typed words, as a page and in a dialog."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from decklog import TaskState
from decklog.core.errors import NotFound
from decklog.web.pages.more import PLACES
from decklog.web.pages.run import BAR
from decklog.web.rendering import segment
from decklog.web.site import PageView, SiteRequest, command
from decklog.web.work.views import saved_views

MOST_RUNS, MOST_TASKS, MOST_OF_EACH = 200, 200, 8
_PAGES = {"/now": "Now", "/inbox": "Inbox", "/runs": "Runs", "/tasks": "Tasks", "/spend": "Spend", "/memory": "Memory"}
PAGES = {**_PAGES, "/search": "Search", **{path: name for path, (name, _) in PLACES.items()}}
_VERBS = {
    "active": {"pause-run": "Pause", "stop-run": "Stop", "message-run": "Message agents"},
    "paused": {"resume-run": "Resume", "stop-run": "Stop", "message-run": "Message agents"},
    "failed": {"retry-run": "Retry"},
    "cancelled": {"retry-run": "Retry"},
}


@dataclass(frozen=True)
class PaletteRow:
    """One destination or action. `kind` is its type; an action opens its form."""

    kind: str
    label: str
    path: str
    is_action: bool = False


def read(asked: SiteRequest) -> PageView:
    """Find what matches the words. Without words, list what is useful on the current page."""
    words = (asked.word("q") or "")[:200].lower().split()
    run_id = asked.word("on")
    found = [*_here(asked, run_id), *_views(asked), *_pages(), *_runs(asked), *(_tasks(asked) if words else ())]
    rows = _fitting(found, words)
    shown = {"rows": rows, "text": asked.word("q") or ""}
    data = [asdict(row) for row in rows]
    return PageView("work/palette.html", "Go to, or do", command("overview", "search", "WORDS"), data, shown)


def _fitting(rows: Iterable[PaletteRow], words: list[str]) -> list[PaletteRow]:
    """Keep the rows that contain all words, a few of each kind. Rows that start with the first word come first."""
    fitting = [row for row in dict.fromkeys(rows) if all(word in f"{row.kind} {row.label}".lower() for word in words)]
    if words:
        fitting.sort(key=lambda row: not row.label.lower().startswith(words[0]))
    kept: list[PaletteRow] = []
    counts: dict[str, int] = {}
    for row in fitting:
        counts[row.kind] = counts.get(row.kind, 0) + 1
        if counts[row.kind] <= MOST_OF_EACH:
            kept.append(row)
    return kept


def _pages() -> list[PaletteRow]:
    return [PaletteRow("page", name, path) for path, name in PAGES.items()]


def _views(asked: SiteRequest) -> list[PaletteRow]:
    return [PaletteRow("view", view.name, view.path) for view in saved_views(asked)]


def _here(asked: SiteRequest, run_id: str | None) -> list[PaletteRow]:
    """List the actions and tabs of the run whose page is open."""
    if run_id is None:
        return []
    try:
        run = asked.log.runs.get(run_id)
    except NotFound:
        return []
    tabs = [PaletteRow("this run", title, f"/runs/{segment(run.id)}/{name}") for name, title in BAR.items()]
    if "conductor" in run.metadata:
        tabs.append(PaletteRow("this run", "Changes", f"/runs/{segment(run.id)}/changes"))
    return [*_verbs(asked, run), *tabs]


def _verbs(asked: SiteRequest, run: Any) -> list[PaletteRow]:
    if asked.site.is_read_only:
        return []
    state = "active" if run.status.value == "planning" else run.status.value
    verbs = dict(_VERBS.get(state, {})) | ({"land-run": "Land"} if "conductor" in run.metadata else {})
    return [PaletteRow("action", f"{said}: {run.goal}", f"/act/{verb}/{segment(run.id)}", True) for verb, said in verbs.items()]


def _runs(asked: SiteRequest) -> Iterable[PaletteRow]:
    for run in asked.log.runs.find(limit=MOST_RUNS):
        yield PaletteRow("run", run.goal, f"/runs/{segment(run.id)}/overview")
        yield from _verbs(asked, run)


def _tasks(asked: SiteRequest) -> Iterable[PaletteRow]:
    """List tasks that are running, blocked, waiting or paused. Finished tasks are found by a search."""
    for state in (TaskState.RUNNING, TaskState.BLOCKED, TaskState.WAITING, TaskState.PAUSED):
        for task in asked.log.tasks.find(state=state, limit=MOST_TASKS // 4):
            yield PaletteRow("task", task.title, f"/tasks/{segment(task.id)}")
