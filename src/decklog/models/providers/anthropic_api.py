"""Anthropic's Messages API, through Anthropic's own library."""

import json
import os
from dataclasses import dataclass
from typing import Any

from decklog.core.errors import Unavailable
from decklog.core.extras import install_hint
from decklog.models.composer import Prompt, PromptPart, join
from decklog.models.provider import ModelReply, ModelRequest
from decklog.models.providers.making import failed
from decklog.models.settings import ModelChoice

# The provider takes no more cache marks in one request; a mark covers everything before it.
MOST_MARKS = 4
_MARK = {"type": "ephemeral"}
_TOOL = "answer"


def create(choice: ModelChoice) -> "AnthropicModel":
    """Create the client of a model that the settings name."""
    return AnthropicModel(choice.model, base_url=choice.base_url, key_env=choice.key_env or "ANTHROPIC_API_KEY")


@dataclass(frozen=True)
class AnthropicModel:
    """Answers by Anthropic's API, or by a server that speaks the same."""

    model: str
    base_url: str | None = None
    key_env: str = "ANTHROPIC_API_KEY"

    def reply(self, prompt: Prompt, request: ModelRequest) -> ModelReply:
        try:
            import anthropic
        except ImportError as problem:
            raise Unavailable("the package anthropic is not installed", hint=install_hint("anthropic")) from problem
        key = os.environ.get(self.key_env)
        if not key:
            return ModelReply(error_class="login", error=f"{self.key_env} is not set")
        client = anthropic.Anthropic(api_key=key, base_url=self.base_url, timeout=request.seconds, max_retries=0)
        try:
            with client:
                response: Any = client.messages.create(**build_request(self.model, prompt, request))
        except anthropic.APIError as problem:
            return failed(problem)
        return _reply_of(response)


def build_request(model: str, prompt: Prompt, request: ModelRequest) -> dict[str, Any]:
    """Build a request: stable parts as system blocks with cache marks, the answer as the input of one tool."""
    stable = [{"type": "text", "text": part.text} for part in prompt.stable]
    for number in _marked(prompt.stable):
        stable[number]["cache_control"] = dict(_MARK)  # type: ignore[assignment]
    tool = {"name": _TOOL, "description": "Give the answer.", "input_schema": dict(request.schema)}
    return {
        "model": model,
        "max_tokens": request.most_output_tokens,
        **({} if request.temperature is None else {"temperature": request.temperature}),
        "system": stable,
        "messages": [{"role": "user", "content": [{"type": "text", "text": join(prompt.varying)}]}],
        "tools": [tool],
        "tool_choice": {"type": "tool", "name": _TOOL},
    }


def _marked(stable: tuple[PromptPart, ...]) -> list[int]:
    """Choose the blocks that carry a mark: the first three, and the last, which covers all before it."""
    numbers = list(range(len(stable)))
    return numbers if len(numbers) <= MOST_MARKS else [*numbers[: MOST_MARKS - 1], numbers[-1]]


def _reply_of(response: Any) -> ModelReply:
    inputs = [block.input for block in response.content if block.type == "tool_use" and block.name == _TOOL]
    words = "".join(block.text for block in response.content if block.type == "text")
    usage = response.usage
    figures = {
        "input_tokens": usage.input_tokens,
        "cache_read_tokens": usage.cache_read_input_tokens or 0,
        "cache_create_tokens": usage.cache_creation_input_tokens or 0,
        "output_tokens": usage.output_tokens,
    }
    # An answer without exactly one tool call is judged by its text.
    text = json.dumps(inputs[0]) if len(inputs) == 1 else words
    return ModelReply(text=text, model=response.model, usage=figures, answer_id=response.id)
