"""One journal entry as a page: all its fields, and links to its neighbours."""

from decklog import Entry
from decklog.core.characters import revealed
from decklog.web.pages import run_moment
from decklog.web.pages.entries.rows import row_of
from decklog.web.pages.entries.tool_calls import ShownCall, call_of, paired, plain
from decklog.web.rendering import as_json, laid_out, segment
from decklog.web.site import PageView, SiteRequest, command

# How many following entries are searched for a call's result, and the text length from which on only JSON has all of it.
_NEAR, _LONGEST = 50, 400_000
_PAGES = {"tasks": "/tasks/{}", "approvals": "/inbox/approval/{}", "runs": "/runs/{}/overview", "reviews": "/reviews/{}"}


def read(asked: SiteRequest) -> PageView:
    """Load an entry, the newest entry number, and the output of a tool call."""
    log, stream = asked.log, asked.path["run_id"]
    entry = log.journal.get(stream, int(asked.path["seq"]))
    newest = log.journal.find(stream, limit=1)[0].seq
    # Records without a run have streams that start with `@`.
    run = None if stream.startswith("@") else log.runs.get(stream)
    call = _call(asked, entry)
    text = plain(entry.body or "") if call is None or call.command != entry.body else ""
    shown = {
        "entry": entry,
        "run": run,
        "row": row_of(entry),
        "call": call,
        "text": _cut(text),
        "output": _cut(call.output if call else ""),
        "payload": _cut(laid_out(as_json(entry.payload)) if entry.payload is not None else ""),
        "names": log.overview.names(task_ids=[entry.task_id]) if entry.task_id else {},
        "record_page": _record_page(entry),
        "before": entry.seq - 1 if entry.seq > 1 else None,
        "behind": entry.seq + 1 if entry.seq < newest else None,
        "newest": newest,
    }
    title = f"Entry {entry.seq} · {run.goal if run else stream}"
    return PageView("entry.html", title, command("journal", "get", f"{stream}:{entry.seq}"), entry, shown, place="runs")


def _call(asked: SiteRequest, entry: Entry) -> ShownCall | None:
    call = call_of(entry)
    # Only a call with an id can have its result in another entry.
    if call is None or call.is_result or not call.id:
        return call
    near = run_moment.entries(asked.log, entry.stream, after=entry.seq, until=entry.seq + _NEAR)
    return next(call for one, call in paired([entry, *near]) if one.seq == entry.seq)


def _cut(text: str) -> tuple[str, int]:
    """Return the shown part of a text, and how many characters are left out."""
    return revealed(text[:_LONGEST], tabs=True), max(0, len(text) - _LONGEST)


def _record_page(entry: Entry) -> str | None:
    page = _PAGES.get(entry.record_table or "")
    return page.format(segment(entry.record_id)) if page and entry.record_id else None
