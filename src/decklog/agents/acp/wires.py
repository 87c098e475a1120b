"""The sessions on the wire that are being read, with what is kept of each from one reading to the next."""

import os
from typing import TYPE_CHECKING

from decklog.agents.acp.wire import AcpReader

if TYPE_CHECKING:
    from decklog.agents.spool import Spool


class Wires:
    """Sessions by their names and connections; what was kept of one is beside the log."""

    def __init__(self, spool: "Spool") -> None:
        self._spool = spool
        self._open: dict[str, AcpReader] = {}

    def of(self, program: str, session: str, connection: str) -> AcpReader:
        """Return a session as it was left."""
        place = os.path.join("acp", connection, f"{program}-{session}")
        if place not in self._open:
            self._open[place] = AcpReader(program, session, self._spool.mark(place))
        return self._open[place]

    def copied(self) -> "Wires":
        """Give all as they are now, to go back to."""
        copy = Wires(self._spool)
        copy._open = {place: AcpReader(wire.program, wire.session, wire.kept()) for place, wire in self._open.items()}
        return copy

    def keep(self) -> None:
        """Write down what reading on needs to know."""
        for place, wire in self._open.items():
            self._spool.set_mark(place, wire.kept(), is_synced=True)

    def forget_ended(self) -> None:
        """Forget those that are over."""
        for place, wire in self._open.items():
            if wire.is_over:
                self._spool.forget_mark(place)
