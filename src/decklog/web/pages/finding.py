"""Search with filters, the command palette, saved views, and the list of further pages."""

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from decklog import SearchResult, TaskState
from decklog.core.display import one_line
from decklog.core.errors import Invalid, NotFound, TimedOut
from decklog.log import Decklog
from decklog.web.forms import actor_of, check_token, signed, token_of
from decklog.web.pages.run import BAR
from decklog.web.pages.runs import parse_since
from decklog.web.rendering import segment
from decklog.web.site import QUERY_SECONDS, PageView, SiteRequest, command

HITS = 30
_NARROWS = ("run", "kind", "agent", "since")
_LONGEST = 400


@dataclass(frozen=True)
class TypedQuery:
    """A parsed search: its words and filters."""

    words: str = ""
    narrowed: dict[str, str] = field(default_factory=dict)

    def with_one(self, name: str, value: str | None) -> str:
        """Return the search text with one filter set to a value, or removed."""
        kept = {key: one for key, one in self.narrowed.items() if key != name} | ({name: value} if value else {})
        return " ".join([self.words, *(f"{key}:{_quoted(one)}" for key, one in kept.items())]).strip()

    def address(self, name: str, value: str | None) -> str:
        return f"/search?{urlencode({'q': self.with_one(name, value)})}"


def parse_query(text: str) -> TypedQuery:
    """Parse a search text: `lexer kind:tool agent:"dev 1" since:2d`."""
    narrowed: dict[str, str] = {}

    def taken(match: re.Match[str]) -> str:
        narrowed[match[1]] = match[3] if match[2] is None else match[2]
        return " "

    rest = re.sub(rf'(?<!\S)({"|".join(_NARROWS)}):(?:"([^"]*)"|(\S+))', taken, text)
    return TypedQuery(one_line(rest), {name: value for name, value in narrowed.items() if value})


def search(request: SiteRequest) -> PageView:
    """Load a page of hits, or redirect to the page of an id."""
    text = (request.word("q") or "")[:_LONGEST].strip()
    typed = parse_query(text)
    place = _place(request.log, text) if text and not request.word("after") else None
    found, is_stopped = None, False
    if typed.words and place is None:
        try:
            found = _found(request, typed)
        except TimedOut:
            is_stopped = True
    shown = {"text": text, "typed": typed, "result": found, "is_first": request.word("after") is None, "is_stopped": is_stopped}
    shown |= {"pieces": pieces, "leads_to": leads_to, "names": _names(request.log, typed, found)}
    shell_line = command("overview", "search", typed.words or "WORDS", *_options(typed))
    title = f"Search: {text}" if text else "Search"
    data: Any = {"leads_to": place} if place else {"is_stopped": True} if is_stopped else found
    return PageView("search.html", title, shell_line, data, shown, found.next if found else None, "search", to=place)


def _found(request: SiteRequest, typed: TypedQuery) -> SearchResult:
    narrowed = {"run_id" if name == "run" else name: value for name, value in typed.narrowed.items() if name != "since"}
    since = parse_since(typed.narrowed.get("since"), request.log.clock.now(), "q")
    log, going_on = request.log, not request.site.full_searches.is_due()
    given: dict[str, Any] = {**narrowed, "since": since, "going_on": going_on, "limit": HITS, "after": request.word("after")}
    with log.db.within(QUERY_SECONDS):
        return log.overview.search(typed.words, **given)


def _names(log: Decklog, typed: TypedQuery, found: SearchResult | None) -> dict[str, str]:
    """Return the goals of the runs that the page mentions."""
    facets = found.facets.get("stream", {}) if found else {}
    runs = {*facets, *(hit.stream for hit in found.hits)} if found else set()
    runs |= {typed.narrowed["run"]} if "run" in typed.narrowed else set()
    return log.overview.names(run_ids=[one for one in runs if not one.startswith("@")])


def _options(typed: TypedQuery) -> list[str]:
    return [word for name, value in typed.narrowed.items() for word in (f"--{name}", value)]


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value


def _place(log: Decklog, text: str) -> str | None:
    """Return the page of an id: an entry, a task, an approval or a run. Return None for words."""
    run_id, colon, seq = text.rpartition(":")
    try:
        if colon and run_id and seq.isdecimal() and len(seq) < 10 and run_id not in _NARROWS:
            return f"/runs/{segment(log.runs.get(run_id).id)}/entries/{seq}"
        for prefix, path in (("task_", "/tasks/"), ("run_", "/runs/"), ("approval_", "/inbox/approval/")):
            if text.startswith(prefix) and " " not in text:
                return f"{path}{segment(text)}" + ("/overview" if prefix == "run_" else "")
    except NotFound:
        return None
    return None


