"""Learnings: observations from tasks, until somebody adds them to a document or a skill, or dismisses them."""

import re
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Literal

from decklog.core.clock import from_text, to_text
from decklog.core.errors import Conflict, Invalid
from decklog.db.where import Where
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.base import Store
from decklog.stores.results.memory import LearningsImport

DOCUMENT = "GAIA.md"
DISMISSED = "dismissed"

_SKILL = re.compile(r"skill:[A-Za-z0-9._-]+")
_TASK = re.compile(r"[^\]\s\x00-\x1f\x7f]+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|\+00:00)")
_LINE = re.compile(r'(\S+) \[task=([^\]]*)\] Observed: "(.*)" → (\S+)')
_ESCAPED = re.compile(r'[^"\\]|\\["\\]')


class BadLine(Invalid, ValueError):
    """Error for a line, or a field of one, that is not a learning."""


@dataclass(frozen=True)
class LearningLine:
    """The fields of one line, checked on creation."""

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
    """Raise BadLine unless the text is a UTC time or a date."""
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
    """Raise BadLine for a task id that would end its bracket or its line."""
    if not _TASK.fullmatch(text) or not _is_one_line(text):
        raise BadLine(f"{text!r} can't be a task's id here: no blanks, no ] and no line breaks", field="task_id")


def check_observation(text: str) -> None:
    """Raise BadLine for an empty or multi-line observation."""
    if not text.strip():
        raise BadLine("a learning needs an observation", field="observation")
    if not _is_one_line(text):
        raise BadLine("an observation is one line; replace its line breaks by blanks", field="observation")


def check_candidate(text: str) -> None:
    """Raise BadLine for a candidate that is neither the document, nor dismissed, nor a skill."""
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
    """Format a learning as a line, without the line break."""
    escaped = entry.observation.replace("\\", "\\\\").replace('"', '\\"')
    return f'{entry.timestamp} [task={entry.task_id}] Observed: "{escaped}" → {entry.candidate}'


