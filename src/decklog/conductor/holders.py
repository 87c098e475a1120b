"""Conductors on this host: under which name each claims tasks, and whether it still lives."""

import os
from pathlib import Path

from decklog.tools.shell.process_identity import Identity


class Holders:
    """Remembers conductors beside the places, so that the next one knows whose leases are nobody's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "conductors"
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def enter(self) -> str:
        """Write this process down; give the name that it claims tasks under."""
        own = Identity.own()
        name = f"conductor-{os.uname().nodename}-{own.pid}-{own.ticks}"
        new = self._folder / f"{name}.new"
        new.write_text(own.as_text(), encoding="utf-8")
        new.rename(self._folder / f"{name}.json")
        return name

    def is_dead(self, worker: str | None) -> bool:
        """Say whether a task's worker is a conductor of this host that is known to have ended."""
        try:
            text = (self._folder / f"{worker}.json").read_text(encoding="utf-8")
        except OSError:
            return False
        return Identity.from_text(text).is_alive() is False
