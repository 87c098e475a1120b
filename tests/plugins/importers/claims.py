"""What every import can be held to: nothing lost, nothing twice, one log whatever the order, and whenever it was killed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, ManualClock
from decklog.importing import writer
from decklog.importing.report import Outcome, Report
from tests.plugins.importers.comparing import records_of, said_in

Take = Callable[..., Report]
# What is made anew by every import, and tells two logs apart that say the same.
_MADE = {"lessons": ("id", "superseded_by"), "topics": ()}


class Killed(BaseException):
    """Ends an import as a signal does: nothing catches it."""


def check_whole(log: Decklog, take: Take, counts: dict[str, int]) -> Report:
    """Hold an import to taking every row once, and a second one to changing nothing."""
    report = take(log)
    heads = log.journal.heads()
    again = take(log)

    assert {table: found["read"] for table, found in report.tables.items()} == counts
    for table, found in report.tables.items():
        assert found["read"] == sum(found[outcome] for outcome in Outcome), table
    assert report.total(Outcome.REFUSED) == 0
    assert report.losses == []
    assert again.total(Outcome.ALREADY) == sum(counts.values()), again.as_dict()
    assert log.journal.heads() == heads
    assert log.journal.verify().ok
    return report


def told_by(log: Decklog) -> tuple[object, object]:
    """Give all that a log says, without the ids that are made anew every time."""
    records = records_of(log)
    for table, names in _MADE.items():
        for record in records.get(table, ()):
            for name in names:
                record.pop(name)
    return records, said_in(log)


@contextmanager
def fresh(folder: Path, name: str) -> Iterator[Decklog]:
    with Decklog.open(folder / f"{name}.db", clock=ManualClock(), durability="relaxed") as log:
        yield log


def check_same_log(folder: Path, one: Take, other: Take) -> None:
    """Hold two imports to the same log."""
    with fresh(folder, "one") as first, fresh(folder, "other") as second:
        one(first)
        other(second)
        assert told_by(first) == told_by(second)


def check_kills(folder: Path, take: Take, monkeypatch: pytest.MonkeyPatch, *, moments: int = 4) -> None:
    """Hold imports that are killed after some batch, and then run again, to the log of one that was not."""
    monkeypatch.setattr(writer, "_MOST_ROWS", 3)
    with fresh(folder, "whole") as log:
        batches = _count(take, log)
        whole = told_by(log)
    assert batches > moments
    for moment in range(1, batches, max(1, batches // moments)):
        with fresh(folder, f"killed-{moment}") as log:
            with pytest.raises(Killed):
                take(log, progress=killer(moment))
            take(log)
            assert told_by(log) == whole, moment


def check_dry_run(log: Decklog, take: Take) -> None:
    """Hold a dry run to telling what would happen, and changing nothing."""
    heads = log.journal.heads()
    report = take(log, dry_run=True)

    assert report.total(Outcome.NEW) > 0
    assert log.journal.heads() == heads
    real = take(log)
    assert {outcome: report.total(outcome) for outcome in Outcome} == {outcome: real.total(outcome) for outcome in Outcome}


def _count(take: Take, log: Decklog) -> int:
    seen: list[str] = []
    take(log, progress=lambda table, *_: seen.append(table))
    return len(seen)


def killer(moment: int) -> Callable[[str, int, int], None]:
    """Give a progress that ends an import after so many batches."""
    left = [moment]

    def progress(_table: str, _done: int, _whole: int) -> None:
        left[0] -= 1
        if not left[0]:
            raise Killed

    return progress


def run_killed(sync: Any, step: str, after: bool) -> None:
    """Let a sync run until it is about to do a step, or has just done it, and end it there."""
    done = getattr(sync, step)

    def killed(*words: Any) -> None:
        if after:
            done(*words)
        raise Killed

    setattr(sync, step, killed)
    with pytest.raises(Killed):
        sync.run()
