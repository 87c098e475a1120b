"""Questions in SQL: they only read, they end, and they see bazinga's tables."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.plugins.legacy.bazinga import BazingaDB, CallRefused, query
from decklog.plugins.legacy.bazinga.query import ask
from tests.conftest import ENGINES
from tests.databases import Databases
from tests.every import every
from tests.plugins.legacy.bazinga.conftest import WORLD
from tests.plugins.legacy.bazinga.shell import Shell

TABLES = {
    "sessions": "session_id, start_time, end_time, mode, original_requirements, status, initial_branch, metadata, created_at",
    "orchestration_logs": (
        "id, session_id, timestamp, iteration, agent_type, agent_id, content, log_type, reasoning_phase, confidence_level, "
        "references_json, redacted, group_id, event_subtype, event_payload, idempotency_key"
    ),
    "state_snapshots": "id, session_id, group_id, timestamp, state_type, state_data",
    "task_groups": (
        "id, session_id, name, status, assigned_to, revision_count, last_review_status, feature_branch, merge_status, "
        "complexity, initial_tier, context_references, specializations, item_count, security_sensitive, qa_attempts, "
        "tl_review_attempts, component_path, review_iteration, no_progress_count, blocking_issues_count, speckit_task_ids, "
        "created_at, updated_at"
    ),
    "token_usage": "id, session_id, timestamp, agent_type, agent_id, tokens_estimated",
    "skill_outputs": "id, session_id, timestamp, skill_name, output_data, agent_type, group_id, iteration",
    "development_plans": (
        "id, session_id, original_prompt, plan_text, phases, current_phase, total_phases, created_at, updated_at, metadata"
    ),
    "success_criteria": ("id, session_id, criterion, status, actual, evidence, required_for_completion, created_at, updated_at"),
    "context_packages": (
        "id, session_id, group_id, package_type, file_path, producer_agent, priority, summary, size_bytes, version, "
        "supersedes_id, scope, created_at"
    ),
    "context_package_consumers": "id, package_id, agent_type, consumed_at, iteration",
    "error_patterns": (
        "pattern_hash, project_id, signature_json, solution, confidence, occurrences, lang, last_seen, created_at, ttl_days"
    ),
    "strategies": "strategy_id, project_id, topic, insight, helpfulness, lang, framework, last_seen, created_at",
    "schema_version": "version, applied_at, description",
}
EMPTY_TABLES = {"consumption_scope": "scope_id, session_id, group_id, agent_type, iteration, package_id, consumed_at"}
SEEDED_TABLES = {
    "workflow_transitions": (
        "id, current_agent, response_status, next_agent, action, include_context, escalation_check, model_override, "
        "fallback_agent, bypass_qa, max_parallel, then_action"
    ),
    "agent_markers": "id, agent_type, required_markers, workflow_markers",
    "workflow_special_rules": "id, rule_name, description, config",
}


@pytest.fixture(scope="module", params=ENGINES)
def database(request: pytest.FixtureRequest, prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BazingaDB]:
    """The prepared project's records, on each engine; whoever takes this only asks."""
    if request.param == "sqlite":
        yield from _filled(str(tmp_path_factory.mktemp("asked") / "decklog.db"), prepared)
    else:
        databases: Databases = request.getfixturevalue("postgres_databases")
        with databases.one() as url:
            yield from _filled(url, prepared)


def _filled(target: str, prepared: Path) -> Iterator[BazingaDB]:
    shell = Shell(prepared, target)
    for words in WORLD:
        assert shell.run("--db", target, "--project-root", str(prepared), "--quiet", *words).code == 0, words
    with BazingaDB(target, project_root=str(prepared)) as database:
        yield database


@pytest.mark.slow
@every("table", TABLES)
def test_a_table_of_bazinga_has_its_columns_and_rows(database: BazingaDB, table: str) -> None:
    rows = database.query(f"select * from {table}")
    assert rows
    assert ", ".join(rows[0]) == TABLES[table]


@pytest.mark.slow
@every("table", EMPTY_TABLES)
def test_a_table_of_bazinga_without_rows_has_its_columns(database: BazingaDB, table: str) -> None:
    assert database.query(f"select {EMPTY_TABLES[table]} from {table}") == []


@every("table", SEEDED_TABLES)
def test_a_table_of_the_workflow_has_its_columns_and_rows(database: BazingaDB, table: str) -> None:
    names = SEEDED_TABLES[table].split(", ")
    assert {tuple(row) for row in database.query(f"select {SEEDED_TABLES[table]} from {table}")} == {tuple(names)}


def test_the_views_say_what_the_commands_say(database: BazingaDB) -> None:
    assert (
        database.query("select * from sessions where session_id = 's'")[0]["start_time"]
        == (database.get_session("s") or {})["start_time"]
    )
    logs = database.query("select id, content from orchestration_logs where session_id = 's' order by id desc")
    assert logs == [{"id": row["id"], "content": row["content"]} for row in database.get_logs("s")]
    groups = database.query("select * from task_groups order by id")
    assert groups == database.get_task_groups("s")
    assert database.query("select sum(tokens_estimated) as n from token_usage")[0]["n"] == 150
    assert database.query("select version from schema_version") == [{"version": 19}]


