"""Entries as rows of a page: who said what, cut where it is long, with the many small changes folded."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from markupsafe import Markup

from decklog.core.characters import revealed
from decklog.core.figures import counted, dollars
from decklog.web.rendering import name_of, segment

LONGEST = 2000
# From so many changes in a row on they are folded into one line.
_FOLDED = 2
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


@dataclass(frozen=True)
class EntryRow:
    """An entry as a page shows it, in words alone; `time` is a text of UTC, and `rest` how much of its text is not shown."""

    seq: int
    time: str
    kind: str
    who: str
    what: str
    text: str
    rest: int


def row_of(entry: Any, texts: Mapping[str, Any] | None = None) -> EntryRow:
    """Make a row of an entry; `texts` has how those begin that it names by a digest."""
    said = entry.body if entry.body is not None else _untold(entry)
    digest = (entry.body_digest or entry.payload_digest) if not said else None
    long = (texts or {}).get(digest or "")
    text = _plain(long["head"] if long else said)
    size = len(text) if not long else len(text) + long["bytes"] - len(long["head"].encode())
    who, time = revealed(entry.agent or "–"), entry.at.isoformat()[:19]
    shown = revealed(text[:LONGEST], tabs=True)
    return EntryRow(entry.seq, time, entry.kind.value, who, revealed(_what(entry)), shown, max(0, size - LONGEST))


def folded(entries: list[Any], texts: Mapping[str, Any] | None = None) -> list[tuple[bool, list[EntryRow]]]:
    """Part entries into stretches that are shown, and stretches of changes that are folded."""
    parts: list[tuple[bool, list[EntryRow]]] = []
    for is_change, found in groupby(entries, key=lambda entry: entry.kind.value == "change" and not is_telling(entry)):
        rows = [row_of(entry, texts) for entry in found]
        parts.append((is_change and len(rows) >= _FOLDED, rows))
    return parts


def lines_of(parts: list[tuple[bool, list[EntryRow]]], run_id: str) -> Markup:
    """Write the rows of a list, here and not by a template: that takes as long for every word as this does for a row."""
    base, found = name_of(f"/runs/{segment(run_id)}/overview?at="), list[str]()
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
    what = f'<span class="what">{name_of(row.what)}</span> ' if row.what else ""
    rest = f' <span class="cut">… {counted(row.rest, "more character")}</span>' if row.rest else ""
    return (
        f'<li id="e-{seq}" class="k-{kind}"><a class="n" href="{base}{seq}" title="the run as of this entry">{seq}</a> '
        f'<time datetime="{time}Z" title="{time} UTC">{time[11:]}</time> <span class="kind">{kind}</span> '
        f'<span class="who">{name_of(row.who)}</span> <span class="said">{what}{name_of(row.text)}{rest}</span></li>\n'
    )


def is_telling(entry: Any) -> bool:
    """Return whether a change is one that people look for: a question, an answer, an end, a failure."""
    return entry.record_table in ("approvals", "runs", "criteria", "checkpoints") or entry.subtype in _TELLING


_TELLING = ("finished", "failed", "blocked", "expired", "abandoned")


def _what(entry: Any) -> str:
    if entry.record_table:
        return f"{entry.record_table} {entry.subtype or ''}".strip()
    parts = (entry.subtype, entry.phase and entry.phase.value, entry.confidence and entry.confidence.value)
    return " · ".join(dict.fromkeys(part for part in parts if part))


def _untold(entry: Any) -> str:
    """Return what an entry without words is about: a call by its arguments and how it ended, a charge by its amount."""
    image = entry.payload if isinstance(entry.payload, dict) else {}
    if entry.record_table == "charges" and "model" in image:
        cost = image.get("cost_microdollars")
        return f"{'price unknown' if cost is None else dollars(cost)}, {image['model']}"
    if entry.record_table:
        named = (image.get(name) for name in ("title", "question", "criterion", "goal", "name", "body"))
        return str(next(filter(None, named), entry.record_id))
    if "arguments" in image:
        return _call(image)
    return json.dumps(entry.payload, ensure_ascii=False) if entry.payload is not None else ""


def _call(image: dict[str, Any]) -> str:
    given, result = image["arguments"], image.get("result")
    said = given.get("command") if isinstance(given, dict) and len(given) == 1 else None
    text = said if isinstance(said, str) else json.dumps(given, ensure_ascii=False)
    code = result.get("exit_code") if isinstance(result, dict) else None
    return text if code in (None, 0) else f"{text}  → exit {code}"


def _plain(text: str) -> str:
    """Write what a terminal would have shown at the end: without colours, and of a line that was overwritten its last state."""
    if text.isascii() and text.isprintable():
        return text
    lines = _ESCAPES.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
