"""Damage in the write-ahead log of a SQLite file is reported and left for a recovery."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
from threading import Event, Thread
from typing import Any

import pytest

from decklog import Decklog
from decklog.cli import run
from decklog.core.errors import Damaged
from decklog.db.sqlite.damage import check_unused

HEADER, FRAME = 32, 24 + 4096
# More than the cache holds is written before the commit.
OPEN_TRANSACTION = """
import sys
from decklog import Decklog
with Decklog.open(sys.argv[1]) as log, log.transaction():
    for start in range(0, 24_000, 4_000):
        log.journal.append_many([{"stream": "run_1", "body": f"{start + n} " + "x " * 450} for n in range(4_000)])
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log as a crash leaves it: 30 commits wait in its write-ahead log."""
    with Decklog.open(tmp_path / "sound.db") as log:
        log.runs.start("x", run_id="run_1")
    with Decklog.open(tmp_path / "sound.db") as log:
        for number in range(30):
            log.journal.append("run_1", f"entry {number}")
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{tmp_path}/sound.db{suffix}", f"{tmp_path}/log.db{suffix}")
            os.chmod(f"{tmp_path}/log.db{suffix}", 0o600)
    return tmp_path / "log.db"


def spoil(path: Path, start: int, content: bytes | None = None) -> None:
    """Flip a bit of the write-ahead log, or write something over it; a negative place counts from its end."""
    wal = Path(f"{path}-wal")
    spoiled = bytearray(wal.read_bytes())
    start %= len(spoiled)
    if content is None:
        spoiled[start] ^= 1
    else:
        spoiled[start : start + len(content)] = content
    wal.write_bytes(spoiled)


def in_frame(number: int) -> int:
    return HEADER + number * FRAME + 24 + 2000


def files(path: Path) -> dict[str, bytes]:
    return {suffix: Path(f"{path}{suffix}").read_bytes() for suffix in ("", "-wal")}


def run_command(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = run(["--db", str(path), "--json", *words])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, json.dumps(answer)


DAMAGE = {
    "a zeroed header": (0, bytes(HEADER)),
    "one bit of the header": (17, None),
    "one bit of a page in the middle": (in_frame(12), None),
    "the header of a frame in the middle": (HEADER + 12 * FRAME, bytes(24)),
    "some frames in the middle": (HEADER + 10 * FRAME, bytes(3 * FRAME)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_before_acknowledged_commits_is_reported_and_left_alone(
    kind: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(path, *DAMAGE[kind])
    before = files(path)
    with pytest.raises(Damaged, match="write-ahead log"):
        Decklog.open(path)
    for words in (["doctor"], ["verify"], ["journal", "find", "run_1"], ["journal", "append", "run_1", "new"]):
        code, output = run_command(path, capsys, *words)
        assert code == 1, words
        assert "write-ahead log is damaged" in output, words
        assert "decklog recover" in output, words
    assert files(path) == before


def test_damage_in_the_last_commit_is_reported_and_left_alone(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Decklog.open(path) as log:
        # One commit of many pages, of which one in the middle is lost.
        log.journal.append_many([{"stream": "run_1", "body": f"{number} {'x' * 900}"} for number in range(40)])
        damaged = path.with_name("damaged.db")
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{path}{suffix}", f"{damaged}{suffix}")
    spoil(damaged, -5 * FRAME + 2000)
    before = files(damaged)
    for words in (["doctor"], ["verify"]):
        code, output = run_command(damaged, capsys, *words)
        assert (code, "power cut" in output) == (1, True), words
    assert files(damaged) == before


def test_incomplete_commit_of_a_killed_process_is_no_damage(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(path, -2000)
    with Decklog.open(path) as log:
        assert log.journal.verify().ok
        assert log.journal.find("run_1", limit=1)[0].body == "entry 28"
    code, output = run_command(path, capsys, "doctor")
    assert (code, "a crash cut short" in output) == (1, True)
    with Decklog.open(path) as log:
        log.journal.append("run_1", "it goes on")
        assert log.journal.verify().ok


def test_relaxed_durability_opens_a_log_after_a_power_cut(path: Path) -> None:
    spoil(path, in_frame(12))
    with Decklog.open(path, durability="relaxed") as log:
        log.journal.append("run_1", "it goes on")
    with pytest.raises(Damaged):
        Decklog.open(path)


def test_log_created_meanwhile_is_not_taken_for_a_lost_one(path: Path) -> None:
    # Seen as empty a moment ago; since then the other one wrote the file and its write-ahead log.
    check_unused(str(path))
    path.write_bytes(b"")
    with pytest.raises(Damaged, match="gone or empty"):
        check_unused(str(path))


@pytest.mark.parametrize("is_gone", [True, False])
def test_no_log_is_created_next_to_a_leftover_write_ahead_log(path: Path, is_gone: bool) -> None:
    wal = Path(f"{path}-wal").read_bytes()
    path.unlink()
    if not is_gone:
        path.touch(0o600)
    with pytest.raises(Damaged, match="wait for it"):
        Decklog.open(path)
    assert Path(f"{path}-wal").read_bytes() == wal


@pytest.mark.slow
def test_a_writer_at_work_is_not_taken_for_damage(tmp_path: Path) -> None:
    path, stop = tmp_path / "log.db", Event()
    with Decklog.open(path) as log:
        log.runs.start("x", run_id="run_1")

        def keep_writing() -> None:
            while not stop.is_set():
                log.journal.append("run_1", "x" * 5000)  # two pages, so that a commit is more than one frame
                stop.wait(0.002)  # and not a processor of its own for as long as the rest takes

        writer = Thread(target=keep_writing)
        writer.start()
        try:
            for _ in range(12):
                with Decklog.open(path) as other:
                    assert other.db.check_wal() == ([], [])
        finally:
            stop.set()
            writer.join()


@pytest.mark.slow
@pytest.mark.parametrize(
    "cut", [5 * FRAME, 5 * FRAME + 24, 5 * FRAME + 2000, 1], ids=["frames", "a header", "half a page", "a byte"]
)
def test_a_write_ahead_log_cut_inside_of_a_commit_is_not_called_whole(
    path: Path, capsys: pytest.CaptureFixture[str], cut: int
) -> None:
    with Decklog.open(path) as log:
        log.journal.append_many([{"stream": "run_1", "body": f"{number} {'x' * 900}"} for number in range(40)])
        damaged = path.with_name("damaged.db")
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{path}{suffix}", f"{damaged}{suffix}")
    os.truncate(f"{damaged}-wal", os.path.getsize(f"{damaged}-wal") - cut)
    before = files(damaged)
    code, output = run_command(damaged, capsys, "verify")
    # Nobody can know whether the commit was acknowledged: a crash leaves the same.
    assert (code, "of a transaction without its commit" in output) == (0, True)
    code, output = run_command(damaged, capsys, "doctor")
    assert (code, "of a transaction without its commit" in output, "decklog recover" in output) == (1, True, True)
    assert files(damaged) == before


@pytest.mark.slow
def test_a_large_transaction_that_is_open_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with Decklog.open(path) as log:
        log.runs.start("x", run_id="run_1")
    process = subprocess.Popen([sys.executable, "-c", OPEN_TRANSACTION, str(path)], stdin=PIPE, stdout=PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        assert os.path.getsize(f"{path}-wal") > 1_000_000
        with Decklog.open(path, read_only=True) as log:
            assert log.db.check_wal() == ([], [])
    finally:
        process.communicate()
