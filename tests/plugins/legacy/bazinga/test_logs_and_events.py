"""Logs, reasoning and events: every call and every refusal."""

from collections.abc import Callable

import pytest

from tests.every import every
from tests.plugins.legacy.bazinga.shell import ANY, Case, Shell, fails, gives, prints, refused, shows, try_case

LOGS = [
    gives("log-interaction", "s", "developer", "hällo", success=True, log_id=ANY, session_id="s", content_length=5),
    gives("log-interaction", "s", "developer", "hi", "7", "dev-9", iteration=7, agent_id="dev-9", agent_type="developer"),
    gives("log-interaction", "s", "developer", "hi", iteration=None, agent_id=None, timestamp=ANY),
    gives("log-interaction", "s", "developer", "--- a rule of Markdown", success=True),
    gives("log-interaction", "s", "developer", "- a list", success=True),
    gives("log-interaction", "--", "s", "developer", "--flag", content_length=6),
    refused("log-interaction", "", "developer", "hi", because="session_id cannot be empty"),
    refused("log-interaction", "s", " ", "hi", because="agent_type cannot be empty"),
    refused("log-interaction", "s", "developer", "", because="content cannot be empty"),
    fails("log-interaction", "nope", "developer", "hi", because="Session not found: nope"),
    shows("stream-logs", "s", text="Iteration 1 - DEVELOPER\n\nfirst\n\n---"),
    shows("stream-logs", "s", text="Iteration ? - QA_EXPERT"),
    shows("stream-logs", "s", "1", text="Event: pm_bazinga"),
    shows("stream-logs", "s", "2", "3", text="first"),
    shows("stream-logs", "s", "50", "99", text="No logs found."),
    shows("stream-logs", "nope", text="No logs found."),
    prints("get-logs", "s", "--limit", "1", value=[{"log_type": "event", "content": "Event: pm_bazinga", "group_id": "A"}]),
    prints("get-logs", "s", "--agent-type", "qa_expert", value=[{"content": "second", "log_type": "interaction"}]),
    prints("get-logs", "s", "--since", "2999-01-01 00:00:00", value=[]),
    prints("get-logs", "nope", value=[]),
    refused("get-logs", "s", "--since", "yesterday", because="is not a time"),
]

_SAVED = {"success": True, "session_id": "s", "group_id": "A", "agent_type": "developer", "reasoning_phase": "risks"}
_START = ("save-reasoning", "s", "A", "developer", "risks")
REASONING = [
    gives(*_START, "It may break", **_SAVED, log_id=ANY, content_length=12, timestamp=ANY, redacted=False),
    gives(*_START, "--content-file", "FILES/text.txt", content_length=7),
    gives(*_START, "text", "--agent_id", "dev-1", "--iteration", "3", success=True),
    gives(*_START, "text", "--confidence", "low", "--references", '["a.py", "b.py"]', success=True),
    gives(*_START, "text", "--confidence", "85", success=True),
    gives(*_START, "text", "--tokens", "12", success=True),
    gives("save-reasoning", "s", "global", "developer", "pivot", "text", group_id="global"),
    refused("save-reasoning", "s", "a b", "developer", "risks", "text", because="alphanumeric"),
    refused("save-reasoning", "s", "A", "developer", "musing", "text", because="Invalid reasoning_phase"),
    refused(*_START, "text", "--confidence", "sure", because="Invalid confidence"),
    refused(*_START, "text", "--confidence", "101", because="percentage"),
    refused(*_START, "text", "--references", "a.py", because="Invalid JSON in references"),
    refused(*_START, "text", "--references", "[1]", because="list of strings"),
    refused(*_START, "--content-file", "FILES/none.txt", because="can't be read"),
    refused(*_START, because="content cannot be empty"),
    refused(*_START, " ", because="content cannot be empty"),
    fails("save-reasoning", "nope", "A", "developer", "risks", "text", because="Session not found: nope"),
    prints("get-reasoning", "s", "--limit", "1", value=[{"reasoning_phase": "approach", "references": [], "redacted": False}]),
    prints("get-reasoning", "s", "--phase", "understanding", value=[{"confidence_level": "high", "agent_type": "developer"}]),
    prints("get-reasoning", "s", "--group_id", "B", value=[]),
    prints("get-reasoning", "s", "--group-id=A", "--agent-type=developer", value=[ANY, ANY]),
    prints("get-reasoning", "s", "--agent_type", "qa_expert", value=[]),
    prints("get-reasoning", "s", "A", "developer", "approach", value=[{"agent_id": "dev-1", "iteration": 2}]),
    prints("get-reasoning", "nope", value=[]),
    shows(
        "get-reasoning", "s", "--format", "prompt-summary", text="| developer | understanding | high | A comma \\| is a token |"
    ),
    shows("get-reasoning", "nope", "--format=prompt-summary", text="No previous reasoning"),
    refused("get-reasoning", "s", "--phase", "musing", because="Invalid phase"),
    refused("get-reasoning", "s", "--format", "xml", because="Invalid format"),
    refused("get-reasoning", "s", "--limit", "0", because="1 or more"),
    refused("get-reasoning", "s", "--group_id", "a b", because="alphanumeric"),
    prints(
        "reasoning-timeline", "s", value=[{"reasoning_phase": "understanding", "redacted": 0}, {"reasoning_phase": "approach"}]
    ),
    prints("reasoning-timeline", "s", "--group_id", "B", value=[]),
    shows("reasoning-timeline", "s", "--format", "markdown", text="## Group: A"),
    shows("reasoning-timeline", "s", "--format=markdown", text="developer (dev-1) - approach"),
    refused("reasoning-timeline", "s", "--format", "xml", because="Invalid format"),
    prints(
        *("check-mandatory-phases", "s", "A", "developer"),
        value={"complete": False, "missing": ["completion"], "documented": ["understanding"]},
        code=1,
    ),
    prints("check-mandatory-phases", "s", "A", "developer", value={"all_documented": ["approach", "understanding"]}, code=1),
    prints("check-mandatory-phases", "s", "B", "developer", value={"missing": ["completion", "understanding"]}, code=1),
    refused("check-mandatory-phases", "s", "a b", "developer", because="alphanumeric"),
]

