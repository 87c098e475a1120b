"""A secret sent through every operation is nowhere in the database, and all errors are Decklog's."""

from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, DecklogError
from decklog.records.operations import Operation
from tests.registry import arguments, operations
from tests.searches import FULL
from tests.stores.claiming import claimed

CORE = "A1b2C3d4E5f6" * 3
CANARY = f"ghp_{CORE}"  # shaped like a token of GitHub's, and none


def known_ids(log: Decklog) -> dict[str, Any]:
    """Make a run and a claimed task, so that operations get as far as they can."""
    run_id = log.runs.start("a place for canaries", run_id="run_1").id
    log.tasks.add(run_id, "work", task_id="task_1")
    claim = claimed(log, run_id, worker="w", lease_seconds=10_000)
    return {"run_id": run_id, "stream": run_id, "task_id": "task_1", "fence": claim.task.fence}


def send(log: Decklog, store: str, operation: Operation, known: dict[str, Any]) -> list[str]:
    """Call an operation with the canary in every text; list errors that are not Decklog's own."""
    strange = []
    for given in arguments(operation, f"see {CANARY} here", known):
        try:
            getattr(getattr(log, store), operation.name)(**given)
        except DecklogError:
            continue
        except Exception as problem:  # noqa: BLE001
            strange.append(f"{store}.{operation.name}({given}): {problem!r}")
    return strange


def everything_in(log: Decklog, target: str) -> bytes:
    if log.db.engine == "sqlite":
        return b"".join(path.read_bytes() for path in Path(target).parent.iterdir() if path.is_file())
    names = log.db.read(
        lambda: log.db.rows("select table_name from information_schema.tables where table_schema = 'public'", {})
    )[1]
    texts = [log.db.read(lambda name=name: log.db.rows(f'select t::text from "{name}" t', {}))[1] for (name,) in names]
    return "".join(str(rows) for rows in texts).encode()


@pytest.mark.slow
def test_a_secret_sent_through_every_operation_is_nowhere_in_the_database(log: Decklog, target: str) -> None:
    known = known_ids(log)
    strange = []
    with log.acting(f"agent {CANARY}", agent_id=CANARY, group_id=CANARY):
        for store, operation in operations():
            if operation.writes:
                strange += send(log, store, operation, known)
                strange += send(log, store, operation, {})
    assert strange == []
    content = everything_in(log, target)
    assert b"a place for canaries" in content
    assert b"redacted:" in content
    places = content.count(CORE.encode())
    assert places == 0, content[max(0, content.find(CORE.encode()) - 300) :][:400]
    assert log.journal.verify().ok


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some operations write a file that they are given the name of; any text is one."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


NASTY = [
    "",
    " ",
    "\x00",
    "\ud800",
    "x" * 300,
    "'; drop table entries; --",
    "%s %(x)s :name ?",
    "💥\u202e\u0007",
    "-1",
    "null",
    "{}",
    "[]",
]
# What only the server's own driver could stumble over; the rest is checked before any engine sees it.
NASTY_FOR_POSTGRES = ["\x00", "\ud800", "%s %(x)s :name ?"]
TEXTS = [("sqlite", text) for text in NASTY] + [("postgres", text) for text in NASTY_FOR_POSTGRES]


@pytest.mark.slow
@pytest.mark.parametrize(("target", "text"), TEXTS, ids=lambda part: ascii(part)[:30], indirect=["target"])
def test_no_text_makes_an_operation_fail_in_a_way_of_its_own(log: Decklog, text: str) -> None:
    known = known_ids(log)
    strange = []
    for number, (store, operation) in enumerate(operations()):
        # Half of the texts go with existing ids, and half as ids; in the full run both.
        turn = (number + NASTY.index(text)) % 2
        for ids in (known, {}) if FULL else ((known, {})[turn],):
            for given in arguments(operation, text, ids):
                given.pop("follow", None)
                try:
                    result = getattr(getattr(log, store), operation.name)(**given, **_ending(operation))
                    if hasattr(result, "__next__"):
                        list(result)
                except DecklogError:
                    continue
                except Exception as problem:  # noqa: BLE001
                    strange.append(f"{store}.{operation.name}({given}): {problem!r}")
    assert strange == []
    assert log.journal.verify().ok


def _ending(operation: Operation) -> dict[str, Any]:
    """Keep a tail from waiting for ever."""
    return {"follow": False} if operation.name == "tail" else {}
