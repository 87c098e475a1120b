"""A trace of the OpenAI Agents SDK becomes a run. `tests/plugins/adapters/openai_agents` runs the SDK itself."""

from typing import Any

from decklog import Decklog, RunStatus
from decklog.agents.programs.openai_agents import events_of
from decklog.agents.recorder import Recorder

RUN = "openai-agents-trace_1"
USAGE = {
    "input_tokens": 100,
    "output_tokens": 20,
    "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
}


def tell(log: Decklog, *payloads: dict[str, Any]) -> None:
    recorder = Recorder(log, "openai-agents")
    recorder.record(event for payload in payloads for event in events_of({"session_id": "trace_1", **payload}, None))


def hook_payload(hook: str, **facts: Any) -> dict[str, Any]:
    return {"hook_event_name": hook, "span": "span_1", **facts}


def test_what_is_told_twice_is_paid_once_and_tokens_of_a_cache_are_no_other_input(log: Decklog) -> None:
    answer = hook_payload("response.ended", answer="resp_1", model="m", usage=USAGE, said=["Hello"], prompts=[(1, "Hi")])
    tell(log, hook_payload("trace", workflow="Agent workflow"), answer, answer)
    (charge,) = log.ledger.find(RUN)
    tokens = (charge.input_tokens, charge.cache_read_tokens, charge.cache_create_tokens, charge.output_tokens)
    assert tokens == (30, 60, 10, 20)
    assert (log.runs.get(RUN).goal, len(log.journal.find(RUN, subtype="said"))) == ("Hi", 1)


def test_a_trace_ends_as_it_says_and_what_was_open_is_lost(log: Decklog) -> None:
    tell(log, hook_payload("trace", goal="Find it"), hook_payload("function", name="read", arguments={"path": "a"}))
    tell(log, hook_payload("trace.ended", outcome="interrupted", text="so far"))
    run = log.runs.get(RUN)
    assert (run.goal, run.status, run.summary) == ("Find it", RunStatus.CANCELLED, "so far")
    assert log.journal.find(RUN, subtype="result")[0].payload["outcome"] == "lost"  # type: ignore[index,call-overload]


def test_a_session_that_is_taken_up_belongs_to_the_process_that_does(log: Decklog) -> None:
    tell(log, hook_payload("trace", process="one"), hook_payload("trace.ended", outcome="failed"))
    assert log.runs.get(RUN).metadata["process"] == "one"
    tell(log, hook_payload("trace", process="two"))
    assert (log.runs.get(RUN).status, log.runs.get(RUN).metadata["process"]) == (RunStatus.ACTIVE, "two")
    tell(log, hook_payload("trace"))
    assert "process" not in log.runs.get(RUN).metadata
