"""What killed backups, restores and recoveries leave behind is gone with the next one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.core.errors import DiskFull
from decklog.transfer.recover.recovery import recover
from decklog.transfer.restore import back_up, remove_leftovers, restore

HOURS_AGO = time.time() - 3 * 3600


@pytest.fixture
def gone() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def leave(path: Path, *, age: float = HOURS_AGO) -> None:
    if path.name.startswith(".decklog-recover-"):
        path.mkdir()
        (path / "raw.db").write_bytes(b"x")
        os.utime(path / "raw.db", (age, age))
    else:
        path.write_bytes(b"x")
    os.utime(path, (age, age))


def test_what_a_killed_process_left_is_removed_by_the_next_backup(tmp_path: Path, gone: int) -> None:
    with Decklog.open(tmp_path / "decklog.db") as log:
        log.runs.start("x", run_id="run_1")
        for name in (
            f"a.db.{gone}.partial",
            f"a.db.{gone}.partial-wal",
            f"decklog.db.{gone}.restoring",
            f".decklog-recover-{gone}-x",
        ):
            leave(tmp_path / name)
        back_up(log, str(tmp_path / "copy.db"))
    assert sorted(name for name in os.listdir(tmp_path) if not name.startswith("decklog.db")) == ["copy.db"]


def test_what_is_being_worked_on_stays(tmp_path: Path, gone: int) -> None:
    kept = [f"a.db.{os.getpid()}.partial", f"b.db.{gone}.partial", "c.db.partial", "notes.123.txt"]
    leave(tmp_path / kept[0])
    leave(tmp_path / kept[1], age=time.time())
    leave(tmp_path / kept[2])
    leave(tmp_path / kept[3])
    remove_leftovers(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == sorted(kept)


# Each stops in the middle of its work, at the first step that it tells of.
STOPPING = """
import sys
from decklog import Decklog
def stop(*_):
    print("working", flush=True)
    sys.stdin.read()
"""
WORK = {
    "backup": "from decklog.transfer.restore import back_up; back_up(Decklog.open('decklog.db'), 'copy.db', progress=stop)",
    "restore": "from decklog.transfer.restore import restore; restore('backup.db', 'decklog.db', progress=stop)",
    "recover": "from decklog.transfer.recover.recovery import recover; recover('decklog.db', 'new.db', progress=stop)",
}


@pytest.mark.parametrize("work", WORK)
def test_what_is_killed_in_the_middle_changes_nothing_and_leaves_nothing_for_good(work: str, tmp_path: Path) -> None:
    with Decklog.open(tmp_path / "decklog.db") as log:
        log.runs.start("x", run_id="run_1")
        back_up(log, str(tmp_path / "backup.db"))
    before = {name: (tmp_path / name).read_bytes() for name in ("decklog.db", "backup.db")}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", STOPPING + WORK[work]]
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"working\n"
        process.send_signal(signal.SIGKILL)
    left = {
        path for path in tmp_path.iterdir() if not path.name.startswith(("decklog.db-", "backup.db-")) and path.name not in before
    }
    assert left
    for path in left:
        for file in (*path.rglob("*"), path):
            os.utime(file, (HOURS_AGO, HOURS_AGO))
    remove_leftovers(str(tmp_path))
    assert {name for name in os.listdir(tmp_path) if not name.startswith(("decklog.db-", "backup.db-"))} == set(before)
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


@pytest.mark.skipif(not os.access("/proc/self/ns/mnt", os.R_OK) or os.geteuid() != 0, reason="needs a file system of its own")
def test_a_backup_or_a_recovery_without_room_says_that_the_disk_is_full(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(small)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        with Decklog.open(tmp_path / "decklog.db") as log:
            log.runs.start("x", run_id="run_1")
            for number in range(200):
                log.journal.append("run_1", f"{number} " + "x" * 3000)
            with pytest.raises(DiskFull):
                back_up(log, str(small / "copy.db"))
            assert os.listdir(small) == []
        with pytest.raises(DiskFull):
            recover(str(tmp_path / "decklog.db"), str(small / "new.db"))
        assert os.listdir(small) == []
    finally:
        subprocess.run(["umount", str(small)], check=True)


KILLED_RESTORE = """
import os, signal, sys
from decklog.transfer.restore import restore
def stop(what, done, whole):
    if what == "verifying the backup":
        os.kill(os.getpid(), signal.SIGKILL)
restore(sys.argv[1], sys.argv[2], progress=stop)
"""


@pytest.mark.slow
def test_the_next_restore_removes_what_a_killed_one_left_just_now(tmp_path: Path) -> None:
    path, copy = tmp_path / "log" / "decklog.db", tmp_path / "copy.db"
    with Decklog.open(path) as log:
        log.runs.start("x", run_id="run_1")
        back_up(log, str(copy))
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", KILLED_RESTORE, str(copy), str(path)], check=False)
        assert done.returncode == -signal.SIGKILL
        assert len([name for name in os.listdir(path.parent) if ".restoring" in name]) == 2  # the file and its owner's mark
    restore(str(copy), str(path))
    assert not [name for name in os.listdir(path.parent) if ".restoring" in name]
