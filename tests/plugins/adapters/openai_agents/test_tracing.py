"""Agents of the OpenAI Agents SDK, with a model that answers by script: what the log says is what happened."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, Entry, EntryKind, Run, RunStatus
from decklog.agents import recorded
from tests.agents.fake_model import FakeModel, Step, Use
from tests.db.processes import ROOT
from tests.project.documents import blocks_of, variables

if find_spec("agents") is None:
    pytest.skip("the OpenAI Agents SDK is not installed: `make test-agents` brings it", allow_module_level=True)

CLIENTS: "list[AsyncOpenAI]" = []
KINDS = ("input_tokens", "cache_read_tokens", "cache_create_tokens", "output_tokens")
SCRIPT = {
    "tools": [
        Step("Let me look.", (Use("read", {"path": "a.txt"}), Use("read", {"path": "b.txt"}))),
        Step(uses=(Use("fail", {}),), cache_read_tokens=50, cache_create_tokens=7),
        Step("All done.", output_tokens=11),
    ],
    "handoff": [Step(uses=(Use("transfer_to_second", {}),)), Step("I have it now.")],
    "below": [Step(uses=(Use("helper", {"input": "lane=helped go"}, is_function=True),)), Step("It helped.")],
    "helped": [Step(uses=(Use("read", {"path": "below.txt"}),), input_tokens=31), Step("Below is done.")],
    "long": [Step(uses=(Use("wait", {}),)), Step("Never said.")],
    "broken": [Step(status=400)],
    "rounds": [Step(uses=(Use("read", {"path": "again"}),))] * 5,
}


def setup_module() -> None:
    """Import what takes longer than all else that is collected, for those who run these tests alone."""
    global Agent, AsyncOpenAI, DecklogTracing, GuardrailFunctionOutput, InputGuardrailTripwireTriggered, MaxTurnsExceeded
    global OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner, input_guardrail, set_trace_processors
    global set_tracing_disabled, trace, fail, kill, read, wait
    from openai import AsyncOpenAI

    from agents import (
        Agent,
        GuardrailFunctionOutput,
        InputGuardrailTripwireTriggered,
        MaxTurnsExceeded,
        OpenAIChatCompletionsModel,
        OpenAIResponsesModel,
        RunConfig,
        Runner,
        input_guardrail,
        set_trace_processors,
        set_tracing_disabled,
        trace,
    )
    from decklog.plugins.adapters.openai_agents import DecklogTracing
    from tests.plugins.adapters.openai_agents.tools import fail, kill, read, wait


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel(SCRIPT) as model:
        yield model


@pytest.fixture
def tracing(log: Decklog) -> "Iterator[DecklogTracing]":
    set_tracing_disabled(False)
    with DecklogTracing(log) as tracing:
        set_trace_processors([tracing])
        yield tracing
        set_trace_processors([])


def client(model: FakeModel) -> "AsyncOpenAI":
    CLIENTS.append(AsyncOpenAI(base_url=f"{model.address}/v1", api_key="none", max_retries=0))
    return CLIENTS[-1]


async def finished(work: Coroutine[Any, Any, Any]) -> Any:
    """Do something in a loop of its own, and leave no connection behind."""
    try:
        return await work
    finally:
        while CLIENTS:
            await CLIENTS.pop().close()


def run(*given: Any, **settings: Any) -> Any:
    return asyncio.run(finished(Runner.run(*given, **settings)))


def agent(model: FakeModel, name: str = "first", **settings: Any) -> "Agent[Any]":
    given = {"tools": [read, fail, wait], **settings}
    return Agent(name=name, model=OpenAIResponsesModel("gpt-5.5", client(model)), **given)


def only_run(log: Decklog) -> Run:
    (found,) = (one for one in log.runs.find() if one.parent_run_id is None)
    return found


def entries(log: Decklog, run_id: str) -> list[Entry]:
    return [entry for entry in log.journal.find(run_id, oldest_first=True, limit=200) if entry.kind is not EntryKind.CHANGE]


def entry_texts(log: Decklog, run_id: str, *subtypes: str) -> list[tuple[str | None, str | None]]:
    return [(entry.subtype, entry.body) for entry in entries(log, run_id) if not subtypes or entry.subtype in subtypes]


def facts(log: Decklog, run_id: str, subtype: str) -> list[Any]:
    return [entry.payload for entry in entries(log, run_id) if entry.subtype == subtype]


def assert_paid(log: Decklog, model: FakeModel) -> None:
    charges = log.ledger.find(limit=200)
    paid = {kind: sum(getattr(charge, kind) for charge in charges) for kind in KINDS}
    assert paid == {kind: sum(getattr(given.step, kind) for given in model.given) for kind in KINDS}
    assert log.journal.verify().ok


def test_a_run_with_tools_is_on_record_to_the_token(log: Decklog, tracing: "DecklogTracing", model: FakeModel) -> None:
    result = run(agent(model), "lane=tools go")
    assert result.final_output == "All done."
    tracing.force_flush()
    made = only_run(log)
    assert (made.goal, made.status, made.summary) == ("lane=tools go", RunStatus.COMPLETED, "All done.")
    assert entry_texts(log, made.id, "prompt", "said", "call") == [
        ("prompt", "lane=tools go"),
        ("said", "Let me look."),
        ("call", "read a.txt"),
        ("call", "read b.txt"),
        ("call", "fail"),
        ("said", "All done."),
    ]
    assert [fact["outcome"] for fact in facts(log, made.id, "result")] == ["ok", "ok", "failed"]
    assert {body for _, body in entry_texts(log, made.id, "result")} >= {"text of a.txt", "text of b.txt"}
    assert {charge.model for charge in log.ledger.find(made.id)} == {"gpt-5.5"}
    assert [fact["outcome"] for fact in facts(log, made.id, "step.ended")] == ["ok"]
    assert tracing.trouble is None
    assert_paid(log, model)


def test_a_streamed_run_and_chat_completions_tell_the_same(log: Decklog, tracing: "DecklogTracing", model: FakeModel) -> None:
    async def stream() -> None:
        streamed = Runner.run_streamed(agent(model), "lane=handoff go", run_config=RunConfig(workflow_name="Streamed"))
        async for _ in streamed.stream_events():
            pass

    chat = agent(model).clone(model=OpenAIChatCompletionsModel("gpt-5.5", client(model)), handoffs=[agent(model, "second")])
    assert run(chat, "lane=handoff go").last_agent.name == "second"
    with suppress(Exception):
        asyncio.run(finished(stream()))  # there is nobody to hand over to
    tracing.force_flush()
    chatted, streamed = sorted(log.runs.find(), key=lambda one: one.goal == "Streamed")
    assert entry_texts(log, chatted.id, "handoff", "said") == [("handoff", "first → second"), ("said", "I have it now.")]
    assert [body for _, body in entry_texts(log, chatted.id, "step")] == ["first", "second"]
    assert chatted.status is RunStatus.COMPLETED
    assert (streamed.goal, streamed.status) == ("Streamed", RunStatus.FAILED)
    assert_paid(log, model)


def test_an_agent_that_a_tool_runs_is_a_run_below(log: Decklog, tracing: "DecklogTracing", model: FakeModel) -> None:
    helper = agent(model, "below").as_tool("helper", "Helps.")
    run(agent(model, tools=[helper]), "lane=below go")
    tracing.force_flush()
    made = only_run(log)
    (below,) = log.runs.find(parent_run_id=made.id)
    assert (below.goal, below.status, below.summary) == ("below", RunStatus.COMPLETED, "Below is done.")
    assert entry_texts(log, below.id, "prompt", "call") == [("prompt", "lane=helped go"), ("call", "read below.txt")]
    assert [charge.input_tokens for charge in log.ledger.find(below.id)] == [100, 31]
    assert entry_texts(log, made.id, "call") == [("call", "helper")]
    assert_paid(log, model)


def test_a_guardrail_that_trips_fails_the_run(log: Decklog, tracing: "DecklogTracing", model: FakeModel) -> None:
    @input_guardrail
    async def polite(_context: Any, _agent: Any, given: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered="rude" in given)

    with pytest.raises(InputGuardrailTripwireTriggered):
        run(agent(model, input_guardrails=[polite]), "rude")
    tracing.force_flush()
    made = only_run(log)
    assert made.status is RunStatus.FAILED
    assert entry_texts(log, made.id, "guardrail") == [("guardrail", "polite: tripped")]


def test_an_error_fails_the_run_and_says_why(log: Decklog, tracing: "DecklogTracing", model: FakeModel) -> None:
    with pytest.raises(Exception, match="400"):
        run(agent(model), "lane=broken go", run_config=RunConfig(workflow_name="Broken"))
    with pytest.raises(MaxTurnsExceeded):
        run(agent(model), "lane=rounds go", max_turns=2, run_config=RunConfig(workflow_name="Rounds"))
    tracing.force_flush()
    rounds, broken = log.runs.find()
    assert (broken.status, rounds.status) == (RunStatus.FAILED, RunStatus.FAILED)
    assert "400" in str(entry_texts(log, broken.id, "error"))
    assert "Max turns exceeded" in str(entry_texts(log, rounds.id, "step.ended"))
    assert_paid(log, model)


def test_a_run_that_is_cancelled_says_so(log: Decklog, tracing: "DecklogTracing", model: FakeModel) -> None:
    async def cut() -> None:
        task = asyncio.create_task(Runner.run(agent(model), "lane=long go"))
        while not log.runs.find() or not entry_texts(log, only_run(log).id, "call"):
            await asyncio.sleep(0.01)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(finished(cut()))
    tracing.force_flush()
    made = only_run(log)
    assert made.status is RunStatus.CANCELLED
    assert [fact["outcome"] for fact in facts(log, made.id, "result")] == ["interrupted"]
    assert [fact["outcome"] for fact in facts(log, made.id, "step.ended")] == ["interrupted"]


def test_inside_of_a_recorded_run_everything_belongs_to_that(log: Decklog, tracing: "DecklogTracing", model: FakeModel) -> None:
    with recorded(log, "All of it", run_id="all"), trace("Twice"):
        run(agent(model), "lane=tools go")
        run(agent(model), "lane=handoff2 go")
    tracing.force_flush()
    assert [one.id for one in log.runs.find()] == ["all"]
    assert log.runs.get("all").status is RunStatus.COMPLETED
    assert [body for _, body in entry_texts(log, "all", "prompt")] == ["lane=tools go", "lane=handoff2 go"]
    assert_paid(log, model)


def test_a_log_that_can_not_be_written_stops_nobody_and_gets_it_later(
    tmp_path: Path, model: FakeModel, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "late.db"
    closed = Decklog.open(path)
    closed.close()
    set_tracing_disabled(False)
    tracing = DecklogTracing(closed)
    set_trace_processors([tracing])
    with caplog.at_level(logging.WARNING, "decklog.plugins.adapters"):
        assert run(agent(model), "lane=tools go").final_output == "All done."
        assert not tracing.flush(0.0)
    set_trace_processors([])
    assert "not everything is on record yet" in caplog.text
    assert tracing.trouble is not None
    with Decklog.open(path) as log, DecklogTracing(log) as next_one:
        next_one.force_flush()
        assert only_run(log).status is RunStatus.COMPLETED
        assert_paid(log, model)


def test_the_guide_s_program_works(tmp_path: Path) -> None:
    (block,) = (block for block in blocks_of(ROOT / "docs/how-to/openai-agents.md") if block.file_name)
    with FakeModel({"none": [Step(uses=(Use("read", {"path": "test_clock.py"}),)), Step("It is test_clock.")]}) as model:
        own = {**variables(tmp_path), "OPENAI_BASE_URL": f"{model.address}/v1", "OPENAI_API_KEY": "none"}
        words = [sys.executable, "-c", block.text]
        done = subprocess.run(words, cwd=tmp_path, env=own, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("It is test_clock.\n", 0), done.stderr
    with Decklog.open(tmp_path / "agents.db") as log:
        assert (only_run(log).goal, only_run(log).status) == ("Find the flaky test", RunStatus.COMPLETED)
        assert_paid(log, model)


def test_what_a_killed_process_had_begun_is_told_as_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "killed.db"
    script = {"kill": [Step("Now.", (Use("kill", {}),))]}
    with FakeModel(script) as model:
        Decklog.open(path).close()
        child = os.fork()
        if not child:
            with Decklog.open(path) as log:
                tracing = DecklogTracing(log)
                set_tracing_disabled(False)
                set_trace_processors([tracing])
                late = agent(model, tools=[kill])
                with suppress(BaseException):
                    run(late, "lane=kill go")
            os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL
    with Decklog.open(path) as log, DecklogTracing(log) as tracing:
        tracing.force_flush()
        made = only_run(log)
        assert (made.status, made.summary) == (RunStatus.FAILED, "interrupted: the process ended before this did")
        assert log.journal.verify().ok
