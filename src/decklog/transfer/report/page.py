"""A run as one HTML page for a report: no script, no outside resource, every text escaped."""

import os
from html import escape

from decklog.clock import to_text
from decklog.errors import Conflict
from decklog.transfer.reading import entries_of
from decklog.transfer.report.bars import bars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from decklog.app import Decklog
    from decklog.records import Record

_MOST_TEXT = 2000
_STYLE = """
:root { --ink: #1c2430; --soft: #5b6675; --line: #dde2e8; --paper: #fff; --tint: #f5f7f9; --good: #1f7a3d; --bad: #b02a2a }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --soft: #9aa5b4; --line: #333c48; --paper: #14181d; --tint: #1c2229; --good: #5fc27e; --bad: #f08a8a }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
h1 { font-size: 1.5rem; margin: 0 0 .25rem } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem } p { margin: .25rem 0 }
.soft { color: var(--soft) } .good { color: var(--good); font-weight: 600 } .bad { color: var(--bad); font-weight: 600 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem } dt { color: var(--soft) } dd { margin: 0 }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-size: .9rem }
th { text-align: left; color: var(--soft); font-weight: 600 }
th, td { padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td.text { white-space: pre-wrap; overflow-wrap: anywhere } td.plain { white-space: nowrap }
code { font-size: .85em; overflow-wrap: anywhere }
tr.change td { color: var(--soft) } svg text { fill: var(--ink) } svg line { stroke: var(--line) }
@media print { body { margin: 0; max-width: none } }
"""


def write_page(log: "Decklog", run_id: str, path: str | None = None, *, overwrite: bool = False) -> "dict[str, Any]":
    """Write the page of a run, as it is now, into a file that only its owner can read."""
    run = log.runs.get(run_id)
    path = os.path.abspath(path or f"{''.join(c if c.isalnum() or c in '-_.' else '_' for c in run_id)}.html")
    flags = os.O_TRUNC if overwrite else os.O_EXCL
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flags | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Conflict(f"{path} is there already, and was left as it is", hint="Add --overwrite.", path=path) from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(_page(log, run))
    return {"run": run_id, "path": path, "bytes": os.path.getsize(path)}


def _page(log: "Decklog", run: "Any") -> "Iterator[str]":
    # The policy makes a browser refuse whatever a text might smuggle in, should the escaping ever fail.
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(run.goal)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
    )
    yield from _summary(log, run)
    tasks = list(_all_tasks(log, run.id))
    yield from _tasks(tasks)
    yield from bars(log, tasks)
    yield from _entries(log, run.id)
    yield f'<p class="soft">Written by Decklog, {to_text(log.clock.now())}.</p>\n</body>\n</html>\n'


def _summary(log: "Decklog", run: "Any") -> "Iterator[str]":
    result = log.journal.verify(run.id)
    yield f'<h1>{escape(run.goal)}</h1>\n<p class="soft"><code>{escape(run.id)}</code></p>\n'
    if result.ok:
        yield f'<p class="good">Verified: {result.entries:,} entries, hash chain whole.</p>\n'
    else:
        assert result.first is not None
        yield f'<p class="bad">Does not verify: entry {result.first.seq}: {escape(result.first.what)}.</p>\n'
    head = next(head for head in log.journal.heads() if head["stream"] == run.id)
    facts = {
        "status": run.status.value,
        "summary": run.summary,
        "repository": run.repo,
        "branch": run.branch,
        "mode": run.mode and run.mode.value,
        "started": to_text(run.started_at),
        "ended": run.ended_at and to_text(run.ended_at),
        "parent run": run.parent_run_id,
        "last entry": f"{head['seq']}, hash {head['hash']}",
    }
    rows = (f"<dt>{name}</dt><dd>{escape(str(value))}</dd>" for name, value in facts.items() if value)
    yield f"<dl>{''.join(rows)}</dl>\n"


def _all_tasks(log: "Decklog", run_id: str) -> "Iterator[Any]":
    after = None
    while True:
        page = log.tasks.find(run_id, limit=200, after=after)
        yield from page
        after = page.next
        if after is None:
            return


def _tasks(tasks: "list[Any]") -> "Iterator[str]":
    yield f"<h2>Tasks ({len(tasks)})</h2>\n"
    if tasks:
        names = ("title", "state", "attempts", "outcome", "summary", "updated_at")
        yield from _table(("task", "state", "attempts", "outcome", "summary", "changed"), map(_cells(names), tasks))


def _cells(names: "tuple[str, ...]") -> "Any":
    def cells(record: "Record") -> "list[str]":
        data = record.as_dict()
        return [f"<td>{escape('' if data[name] is None else str(data[name]))}</td>" for name in names]

    return cells


def _entries(log: "Decklog", run_id: str) -> "Iterator[str]":
    yield "<h2>Entries</h2>\n"
    head = next(head["seq"] for head in log.journal.heads() if head["stream"] == run_id)
    rows = (entry for batch in entries_of(log, run_id, after=0, until=head) for entry in batch)
    yield from _table(("no.", "when", "kind", "who", "what"), map(_entry, rows), classes=True)


def _entry(entry: "dict[str, Any]") -> "list[str]":
    what = f"{entry['record_table']} {entry['record_id']} {entry['subtype']}" if entry["record_table"] else entry["subtype"]
    text = entry["body"] if entry["body"] is not None or entry["record_table"] else entry["payload"]
    if text is None and (entry["body_digest"] or entry["payload_digest"]):
        text = f"(text kept apart or dropped, SHA-256 {entry['body_digest'] or entry['payload_digest']})"
    shown = ": ".join(part for part in (what, text) if part)
    cut = shown if len(shown) <= _MOST_TEXT else f"{shown[:_MOST_TEXT]} … ({len(shown):,} characters)"
    plain = (entry["seq"], entry["at"][:19].replace("T", " "), entry["kind"], entry["agent"] or "")
    return [*(f'<td class="plain">{escape(str(value))}</td>' for value in plain), f'<td class="text">{escape(cut)}</td>']


def _table(heads: "tuple[str, ...]", rows: "Iterable[list[str]]", *, classes: bool = False) -> "Iterator[str]":
    yield f'<div class="wide"><table><thead><tr>{"".join(f"<th>{head}</th>" for head in heads)}</tr></thead><tbody>\n'
    for cells in rows:
        is_change = classes and ">change<" in cells[2]
        yield f"<tr{' class=change' if is_change else ''}>{''.join(cells)}</tr>\n"
    yield "</tbody></table></div>\n"
