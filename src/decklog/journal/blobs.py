"""Blobs: bytes stored once by digest, such as long texts, documents and contents of artifacts."""

from hashlib import sha256

from decklog.core.errors import Damaged
from decklog.db.base import Database
from decklog.db.packing import SHORTEST, compress_bytes, decompress_bytes

# Longer texts of an entry are stored as blobs.
INLINE_CHARACTERS = 64 * 1024
_INSERT = "insert into blobs (digest, size, bytes) values (:digest, :size, :bytes) on conflict do nothing"


def store_blob(db: Database, content: bytes, digest: str | None = None) -> str:
    """Store bytes once, under their digest."""
    digest = digest or sha256(content).hexdigest()
    bound = {"digest": digest, "size": len(content), "bytes": content}
    if db.packs_blobs and len(content) >= SHORTEST:
        if db.one("select 1 from blobs where digest = :digest", {"digest": digest}) is not None:
            return digest
        bound["bytes"] = compress_bytes(content)
    db.rows(_INSERT, bound)
    return digest


def load_blob(db: Database, digest: str) -> bytes | None:
    """Return the bytes with a digest; None if retention dropped them."""
    row = db.one("select bytes, size from blobs where digest = :digest", {"digest": digest})
    return decompress_bytes(bytes(row[0]), row[1]) if row else None


def load_blob_text(db: Database, digest: str) -> str | None:
    """Return the text with a digest; None if retention dropped it."""
    content = load_blob(db, digest)
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        raise Damaged(
            f"blob {digest} is damaged: it is not valid text", hint="See what else is damaged: decklog verify", digest=digest
        ) from None
