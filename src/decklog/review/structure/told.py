"""The one form in which the rules over a whole tree say what they found."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Trouble:
    """Something that a change left behind: its kind, what is wrong, where, and what mends it."""

    kind: str
    text: str
    file: str | None
    line: int | None
    remedy: str
