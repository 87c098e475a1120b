"""Checks of the database reject invalid rows of tasks and entries."""

import pytest

from decklog import Decklog
from decklog.core.errors import DecklogError

TASKS = {
    "state": "state = 'gone'",
    "outcome": "outcome = 'great'",
    "a worker without a lease": "state = 'running', worker = 'ada', leased_until = null",
    "a lease without a worker": "state = 'running', worker = null, leased_until = '2026'",
    "a worker of what does not run": "worker = 'ada'",
    "a lease of what does not run": "leased_until = '2026'",
    "priority below": "priority = -1",
    "priority above": "priority = 101",
    "open_dependencies": "open_dependencies = -1",
    "max_attempts": "max_attempts = 0",
    "attempts": "attempts = -1",
    "failures": "failures = -1",
    "fence": "fence = -1",
    "blocker_repeats": "blocker_repeats = -1",
}
ENTRIES = {
    "seq": {"pos": 2**32, "seq": 0},
    "seq of another place": {"seq": 8},
    "kind": {"kind": "poem"},
    "phase": {"phase": "later"},
    "confidence": {"confidence": "none"},
    "redacted": {"redacted": 2},
    "a change of nothing": {"kind": "change"},
    "a change without a table": {"kind": "change", "record_id": "x"},
    "a record that did not change": {"record_table": "tasks", "record_id": "x"},
}
SOUND = {
    "pos": 2**32 + 9,
    "stream": "run_1",
    "seq": 9,
    "at": "2026",
    "hash": "00" * 32,
    "kind": "event",
    "redacted": 0,
    "body": "said",
}


@pytest.mark.parametrize("changes", TASKS.values(), ids=TASKS)
def test_check_refuses_an_invalid_task(log: Decklog, changes: str) -> None:
    log.runs.start("Make the parser faster", run_id="run_1")
    log.tasks.add("run_1", "Measure", task_id="measure")
    with pytest.raises(DecklogError, match=r"(?i)check|constraint"):
        log.db.write(lambda: log.db.count(f"update tasks set {changes}", {}))


@pytest.mark.parametrize("wrong", ENTRIES.values(), ids=ENTRIES)
def test_check_refuses_an_invalid_entry(log: Decklog, wrong: dict[str, object]) -> None:
    log.runs.start("Make the parser faster", run_id="run_1")
    with pytest.raises(DecklogError, match=r"(?i)check|constraint"):
        _insert(log, {**SOUND, **wrong})


def test_check_accepts_valid_entries(log: Decklog) -> None:
    log.runs.start("Make the parser faster", run_id="run_1")
    for place, more in enumerate(({}, {"phase": "risks", "confidence": "low"}), 10):
        _insert(log, {**SOUND, "pos": 2**32 + place, "seq": place, **more})
    assert log.db.read(lambda: log.db.one("select count(*) from entries where seq in (10, 11)", {})) == (2,)


def _insert(log: Decklog, values: dict[str, object]) -> None:
    names = tuple(values)
    log.db.write(lambda: log.db.insert("entries", names, [tuple(values.values())]))
