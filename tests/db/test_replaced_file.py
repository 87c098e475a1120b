"""A SQLite file that is removed or replaced under a process: writes are refused and not acknowledged."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.core.errors import FileReplaced


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Decklog.open(tmp_path / "decklog.db") as log:
        log.runs.start("x", run_id="run_1")
    shutil.copy(tmp_path / "decklog.db", tmp_path / "older.db")
    return tmp_path / "decklog.db"


def remove(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    os.replace(path.with_name("older.db"), path)


@pytest.mark.parametrize(("change", "message"), [(remove, "was removed"), (replace, "was replaced by another file")])
def test_write_to_a_removed_file_is_refused(path: Path, change: Callable[[Path], None], message: str) -> None:
    with Decklog.open(path) as log:
        log.journal.append("run_1", "before")
        change(path)
        acts: list[Callable[[], Any]] = [
            lambda: log.journal.append("run_1", "after"),
            lambda: log.submit(log.journal.append, "run_1", "after").result(20),
            lambda: log.transaction().__enter__(),
        ]
        for act in acts:
            with pytest.raises(FileReplaced, match=message):
                act()


@pytest.mark.parametrize("change", [remove, replace])
def test_a_transaction_under_which_the_file_went_is_not_committed(path: Path, change: Callable[[Path], None]) -> None:
    with Decklog.open(path) as log, pytest.raises(FileReplaced), log.transaction():
        log.journal.append("run_1", "inside")
        change(path)


@pytest.mark.slow
@pytest.mark.parametrize("change", [remove, replace])
def test_reader_gets_an_error_too(path: Path, change: Callable[[Path], None]) -> None:
    with Decklog.open(path) as log:
        assert log.journal.verify().ok
        change(path)
        with pytest.raises(FileReplaced):
            for _ in log.journal.tail("run_1", after=1, timeout_seconds=30):
                pass
        with pytest.raises(FileReplaced):
            log.journal.verify()


def test_the_file_in_its_place_is_left_whole(path: Path) -> None:
    log = Decklog.open(path)
    for count in range(200):
        log.journal.append("run_1", f"{count} " + "x" * 500)
    replace(path)
    with Decklog.open(path) as other:
        other.journal.append("run_1", "in the new file")
        with pytest.raises(FileReplaced):
            log.journal.append("run_1", "in the old file")
        log.close()
        other.journal.append("run_1", "and again")
    with Decklog.open(path) as other:
        assert other.journal.verify().ok
        assert [entry.body for entry in other.journal.find("run_1", limit=2)] == ["and again", "in the new file"]
