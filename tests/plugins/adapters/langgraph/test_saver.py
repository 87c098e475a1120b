"""LangGraph goes on from a log as from its own savers: its conformance tests pass, and graphs run."""

import asyncio
from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import Annotated, Any, TypedDict

import pytest

from decklog import Decklog, EntryKind

if find_spec("langgraph") is None or find_spec("langgraph.checkpoint.conformance") is None:
    pytest.skip("LangGraph's conformance tests are not installed", allow_module_level=True)


def setup_module() -> None:
    """Import what takes longer than all else that is collected, for those who run these tests alone."""
    global AIMessage, DecklogSaver, END, START, StateGraph, checkpointer_test, empty_checkpoint, validate
    from langchain_core.messages import AIMessage
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.conformance import checkpointer_test, validate
    from langgraph.graph import END, START, StateGraph

    from decklog.plugins.adapters.langgraph import DecklogSaver


def added(left: list[str], right: list[str]) -> list[str]:
    return left + right


class State(TypedDict):
    said: Annotated[list[str], added]


def graph(log: Decklog) -> Any:
    builder = StateGraph(State)
    builder.add_node("one", lambda _: {"said": ["one"]})
    builder.add_node("two", lambda state: {"said": [f"two after {state['said'][-1]}"]})
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    builder.add_edge("two", END)
    return builder.compile(checkpointer=DecklogSaver(log))


@pytest.mark.slow
def test_langgraphs_own_conformance_tests_pass(log: Decklog) -> None:
    @checkpointer_test(name="decklog")
    async def saver() -> AsyncIterator[DecklogSaver]:
        yield DecklogSaver(log)

    report = asyncio.run(validate(saver))
    failures = [failure for result in report.results.values() for failure in result.failures or ()]
    assert failures == []
    assert {name: result.passed for name, result in report.results.items()} == dict.fromkeys(report.results, True)
    assert len(report.results) == 8
    assert log.journal.verify().ok


@pytest.mark.slow
def test_a_graph_goes_on_where_its_thread_was_and_the_thread_is_a_run(log: Decklog) -> None:
    here: Any = {"configurable": {"thread_id": "talk"}}
    graph(log).invoke({"said": ["hello"]}, here)
    again = graph(log).invoke({"said": ["again"]}, here)
    assert again["said"] == ["hello", "one", "two after one", "again", "one", "two after one"]
    assert log.runs.get("talk").metadata == {"langgraph": {"thread_id": "talk"}}
    first = [*graph(log).get_state_history(here)][-1]
    assert first.values == {"said": []}
    assert log.states.graph_checkpoints("talk", limit=1)[0].metadata["source"] == "loop"
    assert log.journal.find("talk", kind=EntryKind.CHANGE)[0].record_table in ("graph_checkpoints", "graph_writes")
    assert log.journal.verify().ok


def test_a_graph_that_awaits_does_the_same(log: Decklog) -> None:
    async def main() -> Any:
        here: Any = {"configurable": {"thread_id": "talk to me: now"}}
        found = graph(log)
        await asyncio.gather(*(found.ainvoke({"said": [str(n)]}, {"configurable": {"thread_id": f"t{n}"}}) for n in range(3)))
        await found.ainvoke({"said": ["hello"]}, here)
        return await found.aget_state(here)

    state = asyncio.run(main())
    assert state.values["said"][-1] == "two after one"
    assert state.config["configurable"]["thread_id"] == "talk to me: now"
    assert len(log.runs.find()) == 4


def test_secrets_in_a_state_are_redacted_and_all_else_comes_back(log: Decklog) -> None:
    secret = "k8#tR2" + "vLq9"
    saver = DecklogSaver(log)
    saved = empty_checkpoint()
    message = AIMessage(content="export DB_PASSWORD=" + secret, id="m1")
    saved["channel_values"] = {"messages": [message], "bytes": b"\x00\xff", 7: {"set": {1, 2}}, "password": secret}
    here: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    where = saver.put(here, saved, {"source": "input", "step": -1}, {})
    saver.put_writes(where, [("messages", [message])], "task")
    found = saver.get_tuple(here)
    assert found is not None
    values: Any = found.checkpoint["channel_values"]
    assert values["messages"] == [AIMessage(content="export DB_PASSWORD=[redacted:password]", id="m1")]
    assert (values["bytes"], values[7], values["password"]) == (b"\x00\xff", {"set": {1, 2}}, "[redacted:password]")
    assert found.pending_writes == [("task", "messages", values["messages"])]
    assert [record.redacted for record in log.states.graph_checkpoints("t")] == [True]


def test_pruning_keeps_what_a_delta_channel_is_told_by(log: Decklog) -> None:
    saver = DecklogSaver(log)
    here: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for step in range(3):
        facts: Any = {"source": "loop", "step": step, "counters_since_delta_snapshot": {"said": [1, 1]}}
        here = saver.put(here, empty_checkpoint(), facts, {})
    saver.prune(["t"])
    assert len([*saver.list({"configurable": {"thread_id": "t"}})]) == 3


def test_what_is_no_number_in_metadata_stops_no_graph(log: Decklog) -> None:
    here: Any = {"configurable": {"thread_id": "talk"}, "metadata": {"share": float("nan")}}

    graph(log).invoke({"said": ["hello"]}, here)

    assert log.states.graph_checkpoints("talk", limit=1)[0].metadata["share"] == "nan"


def test_a_fork_of_a_thread_goes_on_in_a_thread_of_its_own(log: Decklog) -> None:
    graph(log).invoke({"said": ["hello"]}, {"configurable": {"thread_id": "talk"}})
    fork = log.runs.fork("talk").id
    before = len(log.journal.find("talk", limit=500))
    found = graph(log).get_state({"configurable": {"thread_id": fork}})
    assert found.config["configurable"]["thread_id"] == fork
    again = graph(log).invoke({"said": ["again"]}, found.config)
    assert again["said"] == ["hello", "one", "two after one", "again", "one", "two after one"]
    assert len(log.journal.find("talk", limit=500)) == before, "nothing is written to the parent's thread"
    assert log.runs.get(fork).metadata == {"langgraph": {"thread_id": fork}}
