"""Changing a log behind Decklog's back, with every means that its owner has, and leaving the schema as it was."""

import itertools
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from decklog import Decklog, DecklogError
from decklog.journal.verify import Verification

_numbers = itertools.count(1)

# Full-text tables of SQLite show what their own tables hold.
_VIRTUAL = {"entry_text", "entry_terms", "lesson_text", "lesson_terms"}


@dataclass(frozen=True)
class Change:
    """One value, changed. `where` names its row, `how` what was done to it."""

    table: str
    column: str
    where: str
    how: str


@dataclass(frozen=True)
class Outcome:
    """What became of a change: refused when the log was opened, found by verify, and named there by its table."""

    change: Change
    is_found: bool
    is_named: bool
    message: str


class SqliteVictim:
    """A copy of a log in a SQLite file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def change(self, *statements: str, bindings: tuple[Any, ...] = ()) -> int:
        """Run statements past triggers, checks and foreign keys, all of which are there again afterwards."""
        database = apsw.Connection(self.path)
        database.execute("pragma ignore_check_constraints = on")
        triggers = database.execute("select name, sql from sqlite_schema where type = 'trigger'").fetchall()
        try:
            with database:
                for name, _ in triggers:
                    database.execute(f"drop trigger {name}")
                changed = 0
                for statement in statements:
                    before = database.total_changes()
                    database.execute(statement, bindings)
                    changed += database.total_changes() - before
                for _, sql in triggers:
                    database.execute(str(sql))
        finally:
            database.close()
        return changed

    @contextmanager
    def relaxed(self, table: str) -> Iterator[None]:
        """Let a table take values of any type, and none, in a block."""
        sql = self._rewrite(table, lambda text: re.sub(r" strict\b|(?<! is) not null", "", text, flags=re.IGNORECASE))
        try:
            yield
        finally:
            self._rewrite(table, lambda _: sql)

    def _rewrite(self, table: str, other: Callable[[str], str]) -> str:
        database = apsw.Connection(self.path)
        [(sql,)] = database.execute("select sql from sqlite_schema where type = 'table' and name = ?", (table,)).fetchall()
        database.execute("pragma writable_schema = on")
        statement = "update sqlite_schema set sql = ? where type = 'table' and name = ?"
        database.execute(statement, (other(str(sql)), table))
        database.close()
        return str(sql)

    def verify(self, **how: Any) -> Verification:
        with Decklog.open(self.path) as log:
            return log.journal.verify(**how)


class SqliteLog:
    """A log of which every change gets a fresh copy."""

    def __init__(self, original: Path, folder: Path) -> None:
        self._original, self._folder = original, folder

    def columns(self) -> dict[str, list[str]]:
        database = apsw.Connection(str(self._original))
        names = [str(name) for (name,) in database.execute("select name from sqlite_schema where type = 'table'")]
        found = {name: [str(row[1]) for row in database.execute(f"pragma table_info({name})")] for name in names}
        database.close()
        return {name: columns for name, columns in found.items() if name not in _VIRTUAL}

    def attempt(self, dice: random.Random, table: str, column: str) -> Outcome | None:
        """Change one value of a column, and see; None when the dice gave a change that is none."""
        path = self._folder / f"copy-{next(_numbers)}.db"
        shutil.copy(self._original, path)
        try:
            change = self._changed(SqliteVictim(str(path)), dice, table, column)
            return None if change is None else outcome_of(change, lambda: SqliteVictim(str(path)).verify())
        finally:
            for file in self._folder.glob(f"{path.name}*"):
                file.unlink()

    def _changed(self, victim: SqliteVictim, dice: random.Random, table: str, column: str) -> Change | None:
        database = apsw.Connection(victim.path)
        keys = _keys(database, table)
        rows = database.execute(f"select {', '.join(keys)}, {column} from {table} order by {', '.join(keys)}").fetchall()
        database.close()
        if not rows:
            return None
        *key, value = dice.choice(rows)
        how, expression, bound = _other_value(dice, value)
        condition = " and ".join(f"{name} is ?{place}" for place, name in enumerate(keys, 2))
        with victim.relaxed(table):
            try:
                sql = f"update {table} set {column} = {expression} where {condition}"
                if not victim.change(sql, bindings=(bound, *key)):
                    return None
            except (apsw.ConstraintError, apsw.MismatchError):
                return None  # two rows would have the same key, or a row number would be none
        index, _, part = table.rpartition("_")
        if index.endswith("_text") and part in ("data", "idx") and self._has_same_words(victim.path, index):
            return None  # no search finds anything else
        return Change(table, column, str(key)[:80], f"{how}: {value!r:.60}")

    def _has_same_words(self, path: str, index: str) -> bool:
        try:
            before_words, after = (words_in(apsw.Connection(str(one)), index) for one in (self._original, path))
        except (apsw.Error, UnicodeDecodeError):
            return False
        return before_words == after


def words_in(connection: apsw.Connection, index: str) -> list[tuple[Any, ...]]:
    """List every word of a text index with its place, and what a search for it finds; without removed rows."""
    connection.execute(f"create virtual table temp.words using fts5vocab(main, {index}, instance)")
    count = f"""select count(*) from {index} where {index} match '"' || term || '"'"""
    search = f"select term, ({count}) from temp.words group by term"
    try:
        return [*connection.execute("select * from temp.words"), *connection.execute(search)]
    finally:
        connection.execute("drop table temp.words")


def _keys(database: apsw.Connection, table: str) -> list[str]:
    [(sql,)] = database.execute("select sql from sqlite_schema where name = ?", (table,)).fetchall()
    if "without rowid" not in str(sql).lower():
        return ["rowid"]
    return [str(row[1]) for row in database.execute(f"pragma table_info({table})") if row[5]]


def _other_value(dice: random.Random, value: Any) -> tuple[str, str, Any]:
    """Choose another value: the way it is made, as an expression of ?1, and what is bound to that."""
    if isinstance(value, bytes):
        if not value:
            return "filled", "?1", b"x"
        return dice.choice([("bit", "?1", _flipped(dice, value)), ("emptied", "?1", b"")])
    ways: list[tuple[str, str, Any]] = [("type", "?1", b"\xff\xfe" if isinstance(value, str) else "seven")]
    if value is not None:
        ways.append(("null", "?1", None))
    if isinstance(value, str):
        ways += [("bytes", "cast(?1 as text)", b"\xff" + value.encode()), ("near", "?1", _near(dice, value))] * 2
        ways.append(("emptied", "?1", "") if value else ("filled", "?1", "x"))
    elif value is not None:
        ways += [("near", "?1", value + dice.choice([-1, 1, 1000]))] * 3
    else:
        ways += [("filled", "?1", "x"), ("filled", "?1", 7)]
    return dice.choice(ways)


def _near(dice: random.Random, text: str) -> str:
    """Change one character, a digit into a digit."""
    if not text:
        return "x"
    place = dice.randrange(len(text))
    old = text[place]
    new = str((int(old) + 1) % 10) if old.isascii() and old.isdigit() else "y" if old != "y" else "z"
    return text[:place] + new + text[place + 1 :]


def _flipped(dice: random.Random, content: bytes) -> bytes:
    if not content:
        return b"x"
    changed = bytearray(content)
    changed[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def outcome_of(change: Change, verify: Callable[[], Verification]) -> Outcome:
    """Verify a changed log. An error that is not Decklog's is a bug and passes through."""
    try:
        result = verify()
    except DecklogError as refusal:
        return Outcome(change, True, True, refusal.message)
    owner = re.sub(r"^(entry_text|lesson_text)_(data|idx|docsize)$", r"\1", change.table)
    tables = {problem.table for problem in result.problems}
    return Outcome(change, not result.ok, bool({change.table, owner} & tables), "; ".join(p.what for p in result.problems[:3]))


