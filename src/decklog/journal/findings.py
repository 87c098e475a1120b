"""What a check of a log found, and how it goes on where something can't be read at all."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from decklog.core.errors import Conflict, Damaged, Invalid, NotFound
from decklog.db.base import Database

# Of a check that found nothing wrong: how many records it compared, and what it may not look at.
Sound = tuple[int, list[str]]

MOST_PROBLEMS = 100
# What values that nobody wrote do to code that expects its own. A lost server or a full disk is not among it.
_DAMAGE = (
    *(Damaged, Invalid, NotFound, Conflict),
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError, RecursionError),
)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is not as it was written: an entry by its stream and number, a row by its table, key and column."""

    what: str
    stream: str | None = None
    seq: int | None = None
    table: str | None = None
    record_id: str | None = None
    column: str | None = None


@dataclass(kw_only=True)
class Verification:
    """What was checked, and what was found wrong; `first` is the first bad thing.

    `unchecked` lists what this caller may not look at. With `since_anchor`, only entries behind the anchors were read.
    """

    streams: int = 0
    entries: int = 0
    records: int = 0
    anchored: int = 0
    since_anchor: bool = False
    problems: list[Problem] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems

    @property
    def first(self) -> Problem | None:
        return self.problems[0] if self.problems else None

    def as_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "streams": self.streams,
            "entries": self.entries,
            "records": self.records,
            "anchored": self.anchored,
            "since_anchor": self.since_anchor,
            "problems": [vars(problem) for problem in self.problems],
            "unchecked": self.unchecked,
        }

    def bad(self, what: str, **where: Any) -> None:
        """Add a problem, up to MOST_PROBLEMS."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(what=what, **where))

    def leave_to_archives(self, what: str) -> None:
        """Note that something of archived runs was not checked."""
        note = left_to_archives(what)
        if note not in self.unchecked:
            self.unchecked.append(note)

    def add(self, found: Iterable[Sound]) -> None:
        """Count what was found sound elsewhere."""
        for records, unchecked in found:
            self.records += records
            self.unchecked += unchecked

    @contextmanager
    def checking(self, db: Database, what: str, **where: Any) -> Iterator[None]:
        """Make it a problem, and go on with the next check, when what is looked at can't be read; only inside of `resumable`."""
        try:
            yield
        except _DAMAGE as damage:
            _resume(db)
            self.bad(f"{what} can't be checked: {damage or type(damage).__name__}", **where)


def left_to_archives(what: str) -> str:
    """Return the note that something of archived runs was not checked."""
    return f"{what} of archived runs: decklog verify --archives FOLDER"


@contextmanager
def resumable(db: Database) -> Iterator[None]:
    """Make a read one that can go on after a statement failed, which on PostgreSQL takes the transaction with it."""
    db.end_with_client()
    # One mark for all checks: none of them writes, so there is nothing that going back to it could undo.
    db.rows("savepoint checking", {})
    yield
    db.rows("release checking", {})


@contextmanager
def passing_over(db: Database) -> Iterator[None]:
    """Leave a block where something can't be read, and say nothing of it: what it would have been is found in another way."""
    try:
        yield
    except _DAMAGE:
        _resume(db)


def _resume(db: Database) -> None:
    db.rows("rollback to checking", {})


def object_of(text: object) -> dict[str, Any] | None:
    """Read a JSON object; None when it is anything else."""
    try:
        found = json.loads(text if isinstance(text, str) else "")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
