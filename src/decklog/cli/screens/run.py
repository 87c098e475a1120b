"""A run of the conductor on a terminal, redrawn in place after each change."""

import shutil
import sys
from typing import TYPE_CHECKING, TextIO

from decklog.cli.screens.lines import Line, StyledText, clipped, fit, written
from decklog.cli.styles import DIM, STRONG, are_shown, of_word

if TYPE_CHECKING:
    from decklog.conductor.status import ConductorStatus, ItemStatus

# Landed work items are only counted if there are more than fit.
_LINES_AROUND = 6


def frame(status: "ConductorStatus", places: int, height: int) -> list[Line]:
    """Return the lines of a run: its status, then its work items, open ones first."""
    head: Line = [StyledText(fit(status.goal, max(places - 30, 20)), STRONG), StyledText(f"  {status.status}  ", DIM)]
    head.append(StyledText(status.spent()))
    room = max(height - _LINES_AROUND, 3)
    items = sorted(status.items, key=lambda item: (item.state in ("landed", "waits"), item.state == "waits"))
    lines = [head, [StyledText(status.counts())], *(_line(item) for item in items[:room])]
    if len(items) > room:
        lines.append([StyledText(f"and {len(items) - room} more", DIM)])
    return [clipped(line, places) for line in lines]


def _line(item: "ItemStatus") -> Line:
    return [
        StyledText(f"▸ {fit(item.name, 16)} "),
        StyledText(fit(item.state, 15), of_word(item.state)),
        StyledText(f" {item.described()}"),
    ]


class RunScreen:
    """Draws a run where it drew it last."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._drawn = 0
        self._last: list[Line] = []

    def draw(self, status: "ConductorStatus") -> None:
        """Draw the status of a run, unless it is unchanged."""
        size = shutil.get_terminal_size()
        lines = frame(status, size.columns, size.lines)
        if lines == self._last:
            return
        colour = are_shown(self._stream)
        text = "".join(f"{written(line, colour=colour)}\x1b[K\n" for line in lines)
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        # What a longer frame left below is wiped out.
        self._stream.write(f"{up}{text}\x1b[J")
        self._stream.flush()
        self._drawn, self._last = len(lines), lines
