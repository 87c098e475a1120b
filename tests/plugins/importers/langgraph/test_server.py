"""LangGraph's checkpoints in PostgreSQL give the same log as those in a file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from decklog import Decklog, DecklogError, Invalid
from decklog.importing.report import Report
from decklog.plugins.importers.langgraph import LangGraphImport
from tests.conftest import on_both
from tests.databases import named
from tests.plugins.importers import claims
from tests.plugins.importers.langgraph.langgraph_files import MESSAGE, build, document, packed

# The schema of the saver, but for its indexes.
SCHEMA = """
create table checkpoints (
  thread_id text not null, checkpoint_ns text not null default '', checkpoint_id text not null, parent_checkpoint_id text,
  type text, checkpoint jsonb not null, metadata jsonb not null default '{}',
  primary key (thread_id, checkpoint_ns, checkpoint_id)
);
create table checkpoint_blobs (
  thread_id text not null, checkpoint_ns text not null default '', channel text not null, version text not null,
  type text not null, blob bytea, primary key (thread_id, checkpoint_ns, channel, version)
);
create table checkpoint_writes (
  thread_id text not null, checkpoint_ns text not null default '', checkpoint_id text not null, task_id text not null,
  idx integer not null, channel text not null, type text, blob bytea not null, task_path text not null default '',
  primary key (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);
"""
VALUES = {"messages": [MESSAGE], "raw": b"\x00", "count": 7}
VERSIONS = {"messages": "00001", "raw": "00001", "count": "00002", "gone": "00001"}


@pytest.fixture(scope="module")
def url(postgres_server: str) -> Iterator[str]:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("create database langgraph")
        url = named(postgres_server, "langgraph")
        with psycopg.connect(url, autocommit=True) as database:
            database.execute(SCHEMA)
            _fill(database)
        yield url
        connection.execute("drop database langgraph with (force)")


def _fill(database: "psycopg.Connection[Any]") -> None:
    told = {**document(1), "channel_values": {"count": 7}, "channel_versions": VERSIONS}
    add = "insert into checkpoints values (%s, %s, %s, %s, null, %s, %s)"
    database.execute(add, ("t1", "", "1f0-1", None, json.dumps(told), '{"step": -1}'))
    database.execute(add, ("t1", "", "1f0-2", "1f0-1", json.dumps(document(2)), '{"step": 0}'))
    blob = "insert into checkpoint_blobs values ('t1', '', %s, %s, %s, %s)"
    for channel in ("messages", "raw"):
        database.execute(blob, (channel, "00001", "msgpack", packed(VALUES[channel])))
    # Another version, and one that says nothing.
    database.execute(blob, ("messages", "00002", "msgpack", packed(["later"])))
    database.execute(blob, ("gone", "00001", "empty", None))
    write = "insert into checkpoint_writes values ('t1', '', '1f0-1', 'task-1', %s, %s, %s, %s, 'agent')"
    database.execute(write, (0, "messages", "msgpack", packed(["hello"])))
    database.execute(write, (1, "count", "json", b"7"))


def _take(log: Decklog, url: str, **settings: Any) -> Report:
    return LangGraphImport(log, url, **settings).run()


@pytest.mark.slow
@on_both
def test_every_row_arrives_once_and_a_second_import_changes_nothing(log: Decklog, url: str) -> None:
    claims.check_whole(log, lambda log, **settings: _take(log, url, **settings), {"checkpoints": 2, "writes": 2})

    found = log.states.get_checkpoint("t1/1f0-1")
    values = found.payload["checkpoint"]["channel_values"]
    assert values["messages"] == [{"type": "langchain_core.messages.human.HumanMessage", "value": {"content": "Fix it"}}]
    assert (values["raw"], values["count"], "gone" in values) == ({"base64": "AA=="}, 7, False)
    assert (found.status, log.states.get_checkpoint("t1/1f0-2").payload["parent"]) == ("step -1", "1f0-1")


def test_a_thread_gives_the_same_log_from_either_saver(url: str, tmp_path: Path) -> None:
    first = packed({**document(1, **VALUES), "channel_versions": VERSIONS})
    checkpoints = [
        ("t1", "", "1f0-1", None, "msgpack", first, '{"step": -1}'),
        ("t1", "", "1f0-2", "1f0-1", "msgpack", packed(document(2)), '{"step": 0}'),
    ]
    writes = [
        ("t1", "", "1f0-1", "task-1", "agent", 0, "messages", "msgpack", packed(["hello"])),
        ("t1", "", "1f0-1", "task-1", "agent", 1, "count", "json", b"7"),
    ]
    file = build(tmp_path / "checkpoints.sqlite", checkpoints=checkpoints, writes=writes)
    claims.check_same_log(tmp_path, lambda log: _take(log, str(file)), lambda log: _take(log, url))


def test_a_password_is_told_to_nobody(log: Decklog, url: str) -> None:
    assert _take(log, url, shown="postgresql://ana:***@db").path == "postgresql://ana:***@db"


def test_what_is_no_database_of_the_saver_is_refused(log: Decklog, postgres_server: str) -> None:
    with pytest.raises(Invalid, match="holds no checkpoints"):
        _take(log, postgres_server)
    with pytest.raises(DecklogError, match="can't be reached"):
        _take(log, "postgresql://127.0.0.1:1/nowhere")
