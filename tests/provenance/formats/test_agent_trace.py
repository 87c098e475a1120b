import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decklog.core.errors import Invalid
from decklog.provenance.formats.agent_trace import (
    ContributorType,
    TraceConversation,
    TraceRange,
    TraceRecord,
    format_trace,
    parse_trace,
    parse_traces,
)
from tests.searches import examples

# Written by hand from the fields of the format.
RECORD = {
    "version": "0.1.0",
    "id": "550e8400-e29b-41d4-a716-446655440000",
    "timestamp": "2026-01-25T10:00:00Z",
    "vcs": {"type": "git", "revision": "a1b2c3d4e5f6a1b2c3d4e5f6a1b2c3d4e5f6a1b2"},
    "tool": {"name": "cursor", "version": "2.4.0"},
    "files": [
        {
            "path": "src/app.ts",
            "conversations": [
                {
                    "url": "https://example.org/conversations/1",
                    "contributor": {"type": "ai", "model_id": "anthropic/claude-opus-4-5"},
                    "ranges": [{"start_line": 1, "end_line": 50, "content_hash": "murmur3:9f2e8a1b"}],
                    "related": [{"type": "session", "url": "https://example.org/sessions/1"}],
                },
                {"contributor": {"type": "human"}, "ranges": [{"start_line": 51, "end_line": 51}]},
            ],
        }
    ],
    "metadata": {"confidence": 0.95},
    "dev.example.field": [1, 2],
}


def test_record_with_all_fields_is_read() -> None:
    found = parse_trace(RECORD)
    ai, human = found.files["src/app.ts"]
    assert (ai.contributor, ai.model_id) == (ContributorType.AI, "anthropic/claude-opus-4-5")
    assert ai.ranges == (TraceRange(1, 50, "murmur3:9f2e8a1b"),)
    assert ai.related == (("session", "https://example.org/sessions/1"),)
    assert (human.contributor, human.model_id, human.url) == (ContributorType.HUMAN, None, None)
    assert found.revision == "a1b2c3d4e5f6a1b2c3d4e5f6a1b2c3d4e5f6a1b2"


def test_record_is_written_with_the_same_fields() -> None:
    assert json.loads(format_trace(parse_trace(RECORD))) == RECORD


def test_records_are_read_from_lines_a_list_and_one_document() -> None:
    line = json.dumps(RECORD)
    assert [one.id for one in parse_traces(f"{line}\n\n{line}\n")] == [RECORD["id"]] * 2
    assert [one.id for one in parse_traces(json.dumps([RECORD]))] == [RECORD["id"]]
    assert [one.id for one in parse_traces(json.dumps(RECORD, indent=2))] == [RECORD["id"]]


@pytest.mark.parametrize(
    "change",
    [
        {"version": "2.0.0"},
        {"id": "one"},
        {"files": {}},
        {"timestamp": None},
        {"files": [{"path": "a", "conversations": [{"contributor": {"type": "robot"}, "ranges": []}]}]},
        {"files": [{"path": "a", "conversations": [{"ranges": [{"start_line": 0, "end_line": 1}]}]}]},
        {"files": [{"path": "a", "conversations": [{"ranges": [{"start_line": 2, "end_line": 1}]}]}]},
        {"files": [{"path": "a", "conversations": [{"ranges": [{"start_line": True, "end_line": 1}]}]}]},
        {"files": [{"path": "", "conversations": []}]},
    ],
)
def test_wrong_record_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        parse_trace({**RECORD, **change})


def test_broken_line_is_named() -> None:
    with pytest.raises(Invalid, match="line 2"):
        list(parse_traces(json.dumps(RECORD) + "\n{"))


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
ranges = st.builds(
    lambda start, size, known: TraceRange(start, start + size, known), st.integers(1, 99), st.integers(0, 9), st.none() | names
)
conversations = st.builds(
    TraceConversation,
    contributor=st.sampled_from(ContributorType),
    model_id=st.none() | names,
    url=st.none() | names,
    ranges=st.lists(ranges, max_size=3).map(tuple),
    related=st.lists(st.tuples(names, names), max_size=2).map(tuple),
)
records = st.builds(
    TraceRecord,
    id=st.uuids().map(str),
    timestamp=names,
    files=st.dictionaries(names, st.lists(conversations, max_size=3).map(tuple), max_size=3),
    revision=st.none() | names,
    tool=st.none() | names,
    metadata=st.dictionaries(names, names, max_size=2),
)


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(records)
def test_what_is_written_is_read_again(record: TraceRecord) -> None:
    assert list(parse_traces(format_trace(record))) == [record]
