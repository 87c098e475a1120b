"""A bazinga database of any version is taken over whole, once."""

import json
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.core.errors import SchemaTooNew
from decklog.importing.report import Outcome
from decklog.plugins.importers.bazinga.export import BazingaExport
from decklog.plugins.importers.bazinga.importer import BazingaImport
from tests.conftest import on_both
from tests.plugins.importers import claims
from tests.plugins.importers.bazinga.bazinga_files import HISTORY, build
from tests.plugins.importers.comparing import execute

VERSIONS = range(1, 20)


def _entries(log: Decklog, stream: str) -> list:
    return [entry for entry in log.journal.find(stream, oldest_first=True, limit=200) if entry.kind != "change"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "bazinga.db"


@pytest.fixture
def sqlite_log(tmp_path: Path):
    with Decklog.open(tmp_path / "decklog.db", durability="relaxed") as log:
        yield log


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_arrives_whole_and_a_second_import_changes_nothing(sqlite_log: Decklog, file: Path, version: int) -> None:
    counts = build(file, version)
    before = file.read_bytes()

    report = claims.check_whole(sqlite_log, lambda log: BazingaImport(log, str(file)).run(), counts)

    assert (report.version, report.unknown) == (version, [])
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir() if path.name.startswith("bazinga")] == ["bazinga.db"]


@pytest.mark.slow
@on_both
def test_what_the_file_says_is_what_the_log_says(log: Decklog, file: Path) -> None:
    build(file, 19)

    report = BazingaImport(log, str(file)).run()

    kept = {table: found["kept"] for table, found in report.tables.items() if found["kept"]}
    assert kept == {"workflow_transitions": 1, "agent_markers": 1, "workflow_special_rules": 1}
    run = log.runs.get("bazinga_1")
    assert (run.goal, run.status, run.mode, run.branch) == ("Make the parser faster", "completed", "parallel", "develop")
    assert run.started_at.isoformat() == "2025-11-12T08:00:00+00:00"
    group = log.groups.get("bazinga_1", "G1")
    assert (group.merge_status, group.complexity, group.review_iteration) == ("merged", 7, 3)
    said = [entry.body for entry in _entries(log, "bazinga_1") if not (entry.subtype or "").startswith("imported")]
    assert said == ["first", "second", "the cache is stale", "Event: scope_change"]
    # Logs of an earlier version hold such keys: another form would take everything over a second time.
    assert [entry.key for entry in _entries(log, "bazinga_1") if entry.body == "first"] == ["import:bazinga:orchestration_logs:1"]
    assert log.states.get("bazinga_1", "pm").document == {"step": 1}
    assert [charge.input_tokens for charge in log.ledger.find(run_id="bazinga_1")] == [0, 1500]
    assert log.outputs.latest("bazinga_1", "lint").document == {"errors": 0}
    assert log.outputs.latest("bazinga_1", "lint").iteration == 2
    assert [phase.name for phase in log.plans.phases("bazinga_1")] == ["Measure", "Cut"]
    assert log.criteria.get("bazinga_1", "twice as fast").status == "met"
    assert [package.number for package in log.context.offer("bazinga_1", "developer", group_id="G1")] == [2]
    assert log.patterns.get("ab" * 32, "parser").occurrences == 4
    assert log.journal.verify().ok


def test_old_files_hold_every_save_of_a_state_and_each_becomes_a_version(log: Decklog, file: Path) -> None:
    build(file, 16)

    BazingaImport(log, str(file)).run()

    versions = log.states.versions("bazinga_1", "pm")
    assert len(versions) == 1 + len(HISTORY)
    documents = [log.states.get("bazinga_1", "pm", version=number).document for number in (1, 2, 3)]
    assert documents == [{"step": 1}, {"step": 2}, {"step": 3}]
    assert log.states.get("bazinga_1", "pm").document == {"step": 3}


@pytest.mark.slow
@on_both
def test_a_later_import_brings_what_is_new_and_what_moved_on(log: Decklog, file: Path) -> None:
    build(file, 19)
    BazingaImport(log, str(file)).run()
    execute(file, "insert into orchestration_logs (session_id, agent_type, content) values ('bazinga_2', 'pm', 'later')")
    execute(file, "update sessions set status = 'failed', end_time = '2025-11-13 08:00:00' where session_id = 'bazinga_2'")

    report = BazingaImport(log, str(file)).run()

    assert (report.total(Outcome.NEW), report.total(Outcome.CHANGED)) == (1, 1)
    assert log.runs.get("bazinga_2").status == "failed"
    assert _entries(log, "bazinga_2")[-1].body == "later"


def test_a_record_that_went_on_here_is_not_taken_back(log: Decklog, file: Path) -> None:
    build(file, 19)
    BazingaImport(log, str(file)).run()
    log.groups.update("bazinga_2", "G1", status="in_progress")
    execute(file, "update task_groups set status = 'failed', updated_at = '2025-11-13 08:00:00' where session_id = 'bazinga_2'")

    BazingaImport(log, str(file)).run()

    assert log.groups.get("bazinga_2", "G1").status == "in_progress"


