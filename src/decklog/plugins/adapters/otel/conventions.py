"""Attribute names of spans: those of OpenTelemetry's conventions for generative AI, and our own."""

import time
from collections.abc import Iterable
from typing import Any

from decklog import __version__
from decklog.core.errors import Unavailable
from decklog.core.extras import install_hint
from decklog.core.metrics import CALL_SECONDS, UNAVAILABLE
from decklog.log import Decklog
from decklog.transfer.doctor import GAUGE_NAMES, measure_gauges

# The subject of a span
OPERATION = "gen_ai.operation.name"
PROVIDER, OLD_PROVIDER = "gen_ai.provider.name", "gen_ai.system"
AGENT, AGENT_ID = "gen_ai.agent.name", "gen_ai.agent.id"
CONVERSATION = "gen_ai.conversation.id"
ERROR_TYPE = "error.type"
SERVICE = "service.name"

INVOKE_AGENT, CHAT, EXECUTE_TOOL = "invoke_agent", "chat", "execute_tool"
# Operations of paid model calls; an agent's own span sums up the usage of those below it.
INFERENCE = frozenset({CHAT, "generate_content", "text_completion", "embeddings"})

# Models
REQUEST_MODEL, RESPONSE_MODEL, RESPONSE_ID = "gen_ai.request.model", "gen_ai.response.model", "gen_ai.response.id"
INPUT_TOKENS, OUTPUT_TOKENS = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
OLD_INPUT_TOKENS, OLD_OUTPUT_TOKENS = "gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"
CACHE_READ, CACHE_CREATION = "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_creation.input_tokens"
# No convention has a price; some programs write this attribute, in dollars.
COST = "gen_ai.usage.cost"
INPUT_MESSAGES, OUTPUT_MESSAGES = "gen_ai.input.messages", "gen_ai.output.messages"

# Tools
TOOL, TOOL_CALL_ID = "gen_ai.tool.name", "gen_ai.tool.call.id"
TOOL_ARGUMENTS, TOOL_RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"

# Ours: attributes from which an import restores the run
RUN, PARENT_RUN = "decklog.run.id", "decklog.run.parent"
RUN_FIELD = "decklog.run."
BEGIN, END, ENTRY, CHARGE = "decklog.begin", "decklog.end", "decklog.entry", "decklog.charge"
BODY = ".body"
# Prefixes of the keys of entries, and of the names of answers, that were imported from spans
KEY, ANSWER = "otlp:", "otel:"
TASK, ATTEMPT = "decklog.task.id", "decklog.attempt"

# Kinds of spans, and the status of a failed one
INTERNAL, CLIENT = 1, 3
UNSET, OK, ERROR = 0, 1, 2
# Set in a span's flags when its parent is known to be in another process.
REMOTE_PARENT = 0x300

_PROVIDERS = {
    "claude": "anthropic",
    "gpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "codex": "openai",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "deepseek": "deepseek",
    "grok": "x_ai",
    "command": "cohere",
}
UNKNOWN_PROVIDER = "unknown"


def provider_of(model: str) -> str:
    """Return the provider of a model by the start of its name."""
    name = model.rpartition("/")[2].lower()
    return next((provider for start, provider in _PROVIDERS.items() if name.startswith(start)), UNKNOWN_PROVIDER)


# One query of the log serves all instruments of a collection.
_SECONDS_FRESH = 1.0


class LogMeter:
    """Reports the calls of this process and the state of its log to a meter, until it is closed."""

    def __init__(self, log: Decklog, provider: Any = None) -> None:
        try:
            from opentelemetry import metrics
        except ImportError:
            raise Unavailable("OpenTelemetry's metrics need a library", hint=install_hint("otel")) from None
        self._log = log
        self._observation = metrics.Observation
        self._read_at, self._values = 0.0, dict[str, float]()
        meter = metrics.get_meter("decklog", __version__, provider)
        calls = meter.create_histogram("decklog.call.duration", "s", CALL_SECONDS.text)
        failures = meter.create_counter("decklog.unavailable", "{error}", UNAVAILABLE.text)
        self._on_call = lambda call, seconds: calls.record(seconds, {"call": call})
        self._on_failure = lambda code, number: failures.add(number, {"code": code})
        CALL_SECONDS.listeners.append(self._on_call)
        UNAVAILABLE.listeners.append(self._on_failure)
        for name in GAUGE_NAMES:
            meter.create_observable_gauge(f"decklog.{name}", [self._callback(f"decklog_{name}")])

    def _callback(self, name: str) -> Any:
        def observe(_: Any) -> Iterable[Any]:
            value = self._measured().get(name)
            return [] if value is None else [self._observation(value)]

        return observe

    def _measured(self) -> dict[str, float]:
        if time.monotonic() - self._read_at > _SECONDS_FRESH:
            self._values = {name: value for name, _, _, value in measure_gauges(self._log)}
            self._read_at = time.monotonic()
        return self._values

    def close(self) -> None:
        """Stop reporting; the instruments stay with the meter's provider."""
        CALL_SECONDS.listeners.remove(self._on_call)
        UNAVAILABLE.listeners.remove(self._on_failure)
