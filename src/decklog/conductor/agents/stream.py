"""Parse the output of an agent: lines of the supervisor's files, their events, reset times, and transcripts."""

import glob
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from decklog.agents.programs import program
from decklog.agents.programs.base import TokenSums, TranscriptInput, add_tokens
from decklog.agents.programs.claude import transcripts_below
from decklog.agents.texts import as_time, storable_value
from decklog.agents.transcripts import lines_of
from decklog.conductor.agents.description import Description, ErrorRule, EventRule
from decklog.core.display import DOLLAR
from decklog.guard.shell.spool import HEAD

LONGEST_LINE = 1024 * 1024
FIGURES = ("input_tokens", "cache_read_tokens", "cache_create_tokens", "output_tokens")
# The ledger takes no larger figures.
MOST_TOKENS, MOST_DOLLARS = 10**12, 10**6
_LONGEST_NAME = 200
_MOST_QUESTIONS = 10**6
# Names in `take` that begin like this are arguments of a call.
INPUT = "input/"
# No quota lasts longer.
_LONGEST_LIMIT = timedelta(days=32)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_SECONDS = re.compile(r"(?<!\d)1\d{9}(?!\d)")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b", re.IGNORECASE)
_SPAN_AHEAD = re.compile(r"\b(?:in|after)\s+((?:\d+(?:\.\d+)?\s*[a-z]+[,\s]*(?:and\s+)?)+)", re.IGNORECASE)
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


class Follower:
    """Reads one output stream of a command from its start, each byte once, even while it is written."""

    def __init__(self, folder: Path, stream: str = "stdout") -> None:
        self._path = folder / stream
        self._at = 0
        self._place = 0
        self._line = _Line()
        # When the end of the last line arrived, in nanoseconds since 1970.
        self.arrived: int | None = None

    def lines(self) -> Iterator[str]:
        """Yield the new lines since the last call."""
        for item in self._items():
            yield from self._line.take(item)

    def rest(self) -> Iterator[str]:
        """Yield the remaining output after the end of the program."""
        yield from self.lines()
        yield from self._line.end()

    def _items(self) -> Iterator[bytes]:
        """Yield new output from the file of the beginning, and after its end from the two files of the end."""
        content = _tail_of(Path(f"{self._path}.head"), self._at)
        at = 0
        for self.arrived, place, data, end in _items(content):
            at, self._place = end, place + len(data)
            yield data
        self._at += at
        later = [item for name in ("tail0", "tail1") for item in _items(_tail_of(Path(f"{self._path}.{name}"), 0))]
        for arrived, place, data, _ in sorted(later):
            if place + len(data) <= self._place:
                continue
            self.arrived = arrived
            if place > self._place:
                yield f"\n[… {place - self._place} bytes were not kept …]\n".encode()
            yield data[max(self._place - place, 0) :]
            self._place = place + len(data)


def _tail_of(path: Path, at: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(at)
            return file.read()
    except FileNotFoundError:
        return b""


def _items(content: bytes) -> Iterator[tuple[int, int, bytes, int]]:
    at = 0
    while at + HEAD.size <= len(content):
        arrived, place, size = HEAD.unpack_from(content, at)
        end = at + HEAD.size + size
        if end > len(content):
            return
        yield arrived, place, content[at + HEAD.size : end], end
        at = end


class _Line:
    """Joins parts to lines. Too long lines are cut, and a digest of the whole line is added."""

    def __init__(self) -> None:
        self._kept = b""
        self._size = 0
        self._digest = hashlib.sha256()

    def take(self, item: bytes) -> Iterator[str]:
        *whole, rest = item.split(b"\n")
        for part in whole:
            self._add(part)
            yield self._done()
        self._add(rest)

    def end(self) -> Iterator[str]:
        if self._size:
            yield self._done()

    def _add(self, part: bytes) -> None:
        self._kept += part[: LONGEST_LINE - len(self._kept)]
        self._size += len(part)
        self._digest.update(part)

    def _done(self) -> str:
        text = self._kept.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
        if self._size > len(self._kept):
            text += f" [… of {self._size} bytes, sha256 {self._digest.hexdigest()}]"
        self._kept, self._size, self._digest = b"", 0, hashlib.sha256()
        return text


@dataclass(frozen=True)
class StreamEvent:
    """One event in an agent's output. `problem` describes the part that could not be parsed.

    `usage` is the spending since the event before it: empty if there is none, None if the event does not report it.
    """

    kind: str
    taken: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, int] | None = None
    error_class: str | None = None
    problem: str | None = None
    # When its line came, in nanoseconds since 1970.
    arrived: int | None = None

    @property
    def is_recorded(self) -> bool:
        return self.kind != "noise" or self.problem is not None

    @property
    def is_progress(self) -> bool:
        return self.kind != "noise"


