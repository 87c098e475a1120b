"""File names of streams: safe on every file system, the same everywhere, and different for different streams."""

import re
from hashlib import sha256

from decklog.transfer.reading import DIGEST

SUFFIX = ".jsonl"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-@.")
_LONGEST = 180
# Names that some systems keep for devices, whatever follows the first dot.
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)")


def file_of(stream: str) -> str:
    """Name the file of a stream.

    All but small letters, digits and a few signs is written as `%xx`: some file systems take `Run` and `run` for one name.
    A long name is cut and ends in its digest.
    """
    name = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in stream.encode())
    if name.startswith((".", "-")) or _DEVICES.match(name):
        name = f"%{ord(name[0]):02x}{name[1:]}"
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}%{sha256(stream.encode()).hexdigest()[:32]}"
    return name + SUFFIX


def is_digest(name: str) -> bool:
    return DIGEST.fullmatch(name) is not None
