"""A hostile file can do nothing but be read, and not for ever."""

import os
from pathlib import Path

import apsw
import pytest

from decklog import Decklog
from decklog.core.errors import Damaged, Invalid, NotADatabase, NotFound, TimedOut, TooLarge
from decklog.importing.source import SqliteSource
from decklog.plugins.importers.bazinga.importer import BazingaImport
from tests.plugins.importers.bazinga.bazinga_files import build


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "source.db"


def _make(file: Path, *statements: str) -> None:
    db = apsw.Connection(str(file))
    for sql in statements:
        db.execute(sql)
    db.close()


def test_rows_come_in_the_order_they_were_written(file: Path) -> None:
    _make(file, "create table t (id text primary key, n integer)", "insert into t values ('b', 1), ('a', 2)")

    with SqliteSource(str(file)) as source:
        assert list(source.rows("t")) == [{"id": "b", "n": 1}, {"id": "a", "n": 2}]
        assert list(source.rows("missing")) == []


def test_what_stands_in_the_write_ahead_log_is_read_and_the_folder_stays_as_it_was(file: Path) -> None:
    writer = apsw.Connection(str(file))
    for sql in ("pragma journal_mode = wal", "pragma wal_autocheckpoint = 0", "create table t (n)", "insert into t values (7)"):
        writer.execute(sql).fetchall()
    before = {path.name: path.stat().st_mtime_ns for path in file.parent.iterdir()}

    with SqliteSource(str(file)) as source:
        assert list(source.rows("t")) == [{"n": 7}]

    assert {path.name: path.stat().st_mtime_ns for path in file.parent.iterdir()} == before
    writer.close()


def test_a_view_in_the_place_of_a_table_is_not_read(file: Path) -> None:
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select i as session_id from n"
    _make(file, f"create view sessions as {endless}", "create table orchestration_logs (id integer)")

    with SqliteSource(str(file)) as source:
        assert "sessions" not in source
        assert list(source.rows("sessions")) == []


def test_a_virtual_table_is_not_read(file: Path) -> None:
    _make(file, "create virtual table sessions using fts5(session_id)", "insert into sessions values ('x')")

    with SqliteSource(str(file)) as source:
        assert "sessions" not in source


def test_triggers_and_generated_columns_do_nothing(file: Path) -> None:
    _make(
        file,
        "create table t (n integer, big blob generated always as (zeroblob(1000000000)) virtual)",
        "insert into t values (1)",
        "create trigger boom after insert on t begin delete from t; end",
    )

    with SqliteSource(str(file)) as source:
        assert list(source.rows("t")) == [{"n": 1}]


def test_a_schema_that_names_columns_like_statements_is_only_a_schema(file: Path) -> None:
    _make(file, 'create table "a""; drop table t; --" ("x""), load_extension(""y" text)')
    _make(file, 'insert into "a""; drop table t; --" values (\'v\')')

    with SqliteSource(str(file)) as source:
        ((table, columns),) = source.columns.items()
        assert list(source.rows(table)) == [{columns[0]: "v"}]


def test_nothing_but_reading_is_allowed(file: Path) -> None:
    _make(file, "create table t (n)")

    with SqliteSource(str(file)) as source:
        for sql in (
            "delete from t",
            "attach ':memory:' as x",
            "pragma user_version",
            "select load_extension('x')",
            "select randomblob(9)",
        ):
            with pytest.raises((apsw.AuthError, apsw.SQLError, apsw.ReadOnlyError)):
                source._db.execute(sql).fetchall()


def test_text_that_is_no_text_is_read_all_the_same(file: Path) -> None:
    _make(file, "create table t (a text, b blob)", "insert into t values (cast(x'ff41' as text), x'00ff')")

    with SqliteSource(str(file)) as source:
        assert list(source.rows("t")) == [{"a": "�A", "b": b"\x00\xff"}]


def test_a_row_that_is_no_text_hides_none_of_its_neighbours(file: Path) -> None:
    bad = "cast(x'ff' as text)"
    _make(
        file, "create table t (n integer primary key, a text)", f"insert into t values (1, 'x'), (2, {bad}), (5, {bad}), (9, 'y')"
    )

    with SqliteSource(str(file)) as source:
        assert [(row["n"], row["a"]) for row in source.rows("t")] == [(1, "x"), (2, "\ufffd"), (5, "\ufffd"), (9, "y")]


