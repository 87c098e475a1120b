"""The log that a server answers from: opened when the first call needs it, and anew after it was lost."""

from threading import Lock

from decklog import Decklog
from decklog.agents.caller import claims_folder_of
from decklog.location.locate import locate


class LogSource:
    """Finds and opens a log. One that is not there yet is looked for again at every call."""

    def __init__(self, named: str | None = None, opened: tuple[Decklog, str] | None = None) -> None:
        self._named = named
        self._lock = Lock()
        self._open = opened

    def get(self) -> tuple[Decklog, str]:
        """Return the log and the directory where claims are remembered."""
        with self._lock:
            if self._open is None:
                place = locate(self._named)
                place.must_exist()
                self._open = place.open(read_only=place.is_read_only), claims_folder_of(place)
            return self._open

    def forget(self, log: Decklog) -> None:
        """Close a log that can't be used any more; the next call opens what is there then."""
        with self._lock:
            # Somebody else may have found out first, and have opened another.
            if self._open is not None and self._open[0] is log:
                self._open = None
        log.close()
