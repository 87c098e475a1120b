"""The same source once more: what is here already is asked for together, and looked through for secrets only where it differs."""

from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from decklog import Decklog, ManualClock
from decklog.importing.report import Outcome
from decklog.journal.entry import IMPORTED_COLUMNS
from decklog.plugins.importers.bazinga.importer import BazingaImport
from decklog.transfer.prune import Prune
from tests.conftest import on_both
from tests.plugins.importers.bazinga.bazinga_files import build
from tests.searches import FULL
from tests.statements import statements

# More than one batch, of a thousand rows, and several in full.
MANY = 2300 if FULL else 1200
# A row of the last batch, after which more come.
LATE = MANY - 150
LOGS = "orchestration_logs"
# Longer than what an entry keeps in its row.
LONG = "a line of a long report\n" * 4000


def _made(path: Path, count: int, **first: object) -> Path:
    rows: list[dict[str, object]] = [
        {
            "session_id": f"bazinga_{number % 2 + 1}",
            "timestamp": "2025-11-01 08:00:00",
            "content": f"line {number}",
            "event_payload": "[1, 2]",
        }
        for number in range(count)
    ]
    rows[0] |= first
    build(path, 19, more={LOGS: rows})
    return path


def _taken(log: Decklog, path: Path) -> dict[str, int]:
    return dict(BazingaImport(log, str(path)).run().tables[LOGS])


@pytest.mark.slow
@on_both
def test_a_second_import_asks_for_many_rows_at_once(log: Decklog, tmp_path: Path) -> None:
    path = _made(tmp_path / "in.db", MANY)
    first = _taken(log, path)

    with statements(log) as seen:
        again = _taken(log, path)

    assert again[Outcome.ALREADY] == first[Outcome.NEW]
    assert len(seen) < MANY / 4


@pytest.mark.slow
@on_both
def test_a_row_that_says_something_else_now_is_found_among_many_that_do_not(log: Decklog, tmp_path: Path) -> None:
    path = _made(tmp_path / "in.db", MANY)
    _taken(log, path)
    with apsw.Connection(str(path)) as db:
        db.execute(f"update {LOGS} set content = 'otherwise' where content = 'line {LATE}'")
        db.execute(f"update {LOGS} set event_payload = '[1, 3]' where content = 'line {LATE + 1}'")
        db.execute(f"update {LOGS} set timestamp = '2001-01-01 00:00:00' where content = 'line {LATE + 2}'")

    again = _taken(log, path)

    assert again[Outcome.CHANGED] == 3
    assert len(log.journal.find(subtype=IMPORTED_COLUMNS, limit=100)) >= 3
    assert _taken(log, path)[Outcome.ALREADY] == again["read"]


@pytest.mark.slow
@on_both
def test_a_long_text_and_one_with_a_secret_are_known_again(log: Decklog, tmp_path: Path) -> None:
    secret = "ghp_" + "aB3dE5gH7j" * 3 + "kL9nP2"
    path = _made(tmp_path / "in.db", MANY, content=LONG)
    with apsw.Connection(str(path)) as db:
        db.execute(f"update {LOGS} set content = content || ' by {secret}' where content in ('line 1', 'line {LATE + 1}')")
    first = _taken(log, path)

    again = _taken(log, path)

    assert again[Outcome.ALREADY] == first[Outcome.NEW]
    assert not [entry for entry in log.journal.tail("bazinga_2", follow=False) if secret in (entry.body or "")]


@pytest.mark.slow
@on_both
def test_texts_that_were_dropped_since_do_not_come_back(log: Decklog, clock: ManualClock, tmp_path: Path) -> None:
    path = _made(tmp_path / "in.db", 100, content=LONG)
    first = _taken(log, path)
    clock.advance(days=60)
    assert Prune(log, timedelta(days=30)).run(apply=True).entries > 100
    before = log.journal.verify().entries

    again = _taken(log, path)

    assert again[Outcome.ALREADY] == first[Outcome.NEW]
    assert log.journal.verify().entries == before
