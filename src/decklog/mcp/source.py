"""The log of a server: opened by the first call, and again after it was lost."""

from threading import Lock

from decklog import Decklog
from decklog.agents.caller import claims_folder_of
from decklog.location.locate import locate


class LogSource:
    """Finds and opens a log. Each call searches again for a missing log."""

    def __init__(self, named: str | None = None, opened: tuple[Decklog, str] | None = None) -> None:
        self._named = named
        self._lock = Lock()
        self._open = opened

    def get(self) -> tuple[Decklog, str]:
        """Return the log and the folder of stored claims."""
        with self._lock:
            if self._open is None:
                place = locate(self._named)
                place.must_exist()
                self._open = place.open(read_only=place.is_read_only), claims_folder_of(place)
            return self._open

    def forget(self, log: Decklog) -> None:
        """Close an unusable log; the next call opens the current one."""
        with self._lock:
            # Another thread may have replaced it already.
            if self._open is not None and self._open[0] is log:
                self._open = None
        log.close()
