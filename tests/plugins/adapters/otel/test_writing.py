"""Spans of any program as runs: by the conventions, in whatever order, however often, and with everything that they say."""

import itertools
from copy import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decklog import Decklog, RunStatus
from decklog.plugins.adapters.otel.importer import SpanWriter
from decklog.plugins.adapters.otel.otlp import OtelSpan, SpanEvent
from tests.plugins.adapters.otel.sample_spans import NOON, SECOND, TRACE, chat, entries, list_bodies, span
from tests.searches import examples

RUN = f"trace-{TRACE}"
AT_NOON = datetime.fromtimestamp(NOON // SECOND, UTC)


def agent(number: int = 1, **fields: Any) -> OtelSpan:
    return span(number, "invoke_agent finder", lasts=60, attributes={"gen_ai.operation.name": "invoke_agent"}, **fields)


def tool(number: int, parent: int = 1, **fields: Any) -> OtelSpan:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read",
        "gen_ai.tool.call.id": f"call_{number}",
        "gen_ai.tool.call.arguments": '{"path": "a.py", "lines": 3}',
        "gen_ai.tool.call.result": "the text",
        "gen_ai.agent.name": "finder",
        **fields.pop("attributes", {}),
    }
    return span(number, "execute_tool read", parent=parent, attributes=attributes, **fields)


def test_a_trace_is_a_run_with_its_steps_calls_and_spend(log: Decklog) -> None:
    arrived = SpanWriter(log).take([agent(), tool(2, at=1), chat(3, 1, at=5)])
    assert (arrived.spans, arrived.refused, arrived.reasons) == (3, 0, [])
    run = log.runs.get(RUN)
    assert (run.goal, run.status) == ("invoke_agent finder", RunStatus.COMPLETED)
    assert (run.started_at, run.ended_at) == (AT_NOON, AT_NOON + timedelta(seconds=60))
    assert list_bodies(log, RUN) == [
        ("step", "invoke_agent finder"),
        ("call", "read a.py"),
        ("result", "the text"),
        ("step", "chat a-model"),
        ("step.ended", "chat a-model: ok"),
        ("step.ended", "invoke_agent finder: ok"),
    ]
    call: Any = entries(log, RUN)[1]
    assert call.payload == {"arguments": {"lines": 3}, "call": f"{2:016x}", "tool": "read", "within": f"{1:016x}"}
    assert (call.agent, call.at) == ("finder", AT_NOON + timedelta(seconds=1))
    (paid,) = log.ledger.find(run_id=RUN)
    assert (paid.model, paid.input_tokens, paid.output_tokens) == ("a-model", 100, 10)
    assert paid.occurred_at == AT_NOON + timedelta(seconds=6)
    assert log.journal.verify().ok


@pytest.mark.slow
def test_spans_that_come_twice_late_and_backwards_make_the_same_run(log: Decklog) -> None:
    spans = [agent(), tool(2, at=1), chat(3, 1, at=5), chat(4, 1, at=9)]
    arrivals = SpanWriter(log)
    assert [arrivals.take([one]).new > 0 for one in reversed(spans)] == [True] * 4
    assert log.runs.get(RUN).status is RunStatus.COMPLETED
    # A second receiver, which remembers nothing.
    assert [SpanWriter(log).take([one]).new for one in spans] == [0] * 4
    assert len(log.ledger.find(run_id=RUN)) == 2
    assert sorted(entry.at for entry in entries(log, RUN))[0] == AT_NOON
    late = tool(5, at=2)
    assert SpanWriter(log).take([late, late, *spans]).new == 2
    assert log.journal.verify().ok


def test_a_span_that_goes_on_is_begun_and_ends_when_it_has_ended(here: Decklog) -> None:
    arrivals = SpanWriter(here)
    arrivals.take([agent(end=0), tool(2, end=0)])
    assert (here.runs.get(RUN).status, len(entries(here, RUN))) == (RunStatus.ACTIVE, 2)
    arrivals.take([tool(2), agent()])
    assert (here.runs.get(RUN).status, len(entries(here, RUN))) == (RunStatus.COMPLETED, 4)


def test_a_run_whose_outermost_span_never_comes_stays_open_under_the_name_of_its_trace(here: Decklog) -> None:
    SpanWriter(here).take([tool(2)])
    run = here.runs.get(RUN)
    assert (run.goal, run.status) == (f"Trace {TRACE}", RunStatus.ACTIVE)


