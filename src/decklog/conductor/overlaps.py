"""Pieces that do not merge with each other, as the record tells: who meets whom, and where."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from decklog.log import Decklog

SUBTYPE = "conductor.overlap"
_PAGE = 200


@dataclass(frozen=True)
class Overlap:
    """Two pieces that do not merge as they are, and where."""

    pieces: tuple[str, str]
    paths: tuple[str, ...]

    def other(self, piece: str) -> str | None:
        """Return the piece that one meets; null when it is neither."""
        if piece not in self.pieces:
            return None
        return self.pieces[1] if piece == self.pieces[0] else self.pieces[0]

    def told_to(self, piece: str) -> str:
        """Say to one of the two whom it meets, and where."""
        return f"{self.other(piece)} in {', '.join(self.paths)}"


def known(log: "Decklog", run_id: str) -> list[Overlap]:
    """List which pieces of a run were found in each other's way, newest first and each two once."""
    found: dict[tuple[str, str], Overlap] = {}
    for entry in log.journal.find(run_id, subtype=SUBTYPE, limit=_PAGE):
        payload: Any = entry.payload
        pieces = (str(payload["pieces"][0]), str(payload["pieces"][1]))
        found.setdefault(pieces, Overlap(pieces, tuple(payload["paths"])))
    return list(found.values())


def met_by(overlaps: Sequence[Overlap], piece: str, is_open: set[str]) -> list[str]:
    """Say whom a piece meets that is still open, and where."""
    return [one.told_to(piece) for one in overlaps if one.other(piece) in is_open]
