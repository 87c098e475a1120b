"""A thread that was imported goes on where it was, by the saver on a log; secrets in it are taken out on the way."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from decklog import Decklog
from decklog.plugins.importers.langgraph import LangGraphImport
from decklog.plugins.langgraph_values import pack, unpack
from tests.plugins.importers.langgraph.langgraph_files import build

if find_spec("langgraph") is None or find_spec("langgraph.graph") is None:
    pytest.skip("LangGraph is not installed", allow_module_level=True)

HERE: Any = {"configurable": {"thread_id": "talk"}}
SECRET = "sk-ant-" + "api03-" + "a1B2c3D4e5" * 9


def setup_module() -> None:
    """Import what takes longer than all else that is collected, for those who run these tests alone."""
    global AIMessage, AnyMessage, Command, DecklogSaver, END, HumanMessage, InMemorySaver, JsonPlusSerializer, START
    global StateGraph, add_messages, interrupt
    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
    from langgraph.graph import END, START, StateGraph, add_messages
    from langgraph.types import Command, interrupt

    from decklog.plugins.adapters.langgraph import DecklogSaver


def graph(saver: Any) -> Any:
    class State(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]

    def ask(_state: State) -> State:
        return {"messages": [HumanMessage(interrupt("what next?"), id="h2")]}

    builder = StateGraph(State)
    builder.add_node("answer", lambda state: {"messages": [AIMessage(f"answer {len(state['messages'])}", id="a1")]})
    builder.add_node("ask", ask)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "ask")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


def file_of(saver: "InMemorySaver", path: Path) -> Path:
    """Write what a saver holds as LangGraph's SQLite saver does, which counts in texts as this one does."""
    serde, checkpoints, writes = JsonPlusSerializer(), [], []
    for found in saver.list(HERE):
        place = [found.config["configurable"][name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id")]
        parent = found.parent_config and found.parent_config["configurable"]["checkpoint_id"]
        checkpoints.append((*place, parent, *serde.dumps_typed(found.checkpoint), json.dumps(found.metadata).encode()))
        for number, (task, channel, value) in enumerate(found.pending_writes or ()):
            writes.append((*place, task, "", number, channel, *serde.dumps_typed(value)))
    return build(path, checkpoints=checkpoints, writes=writes)


@pytest.mark.slow
def test_an_imported_thread_goes_on_from_its_interrupt(log: Decklog, tmp_path: Path) -> None:
    theirs = InMemorySaver()
    graph(theirs).invoke({"messages": [HumanMessage(f"use {SECRET}", id="h1")]}, HERE)
    LangGraphImport(log, str(file_of(theirs, tmp_path / "theirs.sqlite"))).run()

    ours, own = graph(DecklogSaver(log)), graph(theirs)
    assert ours.get_state(HERE).next == ("ask",)
    assert len([*ours.get_state_history(HERE)]) == len([*own.get_state_history(HERE)])
    gone_on = ours.invoke(Command(resume="more"), HERE)["messages"]
    assert [type(message).__name__ for message in gone_on] == ["HumanMessage", "AIMessage", "HumanMessage"]
    assert [message.content for message in gone_on][1:] == ["answer 1", "more"]
    assert SECRET not in gone_on[0].content
    # An import of the same file again changes nothing of what came since.
    LangGraphImport(log, str(tmp_path / "theirs.sqlite")).run()
    assert ours.get_state(HERE).values["messages"] == gone_on
    assert log.journal.verify().ok


@pytest.mark.slow
def test_what_is_taken_apart_is_written_as_it_was() -> None:
    kind, data = JsonPlusSerializer().dumps_typed(
        {
            "message": [AIMessage("x" * 300, id="a")],
            "numbers": [0, 127, 128, 255, 256, 65536, 2**32, 2**63, -1, -32, -33, -129, -40000, -(2**40), 0.5],
            "many": list(range(70_000)),
            "bytes": [b"", b"a" * 300, b"b" * 70_000],
            "path": Path("/tmp"),
            "rest": {"n": None, "t": True, "f": False, 3: "three"},
        }
    )
    assert kind == "msgpack"
    assert pack(unpack(data)) == data
