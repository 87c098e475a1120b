"""Who is acting: the agent, task and group that entries are attributed to when a call does not say."""

from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMES = ("agent", "agent_id", "group_id", "task_id", "iteration")

acting: "ContextVar[dict[str, Any] | None]" = ContextVar("decklog_acting", default=None)