def sampled(dice: random.Random, columns: dict[str, list[str]], times: int) -> Iterator[tuple[str, str]]:
    """Yield columns to change in random order, each once per round."""
    every = [(table, column) for table, names in sorted(columns.items()) for column in names]
    while times > 0:
        dice.shuffle(every)
        yield from every[:times]
        times -= len(every)


class PostgresVictim:
    """A database whose values are changed and put back; copying a whole database is much slower."""

    def __init__(self, url: str, log: Decklog, connection: Any = None) -> None:
        self.url, self.log, self._connection = url, log, connection

    def change(self, *statements: str) -> int:
        """Run statements past triggers, checks and foreign keys, all of which are there again afterwards."""
        import psycopg

        ours = nullcontext(self._connection) if self._connection else psycopg.connect(self.url, autocommit=True)
        with ours as connection:
            connection.execute("set session_replication_role = replica")  # neither triggers nor foreign keys
            try:
                return _run_all(connection, statements)
            except psycopg.errors.CheckViolation:
                tables = {name for statement in statements for name in re.findall(r"(?:update|from|into) (\w+)", statement)}
                with unchecked(connection, *tables):
                    return _run_all(connection, statements)

    def verify(self, **how: Any) -> Verification:
        return self.log.journal.verify(**how)


def _run_all(connection: Any, statements: tuple[str, ...]) -> int:
    with connection.transaction():
        return sum(connection.execute(statement.encode()).rowcount for statement in statements)


