"""Entries as rows of a page: author and text, expandable, with runs of small changes folded."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from markupsafe import Markup

from decklog.core.characters import revealed
from decklog.core.figures import counted, dollars
from decklog.web.pages.entries.tool_calls import call_of, plain
from decklog.web.rendering import agent_name, name_of, segment, text_of, when

LONGEST = 2000
# At least this number of consecutive changes is folded into one line.
_FOLDED = 2
# A single line up to this length is shown in full.
SHORT = 240


@dataclass(frozen=True)
class EntryRow:
    """An entry as a page shows it. `time` is UTC, and `rest` the number of characters that are not shown.

    For a tool call `text` is the command, `facts` its result and duration, and `output` its output.
    """

    seq: int
    time: str
    kind: str
    who: str
    what: str
    text: str
    rest: int
    facts: str = ""
    output: str = ""
    is_failed: bool = False


def row_of(entry: Any, texts: Mapping[str, Any] | None = None) -> EntryRow:
    """Build the row of an entry. `texts` has the beginnings of texts that entries refer to by digest."""
    who, time = revealed(agent_name(entry.agent or "–")), entry.at.isoformat()[:19]
    given = (entry.seq, time, entry.kind.value, who, revealed(_what(entry)))
    call = call_of(entry)
    if call is not None:
        rest = max(0, len(call.command) - LONGEST) + max(0, len(call.output) - LONGEST)
        shown = [revealed(text[:LONGEST], tabs=True) for text in (call.command, call.output)]
        return EntryRow(*given, shown[0], rest, call.facts, shown[1], call.is_failed)
    said = entry.body if entry.body is not None else _untold(entry)
    digest = (entry.body_digest or entry.payload_digest) if not said else None
    long = (texts or {}).get(digest or "")
    text = plain(long["head"] if long else said)
    size = len(text) if not long else len(text) + long["bytes"] - len(long["head"].encode())
    return EntryRow(*given, revealed(text[:LONGEST], tabs=True), max(0, size - LONGEST))


def folded(entries: list[Any], texts: Mapping[str, Any] | None = None) -> list[tuple[bool, list[EntryRow]]]:
    """Split entries into ranges that are shown and ranges of changes that are folded."""
    parts: list[tuple[bool, list[EntryRow]]] = []
    for is_change, found in groupby(entries, key=lambda entry: entry.kind.value == "change" and not is_notable(entry)):
        rows = [row_of(entry, texts) for entry in found]
        parts.append((is_change and len(rows) >= _FOLDED, rows))
    return parts


def lines_of(parts: list[tuple[bool, list[EntryRow]]], run_id: str) -> Markup:
    """Render the rows of a list. Direct string formatting is much faster here than a template."""
    base, found = name_of(f"/runs/{segment(run_id)}/entries/"), list[str]()
    for is_folded, rows in parts:
        if is_folded:
            said = counted(len(rows), "change")
            found.append(f'<li class="fold" id="f-{rows[0].seq}"><details><summary>{said} folded</summary><ol>\n')
        found += [_line(row, base) for row in rows]
        if is_folded:
            found.append("</ol></details></li>\n")
    return Markup("".join(found))


def _line(row: EntryRow, base: str) -> str:
    seq, time, kind = f"{row.seq:d}", row.time, row.kind
    return (
        f'<li id="e-{seq}" class="k-{kind}"><a class="n" href="{base}{seq}" title="open this entry">{seq}</a> '
        f'<time datetime="{time}Z" title="{time} UTC">{when(time)}</time> <span class="kind">{kind}</span> '
        f'<span class="who">{name_of(row.who)}</span> <div class="said">{_render_text(row, base)}</div></li>\n'
    )


def _render_text(row: EntryRow, base: str) -> str:
    """Render a row's text: in full if it is short, otherwise as its first line, which expands to the rest."""
    what = f'<span class="what">{name_of(row.what)}</span> ' if row.what else ""
    facts = f' <span class="{"ended bad" if row.is_failed else "ended"}">{text_of(row.facts)}</span>' if row.facts else ""
    first, _, below = row.text.partition("\n")
    if not (below or row.output or row.rest or len(first) > SHORT):
        return f"{what}{name_of(row.text)}{facts}"
    # Leave out what the summary line shows already.
    rest = row.text if len(first) > SHORT else below
    parts = [f'<pre class="output" tabindex="0">{name_of(text)}</pre>' for text in (rest, row.output) if text]
    more = f"Show all: {counted(row.rest, 'more character')}" if row.rest else "Open this entry"
    head = f"{first[:SHORT]}…" if len(first) > SHORT else first
    return (
        f"<details><summary>{what}{name_of(head)}{facts}</summary>"
        f'{"".join(parts)}<a class="all" href="{base}{row.seq:d}">{more}</a></details>'
    )


def is_notable(entry: Any) -> bool:
    """Return whether people look for this change: a question, an answer, an end or a failure."""
    return entry.record_table in ("approvals", "runs", "criteria", "checkpoints") or entry.subtype in _TELLING


_TELLING = ("finished", "failed", "blocked", "expired", "abandoned")


def _what(entry: Any) -> str:
    if entry.record_table:
        return f"{entry.record_table} {entry.subtype or ''}".strip()
    parts = (entry.subtype, entry.phase and entry.phase.value, entry.confidence and entry.confidence.value)
    return " · ".join(dict.fromkeys(part for part in parts if part))


def _untold(entry: Any) -> str:
    """Describe an entry without text: a charge by its amount, a record by its name."""
    image = entry.payload if isinstance(entry.payload, dict) else {}
    if entry.record_table == "charges" and "model" in image:
        cost = image.get("cost_microdollars")
        return f"{'price unknown' if cost is None else dollars(cost)}, {image['model']}"
    if entry.record_table:
        named = (image.get(name) for name in ("title", "question", "criterion", "goal", "name", "body"))
        return str(next(filter(None, named), entry.record_id))
    return json.dumps(entry.payload, ensure_ascii=False) if entry.payload is not None else ""
