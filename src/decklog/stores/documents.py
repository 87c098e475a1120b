"""JSON documents of any size, checked, redacted and stored once by digest; and digests of other content."""

from binascii import b2a_base64
from hashlib import sha256
from typing import Any, Literal, NamedTuple, TypeVar

from decklog.core.errors import Invalid, NotFound
from decklog.db.base import Database
from decklog.journal import blobs
from decklog.records.record import Record
from decklog.records.values import from_json

R = TypeVar("R", bound=Record)


class StoredDocument(NamedTuple):
    """A document for its row, or the digest of its blob."""

    inline: Any
    digest: str
    redacted: bool


INLINE_CHARACTERS = 8 * 1024
_HEX = frozenset("0123456789abcdef")


def parse_sha256(digest: str) -> str:
    """Parse a SHA-256 in hexadecimal."""
    lowered = digest.strip().lower()
    if len(lowered) != 64 or not _HEX.issuperset(lowered):
        raise Invalid(f"{digest[:80]!r} is not a SHA-256 in hexadecimal (64 digits)", field="digest")
    return lowered


def decode_text(content: bytes) -> str | None:
    """Decode bytes as text; None if they are not text."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def encode_content(content: bytes) -> tuple[str, Literal["utf-8", "base64"]]:
    """Return bytes as text or as base64, with the encoding."""
    text = decode_text(content)
    return (text, "utf-8") if text is not None else (b2a_base64(content, newline=False).decode(), "base64")


def redact(db: Database, name: str, content: bytes) -> tuple[bytes, bool]:
    """Redact bytes that are text, and return whether anything was redacted. Other bytes are only checked for their size."""
    text = decode_text(content)
    if text is None:
        db.values.bind_value(name, content)
        return content, False
    clean, redacted = db.values.bind_text(name, text)
    return clean.encode(), redacted


def store_document(db: Database, name: str, document: object) -> StoredDocument:
    """Store a document as a blob."""
    text, redacted = db.values.bind_json(name, document)
    return StoredDocument(None, blobs.store_blob(db, text.encode()), redacted)


def store_if_long(db: Database, name: str, document: object) -> StoredDocument:
    """Return a short document for its row, and store a long one as a blob."""
    text, redacted = db.values.bind_json(name, document)
    # A row stores only objects and lists: a bare text could not be distinguished from JSON in the column.
    if isinstance(document, (dict, list)) and len(text) <= INLINE_CHARACTERS:
        return StoredDocument(document, sha256(text.encode()).hexdigest(), redacted)
    return StoredDocument(None, blobs.store_blob(db, text.encode()), redacted)


def load_document(db: Database, digest: str) -> object:
    """Return the document with a digest."""
    text = blobs.load_blob_text(db, digest)
    if text is None:
        raise NotFound(f"the document {digest} is no longer kept; only its digest is on record", digest=digest)
    document: object = from_json(text)
    return document


def load_field(db: Database, record: R, field: str, digest: str) -> R:
    """Load the document of a record's digest into a field of the record, and return the record."""
    if getattr(record, field) is None:
        object.__setattr__(record, field, load_document(db, digest))
    return record


def loaded_field(record: Record, field: str) -> dict[str, Any]:
    """Return a loaded document for `as_dict`. The document may be null."""
    return {field: record.__dict__[field]} if field in record.__dict__ else {}
