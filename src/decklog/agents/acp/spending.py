"""Usage reports of agents: tokens at the end of each turn, cost as a session total.

If the session's own files are read, they supply the charges, and these reports are not used.
"""

from collections.abc import Iterator
from typing import Any

from decklog.agents.acp.exchange import dict_of, list_of
from decklog.agents.events import Answered
from decklog.agents.texts import text_or_none, whole

_MICRO = 1_000_000


def usage_of(told: dict[str, Any]) -> dict[str, int]:
    """Return the token counts at the end of a turn by kind; empty if there are none."""
    usage = dict_of(told.get("usage"))
    quota = dict_of(dict_of(dict_of(told.get("_meta")).get("quota")).get("token_count"))
    found = {
        "input_tokens": whole(usage.get("inputTokens")) or whole(quota.get("input_tokens")),
        "cache_read_tokens": whole(usage.get("cachedReadTokens")),
        "cache_create_tokens": whole(usage.get("cachedWriteTokens")),
        "output_tokens": whole(usage.get("outputTokens")) or whole(quota.get("output_tokens")),
    }
    return {name: count for name, count in found.items() if count}


def keep_cost(update: dict[str, Any], kept: dict[str, Any]) -> None:
    """Store the session's cost so far."""
    cost = dict_of(update.get("cost"))
    amount = cost.get("amount")
    if isinstance(amount, int | float) and not isinstance(amount, bool) and cost.get("currency", "USD") == "USD":
        kept["cost"] = round(amount * _MICRO)


def answered(place: dict[str, Any], line: str, usage: dict[str, int], kept: dict[str, Any], program: str) -> Iterator[Answered]:
    """Yield the charge of a turn: its tokens, and the session's total cost if known."""
    total = kept.get("cost")
    if usage or total:
        model = str(kept.get("model") or program)
        told: dict[str, Any] = {**place, **usage, "answer_id": line, "model": model, "session_microdollars": total}
        yield Answered(**told)


def model_of(result: dict[str, Any]) -> str | None:
    """Return the model of a new session."""
    for option in list_of(result.get("configOptions")):
        if "model" in (option.get("id"), option.get("configId"), option.get("category")):
            return text_or_none(option.get("currentValue"))
    return text_or_none(dict_of(result.get("models")).get("currentModelId"))
