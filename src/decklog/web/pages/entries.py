"""Render journal entries: tool calls, rows of a list with small changes folded, and the page of one entry."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby, islice
from typing import Any

from decklog import Entry
from decklog.core.display import dollars, revealed, took
from decklog.log import Decklog
from decklog.web.rendering import agent_name, as_json, pretty_json, segment
from decklog.web.site import PageView, SiteRequest, command

# Tool calls


_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CALLS, _RESULTS = ("call", "agent.tool"), ("result", "agent.result")
# Names of the output text in results.
_OUTPUTS = ("output", "stdout", "stderr", "text", "content")


@dataclass(frozen=True)
class ShownCall:
    """One call. `end` is its result ("exit 1", "failed"), empty if unknown. `id` pairs a call with its result."""

    command: str
    end: str = ""
    is_failed: bool = False
    seconds: float | None = None
    output: str = ""
    id: str | None = None
    is_result: bool = False

    @property
    def facts(self) -> str:
        return " · ".join(filter(None, (self.end, self.duration)))

    @property
    def duration(self) -> str:
        return "" if self.seconds is None else took(timedelta(seconds=self.seconds))

    @property
    def first_line(self) -> str:
        """The first line of the output that is not blank."""
        return next((line for line in self.output.split("\n") if line.strip()), "")


def parse_call(entry: Any) -> ShownCall | None:
    """Parse a tool call, or the result of one, from an entry; None if the entry is neither."""
    image = entry.payload if isinstance(entry.payload, dict) else {}
    if entry.kind.value != "tool" or not image:
        return None
    is_result = entry.subtype in _RESULTS
    if "arguments" not in image and not is_result and entry.subtype not in _CALLS:
        return None
    result = image.get("result", image if is_result else None)
    end, is_failed = _end(image, result)
    output = (entry.body or "") if is_result else _output(image, result)
    return ShownCall(
        command=str(image.get("tool") or "result") if is_result else _command(entry, image),
        end=end,
        is_failed=is_failed,
        seconds=_seconds(image, result),
        output=plain(output),
        id=image["call"] if isinstance(image.get("call"), str) else None,
        is_result=is_result,
    )


def pair_calls(entries: Sequence[Any]) -> list[tuple[Any, ShownCall]]:
    """Return the calls among entries, newest first, each with its result if another of the entries has it."""
    found = [(entry, call) for entry in entries if (call := parse_call(entry)) is not None]
    results: dict[tuple[str, str | None], ShownCall] = {
        (entry.stream, call.id): call for entry, call in found if call.is_result and call.id
    }
    calls = {(entry.stream, call.id) for entry, call in found if not call.is_result and call.id}
    return [
        (entry, _with(call, results.get((entry.stream, call.id))))
        for entry, call in found
        if not (call.is_result and (entry.stream, call.id) in calls)
    ]


def _with(call: ShownCall, result: ShownCall | None) -> ShownCall:
    if result is None or call.is_result:
        return call
    return ShownCall(call.command, result.end, result.is_failed, result.seconds, result.output, call.id)


def _command(entry: Any, image: dict[str, Any]) -> str:
    given = image.get("arguments")
    line = given.get("command") if isinstance(given, dict) else None
    if isinstance(line, str):
        return line
    if entry.body:
        return str(entry.body)
    return f"{image.get('tool') or ''} {json.dumps(given, ensure_ascii=False)}".strip()


def _end(image: dict[str, Any], result: Any) -> tuple[str, bool]:
    """Return the result of a call, and whether it is a failure."""
    facts = result if isinstance(result, dict) else image
    code, signal = facts.get("exit_code"), facts.get("signal")
    if isinstance(code, int) and not isinstance(code, bool):
        return f"exit {code}", code != 0
    if isinstance(signal, str) and signal:
        return signal, True
    if isinstance(image.get("error"), dict):
        return str(image["error"].get("code") or "error"), True
    outcome = image.get("outcome")
    return (outcome, outcome != "ok") if isinstance(outcome, str) else ("", False)


def _seconds(image: dict[str, Any], result: Any) -> float | None:
    for facts in (image, result):
        value = facts.get("duration_ms") if isinstance(facts, dict) else None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return max(0.0, value / 1000)
    return None


def _output(image: dict[str, Any], result: Any) -> str:
    if isinstance(image.get("error"), dict):
        return str(image["error"].get("message") or "")
    if isinstance(result, str):
        return result
    if not isinstance(result, dict):
        return "" if result is None else json.dumps(result, ensure_ascii=False)
    if isinstance(chunks := result.get("chunks"), list):
        return "".join(str(chunk.get("text", "")) for chunk in chunks if isinstance(chunk, dict))
    return "\n".join(text for name in _OUTPUTS if isinstance(text := result.get(name), str) and text)


def plain(text: str) -> str:
    """Return the text that a terminal would finally show: without colours, and overwritten lines in their last state."""
    if text.isascii() and text.isprintable():
        return text
    lines = _ESCAPES.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


# Rows


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

    @property
    def is_short(self) -> bool:
        """Whether it is shown in full, without unfolding it."""
        return not (self.output or self.rest or "\n" in self.text or len(self.text) > SHORT)

    @property
    def head(self) -> str:
        """The visible line of a long text."""
        first = self.text.partition("\n")[0]
        return f"{first[:SHORT]}…" if len(first) > SHORT else first

    @property
    def below(self) -> str:
        """The rest of a long text, without the visible line."""
        first, _, below = self.text.partition("\n")
        return self.text if len(first) > SHORT else below


def build_row(entry: Any, texts: Mapping[str, Any] | None = None) -> EntryRow:
    """Build the row of an entry. `texts` has the beginnings of texts that entries refer to by digest."""
    who, time = revealed(agent_name(entry.agent or "–")), entry.at.isoformat()[:19]
    given = (entry.seq, time, entry.kind.value, who, revealed(_what(entry)))
    call = parse_call(entry)
    if call is not None:
        rest = max(0, len(call.command) - LONGEST) + max(0, len(call.output) - LONGEST)
        shown = [revealed(text[:LONGEST], tabs=True) for text in (call.command, call.output)]
        return EntryRow(*given, shown[0], rest, call.facts, shown[1], call.is_failed)
    body = entry.body if entry.body is not None else _describe_entry(entry)
    digest = (entry.body_digest or entry.payload_digest) if not body else None
    long = (texts or {}).get(digest or "")
    text = plain(long["head"] if long else body)
    size = len(text) if not long else len(text) + long["bytes"] - len(long["head"].encode())
    return EntryRow(*given, revealed(text[:LONGEST], tabs=True), max(0, size - LONGEST))


def fold_entries(entries: list[Any], texts: Mapping[str, Any] | None = None) -> list[tuple[bool, list[EntryRow]]]:
    """Split entries into ranges that are shown and ranges of changes that are folded."""
    parts: list[tuple[bool, list[EntryRow]]] = []
    for is_change, found in groupby(entries, key=lambda entry: entry.kind.value == "change" and not is_notable(entry)):
        rows = [build_row(entry, texts) for entry in found]
        parts.append((is_change and len(rows) >= _FOLDED, rows))
    return parts


def is_notable(entry: Any) -> bool:
    """Return whether people look for this change: a question, an answer, an end or a failure."""
    return entry.record_table in ("approvals", "runs", "criteria", "checkpoints") or entry.subtype in _OUTCOME_SUBTYPES


_OUTCOME_SUBTYPES = ("finished", "failed", "blocked", "expired", "abandoned")


def _what(entry: Any) -> str:
    if entry.record_table:
        return f"{entry.record_table} {entry.subtype or ''}".strip()
    parts = (entry.subtype, entry.phase and entry.phase.value, entry.confidence and entry.confidence.value)
    return " · ".join(dict.fromkeys(part for part in parts if part))


def _describe_entry(entry: Any) -> str:
    """Describe an entry without text: a charge by its amount, a record by its name."""
    image = entry.payload if isinstance(entry.payload, dict) else {}
    if entry.record_table == "charges" and "model" in image:
        cost = image.get("cost_microdollars")
        return f"{'price unknown' if cost is None else dollars(cost)}, {image['model']}"
    if entry.record_table:
        named = (image.get(name) for name in ("title", "question", "criterion", "goal", "name", "body"))
        return str(next(filter(None, named), entry.record_id))
    return json.dumps(entry.payload, ensure_ascii=False) if entry.payload is not None else ""


def entries_between(log: Decklog, run_id: str, *, after: int, until: int) -> list[Any]:
    """Load the entries after one entry and up to another, oldest first."""
    most = max(0, until - after)
    return [entry for entry in islice(log.journal.tail(run_id, after=after, follow=False), most) if entry.seq <= until]


# One entry


# How many following entries are searched for a call's result, and the text length from which on only JSON has all of it.
_NEAR, _LONGEST_PART = 50, 400_000
_PAGES = {"tasks": "/tasks/{}", "approvals": "/inbox/approval/{}", "runs": "/runs/{}/overview", "reviews": "/reviews/{}"}


def read_entry(request: SiteRequest) -> PageView:
    """Load an entry, the newest entry number, and the output of a tool call."""
    log, stream = request.log, request.path["run_id"]
    entry = log.journal.get(stream, int(request.path["seq"]))
    newest = log.journal.find(stream, limit=1)[0].seq
    # Records without a run have streams that start with `@`.
    run = None if stream.startswith("@") else log.runs.get(stream)
    call = _call(request, entry)
    text = plain(entry.body or "") if call is None or call.command != entry.body else ""
    shown = {
        "entry": entry,
        "run": run,
        "row": build_row(entry),
        "call": call,
        "text": _cut(text),
        "output": _cut(call.output if call else ""),
        "payload": _cut(pretty_json(as_json(entry.payload)) if entry.payload is not None else ""),
        "names": log.overview.names(task_ids=[entry.task_id]) if entry.task_id else {},
        "record_page": _record_page(entry),
        "before": entry.seq - 1 if entry.seq > 1 else None,
        "behind": entry.seq + 1 if entry.seq < newest else None,
        "newest": newest,
    }
    title = f"Entry {entry.seq} · {run.goal if run else stream}"
    return PageView("entry.html", title, command("journal", "get", f"{stream}:{entry.seq}"), entry, shown, place="runs")


def _call(request: SiteRequest, entry: Entry) -> ShownCall | None:
    call = parse_call(entry)
    # Only a call with an id can have its result in another entry.
    if call is None or call.is_result or not call.id:
        return call
    near = entries_between(request.log, entry.stream, after=entry.seq, until=entry.seq + _NEAR)
    return next(call for one, call in pair_calls([entry, *near]) if one.seq == entry.seq)


def _cut(text: str) -> tuple[str, int]:
    """Return the shown part of a text, and how many characters are left out."""
    return revealed(text[:_LONGEST_PART], tabs=True), max(0, len(text) - _LONGEST_PART)


def _record_page(entry: Entry) -> str | None:
    page = _PAGES.get(entry.record_table or "")
    return page.format(segment(entry.record_id)) if page and entry.record_id else None
