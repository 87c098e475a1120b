"""A run as spans: the names of the conventions, the same ids every time, and nothing before it has ended."""

import json
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import error_attributes

from decklog import Decklog, ManualClock, NotFound, RunStatus
from decklog.agents import charge, recorded, step, tool
from decklog.plugins.adapters.otel import conventions, otlp
from decklog.plugins.adapters.otel.export import OtlpExport, Sender
from decklog.plugins.adapters.otel.otlp import OtelSpan
from tests.plugins.adapters.otel.servers import Collector


def spans_of(log: Decklog, *run_ids: str, **settings: Any) -> list[OtelSpan]:
    """Give the spans that runs go out as."""
    found: list[OtelSpan] = []
    OtlpExport(log, run_ids, **settings)._hand_on(found.extend)
    return found


def by_name(spans: list[OtelSpan]) -> dict[str, OtelSpan]:
    return {span.name: span for span in spans}


@pytest.fixture
def flaky(here: Decklog) -> Decklog:
    clock: Any = here.clock
    with recorded(here, "Find the flaky test", agent="finder", run_id="flaky"):
        with step("look around"), tool("read", path="a.py", depth=2) as call:
            clock.advance(seconds=2)
            call.returned("text")
        charge("claude-x", input_tokens=9, cache_read_tokens=100, output_tokens=5, cost_microdollars=42)
        with tool("Bash", command="pytest") as call:
            call.failed("1 failed")
        with recorded(here, "Help", agent="helper", run_id="help"):
            here.journal.append("help", "a word")
    return here


def test_every_name_is_one_of_the_conventions() -> None:
    known = {value for value in vars(gen_ai_attributes).values() if isinstance(value, str)} | {error_attributes.ERROR_TYPE}
    used = {value for value in vars(conventions).values() if isinstance(value, str) and value.startswith(("gen_ai.", "error."))}
    assert used - known == {conventions.COST}
    operations = {one.value for one in gen_ai_attributes.GenAiOperationNameValues}
    assert {conventions.INVOKE_AGENT, conventions.EXECUTE_TOOL, *conventions.INFERENCE} <= operations
    providers = {one.value for one in gen_ai_attributes.GenAiProviderNameValues}
    models = ("claude-x", "gpt-9", "openai/o3-mini", "gemini-3", "mistral-large", "deepseek-v4", "grok-5", "command-r", "other")
    assert {conventions.provider_of(model) for model in models} - providers == {conventions.UNKNOWN_PROVIDER}


def test_a_run_its_steps_its_tools_and_its_spend_are_spans_within_each_other(flaky: Decklog) -> None:
    spans = by_name(spans_of(flaky, "flaky"))
    run, looked, read, bash, paid = (
        spans[name] for name in ("invoke_agent finder", "look around", "execute_tool read", "execute_tool Bash", "chat claude-x")
    )
    assert (run.parent_id, looked.parent_id, read.parent_id, paid.parent_id) == ("", run.span_id, looked.span_id, run.span_id)
    assert read.end - read.start == 2 * 10**9
    assert {one.trace_id for one in spans.values()} == {run.trace_id}
    told = read.attributes
    assert (told["gen_ai.operation.name"], told["gen_ai.tool.name"], told["gen_ai.tool.call.result"]) == (
        "execute_tool",
        "read",
        "text",
    )
    assert json.loads(told["gen_ai.tool.call.arguments"]) == {"depth": 2}
    assert told["gen_ai.conversation.id"] == "flaky"
    assert (bash.status, bash.attributes["error.type"]) == (conventions.ERROR, "failed")
    usage = {name: value for name, value in paid.attributes.items() if name.startswith("gen_ai.usage")}
    assert usage == {
        "gen_ai.usage.input_tokens": 109,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 100,
        "gen_ai.usage.cache_creation.input_tokens": 0,
    }
    assert (paid.kind, paid.attributes["gen_ai.provider.name"]) == (conventions.CLIENT, "anthropic")


def test_a_run_below_is_a_span_of_the_same_trace_alone_or_with_the_one_above(flaky: Decklog) -> None:
    alone, together = by_name(spans_of(flaky, "help")), by_name(spans_of(flaky, "flaky"))
    assert alone["invoke_agent helper"] == together["invoke_agent helper"]
    assert alone["invoke_agent helper"].parent_id == together["invoke_agent finder"].span_id
    assert len(spans_of(flaky, "flaky", "help", "flaky")) == len(together)


def test_the_same_run_is_the_same_spans_every_time(flaky: Decklog, tmp_path: Path) -> None:
    files = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for path in files:
        OtlpExport(flaky, ["flaky"]).write(str(path))
    assert files[0].read_bytes() == files[1].read_bytes()
    ids = [span.span_id for span in spans_of(flaky, "flaky")]
    assert len(set(ids)) == len(ids)


def test_two_logs_with_runs_of_one_name_have_two_traces(here: Decklog, there: Decklog) -> None:
    clock: Any = there.clock
    clock.advance(microseconds=1)
    for log in (here, there):
        log.runs.start("Same", run_id="same")
        log.runs.finish("same")
    assert spans_of(here, "same")[0].trace_id != spans_of(there, "same")[0].trace_id


