"""Several processes that read one moment of a log: what they find is what one would have found."""

import os
import shutil
from pathlib import Path

import pytest

from decklog import Decklog
from tests.db import processes
from tests.db.tampering import SqliteVictim

ENTRIES = 90


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of several streams, with records, texts that are kept apart, words and times that go back."""
    path = tmp_path_factory.mktemp("shared") / "log.db"
    with Decklog.open(path) as log:
        for run_id in ("run_1", "run_2", "run_3"):
            log.runs.start("Share", run_id=run_id)
            log.tasks.add_many(run_id, [{"title": f"task {number}"} for number in range(5)])
            claim = log.tasks.claim(run_id, worker="w")
            assert claim is not None
            claim.finish("done")
        log.journal.append_many([{"stream": "run_2", "body": f"line {number}", "key": f"k{number}"} for number in range(ENTRIES)])
        log.journal.append("run_2", "long " * 20_000, payload={"a": 1}, iteration=2)
        log.journal.append("run_3", "long ago", at=log.clock.now().replace(year=2020), task_id="t")
        log.journal.search("line")
    return path


# Something to change in each part of a log, in the middle of a stream that is cut into ranges and at its ends.
CHANGES = {
    "a body": "update entries set body = 'other' where stream = 'run_2' and seq = 50",
    "a hash": "update entries set hash_bytes = zeroblob(32) where stream = 'run_2' and seq = 61",
    "a key": "update entries set key = 'other' where stream = 'run_2' and seq = 33",
    "a time": "update entries set at = '2031-01-01T00:00:00.000000Z' where stream = 'run_2' and seq = 70",
    "no entry": "delete from entries where stream = 'run_2' and seq = 44",
    "no last entry of all": "delete from entries where pos = (select max(pos) from entries where stream = 'run_3')",
    "no stream": "delete from streams where name = 'run_1'",
    "a stream's number": "update streams set no = no + 70 where name = 'run_3'",
    "a stream's beginning": "update streams set created_at = '2031-01-01T00:00:00.000000Z' where name = 'run_2'",
    "a stream's order": "update streams set in_order = 1 - in_order where name = 'run_3'",
    "a row": "update tasks set title = 'other' where title = 'task 3' and run_id = 'run_2'",
    "no row": "delete from tasks where title = 'task 4' and run_id = 'run_3'",
    "bytes": "update blobs set bytes = x'00'",
    "no bytes": "delete from blobs",
    "a mark": "update entry_text_marks set pos = pos - 1 where stream_no = (select no from streams where name = 'run_2')",
    "words": "delete from entry_text where rowid = (select pos from entries where stream = 'run_2' and seq = 40)",
    "a trigger": "create trigger of_mine after insert on entries begin select 1; end",
}


@pytest.mark.slow
def test_several_processes_find_what_one_does(original: Path, tmp_path: Path) -> None:
    """Problem by problem, in the same order; and nothing in a log that is sound."""
    targets = []
    for number, change in enumerate(["select 1", *CHANGES.values()]):
        targets.append(str(tmp_path / f"{number}.db"))
        shutil.copy(original, targets[-1])
        SqliteVictim(targets[-1]).change(change)
    one, several = (processes.alone("verify_side_by_side", targets, count) for count in (1, 3))
    assert [found.pop("forked") for found in one] == [0] * len(targets)
    assert [found.pop("forked") for found in several] == [2] * len(targets)
    for what, by_one, by_several in zip(["nothing", *CHANGES], one, several, strict=True):
        assert by_one == by_several, what
    assert [what for what, found in zip(CHANGES, one[1:], strict=True) if found["ok"]] == []
    assert one[0]["ok"]
    assert one[0]["entries"] > ENTRIES


def test_a_process_that_dies_over_its_part_is_an_error(original: Path, tmp_path: Path) -> None:
    said = processes.alone("lose_a_helper", str(original), str(tmp_path))
    assert said.startswith("unavailable: a process that read a part of the log ended before it was done")


@pytest.mark.parametrize("writes", [0, 1, 7])
def test_all_processes_see_one_moment_whoever_writes_meanwhile(tmp_path: Path, original: Path, writes: int) -> None:
    shutil.copy(original, tmp_path / "log.db")
    found = processes.alone("read_while_others_write", str(tmp_path / "log.db"), str(tmp_path), writes)
    assert (found["seen"], found["left"]) == (1, 0)
    assert found["processes"] > 1


def test_a_log_that_is_written_all_the_time_is_read_by_one_process(tmp_path: Path, original: Path) -> None:
    shutil.copy(original, tmp_path / "log.db")
    found = processes.alone("read_while_others_write", str(tmp_path / "log.db"), str(tmp_path), 1_000_000)
    assert (found["processes"], found["seen"]) == (1, 1)


def test_what_fails_elsewhere_or_is_asked_inside_of_a_read_is_left_to_the_caller(original: Path, tmp_path: Path) -> None:
    found = processes.alone("fail_in_helpers", str(original), str(tmp_path))
    assert found == {"elsewhere": True, "within": [None, None], "inside": [None, None]}


def test_a_process_with_other_threads_reads_alone() -> None:
    alone, beside = processes.alone("count_processes")
    assert (alone, beside) == (min(4, len(os.sched_getaffinity(0))), 1)
