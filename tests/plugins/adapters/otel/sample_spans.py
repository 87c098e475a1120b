"""Sample spans, and the content of a run in a form that tests can compare."""

from typing import Any

from decklog import Decklog, Entry, EntryKind
from decklog.plugins.adapters.otel.otlp import OtelSpan

SECOND = 10**9
NOON = 1_790_000_000 * SECOND
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def span(number: int, name: str = "work", *, parent: int | None = None, at: int = 0, lasts: int = 1, **fields: Any) -> OtelSpan:
    """Build a span with a number for its id, which starts `at` seconds after noon."""
    given: dict[str, Any] = {"trace_id": TRACE, "start": NOON + at * SECOND, "end": NOON + (at + lasts) * SECOND, **fields}
    return OtelSpan(span_id=f"{number:016x}", name=name, parent_id=f"{parent:016x}" if parent else "", **given)


def chat(
    number: int, parent: int | None = None, *, model: str = "a-model", tokens: tuple[int, int] = (100, 10), **more: Any
) -> OtelSpan:
    """Build the span of a model call."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model,
        "gen_ai.usage.input_tokens": tokens[0],
        "gen_ai.usage.output_tokens": tokens[1],
        **more.pop("attributes", {}),
    }
    return span(number, f"chat {model}", parent=parent, attributes=attributes, **more)


def entries(log: Decklog, run_id: str) -> list[Entry]:
    """Return a run's entries without the changes of records."""
    found = log.journal.find(run_id, oldest_first=True, limit=200)
    return [entry for entry in found if entry.kind is not EntryKind.CHANGE]


def list_bodies(log: Decklog, run_id: str) -> list[tuple[str | None, str | None]]:
    return [(entry.subtype, entry.body) for entry in entries(log, run_id)]


def describe_run(log: Decklog, run_id: str) -> dict[str, Any]:
    """Return everything that spans contain of a run: its entries, charges, fields and metadata."""
    run = log.runs.get(run_id)
    names = (
        "kind",
        "subtype",
        "body",
        "payload",
        "at",
        "agent",
        "agent_id",
        "task_id",
        "group_id",
        "phase",
        "confidence",
        "refs",
    )
    spend = ("model", "input_tokens", "cache_read_tokens", "cache_create_tokens", "output_tokens", "cost_microdollars")
    facts = ("id", "goal", "status", "summary", "started_at", "ended_at", "branch", "parent_run_id")
    return {
        "entries": [{name: getattr(entry, name) for name in names} for entry in entries(log, run_id)],
        "spend": [
            {name: getattr(charge, name) for name in (*spend, "occurred_at", "agent", "task_id")}
            for charge in log.ledger.find(run_id=run_id, limit=200)
        ],
        "run": {name: getattr(run, name) for name in facts},
        "metadata": {name: value for name, value in run.metadata.items() if name != "otel"},
    }
