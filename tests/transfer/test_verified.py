"""LogVerifier only what is new, and continuing an interrupted run."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.core.errors import Invalid
from decklog.db.search.entries import MOST_COMPARED
from decklog.transfer import doctor, verify_steps
from tests.db.tampering import PostgresVictim, SqliteVictim


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def some(log: Decklog, state: Path) -> Decklog:
    for number in range(4):
        log.runs.start("a goal", run_id=f"r{number}")
        log.tasks.add(f"r{number}", "a task", task_id=f"t{number}")
        log.journal.append_many([{"stream": f"r{number}", "body": f"said {n}"} for n in range(10)])
    return log


def change(log: Decklog, sql: str) -> None:
    victim = SqliteVictim(log.db.target) if log.db.engine == "sqlite" else PostgresVictim(log.db.target, log)
    assert victim.change(sql) == 1


def grow(log: Decklog) -> None:
    log.journal.append("r1", "more")
    log.tasks.edit("t2", title="another title", reason="typo")
    log.runs.start("a goal", run_id="r9")


def test_only_what_was_written_after_the_anchor_is_read(some: Decklog, tmp_path: Path) -> None:
    anchor = str(tmp_path / "heads.jsonl")
    assert some.journal.verify(anchor=anchor).ok
    grow(some)
    result = some.journal.verify(anchor=anchor, since_anchor=True)
    assert result.ok
    assert result.since_anchor
    assert (result.streams, result.entries, result.records, result.anchored) == (3, 3, 2, 4)
    # The anchor has moved.
    assert some.journal.verify(anchor=anchor, since_anchor=True).entries == 0


def test_without_an_anchor_everything_is_verified(some: Decklog, tmp_path: Path) -> None:
    anchor = str(tmp_path / "heads.jsonl")
    whole = some.journal.verify()
    result = some.journal.verify(anchor=anchor, since_anchor=True)
    assert not result.since_anchor
    assert result.entries == whole.entries
    with pytest.raises(Invalid, match="anchor file"):
        some.journal.verify(since_anchor=True)


TAMPERING = {
    "a new entry": ("update entries set body = 'forged' where stream = 'r1' and body = 'more'", "does not match"),
    "a row of a new entry": ("update tasks set title = 'forged' where id = 't2'", "differs from its newest entry"),
    "the anchored entry": ("update entries set {hash} where stream = 'r0' and seq = 12", "not the one that was anchored"),
    "a tail": ("delete from entries where stream = 'r3' and seq = 12", "cut off"),
    "a new stream's row": ("update streams set created_at = '2020-01-01T00:00:00.000000Z' where name = 'r9'", "begun"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TAMPERING)
def test_tampering_behind_the_anchor_or_with_it_is_found(some: Decklog, tmp_path: Path, name: str) -> None:
    anchor = str(tmp_path / "heads.jsonl")
    assert some.journal.verify(anchor=anchor).ok
    kept = Path(anchor).read_text()
    grow(some)
    sql, what = TAMPERING[name]
    forged = "00" * 32
    hash = f"hash_bytes = unhex('{forged}')" if some.db.engine == "sqlite" else f"hash = '{forged}'"
    change(some, sql.format(hash=hash))
    result = some.journal.verify(anchor=anchor, since_anchor=True)
    assert [problem.what for problem in result.problems if what in problem.what], result.problems
    assert Path(anchor).read_text() == kept


def test_an_anchor_holds_nothing_that_was_written_after_the_read(
    some: Decklog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from decklog.journal.verify import Anchors

    keep, anchor = Anchors.keep, str(tmp_path / "heads.jsonl")
    newest = {head["stream"]: head["seq"] for head in some.journal.heads()}

    def write_first(self: Anchors, heads: list[dict[str, object]]) -> None:
        some.journal.append("r1", "not verified")
        keep(self, heads)

    monkeypatch.setattr(Anchors, "keep", write_first)
    assert some.journal.verify(anchor=anchor).ok
    kept = [json.loads(line) for line in Path(anchor).read_text().splitlines()]
    assert {head["stream"]: head["seq"] for head in kept} == newest


def test_an_interrupted_run_continues(some: Decklog, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_steps, "_STEP", 10)
    seen: list[tuple[str, int, int]] = []

    def interrupt(what: str, done: int, whole: int) -> None:
        seen.append((what, done, whole))
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        doctor.verify(some, progress=interrupt)
    again: list[tuple[str, int, int]] = []
    result = doctor.verify(some, progress=lambda *step: again.append(step))
    assert result.ok
    assert result.entries == some.journal.verify().entries
    assert again[0][1] > seen[-1][1]
    anew: list[tuple[str, int, int]] = []
    assert doctor.verify(some, progress=lambda *step: anew.append(step)).ok
    assert anew[0][1] == seen[0][1]  # a finished run leaves nothing to continue


def test_a_run_is_not_continued_in_another_log_nor_after_a_day(
    some: Decklog, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = doctor.VerifyMarks(some)
    marks.save({"1": (1, "x", "y", False)})
    assert marks.unfinished()
    monkeypatch.setattr(some.db, "made_at", lambda: "another")
    assert doctor.VerifyMarks(some).unfinished() == {}
    monkeypatch.undo()
    [kept] = (state / "decklog" / "verified").iterdir()
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "at": time.time() - 90_000}))
    assert doctor.VerifyMarks(some).unfinished() == {}


@pytest.mark.slow
def test_a_killed_run_of_the_command_continues(tmp_path: Path, state: Path) -> None:
    path = tmp_path / "decklog.db"
    with Decklog.open(path, durability="relaxed") as log:
        log.runs.start("x", run_id="run_1")
        for _ in range(4):
            log.journal.append_many([{"stream": "run_1", "body": f"said {n}"} for n in range(30_000)])
    environment = {**os.environ, "XDG_STATE_HOME": str(state)}
    script = (
        "import os, signal, sys; from decklog import Decklog; from decklog.transfer import doctor;"
        "doctor._SECONDS_BETWEEN_SAVES = 0;"
        "log = Decklog.open(sys.argv[1], read_only=True);"
        "doctor.verify(log, progress=lambda what, done, whole: done > 60_000 and os.kill(os.getpid(), signal.SIGKILL))"
    )
    assert subprocess.run([sys.executable, "-c", script, str(path)], env=environment, check=False).returncode == -9
    with Decklog.open(path) as log:
        steps: list[int] = []
        assert doctor.verify(log, progress=lambda _, done, __: steps.append(done)).ok
        assert steps[0] > 60_000


@pytest.mark.slow
def test_the_command_verifies_since_its_own_last_run(some: Decklog, state: Path) -> None:
    if some.db.engine != "sqlite":
        pytest.skip("the command's own path is the same on both engines")
    target = str(some.db.target)

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "decklog", "--db", target, "verify", *words]
        environment = {**os.environ, "XDG_STATE_HOME": str(state)}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    assert run("--since-anchor").startswith("OK: ")
    grow(some)
    assert run("--since-anchor") == "OK: 3 entries in 3 streams verified since the anchor, 2 records, 4 anchors\n"
    assert run("--since-anchor") == "OK: 0 entries in 0 streams verified since the anchor, 0 records, 5 anchors\n"


@pytest.fixture
def large(log: Decklog, run_id: str, state: Path) -> Decklog:
    """A log with more indexed entries than a usual run compares words of."""
    log.journal.append_many([{"stream": run_id, "body": f"word{number} needle"} for number in range(MOST_COMPARED + 500)])
    log.journal.index()
    return log


@pytest.mark.slow
def test_words_of_a_large_log_are_sampled_unless_full_and_the_rest_is_reported(large: Decklog) -> None:
    [unchecked] = large.journal.verify().unchecked
    assert unchecked.endswith("entries in the text index; compare them: decklog verify --full")
    assert doctor.verify(large).unchecked
    assert large.journal.verify(full=True).unchecked == doctor.verify(large, full=True).unchecked == []


@pytest.mark.slow
def test_entry_that_is_missing_in_the_text_index_of_a_large_log_is_found_without_full(large: Decklog, run_id: str) -> None:
    key = "rowid" if large.db.engine == "sqlite" else "entry_pos"
    large.db.write(lambda: large.db.count(f"delete from entry_text where {key} % 4294967296 = 1234", {}))
    [found] = large.journal.verify().problems
    assert (found.stream, found.seq, found.table) == (run_id, 1234, "entry_text")


@pytest.mark.slow
def test_wrong_words_of_every_entry_in_a_large_log_are_found_by_the_sample(large: Decklog) -> None:
    words = {"sqlite": "'other', tags = 'kind tool'", "postgres": "cast('other' as tsvector)"}[large.db.engine]
    large.db.write(lambda: large.db.count(f"update entry_text set words = {words}", {}))
    assert {problem.table for problem in large.journal.verify().problems} == {"entry_text"}
    assert {problem.table for problem in doctor.verify(large).problems} == {"entry_text"}
