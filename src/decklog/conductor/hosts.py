"""A host: one clone with its workspaces on one machine, and the conductors that worked there.

A file next to the workspaces names it. So two clones on one machine are two hosts, and a machine that was restarted is the same.
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
    """Return the name of this machine, which is the same after a restart; empty if it has none."""
    try:
        found = MACHINE_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    # The id itself is private.
    return hashlib.sha256(f"decklog:{found}".encode()).hexdigest()[:16] if found else ""


class Host:
    """Records the conductors of this host, so that the next one here knows whose leases are free."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "hosts" / (machine() or "unnamed")
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @cached_property
    def id(self) -> str:
        """The id of this host, created once."""
        path = self._folder / "id"
        new = self._folder / f"id.{os.getpid()}"
        if not path.exists():
            new.write_text(f"host_{uuid.uuid4().hex[:12]}", encoding="ascii")
            # If another process was faster, its id counts.
            with suppress(FileExistsError):
                os.link(new, path)
            new.unlink()
        return path.read_text(encoding="ascii")

    def enter(self) -> str:
        """Record this process; return the name that it claims tasks under."""
        own = Identity.own()
        name = f"conductor-{os.uname().nodename}-{self.id.removeprefix('host_')}-{own.pid}-{own.ticks}"
        new = self._folder / f"{name}.new"
        new.write_text(own.as_text(), encoding="utf-8")
        new.rename(self._folder / f"{name}.json")
        return name

    def is_dead(self, worker: str | None) -> bool:
        """Return whether a task's worker is a conductor of this host that has ended."""
        try:
            text = (self._folder / f"{worker}.json").read_text(encoding="utf-8")
        except OSError:
            return False
        known = Identity.from_text(text)
        # A restart of this machine has ended it as well.
        return known.is_alive() is False or known.boot_id != Identity.own().boot_id