class StreamReader:
    """Parses the lines of an agent to events, by its description."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._totals: dict[str, int] = {}
        # None is the line itself.
        self._lists = dict.fromkeys(rule.each for rule in description.events)
        self._held: StreamEvent | None = None

    def read(self, line: str, arrived: int | None = None) -> list[StreamEvent]:
        """Return the events of a line. A text in several parts is returned with the next other event."""
        return self._joined([replace(event, arrived=arrived) for event in self._read(line)])

    def rest(self) -> list[StreamEvent]:
        """Return a text whose last part was the last line."""
        held, self._held = self._held, None
        return [held] if held is not None else []

    def _joined(self, events: list[StreamEvent]) -> list[StreamEvent]:
        done = []
        for event in events:
            if event.kind == "text" and event.taken.get("delta"):
                before = "" if self._held is None else self._held.taken.get("text", "")
                self._held = replace(event, taken={**event.taken, "text": f"{before}{event.taken.get('text', '')}"})
            elif event.kind == "noise":
                done.append(event)
            else:
                done += [*self.rest(), event]
        return done

    def _read(self, line: str) -> list[StreamEvent]:
        if not line.strip():
            return []
        if self._description.stream == "none":
            return [StreamEvent("text", {"text": line})]
        try:
            # Only values that the log can store.
            data = storable_value(json.loads(line))
        except ValueError:
            # Programs print escape codes and warnings between lines of JSON. A line that is too long was cut.
            problem = f"a line is too long to be read: {line[:200]}" if line.startswith("{") and line.endswith("]") else None
            return [StreamEvent("noise", {"text": line}, problem=problem)]
        except RecursionError:
            problem = f"a line of {len(line)} characters is nested too deeply to be read: {line[:40]}"
            return [StreamEvent("noise", problem=problem)]
        found = [
            event
            for pointer in self._lists
            for document in _documents(data, pointer)
            for event in self._events(document, pointer)
        ]
        return found or [StreamEvent("noise")]

    def _events(self, document: object, pointer: str | None) -> Iterator[StreamEvent]:
        """Yield the event of a line, or of an element of a list in it, by the first rule that matches."""
        rules = (one for one in self._description.events if one.each == pointer)
        rule = next((one for one in rules if all(at(document, path) == value for path, value in one.when.items())), None)
        if rule is None:
            return
        taken = {name: value for name, path in rule.take.items() if (value := at(document, path)) is not None}
        problem = _remove_unusable(rule.kind, taken)
        if rule.kind == "ask" and problem is not None:
            yield StreamEvent("noise", problem=problem)
        else:
            error_class = self.class_of(taken) if rule.kind == "error" or taken.get("is_error") else None
            yield StreamEvent(rule.kind, taken, self._usage(rule, taken), error_class, problem)

    def _usage(self, rule: EventRule, taken: Mapping[str, Any]) -> dict[str, int] | None:
        figures = _tokens(taken, cached_within_input=rule.cached_within_input)
        if "cost_usd" in taken:
            figures["cost_microdollars"] = round(float(taken["cost_usd"]) * DOLLAR)
        if not figures:
            return None
        is_priced = bool(figures.get("cost_microdollars"))
        if rule.total:
            before, self._totals = self._totals, {**self._totals, **figures}
            figures = {name: max(0, value - before.get(name, 0)) for name, value in figures.items()}
        # Zeros: no model has answered.
        if not any(figures.values()):
            return {}
        # A program that reports tokens and no cost does not know the price.
        return figures if is_priced else {name: value for name, value in figures.items() if name != "cost_microdollars"}

    def class_of(self, taken: Mapping[str, Any]) -> str | None:
        """Return the class of an error; None if it has none."""
        return next((rule.error_class for rule in self._description.errors if _is_error(rule, taken)), None)


def _tokens(taken: Mapping[str, Any], *, cached_within_input: bool) -> dict[str, int]:
    """Return the four kinds of tokens. The rest of a total is reasoning, which costs as much as output."""
    figures = {name: int(taken[name]) for name in FIGURES if name in taken}
    cached = figures.get("cache_read_tokens", 0) + figures.get("cache_create_tokens", 0)
    if cached_within_input and "input_tokens" in figures:
        figures["input_tokens"] = max(0, figures["input_tokens"] - cached)
    if "total_tokens" in taken and "output_tokens" in figures:
        rest = int(taken["total_tokens"]) - figures.get("input_tokens", 0) - cached
        figures["output_tokens"] = max(figures["output_tokens"], rest)
    return figures


def at(data: object, pointer: str) -> Any:
    """Return a value in JSON by a pointer such as /usage/input_tokens; None if there is none."""
    for name in pointer.split("/")[1:]:
        if isinstance(data, dict):
            data = data.get(name)
        elif isinstance(data, list) and name.isdigit() and int(name) < len(data):
            data = data[int(name)]
        else:
            return None
    return data


def _documents(data: object, pointer: str | None) -> Iterator[object]:
    """Yield a line, or a copy of it for each element of a list in it, with the element at `/item`."""
    if pointer is None:
        yield data
    elif isinstance(data, dict) and isinstance(found := at(data, pointer), list):
        yield from ({**data, "item": item} for item in found)


def _is_error(rule: ErrorRule, taken: Mapping[str, Any]) -> bool:
    if rule.text is not None:
        return rule.text.search(str(taken.get("text") or "")) is not None
    return taken.get("status") in rule.status or taken.get("reason") in rule.reason


def _remove_unusable(kind: str, taken: dict[str, Any]) -> str | None:
    """Remove impossible values from the fields of a line; return their description, None if there are none."""
    most = {**dict.fromkeys((*FIGURES, "total_tokens"), MOST_TOKENS), "cost_usd": MOST_DOLLARS}
    unusable = [name for name, limit in most.items() if name in taken and not _is_number(taken[name], limit)]
    unusable += [name for name in ("session", "model") if name in taken and not is_name(taken[name])]
    if kind == "ask" and not (_is_number(taken.get("number"), _MOST_QUESTIONS) and isinstance(taken.get("about"), dict)):
        unusable += ["number or about"]
    values = [f"{name} = {str(taken.pop(name, None))[:40]}" for name in unusable]
    return f"not used, since it can't be right: {', '.join(values)}" if values else None


def _is_number(value: object, most: int) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= most


def is_name(value: object) -> bool:
    """Check whether a value can be the name of a session or a model."""
    return isinstance(value, str) and len(value) <= _LONGEST_NAME


# Reset times


def parse_reset_time(value: object, now: datetime) -> datetime | None:
    """Parse the end of a rate limit from a time, a duration or seconds since 1970; None if it is past or invalid."""
    try:
        found = _moment(value, now)
    except OverflowError:
        # A span of a million years.
        return None
    return found if found is not None and now < found <= now + _LONGEST_LIMIT else None


def _moment(value: object, now: datetime) -> datetime | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # A small number is a span, a large one a moment.
        return now + timedelta(seconds=value) if value < 10**9 else datetime.fromtimestamp(min(value, 4e9), UTC)
    text = str(value or "")
    if (known := _MOMENT.search(text)) is not None:
        return as_time(known[0])
    if (known := _SECONDS.search(text)) is not None:
        return datetime.fromtimestamp(int(known[0]), UTC)
    ahead = _SPAN_AHEAD.search(text)
    parts = _SPAN.findall(ahead[1]) if ahead is not None else []
    return now + timedelta(seconds=sum(float(number) * _UNITS[unit[0].lower()] for number, unit in parts)) if parts else None


# Transcripts that programs keep in their homes


# Of a transcript, so much is searched for its model.
_LONGEST_SEARCHED = 8 * LONGEST_LINE


def model_in_transcript(home: Path, transcript: Mapping[str, str], session: str) -> str | None:
    """Return the first model that a session's transcript names; None if there is none."""
    for path in _files(home, transcript, session) if "model" in transcript else ():
        with path.open("rb") as file:
            for line in file.read(_LONGEST_SEARCHED).splitlines():
                model = at(_json(line), transcript["model"])
                if model and is_name(model):
                    return str(model)
    return None


def tokens_in_transcript(home: Path, transcript: Mapping[str, str], session: str) -> TokenSums:
    """Return the tokens of a session and its sub-agents by model; empty if there is no readable transcript."""
    found: TokenSums = {}
    if "program" not in transcript:
        return found
    for path in _files(home, transcript, session):
        for one, agent_id in ((str(path), None), *transcripts_below(str(path))):
            for model, tokens in _transcript_tokens(transcript["program"], one, agent_id).items():
                add_tokens(found, model, [min(count, MOST_TOKENS) for count in tokens])
    return found


def _transcript_tokens(name: str, path: str, agent_id: str | None) -> TokenSums:
    reader = program(name).reader(TranscriptInput(path=path, agent_id=agent_id))
    for line, _ in lines_of(path):
        for _event in reader.events(line):
            pass
    for _event in reader.pending_events():
        pass
    return reader.answers


def _files(home: Path, transcript: Mapping[str, str], session: str) -> Iterator[Path]:
    pattern = transcript["file"].removeprefix("~/").replace("{session}", glob.escape(session))
    # An agent may write to its home.
    yield from (path for path in sorted(home.glob(pattern)) if path.is_file() and not path.is_symlink())


def _json(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
