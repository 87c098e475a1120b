import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from decklog import Decklog, ManualClock
from decklog.core.errors import Denied, Invalid
from decklog.db.search.marks import MOST_IN_A_STEP, MOST_UNINDEXED, entries_in, not_indexed
from decklog.journal.entry import Entry, EntryKind
from decklog.journal.replication import Replication
from decklog.records.record import Page
from decklog.transfer.move import Move
from decklog.transfer.prune import Prune, parse_age
from tests.transfer.conftest import LONG, fill
from tests.waiting import wait_for_background

MONTH = timedelta(days=30)


@pytest.fixture
def old(log: Decklog, clock: ManualClock) -> Decklog:
    """A log whose first entries are two months old."""
    fill(log, clock)
    clock.advance(days=60)
    log.journal.append("run_1", "fresh words", kind="tool", agent="developer")
    return log


def test_without_apply_it_is_only_said_what_would_go(old: Decklog) -> None:
    before = Replication.of(old).export_entries("run_1")
    said = Prune(old, MONTH).run()
    assert said.applied is False
    assert (said.entries, said.blobs, said.blob_bytes) == (said.streams["run_1"], 1, len(LONG))
    assert said.bytes > 5000
    assert Replication.of(old).export_entries("run_1") == before


def test_old_texts_go_and_the_chain_still_verifies(old: Decklog) -> None:
    before = Replication.of(old).export_entries("run_1")
    said = Prune(old, MONTH).run()
    done = Prune(old, MONTH).run(apply=True)
    assert (done.entries, done.bytes, done.blobs) == (said.entries, said.bytes, said.blobs)
    after = Replication.of(old).export_entries("run_1")
    for was, now in zip(before, after, strict=False):
        assert now["hash"] == was["hash"]
        if was["kind"] == "change":
            assert now == was
        elif was["body"] == "fresh words":
            assert now["body"] == "fresh words"
        else:
            assert now["body"] is None
            assert now["payload"] is None
    assert old.journal.verify().ok
    assert Replication.of(old).blob_digests() == []
    assert after[-1]["subtype"] == "pruned"
    assert Prune(old, MONTH).run().entries == 0


def test_dropped_words_are_no_longer_found_but_their_entries_are_by_agent(old: Decklog) -> None:
    old.journal.index()
    assert old.journal.search("lexer")
    found = len(old.journal.find("run_1", agent="agent-1", limit=200))
    Prune(old, MONTH).run(apply=True)
    assert not old.journal.search("lexer")
    assert old.journal.search("fresh")
    assert len(old.journal.find("run_1", agent="agent-1", limit=200, oldest_first=True)) == found


def test_only_the_named_kind_and_run_are_pruned(old: Decklog, clock: ManualClock) -> None:
    fill(old, clock, entries=50, run="run_2")
    clock.advance(days=60)
    done = Prune(old, MONTH, kind="tool", stream="run_2").run(apply=True)
    assert list(done.streams) == ["run_2"]
    assert old.journal.find("run_2", kind="interaction", limit=1)[0].body is not None
    assert all(entry.body is None for entry in old.journal.find("run_2", kind="tool") if entry.agent != "developer")
    assert old.journal.find("run_1", text="lexer", limit=1)


def test_a_blob_that_someone_else_still_names_stays(old: Decklog) -> None:
    old.journal.append("run_1", LONG, kind="tool")
    done = Prune(old, MONTH).run(apply=True)
    assert done.blobs == 0
    assert old.journal.find("run_1", kind="tool", limit=1)[0].body == LONG


def test_a_blob_that_a_record_names_stays(old: Decklog) -> None:
    digest = Replication.of(old).blob_digests()[0]
    old.runs.update("run_1", metadata={"transcript": digest})
    assert Prune(old, MONTH).run(apply=True).blobs == 0
    assert Replication.of(old).blob_digests() == [digest]


def test_what_records_were_is_never_dropped_and_ages_are_checked(old: Decklog) -> None:
    with pytest.raises(Invalid, match="never dropped"):
        Prune(old, MONTH, kind="change")
    assert parse_age("36h") == timedelta(hours=36)
    for wrong in ("", "d", "30", "-1d", "1y", "1.5d"):
        with pytest.raises(Invalid, match="not an age"):
            parse_age(wrong)


def test_a_pruned_log_can_still_be_moved_and_verifies_there(old: Decklog, tmp_path: Path) -> None:
    Prune(old, MONTH).run(apply=True)
    with Decklog.open(tmp_path / "other.db") as other:
        Move(old, other).run()
        assert Replication.of(other).export_entries("run_1") == Replication.of(old).export_entries("run_1")


def test_after_shrinking_the_file_holds_no_trace_of_the_words(tmp_path: Path, clock: ManualClock) -> None:
    path = tmp_path / "log.db"
    with Decklog.open(path, clock=clock) as log:
        fill(log, clock)
        log.journal.append("run_1", "the unmistakable zyzzyva")
        log.journal.index()
        assert log.journal.search("zyzzyva")
        clock.advance(days=60)
        Prune(log, MONTH).run(apply=True)
        log.db.compact()
        assert log.journal.verify().ok
    assert b"zyzzyva" not in path.read_bytes()
    assert b"lexer" not in path.read_bytes()


def test_an_entry_that_is_told_again_does_not_bring_its_long_text_back(log: Decklog, clock: ManualClock) -> None:
    log.runs.start("goal", run_id="run_1")
    told = {"body": "a long story " * 6000, "key": "once"}
    first = log.journal.append("run_1", **told)
    clock.advance(days=60)
    assert Prune(log, MONTH).run(apply=True).blobs == 1
    again = log.journal.append("run_1", **told)
    assert (again.seq, again.already, again.body, again.body_digest) == (first.seq, True, None, first.body_digest)
    assert log.db.read(lambda: log.db.one("select count(*) from blobs", {})) == (0,)
    assert log.journal.verify().ok


