"""Old runs in archives: nothing is lost, everything verifies, and all of it can be brought back."""

import gzip
import json
from datetime import timedelta
from pathlib import Path

import pytest

from decklog import Conflict, Damaged, Decklog, Invalid, NotFound
from decklog.journal.verify import Verification
from decklog.transfer.archive import Archive
from decklog.transfer.jsonl import JsonlExport
from decklog.transfer.move import Move
from tests import programs
from tests.db.test_partitions import entries_of, small_ranges
from tests.fork_server import ProcessResult
from tests.web.client import make_browser


@pytest.fixture
def url(postgres_url: str) -> str:
    """A log with three ended partitions of runs, and one that goes on."""
    small_ranges(postgres_url, 2)
    with Decklog.open(postgres_url) as log:
        for number in range(8):
            log.runs.start("goal", run_id=f"run_{number}")
            log.tasks.add(f"run_{number}", "A task", task_id=f"task_{number}")
            log.journal.append_many([{"stream": f"run_{number}", "body": f"entry {n}"} for n in range(60)])
            if number < 6:
                log.runs.finish(f"run_{number}", status="cancelled", force=True, reason="enough")
        log.journal.search("entry")
    return postgres_url


def create(log: Decklog, folder: Path) -> list[str]:
    return Archive(log, str(folder)).create(log.clock.now() + timedelta(days=1)).files


def verified(log: Decklog, folder: Path) -> list[str]:
    result = Verification()
    Archive(log, str(folder)).verify(result)
    return [problem.what for problem in result.problems]


@pytest.mark.slow
def test_archived_entries_are_in_files_and_come_back_as_they_were(url: str, tmp_path: Path) -> None:
    before = entries_of(url)
    with Decklog.open(url) as log:
        files = create(log, tmp_path)
        assert len(files) >= 2
        assert create(log, tmp_path) == []
        left = entries_of(url)
        assert len(left) < len(before)
        words = "select count(*) from entry_text t where not exists (select 1 from entries e where e.pos = t.entry_pos)"
        assert log.db.read(lambda: log.db.one(words, {})) == (0,)
        result = log.journal.verify()
        assert (result.problems, bool(result.unchecked)) == ([], True)
        assert verified(log, tmp_path) == []
        for file in files:
            Archive(log, str(tmp_path)).restore(file)
            assert Archive(log, str(tmp_path)).restore(file).entries == 0
        assert [row for row in entries_of(url) if row[0] != "@archive"] == before
        assert log.journal.verify().problems == []
        assert log.journal.verify().unchecked == []


def test_a_partition_with_a_run_that_goes_on_stays(url: str, tmp_path: Path) -> None:
    with Decklog.open(url) as log:
        create(log, tmp_path)
        archived = log.db.read(log.db.archived)
        assert "run_0" in archived
        assert "run_7" not in archived
        assert Archive(log, str(tmp_path)).create(log.clock.now() - timedelta(days=1)).files == []


def test_an_archived_run_is_still_shown_and_takes_no_entry(url: str, tmp_path: Path) -> None:
    with Decklog.open(url) as log:
        create(log, tmp_path)
        assert log.runs.get("run_0").goal == "goal"
        assert log.tasks.get("task_0").title == "A task"
        with pytest.raises(Conflict, match="archived"):
            log.journal.append("run_0", "too late")
        with pytest.raises(Conflict, match="archived"):
            log.rebuild()


@pytest.mark.slow
def test_an_extracted_run_is_whole(url: str, tmp_path: Path) -> None:
    with Decklog.open(url) as log, Decklog.open(tmp_path / "old.db") as old:
        log.budgets.set("all", limit_microdollars=1_000_000)
        with log.tasks.claim("run_7", worker="dev", reserve_microdollars=10):  # type: ignore[union-attr]
            log.ledger.charge("some-model", input_tokens=10, cost_microdollars=5, run_id="run_7")
            log.journal.append("run_7", "x" * 70_000)
        log.runs.fork("run_7", new_run_id="run_fork")
        log.runs.start("goal", run_id="with_it")
        for run_id in ("run_6", "run_7", "run_fork", "with_it"):
            log.runs.finish(run_id, status="cancelled", force=True, reason="enough")
        for number in range(4):
            log.runs.start("goal", run_id=f"later_{number}")
        before = {run_id: log.journal.find(run_id, limit=1000) for run_id in ("run_7", "run_fork")}
        files = create(log, tmp_path)
        for file in files:
            Archive(log, str(tmp_path)).extract(file, old)
        for run_id, entries in before.items():
            assert old.journal.find(run_id, limit=1000) == entries
        assert old.runs.get("run_7") == log.runs.get("run_7")
        assert old.journal.verify().problems == []


