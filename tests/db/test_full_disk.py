"""Reading works where nothing can be written: on a full disk and on a read-only one."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.core.errors import Denied, DiskFull, ReadOnly

MIB = 1024 * 1024
KILLED = """
import os, signal, sys
from decklog import Decklog
log = Decklog.open(sys.argv[1])
log.journal.append("run_1", "only in the write-ahead log")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def make(path: Path) -> Path:
    with Decklog.open(path) as log:
        log.runs.start("a goal", run_id="run_1")
    return path


def die_with_commits_in_wal(path: Path) -> None:
    """Have a writer killed, which leaves its commit in the write-ahead log."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL


def make_read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)


def fill(disk: Path) -> None:
    with open(disk / "filler", "wb", buffering=0) as file:
        for size in (MIB, 4096, 1):
            try:
                while file.write(b"0" * size) == size:
                    pass
            except OSError:
                pass
    assert os.statvfs(disk).f_bavail == 0


def cli(path: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "decklog", "--db", str(path), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


READS = (["now"], ["runs", "find"], ["verify"], ["journal", "find"], ["journal", "search", "goal"])


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [fill, make_read_only], ids=["full", "read-only"])
@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_commands_that_read_work_on_a_full_or_read_only_disk(disk: Path, words: list[str], spoil: Callable[[Path], None]) -> None:
    path = make(disk / "decklog.db")
    (disk / "decklog.db-lock").unlink()
    spoil(disk)
    found = cli(path, *words)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.slow
def test_doctor_names_a_full_disk(disk: Path) -> None:
    path = make(disk / "decklog.db")
    fill(disk)
    found = cli(path, "doctor")
    assert found.returncode == 1
    assert "the disk is full" in found.stdout


@pytest.mark.slow
def test_a_full_disk_hides_no_commit_of_a_killed_process(disk: Path) -> None:
    path = make(disk / "decklog.db")
    die_with_commits_in_wal(path)
    (disk / "decklog.db-shm").unlink()
    fill(disk)
    with Decklog.open(path) as log:
        assert next(entry.body for entry in log.journal.find(stream="run_1")) == "only in the write-ahead log"


def test_write_on_a_full_disk_is_refused_until_there_is_room(disk: Path) -> None:
    path = make(disk / "decklog.db")
    fill(disk)
    with Decklog.open(path) as log:
        assert [run.id for run in log.runs.find()] == ["run_1"]
        with pytest.raises(DiskFull):
            log.journal.append("run_1", "no room")
        (disk / "filler").unlink()
        log.journal.append("run_1", "room again")
        assert next(entry.body for entry in log.journal.find(stream="run_1")) == "room again"
        assert log.journal.verify().ok


def test_a_log_with_a_write_ahead_log_is_read_on_a_read_only_disk(disk: Path) -> None:
    path = make(disk / "decklog.db")
    die_with_commits_in_wal(path)
    make_read_only(disk)
    with Decklog.open(path) as log:
        assert next(entry.body for entry in log.journal.find(stream="run_1")) == "only in the write-ahead log"
        with pytest.raises(ReadOnly):
            log.journal.append("run_1", "x")


@pytest.mark.slow
@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_a_write_ahead_log_without_shared_memory_is_read_on_a_read_only_disk(disk: Path, words: list[str]) -> None:
    path = make(disk / "decklog.db")
    die_with_commits_in_wal(path)
    (disk / "decklog.db-shm").unlink()
    make_read_only(disk)
    found = cli(path, *words)
    assert (found.returncode, found.stderr) == (0, "")
    if words == ["journal", "find"]:
        assert "only in the write-ahead log" in found.stdout


@pytest.fixture
def guest(another_folder: Path) -> Iterator[None]:
    """Run as a user who is not root, to whom permissions apply."""
    if os.getuid():
        yield
        return
    os.setresuid(65534, 65534, 0)
    yield
    os.setresuid(0, 0, 0)


@pytest.fixture
def another_folder() -> Iterator[Path]:
    """A log with a write-ahead log and no shared memory file, in a folder where others may only read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = make(folder / "decklog.db")
        die_with_commits_in_wal(path)
        (folder / "decklog.db-shm").unlink()
        for file in folder.iterdir():
            file.chmod(0o444)
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o700)


@pytest.mark.usefixtures("guest")
def test_missing_permission_for_shared_memory_has_a_hint(another_folder: Path) -> None:
    with pytest.raises(Denied, match="has commits in its write-ahead log") as refusal:
        Decklog.open(another_folder / "decklog.db")
    assert "copy it together with decklog.db-wal" in str(refusal.value.hint)


def test_an_empty_write_ahead_log_without_shared_memory_is_read_on_a_read_only_disk(disk: Path) -> None:
    path = make(disk / "decklog.db")
    shutil.copy(os.devnull, f"{path}-wal")
    make_read_only(disk)
    with Decklog.open(path) as log:
        assert [run.id for run in log.runs.find()] == ["run_1"]


def test_a_line_that_a_full_disk_cut_off_does_not_hide_the_clock(tmp_path: Path) -> None:
    from decklog.db.sqlite.clock import BootClock, boot_id

    path = tmp_path / "decklog.db-lock"
    path.write_text(f"{boot_id()} 2026-1")
    first = BootClock(str(path)).steady()
    assert abs((BootClock(str(path)).steady() - first).total_seconds()) < 5
    assert len([line for line in path.read_text().splitlines() if line]) == 2