def test_a_long_text_is_kept_with_the_first_entry_of_its_key(log: Decklog) -> None:
    log.runs.start("goal", run_id="run_1")
    first = log.journal.append("run_1", "a long story " * 6000, key="once")
    again = log.journal.append("run_1", "another long story " * 6000, key="once")
    assert (first.already, again.already, again.body) == (False, True, first.body)
    assert log.db.read(lambda: log.db.one("select count(*) from blobs", {})) == (1,)


def test_pruning_makes_the_file_smaller_and_leaves_entries_guarded(tmp_path: Path) -> None:
    path = tmp_path / "decklog.db"
    with Decklog.open(path) as log:
        log.runs.start("x", run_id="run_1")
        outputs = [{"stream": "run_1", "body": "ran", "kind": "tool", "payload": {"out": f"{n} " * 400}} for n in range(1000)]
        log.journal.append_many(outputs)
        log.journal.index()
        log.db.checkpoint()
        before = path.stat().st_size
        result = Prune(log, timedelta(0), kind="tool").run(apply=True)
        assert result.freed_bytes > before / 2
        assert path.stat().st_size == before - result.freed_bytes
        assert log.journal.verify().ok
        for sql in ("delete from entries where seq = 5", "update entries set agent = 'x' where seq = 5"):
            with pytest.raises(Denied, match="never"):
                log.db.write(lambda sql=sql: log.db.count(sql, {}))  # type: ignore[misc]


@pytest.mark.slow
def test_others_write_while_a_log_is_pruned(tmp_path: Path) -> None:
    path = tmp_path / "decklog.db"
    with Decklog.open(path) as log, Decklog.open(path) as other:
        log.runs.start("x", run_id="run_1")
        outputs = [{"stream": "run_1", "body": "ran", "kind": "tool", "payload": {"out": f"{n} " * 400}} for n in range(3000)]
        log.journal.append_many(outputs)
        seen: list[str] = []

        def write(what: str, _done: int, _whole: int) -> None:
            seen.append(what)
            other.journal.append("run_1", "meanwhile")

        Prune(log, timedelta(0), kind="tool", progress=write).run(apply=True)
        assert set(seen) == {"counting entries", "pruning entries", "giving pages back"}
        assert len(log.journal.find("run_1", kind=EntryKind.INTERACTION, limit=500)) == len(seen)
        assert log.journal.verify().ok


WRITER = """
import select, sys
from decklog import Decklog
with Decklog.open(sys.argv[1]) as log:
    log.journal.append("run_1", "meanwhile")
    print("ready", flush=True)
    count = 1
    while not select.select([sys.stdin], [], [], 0)[0]:
        log.journal.append("run_1", "meanwhile")
        count += 1
print(count)
"""


@pytest.mark.slow
def test_another_process_gets_its_turns_while_a_log_is_pruned(tmp_path: Path) -> None:
    path = tmp_path / "decklog.db"
    with Decklog.open(path) as log:
        log.runs.start("x", run_id="run_1")
        log.journal.append_many([{"stream": "run_1", "body": f"{n} " * 400, "kind": "tool"} for n in range(4000)])
        log.db.checkpoint()
        before = path.stat().st_size
        steps: list[int] = []
        command = [sys.executable, "-c", WRITER, str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            Prune(log, timedelta(0), kind="tool", progress=lambda *_: steps.append(_last(log))).run(apply=True)
            written = int(writer.communicate()[0])
        # Whoever waits gets the lock between two transactions of the prune.
        assert len(set(steps)) > len(steps) / 2
        assert len(log.journal.find("run_1", kind="interaction", limit=1)) == 1
        [(count,)] = log.db.read(lambda: log.db.rows("select count(*) from entries where body = 'meanwhile'", {}))[1]
        assert count == written
        assert path.stat().st_size < before / 2
        assert Prune(log, timedelta(0), kind="tool").run().entries == 0
        assert log.journal.verify().ok


def _last(log: Decklog) -> int:
    [head] = log.journal.heads()
    return int(head["seq"])


@pytest.mark.slow
def test_after_a_large_prune_searches_index_in_steps_until_all_is_found_again(tmp_path: Path) -> None:
    with Decklog.open(tmp_path / "decklog.db", durability="relaxed") as log:
        log.runs.start("x", run_id="run_1")
        kinds = ("tool", "reasoning")
        log.journal.append_many([{"stream": "run_1", "body": f"the lexer {n}", "kind": kinds[n % 2]} for n in range(9000)])
        log.journal.index()
        assert _not_indexed(log) == 0
        Prune(log, timedelta(0), kind="tool").run(apply=True)
        left = _not_indexed(log)
        assert left > 9000
        while left > MOST_UNINDEXED:
            page = log.journal.search("lexer")
            assert len(page) == 20
            wait_for_background(log)
            assert left - _not_indexed(log) == MOST_IN_A_STEP
            left = _not_indexed(log)
        log.journal.index()
        found = {entry.seq for page in _pages(log, "lexer") for entry in page}
        kept = log.db.read(lambda: log.db.rows("select seq from entries where body like 'the lexer%'", {}))[1]
        assert len(found) == 4500
        assert found == {seq for (seq,) in kept}
        assert log.journal.verify().ok


def _not_indexed(log: Decklog) -> int:
    return log.db.read(lambda: entries_in(not_indexed(log.db, None)))


def _pages(log: Decklog, words: str) -> Iterator[Page[Entry]]:
    page = log.journal.search(words, limit=500)
    yield page
    while page.next:
        page = log.journal.search(words, limit=500, after=page.next)
        yield page
