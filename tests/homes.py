"""The user's home, which no test writes to, and the one that tests have instead."""

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
        # By HOME alone: a program that a test gives another home then goes by that one.
        os.environ["HOME"] = self._own
        for name in _HOMES:
            os.environ.pop(name, None)

    def accepted_below(self, folder: Path) -> list[str]:
        """Return the consents for a folder of tests in the user's home."""
        try:
            lines = self._accepted.read_text(encoding="utf-8").splitlines()
        except OSError:
            return []
        return [line for line in lines if line.startswith(f"{folder}{os.sep}")]

    def close(self) -> None:
        shutil.rmtree(self._own)