def parse_line(line: str, *, tolerant: bool = False) -> LearningLine | None:
    """Parse a line. Return None for a blank line, and raise `BadLine` for any other invalid one.

    Other tools do not escape quotes and backslashes; `tolerant` accepts such an observation unchanged.
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


def read_all(text: str, *, tolerant: bool = False) -> tuple[list[LearningLine], list[tuple[int, str]]]:
    """Parse a whole log. Also return the numbers and errors of bad lines if `tolerant` is set; else the first one is raised."""
    entries: list[LearningLine] = []
    bad: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            if (entry := parse_line(line, tolerant=tolerant)) is not None:
                entries.append(entry)
        except BadLine as problem:
            if not tolerant:
                raise BadLine(f"line {number}: {problem.message}", **{**problem.details, "line": number}) from None
            bad.append((number, problem.message))
    return entries, bad


class LearningState(StrEnum):
    OPEN = "open"
    PROMOTED = "promoted"
    DISMISSED = "dismissed"


LearningStateLike = LearningState | Literal["open", "promoted", "dismissed"]


@dataclass(frozen=True, kw_only=True)
class Learning(Record):
    """`candidate` is where it should go: a document, `skill:NAME`, or `dismissed`."""

    table = "learnings"
    home = "@memory"

    id: str
    task_id: str
    observation: str
    candidate: str
    state: LearningState = LearningState.OPEN
    noted_at: datetime
    run_id: str | None = None
    key: str | None = None
    decided_at: datetime | None = None
    decided_by: str | None = None
    reason: str | None = None

    def line(self) -> str:
        """The learning as a line of a plain-text log."""
        return format_entry(LearningLine(to_text(self.noted_at), self.task_id, self.observation, self.candidate))


class Learnings(Store):
    """Records observations from tasks, and their use."""

    records = (Learning,)

    @writes
    def note(
        self,
        task_id: str,
        observation: str,
        *,
        candidate: str = DOCUMENT,
        noted_at: datetime | None = None,
        run_id: str | None = None,
        key: str | None = None,
    ) -> Learning:
        """Note an observation, and where it might go: GAIA.md, skill:NAME, or dismissed at once.

        It is one line of text. With a key that is known already, that learning comes back as it is.
        """
        noted = noted_at or self._now()
        clean, _ = self._db.values.bind_text("observation", observation)
        LearningLine(to_text(noted), task_id, clean, candidate)
        gone = candidate == DISMISSED
        return self._find_or_add(
            lambda: self._seek_by(Learning, key=key),
            lambda: self._add(
                Learning,
                id=self._ids.new("learning"),
                task_id=task_id,
                observation=observation,
                candidate=candidate,
                state=LearningState.DISMISSED if gone else LearningState.OPEN,
                noted_at=noted,
                run_id=run_id,
                key=key,
                decided_at=noted if gone else None,
            ),
        )

    @writes
    def promote(self, learning_id: str, *, to: str | None = None, by: str | None = None) -> Learning:
        """Promote a learning to its candidate, or to `to`: GAIA.md or skill:NAME."""
        learning = self._fetch_for_update(Learning, learning_id)
        place = to or learning.candidate
        check_candidate(place)
        if place == DISMISSED:
            raise Invalid("promoting means a document or a skill; use dismiss", field="to")
        if learning.state is LearningState.PROMOTED and learning.candidate == place:
            return learning.mark_already()
        return self._decide(learning, LearningState.PROMOTED, place, by, None)

    @writes
    def dismiss(self, learning_id: str, *, by: str | None = None, reason: str | None = None) -> Learning:
        """Dismiss a learning."""
        learning = self._fetch_for_update(Learning, learning_id)
        if learning.state is LearningState.DISMISSED:
            return learning.mark_already()
        return self._decide(learning, LearningState.DISMISSED, DISMISSED, by, reason)

    def _decide(self, learning: Learning, state: LearningState, place: str, by: str | None, reason: str | None) -> Learning:
        if learning.state is LearningState.PROMOTED:
            raise Conflict(f"learning {learning.id} is in {learning.candidate} already", id=learning.id, state=learning.state)
        return self._update(
            Learning,
            learning.id,
            {"state": state, "candidate": place, "decided_at": self._now(), "decided_by": by, "reason": reason},
            condition="state = :was",
            note=f"{state}: {place}",
            was=learning.state,
        )

    @reads
    def get(self, learning_id: str) -> Learning:
        """Get a learning."""
        return self._fetch(Learning, learning_id)

    @reads
    def find(
        self,
        run_id: str | None = None,
        *,
        state: LearningStateLike | None = None,
        task_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        oldest_first: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Learning]:
        """List learnings, newest first."""
        where = Where(Learning, state=state, task_id=task_id, run_id=run_id)
        where.between("noted_at", since, until)
        return self._page(Learning, where, order=("noted_at", "id"), limit=limit, after=after, descending=not oldest_first)

    @reads
    def lines(self) -> str:
        """Write all learnings as a plain-text log, one line each, oldest first."""
        learnings = self._select(Learning, "select * from learnings order by noted_at, id")
        return "".join(learning.line() + "\n" for learning in learnings)

    @writes
    def take_over(self, text: str, *, tolerant: bool = False) -> LearningsImport:
        """Import a plain-text log; return how many learnings are new, known, or in unreadable lines.

        A bad line is an error with its number, and nothing is imported; `tolerant` imports the rest and lists the bad lines.
        """
        entries, bad = read_all(text, tolerant=tolerant)
        taken = [self._take(entry) for entry in entries]
        known = sum(learning.already for learning in taken)
        return {
            "added": len(taken) - known,
            "known": known,
            "bad": [{"line": number, "problem": problem} for number, problem in bad],
        }

    def _take(self, entry: LearningLine) -> Learning:
        digest = sha256(format_entry(entry).encode()).hexdigest()
        moment = from_text(entry.timestamp)
        return self.note(entry.task_id, entry.observation, candidate=entry.candidate, noted_at=moment, key=f"line:{digest}")
