"""A host: one clone with its places on one machine, the conductors that worked there, and which of them still live.

It is named by a file beside its places. So a folder that two machines share is two hosts, two clones on one machine are two as
well, and a machine that was started anew is the one that it was.
"""

import hashlib
import os
import uuid
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from decklog.core.processes import Identity

MACHINE_ID = Path("/etc/machine-id")


def machine() -> str:
    """Name this machine, also after it was started anew; one that has no name is empty."""
    try:
        found = MACHINE_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    # The name itself is not for others to know.
    return hashlib.sha256(f"decklog:{found}".encode()).hexdigest()[:16] if found else ""


class Host:
    """Remembers conductors beside the places, so that the next one here knows whose leases are nobody's."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "hosts" / (machine() or "unnamed")
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @cached_property
    def id(self) -> str:
        """The name of this host, made once."""
        path = self._folder / "id"
        new = self._folder / f"id.{os.getpid()}"
        if not path.exists():
            new.write_text(f"host_{uuid.uuid4().hex[:12]}", encoding="ascii")
            # If another process was faster, its name counts.
            with suppress(FileExistsError):
                os.link(new, path)
            new.unlink()
        return path.read_text(encoding="ascii")

    def enter(self) -> str:
        """Write this process down; give the name that it claims tasks under."""
        own = Identity.own()
        name = f"conductor-{os.uname().nodename}-{self.id.removeprefix('host_')}-{own.pid}-{own.ticks}"
        new = self._folder / f"{name}.new"
        new.write_text(own.as_text(), encoding="utf-8")
        new.rename(self._folder / f"{name}.json")
        return name

    def is_dead(self, worker: str | None) -> bool:
        """Return whether a task's worker is a conductor of this host that is known to have ended."""
        try:
            text = (self._folder / f"{worker}.json").read_text(encoding="utf-8")
        except OSError:
            return False
        known = Identity.from_text(text)
        # It was of this machine, so nothing of it is left if that was started anew since, whatever its name is now.
        return known.is_alive() is False or known.boot_id != Identity.own().boot_id