def test_a_fork_is_a_trace_of_its_own(flaky: Decklog) -> None:
    fork = flaky.runs.fork("flaky", at="flaky:3", new_run_id="again")
    flaky.runs.finish(fork.id)
    spans = spans_of(flaky, "flaky")
    assert "again" not in {span.attributes["decklog.run.id"] for span in spans}
    assert {span.trace_id for span in spans_of(flaky, "again")} & {span.trace_id for span in spans} == set()


def test_what_has_not_ended_is_sent_when_it_has(here: Decklog) -> None:
    run = here.runs.start("Go on", run_id="on")
    for part in ("a", "b"):
        here.journal.append(run.id, part, kind="tool", subtype="call", payload={"call": part, "tool": "t"})  # type: ignore[arg-type]
    here.journal.append(run.id, "done", kind="tool", subtype="result", payload={"call": "a", "tool": "t", "outcome": "ok"})  # type: ignore[arg-type]
    export = OtlpExport(here, ["on"])
    found: list[OtelSpan] = []
    export._hand_on(found.extend)
    assert ([span.name for span in found], export.counts["waiting"]) == (["execute_tool t"], 2)
    here.runs.finish(run.id, status=RunStatus.FAILED)
    first, second, whole = spans_of(here, "on")
    assert first == found[0]
    # Nobody told what became of it: the run's end is its own.
    assert (second.attributes["error.type"], whole.attributes["error.type"]) == ("lost", "failed")


def test_attempts_at_tasks_are_spans_with_what_was_done_in_them(log: Decklog, clock: ManualClock) -> None:
    log.runs.start("Work", run_id="w")
    log.tasks.add("w", "Lex", task_id="lex")
    for worker, outcome in (("ada", "failed"), ("bo", "done")):
        claim = log.tasks.claim("w", worker=worker)
        assert claim is not None
        clock.advance(seconds=5)
        log.journal.append("w", "a thought", task_id="lex")
        end = log.tasks.fail if outcome == "failed" else log.tasks.finish
        end("lex", fence=claim.fence, **({"blocker": "no"} if outcome == "failed" else {"summary": "yes"}))  # type: ignore[operator]
    log.runs.finish("w")
    spans = spans_of(log, "w")
    ada, bo = (by_name(spans)[f"invoke_agent {worker}"] for worker in ("ada", "bo"))
    assert (ada.end - ada.start, ada.attributes["error.type"]) == (5 * 10**9, "failed")
    assert (bo.attributes["decklog.attempt"], bo.attributes["decklog.attempt.summary"], bo.status) == (
        2,
        "yes",
        conventions.UNSET,
    )
    assert [span.parent_id for span in spans if span.name == "interaction"] == [ada.span_id, bo.span_id]


def test_texts_can_be_left_out(flaky: Decklog) -> None:
    flaky.journal.append("flaky", "my own words", payload={"of": "mine"})
    told = json.dumps([otlp.request_of([span]) for span in spans_of(flaky, "flaky", texts=False)])
    for text in ("look around", "a.py", "1 failed", "my own words", "mine", "Find the flaky test", "a word"):
        assert text not in told
    assert "execute_tool read" in told


def test_batches_are_small_whatever_the_run_is(here: Decklog) -> None:
    here.runs.start("Long", run_id="long")
    for start in range(0, 1200, 400):
        here.journal.append_many([{"stream": "long", "body": f"{number}"} for number in range(start, start + 400)])
    here.journal.append_many([{"stream": "long", "body": "x" * 150_000} for _ in range(20)])
    sizes: list[tuple[int, int]] = []
    OtlpExport(here, ["long"])._hand_on(lambda spans: sizes.append((len(spans), len(json.dumps(otlp.request_of(spans))))))
    assert max(count for count, _ in sizes) <= 512
    assert max(size for _, size in sizes) < 1.5 * 1024**2
    assert sum(count for count, _ in sizes) == 1220


def test_a_run_is_followed_until_it_ends(here: Decklog, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decklog.plugins.adapters.otel.export._QUIET_SECONDS", 0.01)
    here.runs.start("Live", run_id="live")
    here.journal.append("live", "one")
    done: list[dict[str, Any]] = []
    follow = Thread(
        target=lambda: done.append(OtlpExport(here, ["live"]).send(Sender(collector.address, here.clock), follow=True))
    )
    follow.start()
    while not collector.spans:
        follow.join(0.005)
        assert follow.is_alive()
    here.journal.append("live", "two")
    here.runs.start("Begun later", run_id="below", parent_run_id="live", metadata={"agent": "helper"})
    for run_id in ("below", "live"):
        here.runs.finish(run_id)
    follow.join(30)
    assert (done[0]["spans"], done[0]["waiting"]) == (4, 0)
    assert [span.name for span in collector.spans] == [
        "interaction",
        "interaction",
        "invoke_agent decklog",
        "invoke_agent helper",
    ]


def test_a_run_that_is_not_there_is_named(here: Decklog) -> None:
    with pytest.raises(NotFound):
        OtlpExport(here, ["nowhere"])