def test_what_no_record_can_hold_is_kept_and_reported(log: Decklog, file: Path) -> None:
    build(
        file,
        19,
        more={
            "orchestration_logs": [
                {"session_id": "gone", "agent_type": "pm", "content": "orphan"},
                {"session_id": "bazinga_1", "agent_type": "pm", "content": b"\x00\xff"},
                {"session_id": "bazinga_1", "agent_type": "pm", "content": "x", "event_payload": "{broken", "timestamp": "never"},
            ],
            "task_groups": [{"id": "G2", "session_id": "bazinga_1", "name": "n", "last_review_status": "MAYBE"}],
        },
    )
    execute(file, "alter table sessions add column colour text")
    execute(file, "update sessions set colour = 'blue' where session_id = 'bazinga_1'")
    execute(file, "create table extras (id integer)")

    report = BazingaImport(log, str(file)).run()

    assert report.unknown == ["sessions.colour", "extras"]
    assert report.total(Outcome.REFUSED) == 0
    orphan = [entry for entry in _entries(log, "@desk") if entry.payload["table"] == "orchestration_logs"]
    assert [entry.payload["row"]["content"] for entry in orphan] == ["orphan"]
    beside = {
        entry.payload["id"]: entry.payload["columns"] for entry in log.journal.find("bazinga_1", subtype="imported.columns")
    }
    assert beside["bazinga_1"] == {"colour": "blue"}
    assert beside["bazinga_1/G2"] == {"last_review_status": "MAYBE"}
    assert beside["8"] == {"event_payload": "{broken", "timestamp": "never"}
    assert beside["7"]["content"] == {"base64": "AP8="}


def test_a_newer_file_is_refused(log: Decklog, file: Path) -> None:
    build(file, 19)
    execute(file, "insert into schema_version (version) values (20)")

    with pytest.raises(SchemaTooNew, match="20"):
        BazingaImport(log, str(file)).run()


def test_a_second_import_brings_what_was_saved_again_meanwhile(log: Decklog, file: Path) -> None:
    build(file, 19)
    BazingaImport(log, str(file)).run()
    name, group = execute(file, "select state_type, group_id from state_snapshots limit 1")[0]
    execute(
        file,
        f"""update state_snapshots set state_data = '{{"step": "later"}}', timestamp = '2026-06-01 00:00:00'
             where state_type = '{name}' and group_id = '{group}'""",
        "update error_patterns set confidence = 0.25, occurrences = 77",
        "update strategies set helpfulness = 41",
        'update sessions set metadata = \'{"note": "later"}\'',
        "update context_package_consumers set consumed_at = '2026-06-01 00:00:00'",
    )

    again = BazingaImport(log, str(file)).run()
    heads = log.journal.heads()
    third = BazingaImport(log, str(file)).run()

    assert log.states.get("bazinga_1", name, group_id=group).document == {"step": "later"}
    assert log.patterns.get("ab" * 32, "parser").occurrences == 77
    assert {one.helpfulness for one in log.strategies.find("parser")} == {41}
    assert log.runs.get("bazinga_1").metadata == {"note": "later"}
    assert again.tables["error_patterns"]["changed"] == again.tables["error_patterns"]["read"]
    assert log.journal.heads() == heads
    assert third.total(Outcome.CHANGED) == third.total(Outcome.NEW) == 0
    assert log.journal.verify().ok


def test_what_was_changed_here_is_not_undone_by_the_source_and_that_is_said(log: Decklog, file: Path) -> None:
    build(file, 19)
    BazingaImport(log, str(file)).run()
    pattern = log.patterns.get("ab" * 32, "parser")
    log.patterns.judge(pattern.pattern_hash, pattern.project, "success")
    execute(file, "update error_patterns set solution = 'another one'")

    report = BazingaImport(log, str(file)).run()

    assert log.patterns.get(pattern.pattern_hash, pattern.project).solution == pattern.solution
    assert any("changed here and in the source" in note for note in report.notes)


def test_values_of_the_source_that_went_back_are_followed(log: Decklog, file: Path, tmp_path: Path) -> None:
    build(file, 19)
    BazingaImport(log, str(file)).run()
    older = tmp_path / "older.db"
    older.write_bytes(file.read_bytes())
    execute(file, "update strategies set helpfulness = 41", "update error_patterns set confidence = 0.25")
    BazingaImport(log, str(file)).run()

    report = BazingaImport(log, str(older)).run()

    assert report.total(Outcome.CHANGED) == 2
    assert {one.helpfulness for one in log.strategies.find("parser")} != {41}
    assert log.journal.verify().ok


def test_a_phase_with_a_status_of_its_own_leaves_the_plan_a_plan(log: Decklog, file: Path, tmp_path: Path) -> None:
    build(file, 19)
    phases = '[{"phase": 1, "name": "Lexer", "status": "nearly"}, {"phase": 2, "name": "Parser", "status": "completed"}]'
    execute(file, f"update development_plans set phases = '{phases}'")

    report = BazingaImport(log, str(file)).run()

    assert report.tables["development_plans"]["kept"] == 0
    assert [phase.status for phase in log.plans.phases("bazinga_1")] == ["pending", "completed"]
    BazingaExport(log, str(tmp_path / "out.db")).run()
    [back] = [json.loads(text) for (text,) in execute(tmp_path / "out.db", "select phases from development_plans")]
    assert [phase["status"] for phase in back] == ["nearly", "completed"]
