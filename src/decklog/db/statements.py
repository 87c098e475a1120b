"""What is known of statements by their text."""

import re
from typing import TypeVar

V = TypeVar("V")

# A colon before a name, but no cast (`::`) and no part of a word.
PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)")

_MOST = 1000
# Longer ones are written for as many rows as there are, and seldom come twice.
_LONGEST = 10_000


class Statements(dict[str, V]):
    """Keeps something for each statement, in a bounded room: a statement may be written for one call only."""

    def keep(self, sql: str, known: V) -> V:
        if len(sql) <= _LONGEST:
            if len(self) >= _MOST:
                self.clear()
            self[sql] = known
        return known


def by_place(sql: str) -> tuple[str, list[str]]:
    """Write a statement with a `?` for each named parameter, and name them in their order."""
    names: list[str] = PARAMETER.findall(sql)
    return PARAMETER.sub("?", sql), names