def pieces(hit: Any) -> list[tuple[str, bool]]:
    """Split a snippet into highlighted and other parts."""
    found, place = [], 0
    for start, end in hit.highlights:
        if start >= place:
            found += [(hit.snippet[place:start], False), (hit.snippet[start:end], True)]
            place = end
    return [(text, is_marked) for text, is_marked in [*found, (hit.snippet[place:], False)] if text]


def leads_to(hit: Any) -> str:
    """Return the page of a hit: a task, an approval, a lesson or the entry."""
    if hit.table == "tasks":
        return f"/tasks/{segment(hit.record_id)}"
    if hit.table == "approvals":
        return f"/inbox/approval/{segment(hit.record_id)}"
    if hit.table == "lessons":
        return f"/memory?{urlencode({'lesson': hit.record_id})}"
    return f"/runs/{segment(hit.stream)}/entries/{hit.seq}"


# Further pages


MORE = {
    "/views": ("Saved views", "Lists with filters that somebody named."),
    "/compare": ("Compare", "Differences between two runs, or two moments of one run."),
    "/workflow": ("Workflow", "The next agent after each report."),
    "/lines": ("Lines", "Who wrote each line of the repository: agents, people, or unknown."),
    "/trust": ("Trust", "Who the owner is, what agents may do, and what was signed."),
    "/system": ("System", "The engine, the file, who is logged in, and verification."),
}


def more(_: SiteRequest) -> PageView:
    """List these pages."""
    data = [{"path": path, "name": name, "answers": answers} for path, (name, answers) in MORE.items()]
    return PageView("more.html", "More", "decklog --help", data, {"places": data}, place="more")


# Saved views


SAVE, REMOVE = "save-view", "remove-view"
# The stream for entries without a run, and the subtypes of the entries.
STREAM, SAVED, REMOVED = "@desk", "view.saved", "view.removed"
PLACES = ("/now", "/inbox", "/runs", "/tasks", "/spend", "/search", "/memory")
MOST, LONGEST_NAME, LONGEST_ADDRESS = 200, 80, 1000


@dataclass(frozen=True)
class SavedView:
    """A saved view: its name, address, author and time."""

    name: str
    path: str
    by: str | None
    at: datetime

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "at": self.at.isoformat()}


def views(request: SiteRequest, **answer: Any) -> PageView:
    """Load all views, with the form for a new one."""
    views = saved_views(request)
    shown: dict[str, Any] = {
        "views": views,
        "token": request.session.form_token(token_of(SAVE), ""),
        "tokens": {view.name: request.session.form_token(token_of(REMOVE), view.name) for view in views},
        "typed": {"name": "", "path": (request.word("save") or "")[:LONGEST_ADDRESS]},
        "problem": None,
    }
    shell_line = command("journal", "find", STREAM, "--subtype", SAVED)
    return PageView("work/views.html", "Saved views", shell_line, views, shown | answer, place="more")


def saved_views(request: SiteRequest) -> list[SavedView]:
    """List the saved views that were not removed, by name. Entries with an invalid address are left out."""
    journal = request.log.journal
    entries = [*journal.find(STREAM, subtype=SAVED, limit=MOST), *journal.find(STREAM, subtype=REMOVED, limit=MOST)]
    known: dict[str, SavedView | None] = {}
    for entry in sorted(entries, key=lambda one: one.seq):
        payload = entry.payload if isinstance(entry.payload, dict) else {}
        name, path = payload.get("name"), checked_address(payload.get("path"))
        if not isinstance(name, str) or not _is_view_name(name):
            continue
        known[name] = SavedView(name, path, entry.agent, entry.at) if entry.subtype == SAVED and path else None
    return sorted((view for view in known.values() if view is not None), key=lambda view: view.name.lower())


def checked_address(text: object) -> str | None:
    """Return the normalized address of a list of this dashboard; None for any other address."""
    if not isinstance(text, str) or len(text) > LONGEST_ADDRESS or not text.isprintable():
        return None
    try:
        parts = urlsplit(text)
        pairs = parse_qsl(parts.query, max_num_fields=20)
    except ValueError:
        return None
    if parts.scheme or parts.netloc or parts.path not in PLACES:
        return None
    return parts.path + (f"?{urlencode(pairs)}" if pairs else "")


