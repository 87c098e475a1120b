import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from decklog import Conflict, Decklog, ManualClock
from decklog.core.errors import Busy, Damaged, NotADatabase
from decklog.transfer.restore import back_up, restore
from tests.transfer.conftest import exported, fill
from tests.waiting import wait_until

WRITER = """
import sys
from decklog import Decklog
log = Decklog.open(sys.argv[1], durability="relaxed")
run = log.runs.start("write on", run_id="writer-" + sys.argv[2]).id
print("ready", flush=True)
number = 0
while True:
    log.journal.append(run, f"entry {number}", agent="w")
    log.tasks.add(run, f"task {number}")
    number += 1
"""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_a_backup_is_the_log_and_only_its_owner_can_read_it(log: Decklog, clock: ManualClock, tmp_path: Path) -> None:
    fill(log, clock)
    done = back_up(log, str(tmp_path / "copy.db"))
    assert (done.streams, done.entries) == (1, 300)
    assert stat.S_IMODE(os.stat(tmp_path / "copy.db").st_mode) == 0o600
    with Decklog.open(tmp_path / "copy.db", clock=clock) as copy:
        assert exported(copy, tmp_path / "1") == exported(log, tmp_path / "2")
        assert copy.journal.verify().as_dict() == log.journal.verify().as_dict()
    assert sorted(name for name in os.listdir(tmp_path) if "partial" in name) == []


def test_a_file_that_is_there_is_never_overwritten_unasked(log: Decklog, clock: ManualClock, tmp_path: Path) -> None:
    fill(log, clock)
    (tmp_path / "copy.db").write_text("precious")
    with pytest.raises(Conflict, match="exists already"):
        back_up(log, str(tmp_path / "copy.db"))
    assert (tmp_path / "copy.db").read_text() == "precious"
    assert back_up(log, str(tmp_path / "copy.db"), overwrite=True).entries == 300


@pytest.mark.slow
def test_a_backup_among_eight_writing_processes_restores_to_a_log_that_verifies(tmp_path: Path) -> None:
    path = str(tmp_path / "busy.db")
    Decklog.open(path).close()
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, path, str(n)], env=environment(), stdout=subprocess.PIPE)
        for n in range(8)
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
        with Decklog.open(path) as log:
            first = back_up(log, str(tmp_path / "first.db"))
            wait_until(lambda: sum(head["seq"] for head in log.journal.heads()) > first.entries)
            second = back_up(log, str(tmp_path / "second.db"))
        assert second.entries > first.entries
        with pytest.raises(Busy):
            restore(str(tmp_path / "first.db"), path)
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
            assert writer.stdout is not None
            writer.stdout.close()
    result = restore(str(tmp_path / "second.db"), path)
    with Decklog.open(path) as log:
        verified = log.journal.verify()
        assert verified.ok
        assert verified.entries == result.entries == second.entries
    assert result.kept is not None
    with Decklog.open(result.kept) as before:
        assert before.journal.verify().ok
        assert sum(head["seq"] for head in before.journal.heads()) >= second.entries


def test_a_restored_log_can_be_used_at_once_and_the_old_one_is_kept(tmp_path: Path, clock: ManualClock) -> None:
    with Decklog.open(tmp_path / "log.db", clock=clock) as log:
        fill(log, clock)
        back_up(log, str(tmp_path / "copy.db"))
        log.journal.append("run_1", "after the backup")
    result = restore(str(tmp_path / "copy.db"), str(tmp_path / "log.db"), clock=clock)
    assert not [beside for beside in os.listdir(tmp_path) if beside.startswith("copy.db-")]
    with Decklog.open(tmp_path / "log.db", clock=clock) as log:
        assert log.journal.heads()[0]["seq"] == 300
        log.journal.append("run_1", "and on it goes")
        assert log.db.facts()["journal_mode"] == "wal"
    assert result.kept is not None
    with Decklog.open(result.kept, clock=clock) as old:
        assert old.journal.get("run_1", 301).body == "after the backup"
        assert old.db.facts()["journal_mode"] == "wal"


def test_a_log_that_someone_has_open_is_not_replaced(tmp_path: Path, clock: ManualClock) -> None:
    with Decklog.open(tmp_path / "log.db", clock=clock) as log:
        fill(log, clock)
        back_up(log, str(tmp_path / "copy.db"))
    reader = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from decklog import Decklog; log = Decklog.open(sys.argv[1]); log.journal.heads();"
            "print('open', flush=True); sys.stdin.read()",
            str(tmp_path / "log.db"),
        ],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert reader.stdin is not None
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"open\n"
    before = (tmp_path / "log.db").stat().st_ino
    with pytest.raises(Busy, match="open"):
        restore(str(tmp_path / "copy.db"), str(tmp_path / "log.db"))
    assert (tmp_path / "log.db").stat().st_ino == before
    reader.stdin.close()
    reader.wait()
    reader.stdout.close()
    assert restore(str(tmp_path / "copy.db"), str(tmp_path / "log.db")).entries == 300


def test_a_backup_that_does_not_verify_changes_nothing(tmp_path: Path, clock: ManualClock) -> None:
    with Decklog.open(tmp_path / "log.db", clock=clock) as log:
        fill(log, clock)
        back_up(log, str(tmp_path / "copy.db"))
    content = (tmp_path / "copy.db").read_bytes()
    (tmp_path / "copy.db").write_bytes(content.replace(b"entry 17 of the lexer", b"entry 17 of the Lexer"))
    before = (tmp_path / "log.db").read_bytes()
    with pytest.raises(Damaged, match="does not verify"):
        restore(str(tmp_path / "copy.db"), str(tmp_path / "log.db"))
    (tmp_path / "text.db").write_text("no database")
    with pytest.raises(NotADatabase):
        restore(str(tmp_path / "text.db"), str(tmp_path / "log.db"))
    assert (tmp_path / "log.db").read_bytes() == before
    assert [name for name in os.listdir(tmp_path) if "restoring" in name or "before" in name] == []


def test_a_log_beyond_repair_is_kept_too(tmp_path: Path, clock: ManualClock) -> None:
    with Decklog.open(tmp_path / "log.db", clock=clock) as log:
        fill(log, clock)
        back_up(log, str(tmp_path / "copy.db"))
    (tmp_path / "log.db").write_bytes(b"rubbish" * 1000)
    result = restore(str(tmp_path / "copy.db"), str(tmp_path / "log.db"))
    assert result.kept is not None
    assert Path(result.kept).read_bytes() == b"rubbish" * 1000
    assert restore(str(tmp_path / "copy.db"), str(tmp_path / "new" / "log.db")).kept is None


def test_two_logs_replaced_within_a_second_are_both_kept(tmp_path: Path, clock: ManualClock) -> None:
    with Decklog.open(tmp_path / "log.db", clock=clock) as log:
        fill(log, clock, entries=20)
        back_up(log, str(tmp_path / "copy.db"))
    kept = [restore(str(tmp_path / "copy.db"), str(tmp_path / "log.db"), clock=clock).kept for _ in range(3)]
    assert len({*kept}) == 3
    for path in kept:
        assert path is not None
        with Decklog.open(path, clock=clock) as log:
            assert log.journal.verify().ok