@contextmanager
def unchecked(connection: Any, *tables: str) -> Iterator[None]:
    """Let tables take values that their checks refuse, and restore the catalogue afterwards."""
    sql = """
        select conrelid::regclass, conname, pg_get_constraintdef(oid)
          from pg_constraint
         where contype = 'c'
           and conrelid::regclass::text = any(%s)
    """
    checks = connection.execute(sql, (list(tables),)).fetchall()
    for table, name, _ in checks:
        connection.execute(f"alter table {table} drop constraint {name}")
    try:
        yield
    finally:
        for table, name, definition in checks:
            connection.execute(f"alter table {table} add constraint {name} {definition} not valid")
        connection.execute("update pg_constraint set convalidated = true where not convalidated")


_EXPRESSIONS = {
    "text": [
        "overlay({0} placing case when right({0}, 1) = '7' then '8' else '7' end from greatest(length({0}), 1))",
        "''",
        "null",
        "{0} || 'x'",
        "'x' || coalesce({0}, '')",
    ],
    "bigint": ["{0} + 1", "{0} - 1", "null", "coalesce({0}, 0) + 1000"],
    "integer": ["{0} + 1", "{0} - 1", "null"],
    "double precision": ["{0} + 0.125", "null"],
    "bytea": ["set_bit({0}, 3, 1 - get_bit({0}, 3))", "'\\x'::bytea"],
    "tsvector": ["{0} || 'zyzzyva:9'::tsvector", "''::tsvector"],
    "ARRAY": ["array_append({0}, 0.5::real)", "{0}[2:]"],
}


class PostgresLog:
    """A log of which one value at a time is changed, and put back."""

    def __init__(self, url: str, log: Decklog) -> None:
        import psycopg

        self.log = log
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("set session_replication_role = replica")
        sql = "select table_name, column_name, data_type from information_schema.columns where table_schema = 'public'"
        self._types = {(table, column): kind for table, column, kind in self._connection.execute(sql).fetchall()}
        sql = "select table_name, column_name from information_schema.columns where identity_generation = 'ALWAYS'"
        self._numbered = set(self._connection.execute(sql).fetchall())

    def close(self) -> None:
        self._connection.close()

    def columns(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for table, column in self._types:
            if table != "listeners":
                found.setdefault(table, []).append(column)
        return found

    def attempt(self, dice: random.Random, table: str, column: str) -> Outcome | None:
        rows = self._rows(f"select ctid::text from {table} order by ctid")
        if not rows:
            return None
        [place], expression = dice.choice(rows), dice.choice(_EXPRESSIONS[self._types[table, column]])
        expression = expression.format(column)
        change = self._apply(table, column, place, expression)
        if change is None:
            return None
        now, before = change
        try:
            return outcome_of(Change(table, column, place, expression), lambda: self.log.journal.verify())
        finally:
            with self._relaxed(table, column) if (table, column) in self._numbered else nullcontext():
                self._connection.execute(f"update {table} set {column} = %s where ctid = %s".encode(), (before, now))

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql.encode()).fetchall()

    def _apply(self, table: str, column: str, place: str, expression: str) -> tuple[str, Any] | None:
        import psycopg

        [(before,)] = self._rows(f"select {column} from {table} where ctid = '{place}'")
        sql = f"update {table} set {column} = {expression} where ctid = '{place}' and {column} is distinct from ({expression})"
        try:
            try:
                changed = self._rows(f"{sql} returning ctid::text")
            except (psycopg.errors.CheckViolation, psycopg.errors.NotNullViolation, psycopg.errors.GeneratedAlways):
                with self._relaxed(table, column):
                    changed = self._rows(f"{sql} returning ctid::text")
        except psycopg.errors.UniqueViolation:
            return None
        return (changed[0][0], before) if changed else None

    @contextmanager
    def _relaxed(self, table: str, column: str) -> Iterator[None]:
        """Let a column take anything in a block."""
        column_of = f"attrelid = '{table}'::regclass and attname = '{column}'"
        needed = f"update pg_attribute set attnotnull = {{}} where {column_of} and attnotnull = {{}}"
        numbered = f"alter table {table} alter column {column} set generated {{}}" if (table, column) in self._numbered else ""
        is_needed = self._connection.execute(needed.format("false", "true").encode()).rowcount
        self._connection.execute(numbered.format("by default").encode())
        try:
            with unchecked(self._connection, table):
                yield
        finally:
            self._connection.execute(numbered.format("always").encode())
            if is_needed:
                self._connection.execute(needed.format("true", "false").encode())


def database_for(template: str, name: str) -> str:
    """Copy the empty log of a server under another name."""
    import psycopg

    from tests.conftest import _named

    name = f"{name}_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(template, autocommit=True) as connection:
        connection.execute(f"create database {name} template decklog_template".encode())
    return _named(template, name)
