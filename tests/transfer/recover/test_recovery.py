import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog import Conflict, Decklog, ManualClock
from decklog.core.errors import Invalid, NotFound
from decklog.journal.replication import Replication
from decklog.transfer.recover.recovery import recover
from tests.transfer.conftest import fill
from tests.transfer.recover.damage import PAGE


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A log of some megabytes whose WAL still holds the newest entries."""
    path = tmp_path_factory.mktemp("sound") / "log.db"
    clock = ManualClock()
    with Decklog.open(path, clock=clock) as log:
        fill(log, clock, entries=4000)
        fill(log, clock, entries=2000, run="run_2")
    with Decklog.open(path, clock=clock) as log:
        log.db.read(lambda: log.db.one("select 1", {}))
        for number in range(40):
            clock.advance(seconds=1)
            log.journal.append("run_2", f"late {number}")
            log.tasks.add("run_2", f"late task {number}", task_id=f"late-{number}")
        yield path


@pytest.mark.slow
def test_a_whole_file_is_never_rebuilt(sound: Path, tmp_path: Path) -> None:
    report = recover(str(sound), str(tmp_path / "new.db"))
    assert report.whole
    assert report.to is None
    assert not (tmp_path / "new.db").exists()


def page_with(path: Path, text: bytes) -> int:
    return path.read_bytes().index(text) // PAGE


@pytest.fixture
def small(tmp_path: Path, clock: ManualClock) -> Path:
    path = tmp_path / "small.db"
    with Decklog.open(path, clock=clock) as log:
        fill(log, clock, entries=300)
        fill(log, clock, entries=100, run="run_2")
    return path


def spoil(path: Path, page: int) -> None:
    with open(path, "r+b") as file:
        file.seek(page * PAGE)
        file.write(b"\xa5" * PAGE)


def test_the_report_says_exactly_which_entries_are_missing_and_the_log_says_so_too(small: Path, tmp_path: Path) -> None:
    with Decklog.open(small, read_only=True) as log:
        before = {entry["seq"]: entry for entry in Replication.of(log).export_entries("run_1")}
    while b"entry 150 of the lexer" in small.read_bytes():
        spoil(small, page_with(small, b"entry 150 of the lexer"))
    report = recover(str(small), str(tmp_path / "new.db"))
    told = {stream.stream: stream for stream in report.streams}
    assert told["run_2"].missing == []
    assert told["run_2"].kept == 100
    [[low, high]] = told["run_1"].missing
    assert told["run_1"].kept == low - 1
    assert told["run_1"].renumbered == 300 - high
    with Decklog.open(report.to) as log:
        after = Replication.of(log).export_entries("run_1", limit=1000)
        assert after[: low - 1] == [before[seq] for seq in range(1, low)]
        event = log.journal.get("run_1", low)
        assert event.subtype == "recovered"
        assert event.payload["missing"] == [low, high]
        assert event.payload["first"] == high + 1
        assert event.payload["hashes"] == [before[seq]["hash"] for seq in range(high + 1, 301)]
        assert [entry["body"] for entry in after[low:]] == [before[seq]["body"] for seq in range(high + 1, 301)]


@pytest.mark.slow
def test_records_whose_entries_are_lost_come_from_their_tables(small: Path, tmp_path: Path) -> None:
    with Decklog.open(small, read_only=True) as log:
        tasks, run = log.tasks.find("run_1", limit=100), log.runs.get("run_1")
    # Older versions of a page may lie elsewhere in the file, with entries that are as good.
    while b'"title":"task 3"' in small.read_bytes():
        spoil(small, page_with(small, b'"title":"task 3"'))
    report = recover(str(small), str(tmp_path / "new.db"))
    assert report.streams[0].missing
    assert report.streams[0].from_tables
    with Decklog.open(report.to) as log:
        assert log.tasks.find("run_1", limit=100) == tasks
        assert log.runs.get("run_1") == run
        assert log.journal.verify().ok


@pytest.mark.slow
def test_rows_whose_table_is_lost_come_from_the_journal(small: Path, tmp_path: Path) -> None:
    with Decklog.open(small, read_only=True) as log:
        tasks = log.tasks.find("run_2", limit=100)
        _, roots = log.db.read(lambda: log.db.rows("select rootpage from sqlite_schema where name in ('tasks', 'runs')", {}))
    for (root,) in roots:
        spoil(small, root - 1)
    report = recover(str(small), str(tmp_path / "new.db"))
    assert all(stream.missing == [] for stream in report.streams)
    with Decklog.open(report.to) as log:
        assert log.tasks.find("run_2", limit=100) == tasks


@pytest.mark.slow
def test_blobs_are_found_again(small: Path, tmp_path: Path) -> None:
    spoil(small, 0)
    report = recover(str(small), str(tmp_path / "new.db"))
    assert (report.blobs, report.missing_blobs) == (1, 0)
    assert all(stream.missing == [] for stream in report.streams)


def test_what_holds_no_log_is_said_to_hold_none(tmp_path: Path, small: Path) -> None:
    (tmp_path / "noise").write_bytes(os.urandom(100_000))
    with pytest.raises(NotFound, match="nothing of a log"):
        recover(str(tmp_path / "noise"), str(tmp_path / "new.db"))
    with pytest.raises(NotFound, match="no file"):
        recover(str(tmp_path / "nowhere"), str(tmp_path / "new.db"))
    with pytest.raises(Invalid, match="never over"):
        recover(str(small), str(small))
    (tmp_path / "taken.db").write_text("precious")
    with pytest.raises(Conflict, match="exists already"):
        recover(str(small), str(tmp_path / "taken.db"))
    assert [name for name in os.listdir(tmp_path) if name.startswith(".decklog-recover")] == []


@pytest.mark.slow
@pytest.mark.parametrize("size", [512, 1024, 4096, 8192, 65536])
def test_pages_of_any_size_are_found_without_a_header(tmp_path: Path, small: Path, size: int) -> None:
    import apsw

    connection = apsw.Connection(str(small))
    connection.execute("pragma journal_mode = delete")
    connection.execute(f"pragma page_size = {size}")
    connection.execute("vacuum")
    connection.close()
    content = small.read_bytes()
    small.write_bytes(bytes(100) + content[100:])
    report = recover(str(small), str(tmp_path / "new.db"))
    assert [(stream.kept, stream.missing) for stream in report.streams] == [(300, []), (100, [])]
