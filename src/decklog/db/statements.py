"""What is known of statements by their text."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    V = TypeVar("V")

_MOST = 1000
# Longer ones are written for as many rows as there are, and seldom come twice.
_LONGEST = 10_000


class Statements(dict[str, "V"]):
    """Keeps something for each statement, in a bounded room: a statement may be written for one call only."""

    def keep(self, sql: str, known: "V") -> "V":
        if len(sql) <= _LONGEST:
            if len(self) >= _MOST:
                self.clear()
            self[sql] = known
        return known
