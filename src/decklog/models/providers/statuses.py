"""What an error of a provider's library means: the weather, the login, or a call that can't be answered."""

from typing import Any

from decklog.models.provider import ModelReply

_CLASSES = {401: "login", 403: "login", 408: "overload", 413: "context", 429: "quota", 529: "overload"}
_LONGEST_SECONDS = 32 * 86400.0


def failed(problem: Any) -> ModelReply:
    """Return an error of either library as a reply."""
    status = getattr(problem, "status_code", None)
    if type(problem).__name__ == "APITimeoutError":
        error_class = "timeout"
    elif status is None:
        # No answer at all: the connection was refused, or broke.
        error_class = "overload"
    else:
        error_class = _CLASSES.get(status) or ("overload" if status >= 500 else "refused")
    return ModelReply(error_class=error_class, error=str(problem)[:500], retry_seconds=_seconds(problem))


def _seconds(problem: Any) -> float | None:
    """Read how long a limit lasts, as the answer's head states it."""
    stated: Any = getattr(getattr(problem, "response", None), "headers", {}).get("retry-after")
    try:
        seconds = float(stated)
    except (TypeError, ValueError):
        return None
    return seconds if 0 <= seconds <= _LONGEST_SECONDS else None
