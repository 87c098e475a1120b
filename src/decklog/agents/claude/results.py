"""Events from the Claude Agent SDK's turn results: the outcome, and data that no transcript has."""

from collections.abc import Iterator
from typing import Any

from decklog.agents.events import Answered, Noted, Said, SessionEvent
from decklog.agents.texts import as_text, text_or_none, whole

RESULT = "Result"
_FACTS = ("subtype", "is_error", "num_turns", "duration_ms", "total_cost_usd", "api_error_status", "terminal_reason", "errors")
_KINDS = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")
_MICRODOLLARS = 1_000_000


def results_of(payload: dict[str, Any], place: dict[str, Any]) -> Iterator[SessionEvent]:
    """Yield the result of a turn. Messages and usage are only included if the session has no transcript."""
    name = str(payload.get("uuid") or "")
    for message_id, text in payload.get("said") or ():
        yield Said(**place, text=as_text(text), message_id=text_or_none(message_id))
    for model, used in (payload.get("spent") or {}).items():
        yield _answered(f"{place['session_id']}:result:{name}:{model}", model, used, place)
    facts = {fact: payload.get(fact) for fact in _FACTS}
    text = as_text(payload.get("result")) or as_text(payload.get("subtype"))
    yield Noted(**place, name="turn.result", text=text, facts=facts, note_id=f"turn-result:{name}" if name else None)


def _answered(answer_id: str, model: str, used: dict[str, Any], place: dict[str, Any]) -> Answered:
    given, read, created, output = (whole(used.get(kind)) for kind in _KINDS)
    cost = used.get("costUSD")
    return Answered(
        **place,
        answer_id=answer_id,
        model=model,
        input_tokens=given,
        cache_read_tokens=read,
        cache_create_tokens=created,
        output_tokens=output,
        microdollars=round(cost * _MICRODOLLARS) if isinstance(cost, (int, float)) and cost > 0 else None,
    )
