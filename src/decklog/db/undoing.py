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

    def mark(self) -> int:
        """Give the place from which on a part of the transaction may be undone by itself."""
        return len(self.acts)

    def undo(self, mark: int = 0) -> None:
        """Take everything back that was done since a mark, the last first."""
        while len(self.acts) > mark:
            self.acts.pop()()

    def keep(self) -> None:
        """Let everything stay as it is."""
        self.acts.clear()
