"""A temporary home folder for tests, so that none writes to the user's home."""

import os
import shutil
import tempfile
from pathlib import Path

from decklog.core.folders import config_home
from decklog.location.locate import NAME

_HOMES = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


class Homes:
    """A home for the tests of one process."""

    def __init__(self) -> None:
        self._accepted = Path(config_home(), NAME)
        self._own = tempfile.mkdtemp(prefix="decklog-home-")
        # Set only HOME, so that a test can give a program another home.
        os.environ["HOME"] = self._own
        for name in _HOMES:
            os.environ.pop(name, None)

    def accepted_below(self, folder: Path) -> list[str]:
        """Return the consents in the user's home for logs below a test folder."""
        try:
            lines = self._accepted.read_text(encoding="utf-8").splitlines()
        except OSError:
            return []
        return [line for line in lines if line.startswith(f"{folder}{os.sep}")]

    def close(self) -> None:
        shutil.rmtree(self._own)
