"""How calls in Codex's rollouts ended."""

import pytest

from decklog.agents.codex.rollout import Rollout
from decklog.agents.events import Outcome, Returned
from decklog.agents.reading import Reading


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        ("aborted by user after 1.2s", Outcome.INTERRUPTED),
        ("Wall time: 1.2 seconds\naborted by user", Outcome.INTERRUPTED),
        ("Exit code: 0\naborted by user", Outcome.OK),
    ],
)
def test_a_call_that_a_person_stopped_is_interrupted(output: str, outcome: Outcome) -> None:
    reader = Rollout(Reading(session_id="s1"))
    item = {"type": "function_call_output", "call_id": "c1", "output": output}
    line = {"type": "response_item", "timestamp": "2026-11-15T12:00:00Z", "payload": item}
    (event,) = [event for event in reader.events(line) if isinstance(event, Returned)]
    assert event.outcome is outcome
