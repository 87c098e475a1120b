"""What has to be taken back in Python when a transaction, or a part of it, is undone in the database."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Undoing:
    """What one open transaction would take back, in the order in which it was done."""

    def __init__(self) -> None:
        self.acts: list[Callable[[], None]] = []

    def add(self, act: "Callable[[], None]") -> None:
        self.acts.append(act)

    def savepoint(self) -> int:
        """Return the place from which on a part of the transaction may be undone alone."""
        return len(self.acts)

    def undo(self, savepoint: int = 0) -> None:
        """Take everything back that was done since a savepoint, the last first."""
        while len(self.acts) > savepoint:
            self.acts.pop()()

    def keep(self) -> None:
        """Let everything stay as it is."""
        self.acts.clear()
