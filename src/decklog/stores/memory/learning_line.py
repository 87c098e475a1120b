"""The line a learning is in a plain-text log: one line each, so that grep and awk can read it.

    2026-11-15T08:30:00.000000Z [task=T-17] Observed: "the linter runs twice" → skill:faster-checks

A `"` and a `\\` in the observation are written with a `\\` before them; nothing else is escaped, and nothing else is needed.
"""

import re
from dataclasses import dataclass
from datetime import date

from decklog.clock import from_text
from decklog.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DOCUMENT = "GAIA.md"
DISMISSED = "dismissed"

_SKILL = re.compile(r"skill:[A-Za-z0-9._-]+")
_TASK = re.compile(r"[^\]\s\x00-\x1f\x7f]+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|\+00:00)")
_LINE = re.compile(r'(\S+) \[task=([^\]]*)\] Observed: "(.*)" → (\S+)')
_ESCAPED = re.compile(r'[^"\\]|\\["\\]')


class BadLine(Invalid, ValueError):
    """A line, or a field of one, that is not a learning."""


@dataclass(frozen=True)
class LearningLine:
    """What one line says; every field is checked when it is made."""

    timestamp: str
    task_id: str
    observation: str
    candidate: str

    def __post_init__(self) -> None:
        check_timestamp(self.timestamp)
        check_task(self.task_id)
        check_observation(self.observation)
        check_candidate(self.candidate)


def check_timestamp(text: str) -> None:
    """Refuse what is not a time in UTC or a date."""
    try:
        if _DATE.fullmatch(text):
            date.fromisoformat(text)
            return
        if _MOMENT.fullmatch(text):
            from_text(text)
            return
    except ValueError:
        raise BadLine(f"{text!r} is not a day or an hour that exists", field="timestamp") from None
    raise BadLine(f"{text!r} is no time in UTC such as 2026-11-15T08:30:00Z, and no date", field="timestamp")


def check_task(text: str) -> None:
    """Refuse a task's id that would end its bracket or its line."""
    if not _TASK.fullmatch(text) or not _is_one_line(text):
        raise BadLine(f"{text!r} can't be a task's id here: no blanks, no ] and no line breaks", field="task_id")


def check_observation(text: str) -> None:
    """Refuse an observation that is empty or more than one line."""
    if not text.strip():
        raise BadLine("a learning needs an observation", field="observation")
    if not _is_one_line(text):
        raise BadLine("an observation is one line; replace its line breaks by blanks", field="observation")


def check_candidate(text: str) -> None:
    """Refuse what is neither the document, nor dismissed, nor a skill."""
    if text not in (DOCUMENT, DISMISSED) and not _SKILL.fullmatch(text):
        raise BadLine(
            f"{text!r} is no place for a learning; it is {DOCUMENT}, {DISMISSED} or skill:NAME (letters, digits, . _ -)",
            field="candidate",
        )


def _is_one_line(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadLine("a line can't hold half of a surrogate pair") from None
    return text.splitlines() == [text] and "\x00" not in text


def format_entry(entry: LearningLine) -> str:
    """Write a learning as its line, without the line break."""
    escaped = entry.observation.replace("\\", "\\\\").replace('"', '\\"')
    return f'{entry.timestamp} [task={entry.task_id}] Observed: "{escaped}" → {entry.candidate}'


def parse_line(line: str, *, tolerant: bool = False) -> LearningLine | None:
    """Read a line back; a blank one is None, and anything else that is no learning raises `BadLine`.

    Logs from elsewhere leave quotes and backslashes bare; `tolerant` takes such an observation as it stands.
    """
    line = line.removesuffix("\n").removesuffix("\r")
    if not line.strip():
        return None
    parts = _LINE.fullmatch(line)
    if parts is None:
        raise BadLine('not a learning; it goes: TIME [task=ID] Observed: "TEXT" → CANDIDATE')
    timestamp, task_id, written, candidate = parts.groups()
    return LearningLine(timestamp, task_id, _observation(written, tolerant), candidate)


def _observation(written: str, tolerant: bool) -> str:
    pieces = _ESCAPED.findall(written)
    if "".join(pieces) == written:
        return "".join(piece[-1] for piece in pieces)
    if tolerant:
        return written
    raise BadLine('a " or a \\ inside the observation has no \\ before it', field="observation")


def iter_entries(lines: "Iterable[str]", *, tolerant: bool = False) -> "Iterator[LearningLine]":
    """Read lines one by one; the error for a bad one names its number. `tolerant` leaves bad lines out instead."""
    for number, line in enumerate(lines, 1):
        try:
            entry = parse_line(line, tolerant=tolerant)
        except BadLine as problem:
            if tolerant:
                continue
            raise BadLine(f"line {number}: {problem.message}", **{**problem.details, "line": number}) from None
        if entry is not None:
            yield entry


def read_all(text: str, *, tolerant: bool = False) -> "tuple[list[LearningLine], list[tuple[int, str]]]":
    """Read a whole log; also list the numbers of bad lines with what is wrong, which only a tolerant reading has."""
    entries, bad = [], []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            entry = parse_line(line, tolerant=tolerant)
        except BadLine as problem:
            if not tolerant:
                raise BadLine(f"line {number}: {problem.message}", **{**problem.details, "line": number}) from None
            bad.append((number, problem.message))
        else:
            entries += [entry] if entry else []
    return entries, bad
