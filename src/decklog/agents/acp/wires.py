"""Readers of open editor sessions, with their stored state."""

import os

from decklog.agents.acp.wire import AcpReader
from decklog.agents.spool import Spool


class Wires:
    """Readers by session and connection; their state is stored in the spool."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._open: dict[str, AcpReader] = {}

    def of(self, program: str, session: str, connection: str) -> AcpReader:
        """Return the reader of a session, restored from its stored state."""
        place = os.path.join("acp", connection, f"{program}-{session}")
        if place not in self._open:
            self._open[place] = AcpReader(program, session, self._spool.mark(place))
        return self._open[place]

    def copied(self) -> "Wires":
        """Return a copy of all readers, to restore after a failed transaction."""
        copy = Wires(self._spool)
        copy._open = {place: AcpReader(wire.program, wire.session, wire.kept()) for place, wire in self._open.items()}
        return copy

    def keep(self) -> None:
        """Store the state of all readers."""
        for place, wire in self._open.items():
            self._spool.set_mark(place, wire.kept(), is_synced=True)

    def forget_ended(self) -> None:
        """Remove the stored state of ended connections."""
        for place, wire in self._open.items():
            if wire.is_over:
                self._spool.forget_mark(place)
