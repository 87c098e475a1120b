"""Verify checks what no entry records: texts, words, sums, the schema and facts of streams."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from decklog import Decklog, ManualClock
from decklog.journal import chain
from decklog.journal.replication import Replication
from decklog.journal.verify import Problem, Verification
from decklog.transfer.jsonl import JsonlExport, JsonlImport
from decklog.transfer.move import Move
from decklog.transfer.prune import Prune
from tests.db.tampering import PostgresVictim, SqliteVictim
from tests.db.whole_log import Digests

MONTH = timedelta(days=30)
LONG = "a long story " * 6000

Change = Callable[..., int]


@pytest.fixture
def change(log: Decklog, target: str) -> Change:
    """Run SQL past Decklog, its triggers, checks and foreign keys."""
    victim = SqliteVictim(target) if log.db.engine == "sqlite" else PostgresVictim(target, log)
    return victim.change


@pytest.fixture
def logged(log: Decklog, clock: ManualClock) -> Decklog:
    """A run with texts of two months ago, and some of today."""
    log.runs.start("goal", run_id="run_1")
    log.journal.append("run_1", "old words", kind="tool", payload={"a": 1})
    log.journal.append("run_1", LONG, kind="tool")
    clock.advance(days=60)
    log.journal.append("run_1", "new words", kind="tool")
    log.journal.append("run_1", "other " + LONG, kind="tool")
    return log


def first(result: Verification) -> Problem:
    assert result.first is not None
    return result.first


def drop_text(name: str, seq: int) -> str:
    """Return a statement that drops a text as retention does, without its event."""
    digest = chain.digest({2: "old words", 4: "new words"}[seq])
    return f"update entries set {name}_digest = '{digest}', {name} = null where stream = 'run_1' and seq = {seq}"


# Texts that are gone


def test_verify_finds_a_text_replaced_by_its_digest(logged: Decklog, change: Change) -> None:
    assert change(drop_text("body", 4)) == 1
    found = first(logged.journal.verify())
    assert (found.stream, found.seq, found.table, found.column) == ("run_1", 4, "entries", "body")
    assert "no event records that it was pruned" in found.what


def test_pruning_covers_dropped_texts_only(logged: Decklog, change: Change) -> None:
    Prune(logged, MONTH).run(apply=True)
    assert logged.journal.verify().ok
    assert change(drop_text("body", 4)) == 1
    assert [problem.seq for problem in logged.journal.verify().problems] == [4]


def test_pruning_of_one_kind_does_not_cover_another(logged: Decklog, change: Change, clock: ManualClock) -> None:
    logged.journal.append("run_1", "a thought", kind="reasoning")
    clock.advance(days=60)
    Prune(logged, MONTH, kind="tool").run(apply=True)
    assert logged.journal.verify().ok
    change(f"update entries set body_digest = '{chain.digest('a thought')}', body = null where kind = 'reasoning'")
    assert [problem.column for problem in logged.journal.verify().problems] == ["body"]


def test_a_deleted_blob_of_an_entry_is_missed(logged: Decklog, change: Change) -> None:
    assert change("delete from blobs") == 2
    assert {(problem.seq, problem.column) for problem in logged.journal.verify().problems} == {(3, "body"), (5, "body")}


def test_verify_finds_a_dropped_payload_of_an_old_change(logged: Decklog, change: Change) -> None:
    logged.runs.update("run_1", summary="half way")
    payload = logged.db.read(lambda: logged.db.one("select payload from entries where pos % 4294967296 = 1", {}))
    assert payload is not None
    change(f"update entries set payload_digest = '{chain.digest(payload[0])}', payload = null where seq = 1")
    found = first(logged.journal.verify())
    assert (found.seq, found.column) == (1, "payload")


KEEPERS: dict[str, Callable[[Any], object]] = {
    "states": lambda log: log.states.save("run_1", "pm", {"a": 1}),
    "checkpoints": lambda log: log.states.checkpoint("run_1", payload=["x" * 70_000]),
    "snapshots": lambda log: log.states.save_snapshot(
        "run_1", "one", {"task_id": "one", "paused_at": "2026-01-01T00:00:00Z", "reason": "lunch"}
    ),
    "artifacts": lambda log: log.artifacts.add("run_1", "report", "a.txt", content="text"),
    "outputs": lambda log: log.outputs.save("run_1", "lint", ["y" * 70_000]),
    "effects": lambda log: log.effects.settle(
        log.effects.intend("run_1", "push", "git", key="k", actor="h").id, actor="h", result={"out": "z" * 70_000}
    ),
    "approvals": lambda log: log.approvals.ask("run_1", "May I?", by="dev", about="the diff"),
}


@pytest.mark.parametrize("kind", KEEPERS)
def test_deleted_bytes_of_a_record_are_missed(log: Decklog, change: Change, kind: str) -> None:
    log.runs.start("goal", run_id="run_1")
    KEEPERS[kind](log)
    assert log.journal.verify().ok
    assert change("delete from blobs") == 1
    found = first(log.journal.verify())
    assert found.table == "blobs"
    assert kind in found.what


def test_artifact_known_by_digest_alone_needs_no_bytes(log: Decklog) -> None:
    log.runs.start("goal", run_id="run_1")
    log.artifacts.add("run_1", "report", "a.txt", digest="0" * 64)
    assert log.journal.verify().ok


def test_another_size_of_a_blob_is_found(logged: Decklog, change: Change) -> None:
    assert change("update blobs set size = size + 1") == 2
    assert {(problem.table, problem.column) for problem in logged.journal.verify().problems} == {("blobs", "size")}


def test_a_pruned_log_that_was_moved_or_exported_is_whole(logged: Decklog, tmp_path: Path) -> None:
    Prune(logged, MONTH).run(apply=True)
    with Decklog.open(tmp_path / "moved.db") as moved:
        Move(logged, moved).run()
        assert moved.journal.verify().ok
    JsonlExport(logged, str(tmp_path / "out")).run()
    with Decklog.open(tmp_path / "read.db") as read:
        JsonlImport(read, str(tmp_path / "out")).run()
        assert read.journal.verify().ok


# Words


@pytest.mark.slow
@pytest.mark.parametrize("what", ["hidden", "moved", "mark raised", "mark lowered", "mark gone"])
def test_an_entry_can_not_be_hidden_from_a_search(logged: Decklog, change: Change, what: str) -> None:
    logged.journal.index()
    key = "rowid" if logged.db.engine == "sqlite" else "entry_pos"
    statements = {
        "hidden": f"delete from entry_text where {key} % 4294967296 = 4",
        "moved": "update entry_text_docsize set id = id + 100 where id % 4294967296 = 4"
        if logged.db.engine == "sqlite"
        else "update entry_text set entry_pos = entry_pos + 100 where entry_pos % 4294967296 = 4",
        "mark raised": "update entry_text_marks set pos = pos + 9",
        "mark lowered": "update entry_text_marks set pos = pos - 1",
        "mark gone": "delete from entry_text_marks",
    }
    assert change(statements[what]) >= 1
    result = logged.journal.verify()
    assert not result.ok
    assert {problem.table for problem in result.problems} <= {"entry_text", "entry_text_marks"}
    if what == "hidden":
        assert (first(result).stream, first(result).seq, first(result).table) == ("run_1", 4, "entry_text")


@pytest.mark.slow
@pytest.mark.parametrize("by", [-1, -2])
def test_a_mark_that_was_moved_is_named(logged: Decklog, change: Change, by: int) -> None:
    logged.journal.index()
    logged.journal.append("run_1", "not indexed yet")
    assert change(f"update entry_text_marks set pos = pos + ({by})") == 1
    assert "entry_text_marks" in {problem.table for problem in logged.journal.verify().problems}
    assert change(f"update entry_text_marks set pos = pos - ({by}) + 1") == 1
    assert "entry_text_marks" in {problem.table for problem in logged.journal.verify().problems}


def test_index_is_verified_after_pruning(logged: Decklog) -> None:
    logged.journal.index()
    Prune(logged, MONTH).run(apply=True)
    assert logged.journal.verify().ok


@pytest.mark.slow
def test_index_is_verified_during_a_merge(log: Decklog) -> None:
    """SQLite merges large parts of an index step by step, with each that is added."""
    log.runs.start("goal", run_id="run_1")
    dice = Random(1)
    for _ in range(5):
        log.journal.append("run_1", " ".join(f"{dice.randrange(16**7):07x}" for _ in range(8000)))
        log.journal.index()
    assert log.journal.verify().problems == []


@pytest.fixture
def remembered(log: Decklog) -> Decklog:
    log.memory.embedder = Digests()
    log.memory.remember("task_outcomes", "Sparrows flock near the river")
    log.memory.remember("task_outcomes", "Herons fish alone before dawn")
    assert log.memory.embed() == 2
    assert log.journal.verify().ok
    return log


@pytest.mark.slow
def test_a_vector_that_was_exchanged_is_found(remembered: Decklog, change: Change) -> None:
    other = "zeroblob(32)" if remembered.db.engine == "sqlite" else "array_fill(0.5::real, array[8])"
    assert change(f"update lesson_vectors set vector = {other}") == 2
    assert first(remembered.journal.verify()).table == "lesson_vectors"


LESSON_INDEX = {
    "sqlite": {
        "a lesson hidden": ("delete from lesson_text where rowid = 1", "lesson_text"),
        "its words exchanged": (
            "update lesson_text_data set block = cast(replace(cast(block as text), 'heron', 'gooses') as blob) where id > 10",
            "lesson_text",
        ),
        "its place gone": ("delete from lesson_places where no = 1", "lesson_places"),
        "the place of another": ("update lesson_places set no = no + 7 where no = 1", "lesson_places"),
        "another length": ("update lesson_places set length = length + 1 where no = 1", "lesson_places"),
    },
    "postgres": {
        "a lesson hidden": ("delete from lesson_text where no = (select min(no) from lesson_text)", "lesson_text"),
        "its words exchanged": ("update lesson_terms set term = 'gooses' where term = 'heron'", "lesson_terms"),
        "its words gone": ("delete from lesson_terms where lesson_no = (select min(no) from lesson_text)", "lesson_text"),
        "one word counted more": ("update lesson_terms set times = 9 where term = 'heron'", "lesson_terms"),
        "words of nobody": (
            "insert into lesson_terms (term, lesson_no, times, length) values ('heron', 77, 1, 9)",
            "lesson_terms",
        ),
        "one word of a longer lesson": ("update lesson_terms set length = 900 where term = 'heron'", "lesson_terms"),
        "another topic": ("update lesson_text set topic = 'ideas' where no = (select min(no) from lesson_text)", "lesson_text"),
        "another project": ("update lesson_text set project = 'p' where no = (select min(no) from lesson_text)", "lesson_text"),
        "another length": ("update lesson_text set length = 900 where no = (select min(no) from lesson_text)", "lesson_text"),
    },
}
ANY_INDEX = {
    "more lessons counted": ("update lesson_sums set lessons = lessons + 1", "lesson_sums"),
    "fewer terms counted": ("update lesson_sums set terms = terms - 1", "lesson_sums"),
    "nothing counted": ("delete from lesson_sums", "lesson_sums"),
    "the mark lowered": ("update lesson_marks set seq = seq - 1", "lesson_marks"),
    "the mark raised": ("update lesson_marks set seq = seq + 1", "lesson_marks"),
    "the mark gone": ("delete from lesson_marks", "lesson_marks"),
    "the mark of others": ("update lesson_marks set name = 'terms of another day'", "lesson_marks"),
}
LESSONS = [pytest.param(e, way, id=f"{e}: {way}") for e in LESSON_INDEX for way in LESSON_INDEX[e] | ANY_INDEX]


@pytest.mark.slow
@pytest.mark.parametrize(("target", "way"), LESSONS, indirect=["target"])
def test_hidden_lesson_is_found_and_indexed_again(remembered: Decklog, change: Change, way: str) -> None:
    statement, table = (LESSON_INDEX[remembered.db.engine] | ANY_INDEX)[way]
    assert change(statement) >= 1
    assert table in {problem.table for problem in remembered.journal.verify().problems}
    remembered.rebuild()
    assert remembered.journal.verify().ok
    assert [hit.body for hit in remembered.memory.peek("where do herons fish")][:1] == ["Herons fish alone before dawn"]


@pytest.fixture
def behind(remembered: Decklog, tmp_path: Path) -> Decklog:
    """A log that got entries of another one and was stopped before it indexed them: a lesson is new, and one no longer holds."""
    with Decklog.open(tmp_path / "other.db", clock=remembered.clock) as other:
        Move(remembered, other).run()
        known = other.journal.heads()
        sparrows, herons = other.memory.find(oldest_first=True)
        other.memory.supersede(sparrows.id, herons.id)
        other.memory.remember("task_outcomes", "Owls hunt when nobody sees them")
        [reached] = [head["seq"] for head in known if head["stream"] == "@memory"]
        Replication.of(remembered).receive(Replication.of(other).export_entries("@memory", after=reached))
    return remembered


@pytest.mark.slow
def test_lessons_not_indexed_yet_are_no_damage(behind: Decklog) -> None:
    assert behind.journal.verify().ok
    behind.memory.embedder = None
    assert [hit.body for hit in behind.memory.peek("when do owls hunt")] == ["Owls hunt when nobody sees them"]
    assert behind.memory.peek("sparrows") == []
    assert behind.journal.verify().ok


def test_moved_lessons_are_recalled_in_their_new_home(remembered: Decklog, tmp_path: Path) -> None:
    with Decklog.open(tmp_path / "moved.db") as moved:
        Move(remembered, moved).run()
        assert [hit.body for hit in moved.memory.peek("where do herons fish")] == ["Herons fish alone before dawn"]
        assert moved.journal.verify().ok


# Sums


@pytest.fixture
def spent(log: Decklog, clock: ManualClock) -> Decklog:
    log.runs.start("goal", run_id="run_1")
    log.budgets.set("run", scope_id="run_1", limit_microdollars=100)
    log.ledger.charge("m", cost_microdollars=60, run_id="run_1")
    clock.advance(days=1)
    log.reservations.reserve(clock.now() + timedelta(hours=1), amount_microdollars=5, run_id="run_1")
    assert log.journal.verify().ok
    return log


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("microdollars", "0"),
        ("tokens", "tokens + 1"),
        ("calls", "calls + 1"),
        ("unpriced_calls", "7"),
        ("day", "'2025-01-01'"),
        ("budget_id", "'budget_x'"),
        # Reservations that this time has seen expire hold nothing.
        ("as_of", "'2099-01-01T00:00:00.000000Z'"),
    ],
)
def test_a_changed_sum_of_a_budget_is_found(spent: Decklog, change: Change, column: str, value: str) -> None:
    assert change(f"update budget_days set {column} = {value} where day = (select max(day) from budget_days)") == 1
    if column == "microdollars":
        assert change("update budget_days set microdollars = 0") == 2
    assert any(problem.table == "budget_days" and problem.column == column for problem in spent.journal.verify().problems)


def test_sums_that_were_counted_anew_are_whole(spent: Decklog) -> None:
    spent.budgets.rebuild()
    spent.budgets.set("all", limit_microdollars=9)
    assert spent.journal.verify().ok


@pytest.mark.parametrize("table", ["budget_gates", "lesson_desk", "context_turn"])
def test_verify_finds_deleted_lock_rows(log: Decklog, change: Change, table: str) -> None:
    assert change(f"delete from {table}") >= 1
    assert first(log.journal.verify()).table == table


# Streams


def test_known_key_with_an_earlier_time_keeps_the_order(logged: Decklog, clock: ManualClock) -> None:
    for at in (clock.now(), clock.now() - timedelta(days=9)):
        logged.journal.append("run_1", "once", key="k", at=at)
    assert logged.journal.verify().ok


# The schema


def ways(engine: str) -> dict[str, tuple[str, str]]:
    """Return changes of a schema, each with the message of verify."""
    raising = {
        "sqlite": "create trigger spy after insert on entries begin delete from charges; end",
        "postgres": "create trigger spy after insert on charges for each row execute function entries_never_go()",
    }[engine]
    never = {
        "sqlite": "drop trigger entries_never_go; create trigger entries_never_go before delete on entries begin select 1; end",
        "postgres": "create or replace function entries_never_go() returns trigger language plpgsql as $$begin return old; end$$",
    }[engine]
    drop = {"sqlite": "drop trigger entries_never_change", "postgres": "drop trigger entries_never_change on entries"}[engine]
    common = {
        "a trigger dropped": (drop, "the trigger entries_never_change of entries was dropped"),
        "a trigger added": (raising, "the trigger spy of "),
        "a trigger made harmless": (never, "entries_never_go"),
        "an index dropped": ("drop index tasks_by_key", "the index tasks_by_key of tasks was dropped"),
        "an index added": ("create unique index one on charges (model)", "the index one of charges was added"),
        "a unique index made plain": (
            "drop index tasks_by_key; create index tasks_by_key on tasks (run_id, key) where key is not null",
            "the index tasks_by_key of tasks differs from the schema",
        ),
        "a column added": ("alter table tasks add column spy text", "tasks"),
    }
    if engine == "sqlite":
        return common | {
            "a view added": ("create view spy as select 1", "the view spy was added"),
            "a table added": ("create table spy (x)", "the table spy was added"),
        }
    return common | {
        "a trigger switched off": ("alter table entries disable trigger all", "entries"),
        "a check dropped": ("alter table budgets drop constraint budgets_ceiling_check", "the constraint budgets_ceiling_check"),
        "a rule added": ("create rule spy as on insert to charges do instead nothing", "the rule spy of charges was added"),
        "rows hidden": ("alter table entries enable row level security", "the table entries differs from the schema"),
    }


SCHEMAS = [pytest.param(engine, way, id=f"{engine}: {way}") for engine in ("sqlite", "postgres") for way in ways(engine)]


@pytest.mark.slow
@pytest.mark.parametrize(("target", "way"), SCHEMAS, indirect=["target"])
def test_a_changed_schema_is_found(log: Decklog, target: str, way: str) -> None:
    log.runs.start("goal", run_id="run_1")
    statement, message = ways(log.db.engine)[way]
    _execute(log, target, statement)
    assert any(message in problem.what for problem in log.journal.verify().problems), log.journal.verify().problems


def _execute(log: Decklog, target: str, statement: str) -> None:
    if log.db.engine == "sqlite":
        import apsw

        connection = apsw.Connection(target)
        connection.execute(statement)
        connection.close()
    else:
        import psycopg

        with psycopg.connect(target, autocommit=True) as server:
            server.execute(statement.encode())


def test_schema_is_reported_as_unchecked_for_a_reader(postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("drop role if exists reader")
        server.execute("create role reader login")
        server.execute("grant select on all tables in schema public to reader")
    with Decklog.open(postgres_url.replace("postgres:@", "reader:@"), read_only=True) as log:
        result = log.journal.verify()
    assert result.ok
    assert len(result.unchecked) == 1
    assert "schema" in result.unchecked[0]


# Values that are none


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("entries", "body", "cast(x'ff41' as text)"),
        ("entries", "at", "x'ff'"),
        ("entries", "hash_bytes", "null"),
        ("entries", "seq", "'seven'"),
        ("tasks", "title", "cast(x'ff41' as text)"),
        ("tasks", "id", "cast(x'ff41' as text)"),
        ("tasks", "priority", "'high'"),
        ("runs", "goal", "null"),
        ("streams", "name", "cast(x'ff41' as text)"),
        ("streams", "in_order", "'yes'"),
        ("blobs", "bytes", "'text'"),
        ("blobs", "size", "x'00'"),
        ("schema_steps", "name", "7"),
        ("budget_days", "day", "cast(x'ff41' as text)"),
        ("entry_text_marks", "pos", "'far'"),
        ("ready_tags", "task_id", "cast(x'ff41' as text)"),
        ("ready_tags", "created_at", "cast(x'ff41' as text)"),
        ("ready_tags", "tag", "x'00'"),
    ],
)
def test_value_of_another_type_is_a_finding_and_no_traceback(tmp_path: Path, table: str, column: str, value: str) -> None:
    path = str(tmp_path / "log.db")
    with Decklog.open(path, clock=ManualClock()) as log:
        log.runs.start("goal", run_id="run_1")
        log.tasks.add("run_1", "one", task_id="task_1", tags=["t"])
        log.journal.append("run_1", LONG)
        log.budgets.set("all", limit_microdollars=9)
        log.ledger.charge("m", cost_microdollars=1, run_id="run_1")
        log.journal.index()
    victim = SqliteVictim(path)
    newest = "" if table == "ready_tags" else f"where rowid = (select max(rowid) from {table})"
    with victim.relaxed(table):
        assert victim.change(f"update {table} set {column} = {value} {newest}") == 1
    found = victim.verify()
    assert table in {problem.table for problem in found.problems}
