"""A log that is locked, read-only, replaced or unreachable: the call fails, and the server stays."""

from pathlib import Path
from typing import Any

import psycopg

from decklog import Decklog
from tests.mcp.conftest import Agent


def agent_on(**source: Any) -> Agent:
    from decklog.mcp.server import build
    from decklog.mcp.source import LogSource

    return Agent(build(LogSource(**source), {"DECKLOG_WORKER": "dev-1"}))


def started(path: Path) -> Path:
    with Decklog.open(path) as log:
        log.runs.start("a goal", run_id="run_1")
    return path


def test_locked_or_read_only_log_is_an_error(tmp_path: Path) -> None:
    path, claims = started(tmp_path / "log.db"), str(tmp_path / "claims")
    with Decklog.open(path, busy_seconds=0.1) as mine, Decklog.open(path) as other:
        me = agent_on(opened=(mine, claims))
        with other.transaction():
            other.journal.append("run_1", "in the way")
            error = me.error("note", text="a thought")
            assert (error["code"], error["retryable"], bool(error["hint"])) == ("busy", True, True)
        assert me.data("note", text="a thought")["entry"]
        other.tasks.add("run_1", "one")
        # Of which a third is over at once.
        me.data("next", lease=0.001)
    with Decklog.open(path, read_only=True) as mine:
        me = agent_on(opened=(mine, claims))
        assert me.error("note", text="another")["code"] == "read_only"
        found = me.data("show", words="thought")
        assert len(found["entries"]) == 1
        assert found["warnings"][0].startswith("the lease was not renewed: ")


def test_a_file_that_was_replaced_is_opened_anew(tmp_path: Path) -> None:
    path = started(tmp_path / "log.db")
    me = agent_on(named=str(path))
    me.data("note", text="in the first")
    for part in tmp_path.glob("log.db*"):
        if part.is_file():
            part.unlink()
    started(path)
    assert me.error("note", text="in between")["code"] == "file_replaced"
    assert me.data("note", text="in the second")["entry"] == "run_1:2"


def test_a_server_that_was_away_is_met_again(postgres_url: str) -> None:
    with Decklog.open(postgres_url) as log:
        log.runs.start("a goal", run_id="run_1")
    me = agent_on(named=postgres_url)
    me.data("note", text="before")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        others = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
        connection.execute(f"{others} and pid <> pg_backend_pid()".encode())
    result = me("note", text="after", key="k")
    assert not result.is_error or result.structured_content["error"]["retryable"]
    assert me.data("note", text="after", key="k")["entry"] == "run_1:3"
