"""One call of a tool: where it works, under which guard, and what goes on record about it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from decklog.guard.calls.commands import Commands
from decklog.guard.calls.guard import Guard
from decklog.guard.files.root import Root

if TYPE_CHECKING:
    from decklog.log import Decklog


@dataclass(kw_only=True)
class ToolCall:
    """What a tool gets that needs more than a root. `mark` names the call and is carried by every process it starts."""

    log: "Decklog"
    run_id: str
    task_id: str | None
    root: Root
    guard: Guard
    commands: Commands
    mark: str
    step: str | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    _afterwards: list[Callable[[], None]] = field(default_factory=list)

    def afterwards(self, action: Callable[[], None]) -> None:
        """Do something once the call is settled, and not before."""
        self._afterwards.append(action)

    def keep_traces(self) -> None:
        """Keep all files for a later investigation."""
        self._afterwards.clear()

    def tidy(self) -> None:
        """Do what was left for afterwards."""
        while self._afterwards:
            self._afterwards.pop()()

    def say(self, subtype: str, payload: dict[str, Any]) -> None:
        """Put on record what happens in the middle of the call."""
        self.log.journal.append(self.run_id, kind="tool", subtype=subtype, payload={"call": self.mark, **payload})
