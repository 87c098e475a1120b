"""Where the log of an agent's work lies, and what a sandbox has to cover so that no command changes it."""

import os
from collections.abc import Sequence

from decklog.core.errors import Denied

NAME = ".decklog"
OUTSIDE = (
    "Lay the log outside and keep only its address here: decklog init --outside. "
    "A sandbox of kind none lets commands write to it."
)


def folders_of(root: str, log: str | None) -> list[str]:
    """Return the folders that hold the log's file or say where it lies, free of links."""
    found = [os.path.join(root, NAME)] if os.path.isdir(os.path.join(root, NAME)) else []
    found += [os.path.dirname(os.path.realpath(log))] if log is not None else []
    return list(dict.fromkeys(map(os.path.realpath, found)))


def to_cover(root: str, log: str | None, writable: Sequence[str]) -> tuple[str, ...]:
    """Return the folders among what a command may write that must be covered; refuse a log that no cover would hold."""
    grounds = [os.path.realpath(path) for path in writable]
    if log is not None and (link := _link_within(log, grounds)) is not None:
        raise _refused(log, f"by way of the link {link}, which could be led elsewhere")
    exposed = [folder for folder in folders_of(root, log) if any(_lies_in(folder, ground) for ground in grounds)]
    for folder in exposed:
        # A folder on the way could be moved aside by one command, and the next would find the log bare.
        if any(_lies_in(folder, ground) and ground != os.path.dirname(folder) for ground in grounds):
            raise _refused(log or folder, f"in {folder}, and only a separate folder directly in {root} can be covered")
    return tuple(exposed)


def check_without_cover(root: str, log: str | None, writable: Sequence[str]) -> None:
    """Refuse a log whose file a command could write to; its address alone may stay, since no address is used without a yes."""
    grounds = [os.path.realpath(path) for path in writable]
    if log is None:
        return
    if _link_within(log, grounds) or any(_lies_in(os.path.realpath(log), ground) for ground in grounds):
        raise _refused(log, f"in {root}, and Landlock can't take it out of there; no mount namespace can be had here")


def _link_within(path: str, grounds: Sequence[str]) -> str | None:
    """Find a link among the folders of a path that lies where a command may write."""
    folder = os.path.dirname(os.path.abspath(path))
    while folder != os.path.dirname(folder):
        if os.path.islink(folder) and any(_lies_in(os.path.realpath(os.path.dirname(folder)), ground) for ground in grounds):
            return folder
        folder = os.path.dirname(folder)
    return None


def _lies_in(path: str, ground: str) -> bool:
    return path == ground or path.startswith(ground.rstrip("/") + "/")


def _refused(log: str, why: str) -> Denied:
    return Denied(f"The log {log} lies where the command could write to it: {why}", hint=OUTSIDE, log=log)