EVENTS = [
    gives("save-event", "s", "scope_change", '{"reason": "x"}', success=True, event_id=ANY, event_subtype="scope_change"),
    gives("save-event", "s", "scope_change", "[1]", session_id="s", redacted=False),
    gives("save-event", "s", "scope_change", "--payload-file", "FILES/event.json", success=True),
    gives("save-event", "s", "pm_bazinga", "{}", "--idempotency-key", "k1", "--group-id", "A", idempotent=True, message=ANY),
    gives("save-event", "s", "pm_bazinga", "{}", "--idempotency-key", "k1", redacted=False),
    gives("save-event", "s", "other", "{}", "--idempotency-key", "k1", "--group-id", "A", redacted=False),
    refused("save-event", "s", " ", "{}", because="event_subtype cannot be empty"),
    refused("save-event", "s", "x", "{}", "--group-id", "a b", because="alphanumeric"),
    refused("save-event", "s", "x", because="give one payload"),
    refused("save-event", "s", "x", "{}", "--payload-file", "FILES/event.json", because="give one payload"),
    refused("save-event", "s", "x", "--payload-file", "FILES/bad.json", because="Invalid JSON"),
    refused("save-event", "s", "x", "--payload-file", "FILES/none.json", because="can't be read"),
    refused("save-event", "s", "x", "not json", because="Invalid JSON in payload"),
    refused("save-event", "s", "x", '"text"', because="object or list"),
    fails("save-event", "nope", "x", "{}", because="Session not found: nope"),
    fails("save-event", "nope", "x", "{}", "--idempotency-key", "k", because="Session not found: nope"),
    prints("get-events", "s", value=[{"event_subtype": "pm_bazinga", "event_payload": {"all_criteria_met": True}}]),
    prints("get-events", "s", "pm_bazinga", value=[{"id": ANY, "session_id": "s", "timestamp": ANY, "group_id": "A"}]),
    prints("get-events", "s", "pm_bazinga", "1", value=[ANY]),
    prints("get-events", "s", "pm_bazinga", "--limit", "1", value=[ANY]),
    prints("get-events", "s", "other", value=[]),
    prints("get-events", "s", "--group-id", "B", value=[]),
    prints("get-events", "nope", value=[]),
    refused("get-events", "s", "--limit", "0", because="1 or more"),
]


@pytest.mark.slow
@every("case", LOGS + REASONING + EVENTS, ids=lambda case: case.name)
def test_a_call_about_logs_and_events_is_answered(project: Callable[[], Shell], case: Case) -> None:
    try_case(project(), case)


def test_an_agent_that_documented_both_phases_is_complete(shell: Shell) -> None:
    shell.ok("save-reasoning", "s", "A", "developer", "completion", "Done")
    answer = shell.call("check-mandatory-phases", "s", "A", "developer")
    assert answer.code == 0
    assert answer.json["complete"] is True
    assert list(answer.json) == ["complete", "missing", "documented", "all_documented", "session_id", "group_id", "agent_type"]


def test_the_first_event_of_a_key_keeps_its_payload(shell: Shell) -> None:
    first = shell.ok("save-event", "s", "x", '{"n": 1}', "--idempotency-key", "k")
    again = shell.ok("save-event", "s", "x", '{"n": 2}', "--idempotency-key", "k")
    assert again["event_id"] == first["event_id"]
    assert [event["event_payload"] for event in shell.ok("get-events", "s", "x")] == [{"n": 1}]


def test_a_summary_for_a_prompt_has_five_entries_of_300_characters(shell: Shell) -> None:
    for number in range(6):
        shell.ok("save-reasoning", "s", "B", "developer", "risks", f"{number} " + "x" * 400)
    text = shell.call("get-reasoning", "s", "--group_id", "B", "--format", "prompt-summary").out
    rows = [line for line in text.splitlines() if line.startswith("| developer")]
    assert len(rows) == 5
    assert rows[0].startswith("| developer | risks | - | 5 xxx")
    assert rows[0].endswith("... |")
    assert "1 more" in text


def test_a_fence_inside_reasoning_does_not_end_the_fence_around_it(shell: Shell) -> None:
    shell.ok("save-reasoning", "s", "B", "developer", "risks", "```python\nx\n```")
    text = shell.call("reasoning-timeline", "s", "--group_id", "B", "--format", "markdown").out
    assert text.count("```") == 2


def test_logs_stream_oldest_first_within_the_newest_page(shell: Shell) -> None:
    for number in range(5):
        shell.ok("log-interaction", "s", "developer", f"note {number}")
    text = shell.call("stream-logs", "s", "2", "1").out
    assert [line for line in text.splitlines() if line.startswith("note")] == ["note 2", "note 3"]


def test_tokens_given_with_reasoning_are_counted(shell: Shell) -> None:
    shell.ok("save-reasoning", "s", "A", "developer", "risks", "text", "--tokens", "12")
    assert shell.ok("token-summary", "s")["developer"] == 112
