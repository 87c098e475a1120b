"""Long commands show how far they are on a terminal; `doctor` stops checking a large file after some seconds."""

import itertools
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from decklog import Decklog
from decklog.cli import run, terminal

# Larger than a file whose pages are all checked.
LARGE = 205_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Decklog.open(tmp_path / "log.db", durability="relaxed") as log:
        log.runs.start("x", run_id="run_1")
        log.journal.append_many([{"stream": "run_1", "body": f"{n} " * 50, "kind": "tool"} for n in range(2000)])
    return tmp_path / "log.db"


@pytest.fixture
def large(path: Path) -> Path:
    with Decklog.open(path, durability="relaxed") as log:
        sql = f"""
            with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < {LARGE // 1900})
            insert into blobs (digest, size, bytes) select n, 1900, zeroblob(1900) from numbers
        """
        log.db.write(lambda: log.db.count(sql, {}))
    assert path.stat().st_size > LARGE
    return path


def shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, path: Path, *words: str) -> str:
    """Run a command with a pseudo-terminal as stderr and a clock that gains 0.6 seconds whenever it is read."""
    controller, device = os.openpty()
    os.set_blocking(controller, False)
    seconds = itertools.count(0, 0.6)
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    with open(device, "w", encoding="utf-8") as stderr, monkeypatch.context() as patch:
        patch.setattr("sys.stderr", stderr)
        assert run(["--db", str(path), *words]) == 0
        written = os.read(controller, 65536).decode()
    os.close(controller)
    return written


@pytest.mark.parametrize(
    ("words", "step"),
    [(["verify", "--full"], "checking what belongs to them"), (["prune", "--older-than", "0m", "--apply"], "pruning entries")],
    ids=["verify", "prune"],
)
def test_a_terminal_shows_the_rate_and_the_time_left(
    path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], step: str
) -> None:
    written = shown_on_a_terminal(monkeypatch, path, *words)
    assert re.search(rf"{step}: [\d,]+ of [\d,]+ \(\d+ %\)  [\d,]+/s  \d+ s left", written), written


@pytest.mark.slow
def test_doctor_shows_the_tables_of_a_large_file_and_the_time_left(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = shown_on_a_terminal(monkeypatch, large, "doctor")
    assert re.search(r"checking tables: \d+ of \d+ \(\d+ %\)  \d+/s  \d+ s left", written), written


def test_nothing_is_shown_where_nobody_looks(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["--db", str(path), "verify"]) == 0
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_pages_that_are_not_checked_in_time_are_named_by_their_table(large: Path) -> None:
    with Decklog.open(large) as log:
        wrong, left = log.db.check_pages(10, 0.0, lambda *_: None)
        assert wrong == []
        assert "blobs" in left
        assert "streams" not in left
        assert log.db.check_pages(10, None, lambda *_: None) == ([], [])


@pytest.mark.slow
def test_a_damaged_table_of_a_large_file_is_found_although_another_takes_too_long(large: Path) -> None:
    with Decklog.open(large, durability="relaxed") as log:
        log.db.write(lambda: log.db.count("update runs set goal = 'unmistakable zyzzyva'", {}))
    with open(large, "r+b") as file:
        page = file.read(4_000_000).index(b"unmistakable zyzzyva") // 4096
        file.seek(page * 4096)
        file.write(b"\xa5" * 4096)
    with Decklog.open(large, read_only=True) as log:
        wrong, left = log.db.check_pages(10, 0.0, lambda *_: None)
    assert wrong
    assert "blobs" in left
