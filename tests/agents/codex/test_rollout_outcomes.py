"""How calls in Codex's rollouts ended, and what was thought."""

import pytest

from decklog.agents.events import CallOutcome, ReasoningShown, ToolReturned
from decklog.agents.programs.base import TranscriptInput
from decklog.agents.programs.codex import Rollout


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        ("aborted by user after 1.2s", CallOutcome.INTERRUPTED),
        ("Wall time: 1.2 seconds\naborted by user", CallOutcome.INTERRUPTED),
        ("Exit code: 0\naborted by user", CallOutcome.OK),
    ],
)
def test_a_call_that_a_person_stopped_is_interrupted(output: str, outcome: CallOutcome) -> None:
    reader = Rollout(TranscriptInput(session_id="s1"))
    item = {"type": "function_call_output", "call_id": "c1", "output": output}
    line = {"type": "response_item", "timestamp": "2026-11-15T12:00:00Z", "payload": item}
    (event,) = [event for event in reader.events(line) if isinstance(event, ToolReturned)]
    assert event.outcome is outcome


def test_a_thought_is_read_from_both_lines_that_tell_it_under_one_id() -> None:
    reader = Rollout(TranscriptInput(session_id="s1"))
    item = {"type": "Reasoning", "id": "rs_1", "summary_text": ["**Look**", "At the lexer."]}
    summary = [{"type": "summary_text", "text": text} for text in ("**Look**", "At the lexer.")]
    lines = [
        {"type": "event_msg", "payload": {"type": "item_completed", "item": item}},
        {"type": "response_item", "payload": {"type": "reasoning", "id": "rs_1", "summary": summary}},
        {"type": "response_item", "payload": {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "x"}},
    ]
    found = [event for line in lines for event in reader.events(line)]
    assert {(event.message_id, event.text) for event in found if isinstance(event, ReasoningShown)} == {
        ("rs_1", "**Look**\n\nAt the lexer.")
    }
