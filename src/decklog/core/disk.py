"""What has to be on the disk before anybody is told that it is there."""

import os


def sync(path: str) -> None:
    """Have a file, or a folder's list of files, written to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
