"""Sync files to disk, so that they survive a power cut."""

import fcntl
import os

# On macOS, fsync only reaches the drive's cache.
_FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)


def sync(path: str) -> None:
    """Sync a file, or the entries of a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)


def sync_descriptor(descriptor: int) -> None:
    """Sync an open file to disk."""
    if _FULL_SYNC is None:
        os.fsync(descriptor)
        return
    try:
        fcntl.fcntl(descriptor, _FULL_SYNC)
    except OSError:
        # Some file systems, such as network shares, support only fsync.
        os.fsync(descriptor)