def _is_view_name(name: str) -> bool:
    return bool(name.strip()) and len(name) <= LONGEST_NAME and name.isprintable()


def save_view(request: SiteRequest) -> PageView | str:
    """Save a view under the name of the form. It replaces a view with the same name."""
    check_token(request, SAVE, "")
    name, given = request.form.get("name", "").strip(), request.form.get("path", "").strip()
    path = checked_address(given)
    if not _is_view_name(name) or path is None:
        wrong = (
            "an address of a list, such as /runs?status=running" if path is None else f"a name of 1 to {LONGEST_NAME} characters"
        )
        problem = Invalid(f"a view needs {wrong}", field="path" if path is None else "name")
        view = views(request, problem=problem, typed={"name": name, "path": given})
        return PageView(**{**vars(view), "status": 400})
    _write_view(request, SAVED, {"name": name, "path": path})
    return "/views"


def remove_view(request: SiteRequest) -> PageView | str:
    """Remove the view that a form names."""
    name = request.form.get("name", "")
    check_token(request, REMOVE, name)
    _write_view(request, REMOVED, {"name": name})
    return "/views"


def _write_view(request: SiteRequest, subtype: str, payload: dict[str, str]) -> None:
    with signed(request, is_needed=False):
        request.log.journal.append(
            STREAM, f"{actor_of(request)}: {payload['name']}", kind="event", subtype=subtype, payload=dict(payload)
        )


# Command palette


MOST_RUNS, MOST_TASKS, MOST_OF_EACH = 200, 200, 8
_PAGES = {"/now": "Now", "/inbox": "Inbox", "/runs": "Runs", "/tasks": "Tasks", "/spend": "Spend", "/memory": "Memory"}
PAGES = {**_PAGES, "/search": "Search", **{path: name for path, (name, _) in MORE.items()}}
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


def palette(request: SiteRequest) -> PageView:
    """Find what matches the words. Without words, list what is useful on the current page."""
    words = (request.word("q") or "")[:200].lower().split()
    run_id = request.word("on")
    found = [*_here(request, run_id), *_views(request), *_pages(), *_runs(request), *(_tasks(request) if words else ())]
    rows = _match_rows(found, words)
    shown = {"rows": rows, "text": request.word("q") or ""}
    data = [asdict(row) for row in rows]
    return PageView("work/palette.html", "Go to, or do", command("overview", "search", "WORDS"), data, shown)


def _match_rows(rows: Iterable[PaletteRow], words: list[str]) -> list[PaletteRow]:
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


def _views(request: SiteRequest) -> list[PaletteRow]:
    return [PaletteRow("view", view.name, view.path) for view in saved_views(request)]


def _here(request: SiteRequest, run_id: str | None) -> list[PaletteRow]:
    """List the actions and tabs of the run whose page is open."""
    if run_id is None:
        return []
    try:
        run = request.log.runs.get(run_id)
    except NotFound:
        return []
    tabs = [PaletteRow("this run", title, f"/runs/{segment(run.id)}/{name}") for name, title in BAR.items()]
    if "conductor" in run.metadata:
        tabs.append(PaletteRow("this run", "Changes", f"/runs/{segment(run.id)}/changes"))
    return [*_verbs(request, run), *tabs]


def _verbs(request: SiteRequest, run: Any) -> list[PaletteRow]:
    if request.site.is_read_only:
        return []
    state = "active" if run.status.value == "planning" else run.status.value
    verbs = dict(_VERBS.get(state, {})) | ({"land-run": "Land"} if "conductor" in run.metadata else {})
    return [PaletteRow("action", f"{label}: {run.goal}", f"/act/{verb}/{segment(run.id)}", True) for verb, label in verbs.items()]


def _runs(request: SiteRequest) -> Iterable[PaletteRow]:
    for run in request.log.runs.find(limit=MOST_RUNS):
        yield PaletteRow("run", run.goal, f"/runs/{segment(run.id)}/overview")
        yield from _verbs(request, run)


def _tasks(request: SiteRequest) -> Iterable[PaletteRow]:
    """List tasks that are running, blocked, waiting or paused. Finished tasks are found by a search."""
    for state in (TaskState.RUNNING, TaskState.BLOCKED, TaskState.WAITING, TaskState.PAUSED):
        for task in request.log.tasks.find(state=state, limit=MOST_TASKS // 4):
            yield PaletteRow("task", task.title, f"/tasks/{segment(task.id)}")
