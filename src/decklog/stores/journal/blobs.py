"""Bytes kept once, under their digest: long texts, documents and the contents of artifacts."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from decklog.db.base import Database

# Longer texts of an entry are kept as blobs.
INLINE_CHARACTERS = 64 * 1024


def keep(db: "Database", content: bytes, digest: str | None = None) -> str:
    """Store bytes once, under their digest."""
    from hashlib import sha256

    digest = digest or sha256(content).hexdigest()
    db.rows(
        "insert into blobs (digest, size, bytes) values (:digest, :size, :bytes) on conflict do nothing",
        {"digest": digest, "size": len(content), "bytes": content},
    )
    return digest


def kept(db: "Database", digest: str) -> bytes | None:
    """Give the bytes with a digest; None when retention dropped them."""
    row = db.one("select bytes from blobs where digest = :digest", {"digest": digest})
    return bytes(row[0]) if row else None
