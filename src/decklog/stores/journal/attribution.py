"""Who is acting: the agent, task and group that entries are attributed to when a call does not say, and under which proof."""

from contextvars import ContextVar

from decklog.digests import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMES = ("agent", "agent_id", "group_id", "task_id", "iteration")

acting: "ContextVar[dict[str, Any] | None]" = ContextVar("decklog_acting", default=None)
# The task that this context holds, with its fence.
holding: "ContextVar[tuple[str, int] | None]" = ContextVar("decklog_holding", default=None)


class Act:
    """What one operation of the manager changes, collected while it runs, so that its proof can name all of it."""

    def __init__(self, nonce: str) -> None:
        self.nonce = nonce
        # What the entries of these changes refer to.
        self.refs = f'["proof:{nonce}"]'
        self.changes: list[str] = []

    def add(self, table: str, record_id: str, image: str) -> None:
        """Note a change that belongs to the act."""
        self.changes.append(change_digest(table, record_id, image))


def change_digest(table: str, record_id: str, image: str) -> str:
    """Digest what a record became, as a proof names it."""
    return sha256("\n".join((table, record_id, image)).encode()).hexdigest()


proving: "ContextVar[Act | None]" = ContextVar("decklog_proving", default=None)
