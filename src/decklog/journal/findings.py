"""Results of checks of a log. A check continues after data that can't be read."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from decklog.core.errors import Conflict, Damaged, Invalid, NotFound
from decklog.db.base import Database

# The result of a check without problems: the number of compared records, and what it could not check.
Sound = tuple[int, list[str]]

MOST_PROBLEMS = 100
# Errors that damaged values cause. A lost server or a full disk is not one of them.
_DAMAGE = (
    *(Damaged, Invalid, NotFound, Conflict),
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError, RecursionError),
)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem, with its entry (stream and number) or its row (table, key and column)."""

    what: str
    stream: str | None = None
    seq: int | None = None
    table: str | None = None
    record_id: str | None = None
    column: str | None = None


@dataclass(kw_only=True)
class Verification:
    """The number of checked items and the problems; `first` is the first problem.

    `unchecked` lists what this caller may not read. With `since_anchor`, only entries after the anchors were read.
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
        """Record that some data of archived runs was not checked."""
        note = archive_note(what)
        if note not in self.unchecked:
            self.unchecked.append(note)

    def add(self, found: Iterable[Sound]) -> None:
        """Add the results of checks without problems."""
        for records, unchecked in found:
            self.records += records
            self.unchecked += unchecked

    @contextmanager
    def checking(self, db: Database, what: str, **where: Any) -> Iterator[None]:
        """Report data that can't be read as a problem, and continue after the block. Only inside `resumable`."""
        try:
            yield
        except _DAMAGE as damage:
            _resume(db)
            self.bad(f"{what} can't be checked: {damage or type(damage).__name__}", **where)


def archive_note(what: str) -> str:
    """Return the note that some data of archived runs was not checked."""
    return f"{what} of archived runs: decklog verify --archives FOLDER"


@contextmanager
def resumable(db: Database) -> Iterator[None]:
    """Let a read continue after a failed statement, which would otherwise end the transaction on PostgreSQL."""
    db.end_with_client()
    # One savepoint serves all checks, because none of them writes.
    db.rows("savepoint checking", {})
    yield
    db.rows("release checking", {})


@contextmanager
def ignore_damage(db: Database) -> Iterator[None]:
    """Leave the block at data that can't be read, without reporting it. The caller has another way."""
    try:
        yield
    except _DAMAGE:
        _resume(db)


def _resume(db: Database) -> None:
    db.rows("rollback to checking", {})


def parse_object(text: object) -> dict[str, Any] | None:
    """Parse a JSON object; return None for anything else."""
    try:
        found = json.loads(text if isinstance(text, str) else "")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