def test_a_span_whose_parent_is_in_another_process_ends_the_run_until_the_parent_says_more(here: Decklog) -> None:
    arrivals = SpanWriter(here)
    arrivals.take([span(2, "handle", parent=1, at=5, lasts=2, flags=0x301)])
    assert here.runs.get(RUN).goal == "handle"
    arrivals.take([span(1, "the whole", lasts=60, status=2, message="it broke")])
    run = here.runs.get(RUN)
    assert (run.goal, run.status, run.summary, run.started_at) == ("the whole", RunStatus.FAILED, "it broke", AT_NOON)


def test_errors_events_links_and_unknown_attributes_are_kept(log: Decklog) -> None:
    failed = tool(2, status=2, message="no such file", attributes={"gen_ai.tool.call.result": None, "mine": {"deep": [1, 2.5]}})
    failed.events = [
        SpanEvent(name="exception", at=NOON + 5, attributes={"exception.message": "gone", "exception.type": "OSError"})
    ]
    failed.rest = {"links": [{"traceId": "2" * 32}], "droppedAttributesCount": 4}
    failed.resource, failed.scope = {"service.name": "shop", "host.name": "box"}, {"name": "tracer", "version": "3"}
    SpanWriter(log).take([failed])
    assert list_bodies(log, RUN) == [
        ("resource", "shop"),
        ("call", "read a.py"),
        ("exception", "gone"),
        ("result", "no such file"),
    ]
    source, _, event, result = (entry.payload for entry in entries(log, RUN))
    assert source["resource"] == {"service.name": "shop", "host.name": "box"}  # type: ignore[index, call-overload]
    assert event["attributes"]["exception.type"] == "OSError"  # type: ignore[index, call-overload]
    assert result["attributes"]["mine"] == {"deep": [1, 2.5]}  # type: ignore[index, call-overload]
    assert (result["outcome"], result["links"], result["droppedAttributesCount"]) == (  # type: ignore[index, call-overload]
        "failed",
        [{"traceId": "2" * 32}],
        4,
    )


def test_what_was_asked_thought_and_said_is_told(here: Decklog) -> None:
    output = '[{"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "Yes."}]}]'
    asked = [{"role": "system", "content": "Be brief"}, {"role": "user", "parts": [{"type": "text", "content": "Is it   done?"}]}]
    whole = chat(1, attributes={"gen_ai.output.messages": output, "gen_ai.input.messages": asked})
    SpanWriter(here).take([whole])
    run = here.runs.get(RUN)
    assert (run.goal, run.summary) == ("Is it done?", "Yes.")
    assert [(entry.kind.value, entry.body) for entry in entries(here, RUN)][1:3] == [
        ("reasoning", "hm"),
        ("interaction", "Yes."),
    ]


# Money


