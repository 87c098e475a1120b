"""Spans out and in again give the same run: by a file, by the wire in both encodings, and through a stranger's collector."""

from pathlib import Path

import pytest

from decklog import Confidence, Decklog, EntryKind, ManualClock, ReasoningPhase
from decklog.agents import charge, recorded, step, tool
from decklog.plugins.adapters.otel import otlp
from decklog.plugins.adapters.otel.export import OtlpExport, Sender
from decklog.plugins.adapters.otel.importer import OtlpImport
from tests.plugins.adapters.otel.sample_spans import describe_run
from tests.plugins.adapters.otel.servers import TOKEN, Collector, Listening


def work(log: Decklog, clock: ManualClock) -> None:
    """Do a little of everything that a loop can record."""
    with recorded(log, "Find the flaky test", agent="finder", run_id="flaky", metadata={"ticket": 7}) as run:
        clock.advance(seconds=1)
        with step("look around"):
            clock.advance(microseconds=3)
            with tool("read", path="tests/core/test_clock.py", depth=2, flags=["a", None]) as call:
                clock.advance(milliseconds=20)
                call.returned("zwölf\nlines", lines=12)
            charge("claude-x", input_tokens=9, cache_read_tokens=100, output_tokens=5, cost_microdollars=42)
        log.journal.append("flaky", "It reads the clock twice", kind=EntryKind.REASONING, phase=ReasoningPhase.APPROACH)
        log.journal.append("flaky", payload={"deep": {"er": [1, 2.5, None, True]}}, confidence=Confidence.LOW, refs=["a:1"])
        clock.advance(seconds=2)
        with tool("Bash", command="pytest -x") as call:
            call.failed("1 failed", exit_code=1)
        with recorded(log, "Ask a helper", agent="helper", run_id="flaky-help"), step("think"):
            clock.advance(seconds=1)
            charge("gpt-x", input_tokens=3, cost_microdollars=7)
        run.returned("Found it")


def test_by_a_file(log: Decklog, clock: ManualClock, there: Decklog, tmp_path: Path) -> None:
    work(log, clock)
    OtlpExport(log, ["flaky"]).write(str(tmp_path / "spans.jsonl"))
    OtlpImport(there, str(tmp_path / "spans.jsonl")).run()
    for run_id in ("flaky", "flaky-help"):
        assert describe_run(there, run_id) == describe_run(log, run_id)
    assert there.journal.verify().ok


@pytest.mark.slow
@pytest.mark.parametrize("kind", [otlp.JSON, otlp.PROTOBUF])
def test_by_the_wire(here: Decklog, there: Decklog, listening: Listening, kind: str) -> None:
    work(here, here.clock)  # type: ignore[arg-type]
    for times in (1, 2):
        sender = Sender(listening.address, here.clock, headers={"authorization": f"Bearer {TOKEN}"}, kind=kind)
        done = OtlpExport(here, ["flaky"]).send(sender)
        assert (done["rejected"], done["messages"]) == (0, []), times
        assert [describe_run(there, run_id) for run_id in ("flaky", "flaky-help")] == [
            describe_run(here, run_id) for run_id in ("flaky", "flaky-help")
        ]
    assert there.journal.verify().ok


def test_through_a_collector_that_hands_spans_on_one_by_one_backwards_and_twice(
    here: Decklog, there: Decklog, collector: Collector, listening: Listening
) -> None:
    work(here, here.clock)  # type: ignore[arg-type]
    OtlpExport(here, ["flaky"]).send(Sender(collector.address, here.clock))
    (request,) = collector.requests
    spans = request.resource_spans[0].scope_spans[0].spans
    for span in [*reversed(list(spans)), *spans]:
        alone = type(request)()
        alone.CopyFrom(request)
        del alone.resource_spans[0].scope_spans[0].spans[:]
        alone.resource_spans[0].scope_spans[0].spans.append(span)
        assert listening.post(alone.SerializeToString(), content_type=otlp.PROTOBUF) == (200, b"")
    for run_id in ("flaky", "flaky-help"):
        got, given = describe_run(there, run_id), describe_run(here, run_id)
        # They came backwards, so they stand in that order; each has its own time.
        assert sorted(map(str, got.pop("entries"))) == sorted(map(str, given.pop("entries")))
        assert got == given


def test_a_run_that_was_taken_in_goes_out_as_the_same_spans(here: Decklog, there: Decklog, tmp_path: Path) -> None:
    work(here, here.clock)  # type: ignore[arg-type]
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    OtlpExport(here, ["flaky"]).write(str(first))
    OtlpImport(there, str(first)).run()
    OtlpExport(there, ["flaky"]).write(str(second))

    def ids(path: Path) -> set[tuple[str, str, str]]:
        found = otlp.spans_in(otlp.decoded("", path.read_bytes(), otlp.JSON))
        return {(one.trace_id, one.span_id, one.parent_id) for one in found if not isinstance(one, otlp.Unreadable)}

    assert ids(second) == ids(first)


def test_sending_a_run_to_its_own_log_changes_nothing(here: Decklog, tmp_path: Path) -> None:
    work(here, here.clock)  # type: ignore[arg-type]
    before = describe_run(here, "flaky")
    OtlpExport(here, ["flaky"]).write(str(tmp_path / "spans.jsonl"))
    report = OtlpImport(here, str(tmp_path / "spans.jsonl")).run()
    assert describe_run(here, "flaky") == before
    assert "was not made of these spans" in report.losses[0]
