"""OpenAI's chat completions, through OpenAI's own library, and every server that speaks the same, local ones too."""

import os
from dataclasses import dataclass
from typing import Any

from decklog.core.errors import Unavailable
from decklog.core.extras import install_hint
from decklog.models.composer import Prompt, join
from decklog.models.provider import ModelReply, ModelRequest
from decklog.models.providers.making import failed
from decklog.models.settings import ModelChoice


def create(choice: ModelChoice) -> "OpenAIModel":
    """Create the client of a model that the settings name."""
    return OpenAIModel(choice.model, base_url=choice.base_url, key_env=choice.key_env or "OPENAI_API_KEY")


@dataclass(frozen=True)
class OpenAIModel:
    """Answers by OpenAI's API, or by a compatible server under `base_url`."""

    model: str
    base_url: str | None = None
    key_env: str = "OPENAI_API_KEY"

    def reply(self, prompt: Prompt, request: ModelRequest) -> ModelReply:
        try:
            import openai
        except ImportError as problem:
            raise Unavailable("the package openai is not installed", hint=install_hint("openai")) from problem
        # A local server needs no key, but the library requires one.
        key = os.environ.get(self.key_env) or ("none" if self.base_url else "")
        if not key:
            return ModelReply(error_class="login", error=f"{self.key_env} is not set")
        client = openai.OpenAI(api_key=key, base_url=self.base_url, timeout=request.seconds, max_retries=0)
        try:
            with client:
                response: Any = client.chat.completions.create(**build_request(self.model, prompt, request))
        except openai.APIError as problem:
            return failed(problem)
        return _reply_of(response)


def build_request(model: str, prompt: Prompt, request: ModelRequest) -> dict[str, Any]:
    """Build a request. The provider caches the longest known beginning, without marks."""
    shape = {"name": "answer", "schema": dict(request.schema)}
    return {
        "model": model,
        "max_completion_tokens": request.most_output_tokens,
        **({} if request.temperature is None else {"temperature": request.temperature}),
        "messages": [{"role": "system", "content": join(prompt.stable)}, {"role": "user", "content": join(prompt.varying)}],
        "response_format": {"type": "json_schema", "json_schema": shape},
    }


def _reply_of(response: Any) -> ModelReply:
    usage = response.usage
    cached = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None) or 0
    figures = (
        {}
        if usage is None
        else {
            # Cached tokens are included in the input tokens here.
            "input_tokens": max(0, usage.prompt_tokens - cached),
            "cache_read_tokens": cached,
            "output_tokens": usage.completion_tokens,
        }
    )
    text = response.choices[0].message.content if response.choices else None
    return ModelReply(text=text or "", model=response.model, usage=figures, answer_id=response.id)
