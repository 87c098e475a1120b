"""Derived tables can be rebuilt from the journal."""

from pathlib import Path

import pytest

from decklog import Decklog
from tests import programs
from tests.db import whole_log
from tests.db.tampering import PostgresVictim, SqliteVictim
from tests.fork_server import ProcessResult
from tests.stores.approvals.trust.trust_desk import make_keys

# FTS5 keeps words in shadow tables, which are emptied through their virtual table.
THROUGH_ANOTHER = {"entry_text", "lesson_text"}
# What one engine has as no table: a view of a text index, and the places that PostgreSQL keeps with its words.
NOT_TABLES = {"sqlite": {"entry_terms", "lesson_terms"}, "postgres": {"lesson_places"}}


@pytest.fixture
def filled(log: Decklog, target: str, tmp_path: Path) -> SqliteVictim | PostgresVictim:
    whole_log.fill(target, make_keys(tmp_path))
    assert log.journal.verify().ok
    return SqliteVictim(target) if log.db.engine == "sqlite" else PostgresVictim(target, log)


@pytest.mark.slow
def test_every_derived_table_that_lost_its_rows_gets_them_back(log: Decklog, filled: SqliteVictim | PostgresVictim) -> None:
    emptied = []
    for table in sorted(log.derived_tables() - NOT_TABLES[log.db.engine]):
        by_hand = f"update {table}_data set block = zeroblob(9)" if log.db.engine == "sqlite" else f"delete from {table}"
        if filled.change(by_hand if table in THROUGH_ANOTHER else f"delete from {table}"):
            emptied.append(table)
    assert len(emptied) > len(log.derived_tables()) / 2
    tables = {problem.table for problem in log.journal.verify().problems}
    assert tables <= log.derived_tables() | {f"{table}_data" for table in THROUGH_ANOTHER}
    log.rebuild(words=True)
    assert log.journal.verify().problems == []
    assert log.journal.search("the")


def run(path: str, *words: str) -> ProcessResult:
    return programs.call(["--db", path, *words], cwd=Path(path).parent, variables={})


@pytest.mark.slow
def test_verify_names_the_rebuild_command(tmp_path: Path) -> None:
    path = str(tmp_path / "log.db")
    with Decklog.open(path) as log:
        log.runs.start("goal", run_id="run_1")
        log.journal.append("run_1", "the words of an entry")
        log.journal.index()
    SqliteVictim(path).change("delete from entry_text_marks")
    result = run(path, "verify")
    assert (result.code, b"decklog rebuild" in result.out) == (1, True)
    assert run(path, "rebuild").code == 0
    assert run(path, "verify").code == 0
    assert b"the words of an entry" in run(path, "search", "words").out
