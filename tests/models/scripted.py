"""What the tests of models share: a call, and a seam to a scripted model."""

from collections.abc import Callable
from typing import Any

from decklog import Decklog
from decklog.models.client import ModelCall, ModelClient
from decklog.models.composer import Prompt, PromptPart
from decklog.models.provider import ModelReply, Provider
from decklog.models.providers.making import Scripted
from decklog.models.settings import ModelChoice, ModelSettings

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "verdict": {"type": "string", "enum": ["pass", "fail"]},
        "score": {"type": "integer", "minimum": 0, "maximum": 100},
        "findings": {"type": "array", "items": {"type": "object", "required": ["text"]}, "maxItems": 3},
    },
    "required": ["verdict", "score"],
    "additionalProperties": False,
}
PROMPT = Prompt((PromptPart("identity", "You are a reviewer.", True), PromptPart("task", "Look at this change.")))
CALL = ModelCall(site="review.6", prompt=PROMPT, schema=SCHEMA)
GOOD = '{"verdict": "pass", "score": 90}'


def models(
    log: Decklog,
    script: "Callable[[Prompt], str | ModelReply]",
    *,
    waits: list[float] | None = None,
    provider: Provider | None = None,
    **choice: Any,
) -> ModelClient:
    """Build a client whose only model follows a script."""
    chosen = ModelChoice(name="mine", provider="scripted", script="-", **{"model": "scripted", **choice})
    settings = ModelSettings({"mine": chosen}, {"review": "mine"})
    slept = [] if waits is None else waits
    return ModelClient(log, settings, lambda _: provider or Scripted(script), run_id="run_1", wait=slept.append)
