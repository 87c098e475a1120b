"""LangGraph's checkpoints are taken over whole, again and again, and nothing in them is ever run."""

from pathlib import Path

import pytest

from decklog import Decklog, Invalid
from decklog.importing.report import Outcome
from decklog.plugins.importers.langgraph import LangGraphImport
from decklog.plugins.langgraph_values import readable, unpack
from tests.conftest import on_both
from tests.every import every
from tests.plugins.importers import claims
from tests.plugins.importers.langgraph.langgraph_files import CHECKPOINTS, build, counts, document, packed


def _taker(path: Path) -> claims.Take:
    return lambda log, **settings: LangGraphImport(log, str(path), **settings).run()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return build(tmp_path / "checkpoints.sqlite")


@on_both
def test_every_row_arrives_once_and_a_second_import_changes_nothing(log: Decklog, file: Path) -> None:
    report = claims.check_whole(log, _taker(file), counts())

    assert {table: found["kept"] for table, found in report.tables.items()} == {"checkpoints": 1, "writes": 1}


def test_a_thread_is_a_run_and_its_checkpoints_are_documents(log: Decklog, file: Path) -> None:
    _taker(file)(log)

    assert log.runs.get("t1").goal == "Thread t1 of LangGraph"
    found = log.states.get_checkpoint("t1/1f0-1")
    assert (found.status, found.created_at.isoformat()) == ("step -1", "2026-01-01T00:00:01+00:00")
    values = found.payload["checkpoint"]["channel_values"]
    assert values["messages"] == [{"type": "langchain_core.messages.human.HumanMessage", "value": {"content": "Fix it"}}]
    assert (values["count"], values["rate"], values["raw"], values["no"]) == (1000, 0.5, {"base64": "AA=="}, None)
    assert log.states.get_checkpoint("t1/1f0-2").payload["parent"] == "1f0-1"
    assert log.states.get_checkpoint("t1/child:1/1f0-2").payload["metadata"] == "{broken"
    # What could run a program's code when it is read stays in bytes.
    assert log.states.get_checkpoint("t3/1f0-1").payload["checkpoint"] == {"kind": "pickle", "value": {"base64": "gAROLg=="}}


def test_what_nodes_wrote_is_in_the_journal(log: Decklog, file: Path) -> None:
    _taker(file)(log)

    found = log.journal.find("t1", subtype="write", oldest_first=True)
    assert [(entry.body, entry.agent_id, entry.payload.get("value")) for entry in found] == [
        ("messages", "task-1", ["hello"]),
        ("__error__", "task-1", None),
    ]


def test_an_import_after_changes_brings_just_them(log: Decklog, file: Path) -> None:
    _taker(file)(log)

    build(file, checkpoints=[*CHECKPOINTS, ("t1", "", "1f0-4", "1f0-2", "msgpack", packed(document(4)), "{}")])
    report = _taker(file)(log)

    assert (report.total(Outcome.NEW), report.total(Outcome.CHANGED)) == (1, 0)


@every("data", [b"", b"\xc1", b"\xa5ab", b"\xdc\x00\x02\x01", b"\x91" * 3000 + b"\x01", b"\xa1\xff"])
def test_what_is_no_messagepack_is_refused(data: bytes) -> None:
    with pytest.raises(Invalid):
        unpack(data)


@every("value", [0, 127, -1, -32, -100, 2**40, 1.5, "", "ä" * 40, [], [1, [2]], {"a": {"b": None}}, True, b"x"])
def test_a_value_is_read_as_it_was_written(value: object) -> None:
    assert readable(unpack(packed(value))) == value