@pytest.mark.slow
def test_overviews_and_pages_show_archived_runs(url: str, tmp_path: Path) -> None:
    with Decklog.open(url) as log:
        before = {run.id: run for run in log.overview.runs(limit=20)}
        create(log, tmp_path)
        for run in log.overview.runs(limit=20):
            was = before.pop(run.id)
            is_archived = run.id in log.db.read(log.db.archived)
            assert run.last_said == ("archived" if is_archived else was.last_said)
            assert (run.tasks, run.entries, run.status, run.last_at) == (was.tasks, was.entries, was.status, was.last_at)
        assert before == {}
        with pytest.raises(NotFound, match=r"run_0 are archived in entries-16-18") as refused:
            log.runs.totals("run_0")
        assert "runs show run_0 --archives" in str(refused.value.hint)
        stranger = make_browser(log)
        with stranger.runner:
            browser = stranger.log_in()
            assert "run_0" in browser.get("/runs?as=family").text
            assert "archived in" in browser.get("/runs/run_0/overview").text
            assert browser.get("/compare?a=run_0&b=run_7").status == 404


@pytest.mark.slow
def test_verify_finds_a_changed_body_and_a_missing_file(url: str, tmp_path: Path) -> None:
    with Decklog.open(url) as log:
        first, second, *_ = create(log, tmp_path)
        with gzip.open(first, "rt") as file:
            rows = [json.loads(line) for line in file]
        rows[5][-2] = "a more convenient truth"
        with gzip.open(first, "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        Path(second).unlink()
        found = verified(log, tmp_path)
        assert any("its digest differs" in what for what in found)
        assert any(f"entry {rows[5][1]}:{rows[5][2]} " in what for what in found)
        assert any(f"{Path(second).name} is not in" in what for what in found)
        with pytest.raises(Damaged, match="digest"):
            Archive(log, str(tmp_path)).restore(first)


@pytest.mark.slow
def test_verify_finds_a_changed_record_of_an_archived_run(url: str, tmp_path: Path) -> None:
    with Decklog.open(url) as log:
        create(log, tmp_path)
        log.db.write(lambda: log.db.count("update tasks set title = 'Another' where id = 'task_0'", {}))
        assert log.journal.verify().problems == []
        assert verified(log, tmp_path) == ["tasks task_0 differs from its newest entry in title"]


def test_an_archived_log_is_not_copied_with_runs_missing(url: str, tmp_path: Path) -> None:
    with Decklog.open(url) as log, Decklog.open(tmp_path / "copy.db") as copy:
        create(log, tmp_path)
        with pytest.raises(Conflict, match="archived"):
            Move(log, copy).run()
        with pytest.raises(Conflict, match="archived"):
            JsonlExport(log, str(tmp_path / "out")).run()
        JsonlExport(log, str(tmp_path / "out")).run("run_7")


@pytest.mark.slow
def test_the_commands_archive_verify_show_and_restore(url: str, tmp_path: Path) -> None:
    def run(*words: str) -> ProcessResult:
        return programs.call(["--db", url, *words], cwd=tmp_path, variables={})

    assert run("archive", "create", "--before", "2999-01-01").code == 0
    first = str(min(Path(tmp_path, "archives").iterdir()).relative_to(tmp_path))
    assert run("verify", "--archives", "archives").code == 0
    assert b"entry 59" in run("runs", "show", "run_0").out
    assert b"entry 59" not in run("runs", "show", "run_0", "--at", "20").out
    missing = run("runs", "show", "run_0", "--archives", ".")
    assert missing.code == 3
    assert Path(first).name.encode() in missing.err
    assert run("archive", "extract", first, "old.db").code == 0
    assert b"entry 59" in programs.call(["--db", "old.db", "search", "entry 59"], cwd=tmp_path, variables={}).out
    assert run("archive", "restore", first).code == 0
    assert b"entry 59" in run("runs", "show", "run_0").out
    Path(tmp_path, first).unlink()
    assert run("verify", "--archives", "archives").code == 0
    assert run("archive", "create", "--before", "2999-01-01").code == 0
    Path(tmp_path, first).unlink()
    assert run("verify", "--archives", "archives").code == 1


def test_a_sqlite_log_refuses_and_names_prune(tmp_path: Path) -> None:
    with Decklog.open(tmp_path / "log.db") as log, pytest.raises(Invalid) as refused:
        Archive(log, str(tmp_path))
    assert "decklog prune" in str(refused.value.hint)
