"""Compression of long values in SQLite files, if it saves at least a fifth.

PostgreSQL compresses values itself. The original size is stored with the bytes; if fewer bytes are stored, they are compressed.
So uncompressed values of older logs stay readable.
"""

from typing import Any
from zlib import compress, crc32, decompressobj, error

# Shorter values are not worth compressing, because they share a page with others.
SHORTEST = 512
# The compressed sample shows whether the rest is worth compressing; pictures and archives are not.
_SAMPLE = 16_384
# The fastest level. Level 6 makes source text an eighth smaller in twice the time.
_LEVEL = 1
# A checksum follows the compressed bytes, because some damaged bits would go unnoticed.
_CHECKSUM_BYTES = 4


def compress_bytes(content: bytes) -> bytes:
    """Return the stored form of bytes: compressed, or unchanged."""
    if len(content) < SHORTEST:
        return content
    if len(content) > _SAMPLE and not _is_worth_compressing(compress(content[:_SAMPLE], _LEVEL), _SAMPLE):
        return content
    short = compress(content, _LEVEL)
    return short + crc32(short).to_bytes(_CHECKSUM_BYTES, "big") if _is_worth_compressing(short, len(content)) else content


def _is_worth_compressing(short: bytes, size: int) -> bool:
    return len(short) * 5 <= size * 4


def decompress_bytes(kept: bytes, size: object) -> bytes:
    """Return the original bytes, given their size. Bytes that are not compressed are returned unchanged."""
    if not isinstance(kept, bytes) or not isinstance(size, int) or len(kept) >= size:
        return kept
    short, checksum = kept[:-_CHECKSUM_BYTES], kept[-_CHECKSUM_BYTES:]
    if crc32(short).to_bytes(_CHECKSUM_BYTES, "big") != checksum:
        return kept
    reading = decompressobj()
    try:
        # Limit the output, so that damaged bytes can't fill the memory.
        content = reading.decompress(short, size + 1)
    except error:
        return kept
    return content if len(content) == size and reading.eof else kept


def decompress_start(kept: bytes, most: int) -> bytes:
    """Return the first bytes of a compressed value."""
    try:
        return decompressobj().decompress(kept, most)
    except error:
        return kept[:most]


def add_decompress_function(connection: Any) -> None:
    """Add the SQL function `plain_bytes(bytes, size)` to a connection."""
    connection.create_scalar_function("plain_bytes", decompress_bytes, 2, deterministic=True)
