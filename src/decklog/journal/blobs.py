"""Bytes kept once, under their digest: long texts, documents and the contents of artifacts."""

from hashlib import sha256

from decklog.core.errors import Damaged
from decklog.db.base import Database
from decklog.db.packing import SHORTEST, packed, unpacked

# Longer texts of an entry are kept as blobs.
INLINE_CHARACTERS = 64 * 1024
_INSERT = "insert into blobs (digest, size, bytes) values (:digest, :size, :bytes) on conflict do nothing"


def keep(db: Database, content: bytes, digest: str | None = None) -> str:
    """Store bytes once, under their digest."""
    digest = digest or sha256(content).hexdigest()
    bound = {"digest": digest, "size": len(content), "bytes": content}
    if db.packs_blobs and len(content) >= SHORTEST:
        if db.one("select 1 from blobs where digest = :digest", {"digest": digest}) is not None:
            return digest
        bound["bytes"] = packed(content)
    db.rows(_INSERT, bound)
    return digest


def kept(db: Database, digest: str) -> bytes | None:
    """Return the bytes with a digest; None when retention dropped them."""
    row = db.one("select bytes, size from blobs where digest = :digest", {"digest": digest})
    return unpacked(bytes(row[0]), row[1]) if row else None


def kept_text(db: Database, digest: str) -> str | None:
    """Return the text with a digest; None when retention dropped it."""
    content = kept(db, digest)
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        raise Damaged(
            f"blob {digest} is no text any more", hint="See what else is damaged: decklog verify", digest=digest
        ) from None
