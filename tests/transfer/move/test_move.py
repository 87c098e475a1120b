import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from decklog import Conflict, Decklog, ManualClock
from decklog.core.errors import Invalid
from decklog.transfer.move import Move
from tests.transfer.conftest import exported, fill

FULL = bool(os.environ.get("DECKLOG_TEST_FULL"))


@pytest.mark.slow
def test_sqlite_to_postgres_and_back_is_the_same_to_the_byte(tmp_path: Path, clock: ManualClock, postgres_url: str) -> None:
    with (
        Decklog.open(tmp_path / "a.db", clock=clock) as first,
        Decklog.open(postgres_url, clock=clock) as server,
        Decklog.open(tmp_path / "b.db", clock=clock) as last,
    ):
        fill(first, clock, entries=4500)
        fill(first, clock, entries=500, run="other")
        moved = Move(first, server).run()
        assert (moved.streams, moved.entries, moved.verified, moved.warnings) == (2, 5000, 5000, [])
        Move(server, last).run()
        assert exported(first, tmp_path / "1") == exported(server, tmp_path / "2") == exported(last, tmp_path / "3")
        assert last.tasks.find("run_1", limit=50) == first.tasks.find("run_1", limit=50)
        assert server.journal.search("lexer", stream="run_1", limit=3) == first.journal.search("lexer", stream="run_1", limit=3)


@pytest.mark.slow
def test_a_second_move_brings_only_what_is_new(log: Decklog, source: Decklog) -> None:
    assert Move(source, log).run().entries == 360
    assert Move(source, log).run().entries == 0
    source.journal.append("run_1", "one more")
    again = Move(source, log).run()
    assert (again.entries, again.already, again.verified) == (1, 360, 361)


def test_a_target_that_went_another_way_is_refused(log: Decklog, source: Decklog) -> None:
    Move(source, log).run()
    log.journal.append("run_1", "written in the target")
    with pytest.raises(Conflict, match="not the beginning"):
        Move(source, log).run()
    source.journal.append("run_1", "written in the source")
    with pytest.raises(Conflict, match="not the beginning"):
        Move(source, log).run()


def test_a_log_is_not_moved_onto_itself(source: Decklog) -> None:
    with pytest.raises(Invalid, match="itself"):
        Move(source, source)


def test_the_source_file_does_not_change_by_a_byte(source: Decklog, log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "source.db"
    source.close()
    before = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns
    with Decklog.open(path, read_only=True) as still:
        Move(still, log).run()
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) == before


def test_readers_and_writers_go_on_while_a_log_moves(source: Decklog, log: Decklog) -> None:
    """Each step of the move is followed by a read and a write of the source."""
    seen = []

    def meanwhile(_what: str, _done: int, _whole: int) -> None:
        if len(seen) < 3:
            source.journal.append("run_1", "meanwhile")
            seen.append(len(source.journal.find("run_1", limit=5)))

    assert Move(source, log, meanwhile).run().behind == 0
    assert seen == [5, 5, 5]
    assert log.journal.heads() == source.journal.heads()


@pytest.mark.slow
def test_a_killed_move_goes_on_where_it_was(tmp_path: Path, target: str, clock: ManualClock) -> None:
    entries, rounds = (40_000, 3) if FULL else (30_000, 2)  # it moves some thousands at a time, so that each is met between two
    with Decklog.open(tmp_path / "source.db", clock=clock) as source:
        fill(source, clock, entries=entries)
    command = [sys.executable, "-m", "decklog", "move", target, "--from", str(tmp_path / "source.db")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    kills = 0
    for _ in range(rounds):
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        _wait_for_entries(target, more_than=2000 * (kills + 1), process=process)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills
    with Decklog.open(target, migrate=True) as log:
        partly = log.journal.heads()[0]["seq"]
        assert partly < entries
        assert log.journal.verify().ok
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with Decklog.open(target) as log, Decklog.open(tmp_path / "source.db", read_only=True) as source:
        assert log.journal.heads() == source.journal.heads()
        assert exported(log, tmp_path / "1") == exported(source, tmp_path / "2")


def _wait_for_entries(target: str, *, more_than: int, process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        if "://" in target or os.path.exists(target):
            with Decklog.open(target, migrate=True) as log:
                heads = log.journal.heads()
            if heads and heads[0]["seq"] > more_than:
                return
        time.sleep(0.01)
