"""Logs as former schemas left them, so that every Decklog to come is tried on them.

`python -m tests.db.saved_logs` adds the one of today's schema; it is run once for each schema, before a release that has it.
"""

import gzip
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from decklog import Decklog, ManualClock
from decklog.core.clock import to_text
from decklog.db import schema
from decklog.db.postgres.database import DERIVE_HEADS
from tests.stores.claiming import claimed

FOLDER = Path(__file__).parent / "saved"


def saved() -> list[Path]:
    return sorted(FOLDER.glob("*.db.gz"))


def fill(log: Decklog) -> None:
    """Write records of many kinds, some of them changed, one removed."""
    log.runs.start("Teach the parser to read trailing commas", run_id="run_1", key="first")
    log.groups.add("run_1", "A", name="Lexer")
    log.tasks.add("run_1", "Change the lexer", task_id="lexer", group_id="A", priority=80, trace_file="traces/lexer.log")
    log.tasks.add("run_1", "Change the parser", task_id="parser", depends_on=["lexer"], trace_file="parser.log")
    with log.acting("developer", agent_id="dev-1"):
        claim = claimed(log, "run_1", worker="dev-1")
        log.journal.append("run_1", "A comma is a token of its own", kind="reasoning", phase="approach", key="k")
        claim.finish("Commas are tokens")
    log.journal.append("run_1", "x" * 70_000, kind="tool")
    log.plans.record("run_1", "do it", "one, two", ["one", "two"])
    log.criteria.record("run_1", ["All tests pass"])
    log.approvals.ask("run_1", "May I?", by="dev", about="the diff")
    log.states.save("run_1", "pm", {"a": 1})
    log.states.save("run_1", "pm", {"a": 2})
    log.states.checkpoint("run_1", name="half way", payload={"b": 2})
    log.artifacts.add("run_1", "report", "out.txt", content="text", task_id="lexer")
    log.outputs.save("run_1", "lint", {"ok": True})
    log.verdicts.record("run_1", "tests", "fail", tree="5b1c", definition="d", environment="e", task_id="lexer", findings=["a"])
    log.gates.close("main", "quota", retry_seconds=60.0)
    package = log.context.save("run_1", "research", "a.md", "developer", "what I found", consumers=["qa_expert"], group_id="A")
    log.context.record_consumption("run_1", "A", "qa_expert", 1, package.id)
    log.runs.record_agent("run_1", "developer", session="s")
    log.budgets.set("all", limit_microdollars=1_000_000)
    log.ledger.charge("some-model", input_tokens=10, cost_microdollars=5, run_id="run_1", task_id="lexer")
    log.memory.remember("task_outcomes", "It went well", run_id="run_1")
    log.inbox.post("ana", "Why so slow?", run_id="run_1")
    log.workflow.load()
    log.edits.record("f" * 40, "lexer.py", old_blob="a" * 40, new_blob="b" * 40, session="claude:1", run_id="run_1")
    log.edits.record_snapshot("f" * 40, "/tree", "claude:1", "end", "c" * 40, run_id="run_1")
    log.ci.record("build", "main", 7, started_at=datetime(2026, 1, 1, tzinfo=UTC))


def save(path: Path) -> None:
    """Write today's log, packed."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "log.db"
        with Decklog.open(plain, clock=ManualClock()) as log:
            fill(log)
        connection = apsw.Connection(str(plain))
        connection.execute("pragma journal_mode = delete; vacuum")
        connection.close()
        with plain.open("rb") as source, gzip.GzipFile(path, "wb", mtime=0) as packed:
            shutil.copyfileobj(source, packed)


def unpack(path: Path, target: Path) -> None:
    """Unpack a saved log to a SQLite file."""
    with gzip.open(path) as packed, target.open("wb") as plain:
        shutil.copyfileobj(packed, plain)


def load(path: Path, url: str) -> None:
    """Make an empty PostgreSQL database a saved log: its schema as it was then, with the same rows."""
    import psycopg

    version = int(path.name[:4])
    source = apsw.Connection(str(path))
    with psycopg.connect(url) as target:
        for step in schema.steps("postgres"):
            if step.version <= version:
                target.execute(schema.text_of(step, "postgres").encode())
                target.execute(
                    "insert into schema_steps (version, name, checksum, applied_at) values (%s, %s, %s, %s)",
                    (step.version, step.name, schema.checksum_of(step, "postgres"), to_text(datetime.now(UTC))),
                )
        applied = target.execute(schema.APPLIED.encode()).fetchall()
        for row in schema.missing_digests(applied):
            target.execute("update schema_steps set digest = %(digest)s where version = %(version)s", row)
        target.execute("set session_replication_role = replica")
        for (table,) in target.execute(
            "select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'"
        ).fetchall():
            _copy(source, target, table)
        # Behind the numbers of the first partition, which SQLite does not have.
        target.execute("select setval(pg_get_serial_sequence('streams', 'no'), (select greatest(max(no), 16) from streams))")
        if version > 1:
            target.execute(DERIVE_HEADS.encode())
    source.close()


def _copy(source: apsw.Connection, target: Any, table: str) -> None:
    """Copy a table that both engines have, but for what each derives for itself."""
    known = {name for (name,) in source.execute("select name from sqlite_schema where type = 'table'")}
    if table not in known or table == "schema_steps":
        return
    ours = {name for _, name, *_ in source.execute(f"pragma table_xinfo({table})")}  # what is computed is among them
    theirs = target.execute("select column_name from information_schema.columns where table_name = %s", (table,)).fetchall()
    # PostgreSQL alone has the heads of streams.
    names = [name for (name,) in theirs if not name.startswith("head_")]
    if not ours.issuperset(names):
        return
    rows = source.execute(f"select {', '.join(names)} from {table}").fetchall()
    marks = ", ".join(["%s"] * len(names))
    with target.cursor() as cursor:
        cursor.execute(f"delete from {table}")
        cursor.executemany(f"insert into {table} ({', '.join(names)}) overriding system value values ({marks})", rows)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    newest = FOLDER / f"{schema.latest('sqlite'):04}.db.gz"
    if newest.exists():
        sys.exit(f"{newest.name} is there already: a schema that has landed does not change")
    save(newest)
    print(f"{newest.name}: {newest.stat().st_size} bytes")
