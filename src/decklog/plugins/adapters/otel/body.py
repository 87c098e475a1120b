"""The body of a request, read without trusting it: an end to its size, packed and unpacked, and to the time that it may take."""

import io
import time
import zlib
from typing import TYPE_CHECKING

from decklog.core.errors import DecklogError, Invalid, TooLarge

if TYPE_CHECKING:
    import socket
    from email.message import Message
    from io import BufferedIOBase

MOST_BYTES = 16 * 1024**2
_LONGEST_LINE = 1024
_GZIP = 16 + zlib.MAX_WBITS


class NotSupported(DecklogError):
    """A way to write a body that is not read here."""


class TimedReader(io.RawIOBase):
    """Reads from a connection until a moment: a sender that drips a byte now and then holds nobody up for long."""

    def __init__(self, connection: "socket.socket") -> None:
        super().__init__()
        self._connection = connection
        self._until = 0.0

    def allow(self, seconds: float) -> None:
        """Allow so much time from now on."""
        self._until = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


def read_body(headers: "Message", source: "BufferedIOBase") -> bytes:
    """Read and unpack a body, whose length is told before or chunk by chunk."""
    coding = (headers.get("Transfer-Encoding") or "").strip().lower()
    lengths = headers.get_all("Content-Length") or []
    # Two ways to tell where a request ends could mean one thing to whoever passed it on and another here.
    if (coding and lengths) or len(lengths) > 1:
        raise Invalid("the request tells its length in two ways")
    if coding not in ("", "chunked"):
        raise NotSupported(f"bodies that are sent as {coding} are not read")
    packed = _chunks(source) if coding else _whole(lengths[0] if lengths else "", source)
    packing = (headers.get("Content-Encoding") or "identity").strip().lower()
    if packing not in ("identity", "gzip"):
        raise NotSupported(f"bodies that are packed as {packing} are not read")
    return unpacked(packed) if packing == "gzip" else packed


def _whole(length: str, source: "BufferedIOBase") -> bytes:
    if not (length.isascii() and length.isdigit()):
        raise Invalid("the request does not tell its length")
    if len(length) > 12 or int(length) > MOST_BYTES:
        raise TooLarge(f"the request is larger than {MOST_BYTES} bytes")
    return _exactly(source, int(length))


def _exactly(source: "BufferedIOBase", count: int) -> bytes:
    data = source.read(count)
    if len(data) < count:
        raise Invalid("the request ends before its body does")
    return data


def _chunks(source: "BufferedIOBase") -> bytes:
    parts: list[bytes] = []
    room = MOST_BYTES
    while (count := _chunk_size(source)) > 0:
        room -= count
        if room < 0:
            raise TooLarge(f"the request is larger than {MOST_BYTES} bytes")
        parts.append(_exactly(source, count))
        if _exactly(source, 2) != b"\r\n":
            raise Invalid("a chunk of the request is longer than it says")
    # What may follow the last chunk says nothing that is needed here.
    for _ in range(20):
        if source.readline(_LONGEST_LINE) in (b"\r\n", b"\n", b""):
            return b"".join(parts)
    raise Invalid("the request goes on after its last chunk")


def _chunk_size(source: "BufferedIOBase") -> int:
    text = source.readline(_LONGEST_LINE).partition(b";")[0].strip()
    if not 0 < len(text) <= 8 or text.strip(b"0123456789abcdefABCDEF"):
        raise Invalid("a chunk of the request does not tell its length")
    return int(text, 16)


def unpacked(packed: bytes) -> bytes:
    """Unpack what gzip packed; a little that unpacks to very much is refused before it does."""
    parts: list[bytes] = []
    room = MOST_BYTES
    while packed:
        unpacking = zlib.decompressobj(_GZIP)
        try:
            part = unpacking.decompress(packed, room + 1)
        except zlib.error:
            raise Invalid("the request is not packed by gzip as it says") from None
        room -= len(part)
        if room < 0:
            raise TooLarge(f"the request unpacks to more than {MOST_BYTES} bytes")
        if not unpacking.eof:
            raise Invalid("the packed request is cut off")
        parts.append(part)
        packed = unpacking.unused_data
    return b"".join(parts)
