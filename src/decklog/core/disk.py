"""Writes to the disk that must survive a power cut."""

import fcntl
import os

# On macOS, fsync only reaches the drive's cache.
_FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)


def sync(path: str) -> None:
    """Write a file, or the list of files of a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)


def sync_descriptor(descriptor: int) -> None:
    """Write an open file to the disk."""
    if _FULL_SYNC is None:
        os.fsync(descriptor)
        return
    try:
        fcntl.fcntl(descriptor, _FULL_SYNC)
    except OSError:
        # Some file systems, such as network shares, know only fsync.
        os.fsync(descriptor)
