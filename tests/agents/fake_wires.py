"""How the scripted model speaks to programs of other makers: Google's generateContent and OpenAI's chat completions, streamed."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.agents.fake_model import Given

CHAT = "/v1/chat/completions"
_GENERATE = (":streamGenerateContent", ":generateContent")


def is_google(path: str) -> bool:
    return path.endswith(_GENERATE)


def said_to_google(body: dict[str, Any]) -> list[tuple[str, str]]:
    """List who said what in a conversation with Google's model."""
    found = []
    for item in body.get("contents") or []:
        is_result = any("functionResponse" in part for part in item.get("parts") or [])
        role = "assistant" if item.get("role") == "model" else "tool" if is_result else "user"
        found.append((role, json.dumps(item.get("parts"))))
    return found


def google(given: "Given") -> Iterator[dict[str, Any]]:
    """Give an answer of Google's: its text, its calls, and with the last part what it cost."""
    step, name = given.step, {"modelVersion": given.model, "responseId": given.answer_id}
    parts: list[dict[str, Any]] = [{"text": step.text}] if step.text else []
    parts += [{"functionCall": {"name": use.tool, "args": use.arguments}} for use in step.uses]
    # What came from the cache is counted among what was given.
    given_tokens = step.input_tokens + step.cache_read_tokens
    usage = {
        "promptTokenCount": given_tokens,
        "cachedContentTokenCount": step.cache_read_tokens,
        "candidatesTokenCount": step.output_tokens,
        "totalTokenCount": given_tokens + step.output_tokens,
    }
    content = {"content": {"role": "model", "parts": parts}, "index": 0, "finishReason": "STOP"}
    yield {**name, "candidates": [content], "usageMetadata": usage}


def chat(given: "Given") -> Iterator[dict[str, Any]]:
    """Give an answer as chunks of a chat completion."""
    name = {"id": given.answer_id, "object": "chat.completion.chunk", "created": 1, "model": given.model}
    message, reason, usage = _chatted(given)
    yield {**name, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
    yield {**name, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    yield {**name, "choices": [], "usage": usage}


def whole_chat(given: "Given") -> dict[str, Any]:
    """Give an answer as one chat completion."""
    name = {"id": given.answer_id, "object": "chat.completion", "created": 1, "model": given.model}
    message, reason, usage = _chatted(given)
    return {**name, "choices": [{"index": 0, "message": message, "finish_reason": reason}], "usage": usage}


def _chatted(given: "Given") -> tuple[dict[str, Any], str, dict[str, Any]]:
    step = given.step
    calls = [
        {
            "index": place,
            "id": f"call_{given.answer_id}_{place}",
            "type": "function",
            "function": {"name": use.tool, "arguments": json.dumps(use.arguments)},
        }
        for place, use in enumerate(step.uses)
    ]
    message = {"role": "assistant", **({"content": step.text} if step.text else {}), **({"tool_calls": calls} if calls else {})}
    given_tokens = step.input_tokens + step.cache_read_tokens
    usage = {
        "prompt_tokens": given_tokens,
        "completion_tokens": step.output_tokens,
        "total_tokens": given_tokens + step.output_tokens,
        "prompt_tokens_details": {"cached_tokens": step.cache_read_tokens},
    }
    return message, "tool_calls" if calls else "stop", usage