@pytest.mark.parametrize(
    ("attributes", "tokens"),
    [
        ({"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 5}, (100, 0, 0, 5)),
        ({"gen_ai.usage.cache_read.input_tokens": 70, "gen_ai.usage.cache_creation.input_tokens": 10}, (20, 70, 10, 10)),
        # This program does not count what came from a cache as input.
        ({"gen_ai.usage.input_tokens": 4, "gen_ai.usage.cache_read.input_tokens": 70}, (4, 70, 0, 10)),
        ({"gen_ai.usage.input_tokens": -3, "gen_ai.usage.output_tokens": "many"}, (0, 0, 0, 0)),
    ],
)
def test_tokens_are_counted_once_by_their_kind(here: Decklog, attributes: dict[str, Any], tokens: tuple[int, ...]) -> None:
    SpanWriter(here).take([chat(1, attributes=attributes)])
    (paid,) = here.ledger.find(run_id=RUN)
    assert (paid.input_tokens, paid.cache_read_tokens, paid.cache_create_tokens, paid.output_tokens) == tokens


def test_older_names_and_a_price_in_dollars_are_read(here: Decklog) -> None:
    old = {
        "gen_ai.usage.prompt_tokens": 7,
        "gen_ai.usage.completion_tokens": 2,
        "gen_ai.response.model": "m-2",
        "gen_ai.usage.cost": 0.0125,
    }
    SpanWriter(here).take([span(1, "openai.chat", attributes=old)])
    (paid,) = here.ledger.find(run_id=RUN)
    assert (paid.model, paid.input_tokens, paid.output_tokens, paid.cost_microdollars) == ("m-2", 7, 2, 12_500)


def test_what_an_agents_span_sums_up_is_not_paid_again(here: Decklog) -> None:
    whole = agent()
    whole.attributes |= {"gen_ai.usage.input_tokens": 200, "gen_ai.usage.output_tokens": 20, "gen_ai.request.model": "a-model"}
    SpanWriter(here).take([whole, chat(2, 1), chat(3, 1)])
    assert sum(paid.input_tokens for paid in here.ledger.find(run_id=RUN)) == 200


def test_one_answer_that_a_framework_and_a_library_both_trace_is_paid_once(here: Decklog) -> None:
    answer = {"gen_ai.response.id": "resp_1"}
    SpanWriter(here).take([chat(2, 1, attributes=answer), chat(3, 2, attributes=answer)])
    assert len(here.ledger.find(run_id=RUN)) == 1
    # A program that calls all of its answers the same has others.
    SpanWriter(here).take([chat(4, 1, tokens=(101, 10), attributes=answer)])
    assert len(here.ledger.find(run_id=RUN)) == 2


def test_spend_that_arrives_counts_against_a_budget_and_is_never_refused(log: Decklog) -> None:
    log.budgets.set("all", limit_microdollars=10)
    SpanWriter(log).take([chat(1, attributes={"gen_ai.usage.cost": 1.0})])
    (paid,) = log.ledger.find(run_id=RUN)
    assert (paid.cost_microdollars, paid.overdrew) == (1_000_000, True)


# Any order


def canonical(log: Decklog, trace_id: str) -> Any:
    """Give what a run says whatever the order that it was told in, without the name of its trace."""
    run = log.runs.get(f"trace-{trace_id}")
    told = sorted(str((entry.at, entry.subtype, entry.body, entry.payload, entry.key)) for entry in entries(log, run.id))
    spend = sorted(str((paid.input_tokens, paid.occurred_at)) for paid in log.ledger.find(run_id=run.id, limit=50))
    return told, spend, (run.goal, run.status, run.started_at, run.ended_at)


_numbers = itertools.count(1)


def one_of_each() -> list[OtelSpan]:
    inner = [
        tool(2, at=1),
        chat(3, 1, at=5),
        chat(4, 3, at=5, tokens=(7, 1)),
        tool(5, 4, at=6, status=2, message="no"),
    ]
    inner[0].events = [SpanEvent(name="log", at=NOON + SECOND, attributes={"line": 1})]
    return [agent(), *inner, chat(6, 2, at=9)]


@pytest.mark.slow
@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_run_is_the_same_whatever_order_and_batches_its_spans_come_in(here: Decklog, data: st.DataObject) -> None:
    spans = one_of_each()
    reference = "a" * 32
    SpanWriter(here).take([replaced(span, reference) for span in spans])
    trace_id = f"{next(_numbers):032x}"
    order = data.draw(st.lists(st.sampled_from(range(len(spans))), max_size=6)) + data.draw(st.permutations(range(len(spans))))
    arrivals, place = SpanWriter(here), 0
    while place < len(order):
        size = data.draw(st.integers(1, 4))
        batch = [replaced(spans[number], trace_id) for number in order[place : place + size]]
        # Some of those that come again come before they have ended.
        for one in batch[: max(0, len(order) - len(spans) - place)]:
            one.end = data.draw(st.sampled_from([0, one.end]))
        arrivals.take(batch)
        place += size
    assert canonical(here, trace_id) == canonical(here, reference)


def replaced(given: OtelSpan, trace_id: str) -> OtelSpan:
    found = copy(given)
    found.trace_id = trace_id
    return found


# Where they belong


def test_spans_of_a_conversation_come_together_if_so_asked(here: Decklog) -> None:
    arrivals = SpanWriter(here, by_conversation=True)
    talk = {"gen_ai.conversation.id": "talk 1"}
    first = [chat(2, 1, attributes=talk), span(1, "turn one", lasts=3, attributes=talk), tool(3)]
    second = [
        chat(5, 4, trace_id="5" * 32, at=10, attributes=talk),
        span(4, "turn two", trace_id="5" * 32, at=9, lasts=5),
    ]
    arrivals.take(first)
    arrivals.take(second)
    (run,) = here.runs.find()
    assert (run.goal, run.started_at, run.ended_at) == ("turn one", AT_NOON, AT_NOON + timedelta(seconds=14))
    assert len(here.ledger.find(run_id=run.id)) == 2
    # What the conversation of a trace is, is remembered for what comes after.
    arrivals.take([tool(6, 4, trace_id="5" * 32)])
    assert len(here.runs.find()) == 1


def test_a_run_of_this_log_is_not_written_to_by_spans_that_name_it(log: Decklog) -> None:
    log.runs.start("Ours", run_id="ours")
    forged = span(1, attributes={"decklog.run.id": "ours", "decklog.run.status": "failed"})
    arrived = SpanWriter(log).take([forged, chat(2)])
    assert (arrived.refused, log.runs.get("ours").status) == (1, RunStatus.ACTIVE)
    assert "was not made of these spans" in arrived.reasons[0]
    # What came with it is on record.
    assert len(log.ledger.find(run_id=RUN)) == 1


@pytest.mark.parametrize(
    "attributes",
    [
        {"decklog.entry": "no JSON"},
        {"decklog.entry": '{"seq": -1, "kind": "event"}', "decklog.entry.body": "b"},
        {"decklog.entry": '{"seq": 1, "kind": "change"}', "decklog.entry.body": "b"},
        {"decklog.entry": '{"seq": 1, "kind": "rumour"}', "decklog.entry.body": "b"},
        {"decklog.entry": '{"seq": 1, "kind": "event", "at": "soon"}', "decklog.entry.body": "b"},
        {"decklog.entry": '{"seq": 1, "kind": "event", "agent": 7}', "decklog.entry.body": "b"},
        {"decklog.charge": '{"seq": 1, "cost_microdollars": -5}', "gen_ai.request.model": "m"},
        {"decklog.charge": '{"seq": 1}'},
        {"decklog.entry": '{"seq": 1, "kind": "event", "refs": "a"}', "decklog.entry.body": "b"},
        {"decklog.entry": '{"seq": 1, "kind": "event"}', "decklog.entry.body": ["b"]},
        {"decklog.run.status": "completed", "decklog.run.goal": 5},
        {"decklog.run.status": "completed", "decklog.run.parent": "@memory"},
    ],
)
def test_a_span_that_only_looks_like_ours_is_refused_and_no_other(here: Decklog, attributes: dict[str, Any]) -> None:
    arrived = SpanWriter(here).take([span(1, attributes={"decklog.run.id": "new", **attributes}), chat(2), chat(3), tool(4)])
    assert (arrived.refused, len(arrived.reasons)) == (1, 1)
    assert len(here.ledger.find(run_id=RUN)) == 2
    assert here.journal.verify().ok


def test_secrets_in_spans_are_taken_out(log: Decklog) -> None:
    secret = "ghp_" + "Zx9" * 12
    given = tool(2, attributes={"gen_ai.tool.call.result": f"token {secret}", "env": {"GITHUB_TOKEN": secret}})
    given.events = [SpanEvent(name="log", at=NOON, attributes={"line": secret})]
    given.resource = {"service.name": "shop", "key": secret}
    whole = span(1, f"use {secret}", attributes={"gen_ai.conversation.id": "c"})
    SpanWriter(log).take([given, whole])
    shown = f"{[entry.as_dict() for entry in log.journal.find(RUN, limit=100)]}{log.runs.get(RUN)}"
    assert secret not in shown
    assert shown.count("[redacted:") >= 5


def test_ids_are_never_taken_for_secrets(here: Decklog) -> None:
    from hashlib import sha256

    names = [sha256(str(number).encode()).hexdigest() for number in range(40)]
    spans = [chat(1, trace_id=name[:32]) for name in names]
    for number, one in enumerate(spans):
        one.span_id = names[number][32:48]
    SpanWriter(here).take(spans)
    paid = here.ledger.find(limit=300)
    assert {one.answer_id for one in paid} == {f"otel:{one.trace_id}:{one.span_id}" for one in spans}
    assert not any(entry.redacted for one in paid for entry in here.journal.find(one.run_id, limit=20))


def test_times_that_no_log_can_hold_are_refused(here: Decklog) -> None:
    arrived = SpanWriter(here).take([span(1, start=10**26, end=10**26), chat(2)])
    assert (arrived.refused, len(here.ledger.find())) == (1, 1)


def test_where_spans_come_from_is_told_once_and_stays_when_the_first_of_them_is_refused(tmp_path: Path) -> None:
    resource = {"service.name": "finder"}
    first = agent(resource=resource)
    first.attributes["note"] = "long " * 2000
    others = [tool(2, at=1, resource=resource), tool(3, at=2, resource=resource)]
    with Decklog.open(tmp_path / "log.db", limit_bytes=4000) as log:
        arrived = SpanWriter(log).take([*others, first])
        assert (arrived.spans, arrived.refused) == (3, 1)
        assert [subtype for subtype, _ in list_bodies(log, RUN)].count("resource") == 1
        assert SpanWriter(log).take(others).new == 0
