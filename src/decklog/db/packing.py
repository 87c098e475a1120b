"""Long values as a SQLite file keeps them: compressed where that makes them shorter by a fifth.

PostgreSQL compresses without us. The size is stored with the bytes; where fewer are stored, they are compressed. So what was
written before anything was compressed reads as it did.
"""

from typing import Any
from zlib import compress, crc32, decompressobj, error

# Shorter ones share their page with others anyway.
SHORTEST = 512
# This much of a value shows whether the rest is worth a try: pictures and archives are not.
_SAMPLE = 16_384
# The fastest level. Level 6 makes source text an eighth smaller in twice the time.
_LEVEL = 1
# A checksum follows the compressed bytes: a few of their bits mean nothing, and would be changed unseen.
_CHECKSUM_BYTES = 4


def compress_bytes(content: bytes) -> bytes:
    """Return bytes as they are stored."""
    if len(content) < SHORTEST:
        return content
    if len(content) > _SAMPLE and not _is_worth_compressing(compress(content[:_SAMPLE], _LEVEL), _SAMPLE):
        return content
    short = compress(content, _LEVEL)
    return short + crc32(short).to_bytes(_CHECKSUM_BYTES, "big") if _is_worth_compressing(short, len(content)) else content


def _is_worth_compressing(short: bytes, size: int) -> bool:
    return len(short) * 5 <= size * 4


def decompress_bytes(kept: bytes, size: object) -> bytes:
    """Return the original bytes, given their size; bytes that we did not compress come back unchanged."""
    if not isinstance(kept, bytes) or not isinstance(size, int) or len(kept) >= size:
        return kept
    short, checksum = kept[:-_CHECKSUM_BYTES], kept[-_CHECKSUM_BYTES:]
    if crc32(short).to_bytes(_CHECKSUM_BYTES, "big") != checksum:
        return kept
    reading = decompressobj()
    try:
        # One more than there should be: a damaged length must not fill the memory.
        content = reading.decompress(short, size + 1)
    except error:
        return kept
    return content if len(content) == size and reading.eof else kept


def decompress_start(kept: bytes, most: int) -> bytes:
    """Return how bytes begin that are kept compressed."""
    try:
        return decompressobj().decompress(kept, most)
    except error:
        return kept[:most]


def add_decompress_function(connection: Any) -> None:
    """Add the SQL function `plain_bytes(bytes, size)` to a connection."""
    connection.create_scalar_function("plain_bytes", decompress_bytes, 2, deterministic=True)
