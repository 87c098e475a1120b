"""Bringing a schema up to date: after a copy, all or nothing, once, and with a memory of what was applied."""

import re
import shutil
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.db import schema
from tests.db.processes import alone, together

LATER = schema.latest("sqlite") + 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Migrations as a later Decklog would ship them."""
    copy = tmp_path / "migrations"
    shutil.copytree(schema.FOLDER, copy)
    return copy


def add_step(folder: Path, version: int, sql: str) -> None:
    (folder / f"{version:04}_later.sql").write_text(sql)


GOOD = "create table colours (text {text} not null primary key){strict};\nalter table runs add column colour {text};\n"
BAD = "create table colours (text {text} not null primary key){strict};\ninsert into nowhere values (1);\n"


@pytest.fixture
def old(tmp_path: Path) -> str:
    """A log made by the Decklog of today, with something in it."""
    with Decklog.open(tmp_path / "decklog.db") as log:
        log.runs.start("from the old days", run_id="run_1")
        log.journal.append("run_1", "remember this")
    return str(tmp_path / "decklog.db")


def test_an_older_log_is_copied_before_it_is_migrated(old: str, folder: Path) -> None:
    add_step(folder, LATER, GOOD)
    facts = alone("open_with_migrations", old, str(folder))
    assert facts["schema"] == LATER
    copy = Path(f"{old}.schema-{LATER - 1}.bak")
    assert copy.stat().st_mode & 0o777 == 0o600
    with Decklog.open(copy) as log:
        assert log.runs.get("run_1").goal == "from the old days"
        assert log.journal.verify().ok


def test_backup_before_a_migration_replaces_an_older_one(old: str, folder: Path) -> None:
    add_step(folder, LATER, BAD)
    assert alone("open_with_migrations", old, str(folder))["code"] == "invalid"
    with Decklog.open(old) as log:
        log.journal.append("run_1", "written after the failed try")
    add_step(folder, LATER, GOOD)
    alone("open_with_migrations", old, str(folder))
    with Decklog.open(f"{old}.schema-{LATER - 1}.bak") as log:
        assert log.journal.find("run_1")[0].body == "written after the failed try"


def test_a_migration_that_fails_leaves_the_log_as_it_was(old: str, folder: Path) -> None:
    add_step(folder, LATER, BAD)
    assert alone("open_with_migrations", old, str(folder))["code"] == "invalid"
    with Decklog.open(old) as log:
        assert log.db.facts()["schema"] == LATER - 1
        assert log.journal.verify().ok
        assert log.db.read(lambda: log.db.one("select count(*) from sqlite_schema where name = 'colours'", {})) == (0,)


def test_steps_before_a_failed_one_are_kept(old: str, folder: Path) -> None:
    add_step(folder, LATER, GOOD)
    add_step(folder, LATER + 1, BAD)
    assert alone("open_with_migrations", old, str(folder))["code"] == "invalid"
    (folder / f"{LATER + 1:04}_later.sql").unlink()
    facts = alone("open_with_migrations", old, str(folder))
    assert [step["version"] for step in facts["steps"]][-1] == LATER


def test_processes_that_migrate_at_once_do_it_once(old: str, folder: Path) -> None:
    add_step(folder, LATER, GOOD)
    results = together("open_with_migrations", 4, old, str(folder))
    assert [result["schema"] for result in results] == [LATER] * 4
    versions = [step["version"] for step in results[0]["steps"]]
    assert versions == sorted(set(versions))


def test_a_log_for_reading_only_is_not_migrated(old: str, folder: Path) -> None:
    add_step(folder, LATER, GOOD)
    before = Path(old).read_bytes()
    assert alone("open_with_migrations", old, str(folder), True)["code"] == "schema_too_old"
    assert Path(old).read_bytes() == before


def test_a_log_made_by_another_text_of_a_landed_step_is_refused(target: str, folder: Path) -> None:
    Decklog.open(target, migrate=True).close()
    runs = folder / "0001_first" / "2_runs.sql"
    runs.write_text(runs.read_text() + "\n-- edited after it landed\n")
    for later in (False, True):
        if later:
            add_step(folder, LATER, GOOD)
        refusal = alone("open_with_migrations", target, str(folder))
        assert refusal["code"] == "schema_differs"
        assert "0001_first" in refusal["message"]
    with Decklog.open(target) as log:
        assert log.db.facts()["schema"] == LATER - 1


def test_a_new_log_has_no_copy(tmp_path: Path) -> None:
    Decklog.open(tmp_path / "decklog.db").close()
    assert not list(tmp_path.glob("*.bak"))


@pytest.mark.slow
def test_postgres_is_migrated_only_when_asked_and_once_by_many(empty_postgres_url: str) -> None:
    results = together("migrate", 3, empty_postgres_url)
    assert results == [str(schema.latest("postgres"))] * 3
    with Decklog.open(empty_postgres_url, migrate=True) as log:
        assert log.db.migrate() == []
        rows = log.db.read(lambda: log.db.rows("select version, checksum from schema_steps order by version", {}))[1]
    assert [tuple(row) for row in rows] == [
        (step.version, schema.checksum_of(step, "postgres")) for step in schema.steps("postgres")
    ]


def test_a_postgres_step_that_fails_leaves_nothing(postgres_url: str, folder: Path) -> None:
    add_step(folder, LATER, BAD)
    assert alone("open_with_migrations", postgres_url, str(folder))["code"] == "invalid"
    with Decklog.open(postgres_url) as log:
        assert log.db.read(lambda: log.db.one("select to_regclass('colours')::text", {})) == (None,)
    add_step(folder, LATER, GOOD)
    assert alone("open_with_migrations", postgres_url, str(folder))["schema"] == LATER


def test_steps_have_the_same_numbers_on_both_engines_once_and_in_order() -> None:
    versions = [step.version for step in schema.steps("sqlite")]
    assert versions == sorted(set(versions))
    assert versions == [step.version for step in schema.steps("postgres")]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_every_placeholder_of_a_step_is_known(engine: str) -> None:
    for step in schema.steps(engine):
        assert not re.search(r"\{\w+\}", schema.text_of(step, engine)), step.name


def test_verify_notices_a_changed_time_of_a_step(log: Decklog) -> None:
    assert log.journal.verify().ok
    log.db.write(lambda: log.db.count("update schema_steps set applied_at = '2020-01-01T00:00:00.000000Z' where version = 1", {}))
    [problem] = log.journal.verify().problems
    assert (problem.table, problem.record_id, problem.column) == ("schema_steps", "1", "applied_at")


def test_verify_notices_a_step_whose_digest_was_computed_anew(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_step(folder, LATER, GOOD)
    monkeypatch.setattr(schema, "FOLDER", str(folder))
    schema.steps.cache_clear()
    try:
        with Decklog.open(tmp_path / "two-steps.db") as log:
            rows = [list(row) for row in log.db.read(lambda: log.db.rows(schema.APPLIED, {}))[1]]
        assert list(schema.step_differences(map(tuple, rows), "sqlite")) == []
        rows[0][3:] = ["2020-01-01T00:00:00.000000Z", None]
        rows[0][4] = next(schema.missing_digests([tuple(rows[0])]))["digest"]
        assert [problem["record_id"] for problem in schema.step_differences(map(tuple, rows), "sqlite")] == ["2"]
    finally:
        schema.steps.cache_clear()