def test_readers_of_the_file_itself_find_the_tables_too(shell: Shell) -> None:
    import subprocess
    import sys

    code = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('select session_id from sessions').fetchall())"
    found = subprocess.run([sys.executable, "-c", code, shell.db], capture_output=True, text=True, check=True)
    assert found.stdout == "[('s',)]\n"


def test_a_log_on_a_server_has_the_views_only_once_bazinga_was_there(target: str) -> None:
    with Decklog.open(target) as log:
        if log.db.engine == "sqlite":
            return
        assert len(log.db.read(lambda: query.missing_views(log.db))) >= 13
    BazingaDB(target).close()
    with Decklog.open(target) as log:
        assert log.db.read(lambda: query.missing_views(log.db)) == {}


def test_a_log_for_reading_only_answers_too(target: str) -> None:
    with Decklog.open(target) as log:
        log.runs.start("x", run_id="s")
    with Decklog.open(target, read_only=True) as log:
        assert ask(log.db, "select session_id from sessions") == [{"session_id": "s"}]
        assert ask(log.db, "select * from error_patterns") == []


ALLOWED = [
    ("select 1 as one", [{"one": 1}]),
    ("  SELECT 1 as one", [{"one": 1}]),
    ("-- a remark\nselect 1 as one", [{"one": 1}]),
    ("/* a remark */ select 1 as one", [{"one": 1}]),
    ("with x as (select 1 as one) select one from x", [{"one": 1}]),
    ("select 1 as one;", [{"one": 1}]),
    ("select 1 as a, 2 as a, 3 as a", [{"a": 1, "a_2": 2, "a_3": 3}]),
    ("select count(*) as n from sessions where session_id = 'nope'", [{"n": 0}]),
    ("select session_id from sessions where 1 = 0", []),
]


@every(("sql", "rows"), ALLOWED, ids=[sql for sql, _ in ALLOWED])
def test_a_question_is_answered(database: BazingaDB, sql: str, rows: list[object]) -> None:
    assert database.query(sql) == rows


def test_values_and_explain_are_questions(database: BazingaDB) -> None:
    assert [list(row.values()) for row in database.query("values (1, 2), (3, 4)")] == [[1, 2], [3, 4]]
    assert database.query("explain select 1")


def test_parameters_are_bound(database: BazingaDB) -> None:
    mark = "?" if database.log.db.engine == "sqlite" else "%s"
    assert database.query(f"select session_id from sessions where session_id = {mark}", ("s",)) == [{"session_id": "s"}]


def test_bytes_are_shown(database: BazingaDB) -> None:
    sql = "select x'0aff' as b" if database.log.db.engine == "sqlite" else "select '\\x0aff'::bytea as b"
    assert database.query(sql) == [{"b": "x'0aff'"}]


WRITES = [
    "delete from runs",
    "update runs set goal = 'x'",
    "insert into blobs values ('a', 1, null)",
    "drop table runs",
    "create table mine (a text)",
    "with x as (select 1) delete from runs",
    "vacuum",
]


@every("sql", WRITES)
def test_a_question_can_not_write(database: BazingaDB, sql: str) -> None:
    with pytest.raises(CallRefused):
        database.query(sql)
    assert database.get_session("s") is not None


@pytest.mark.parametrize("sql", ["attach '/tmp/x.db' as x", "pragma journal_mode = delete", "select load_extension('x')"])
def test_sqlite_is_asked_nothing_else(shell: Shell, sql: str) -> None:
    assert shell.call("query", sql).code == 1


@every("sql", ["select 1; select 2", "select 1; drop table runs", "", "   ", "selec 1", "select * from no_such"])
def test_what_is_not_one_question_is_refused(database: BazingaDB, sql: str) -> None:
    with pytest.raises(CallRefused):
        database.query(sql)


ENDLESS = "with recursive x(n) as (select 1 union all select n + 1 from x) select count(*) from x"


@pytest.mark.slow
def test_an_endless_question_ends_soon(database: BazingaDB) -> None:
    begin = time.process_time()
    with pytest.raises(CallRefused, match="stopped"):
        database.query(ENDLESS)
    assert time.process_time() - begin < 2


def test_a_huge_value_is_refused_soon(shell: Shell) -> None:
    for sql in ("select randomblob(1000000000)", "select zeroblob(1000000000)", "select hex(randomblob(8000000))"):
        begin = time.process_time()
        assert shell.call("query", sql).code == 1
        assert time.process_time() - begin < 2


def test_an_answer_has_at_most_ten_thousand_rows(database: BazingaDB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "SECONDS", 60)
    many = "with recursive x(n) as (select 1 union all select n + 1 from x where n < {0}) select n from x"
    assert len(database.query(many.format(10_000))) == 10_000
    with pytest.raises(CallRefused, match="10000 rows"):
        database.query(many.format(10_001))


def test_the_words_of_a_question_may_come_one_by_one(shell: Shell) -> None:
    assert shell.ok("query", "select", "session_id", "from", "sessions", "--", "all of them") == [{"session_id": "s"}]