def test_text_of_another_encoding_is_read(file: Path) -> None:
    _make(file, "pragma encoding = 'UTF-16le'", "create table t (a text)", "insert into t values ('wörter')")

    with SqliteSource(str(file)) as source:
        assert list(source.rows("t")) == [{"a": "wörter"}]


def test_rows_come_by_the_columns_that_were_asked_for(file: Path) -> None:
    _make(file, "create table t (id integer, at text)", "insert into t values (3, 'b'), (2, 'a'), (1, 'b'), (4, null)")

    with SqliteSource(str(file)) as source:
        assert [row["id"] for row in source.rows("t", by=("at", "id"))] == [4, 2, 1, 3]


@pytest.mark.parametrize("kind", ["(rowid text, n integer)", "(rowid text, oid text, _rowid_ text, n integer)"])
def test_a_column_may_be_called_like_the_row_number(file: Path, kind: str) -> None:
    _make(file, f"create table t {kind}", "insert into t (rowid, n) values ('b', 1), ('a', 2), ('a', 3)")

    with SqliteSource(str(file)) as source:
        assert [row["n"] for row in source.rows("t")] == [1, 2, 3]


def test_a_table_without_row_numbers_has_the_order_of_its_key(file: Path) -> None:
    _make(file, "create table t (k text primary key) without rowid", "insert into t values ('b'), ('a')")

    with SqliteSource(str(file)) as source:
        assert [row["k"] for row in source.rows("t")] == ["a", "b"]


def test_time_runs_out(file: Path) -> None:
    rows = ", ".join("(1)" for _ in range(20_000))
    _make(file, "create table t (n)", f"insert into t values {rows}")

    with SqliteSource(str(file)) as source:
        source._until = 0
        with pytest.raises(TimedOut):
            list(source.rows("t"))


def test_size_and_rows_have_an_end(file: Path) -> None:
    _make(file, "create table t (n)", "insert into t values (1), (2), (3)")

    with pytest.raises(TooLarge):
        SqliteSource(str(file), most_bytes=100)
    with SqliteSource(str(file), most_rows=2) as source, pytest.raises(TooLarge):
        list(source.rows("t"))


def test_what_is_no_database_is_refused(file: Path, tmp_path: Path) -> None:
    file.write_bytes(b"hello, this is no database at all" * 100)
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(NotADatabase):
        SqliteSource(str(file))
    with pytest.raises(NotFound):
        SqliteSource(str(tmp_path / "nothing.db"))
    with pytest.raises(Invalid, match="plain file"):
        SqliteSource(str(tmp_path / "pipe"))
    with pytest.raises(Invalid, match="plain file"):
        SqliteSource(str(tmp_path))


def test_a_damaged_table_is_reported_and_the_others_arrive(file: Path, tmp_path: Path) -> None:
    long = [{"session_id": "bazinga_1", "agent_type": "pm", "content": "x" * 900} for _ in range(300)]
    build(file, 19, more={"orchestration_logs": long})
    content = bytearray(file.read_bytes())
    place = content.rindex(b"x" * 900) // 4096 * 4096
    content[place : place + 4096] = b"\xff" * 4096
    file.write_bytes(content)

    with Decklog.open(tmp_path / "log.db", durability="relaxed") as log:
        report = BazingaImport(log, str(file)).run()

        assert any("can't be read" in note for note in report.notes)
        assert 0 < report.tables["orchestration_logs"]["read"] < 305
        assert report.tables["strategies"]["new"] == 1


def test_a_file_with_a_broken_schema_is_damaged(file: Path) -> None:
    _make(file, "create table t (n)")
    content = file.read_bytes().replace(b"CREATE TABLE t", b"CREATE TXBLE t").replace(b"create table t", b"create txble t")
    file.write_bytes(content)

    with pytest.raises((Damaged, NotADatabase)):
        SqliteSource(str(file))
