"""What an approval is about, kept beside it: so that whoever decides reads the thing itself, and not only its digest."""

from enum import StrEnum
from hashlib import sha256
from typing import Any

from decklog.core.errors import Damaged, Invalid
from decklog.db.base import Database
from decklog.journal.blobs import keep, kept
from decklog.stores.approvals.approval import Approval
from decklog.stores.results.approvals import ApprovalSubject


class AboutCheck(StrEnum):
    """How what is kept compares with the digest that was asked about."""

    MATCHES = "matches"
    REDACTED = "parts redacted"
    ABSENT = "not in the log"


def keep_about(db: Database, about: object) -> dict[str, Any]:
    """Keep what is asked about, without its secrets; give the fields that say so. The stream is locked before."""
    if about is None:
        return {}
    content, redacted = _content(db, about)
    return {"about_digest": keep(db, content), "redacted": redacted}


def _content(db: Database, about: object) -> tuple[bytes, bool]:
    text = _text(about) if isinstance(about, bytes) else about
    if text is None:
        db.values.one("about", about)
        assert isinstance(about, bytes)
        return about, False
    clean, redacted = db.values.text("about", text) if isinstance(text, str) else db.values.json("about", text)
    return clean.encode(), redacted


def _text(content: bytes) -> str | None:
    """Give bytes as text; None when they are something else."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def kept_about(db: Database, approval: Approval) -> bytes | None:
    """Return what is kept of an approval's thing; None where only its digest was given."""
    return kept(db, approval.about_digest) if approval.about_digest else None


def seen(approval: Approval, content: bytes | None) -> tuple[AboutCheck, bytes | None]:
    """Return how the digest of what is kept of an approval's thing, computed anew, compares; refuse what was tampered with."""
    if content is None:
        return AboutCheck.ABSENT, None
    digest = sha256(content).hexdigest()
    if digest != approval.about_digest or (digest != approval.subject_digest and not approval.redacted):
        raise Damaged(
            f"what approval {approval.id} is about is not what was asked about: it has the digest {digest}",
            hint="Somebody wrote to the database past Decklog. See: decklog verify",
            id=approval.id,
            digest=digest,
        )
    return (AboutCheck.MATCHES if digest == approval.subject_digest else AboutCheck.REDACTED), content


def check_seen(db: Database, approval: Approval, digest: str | None) -> None:
    """Refuse a grant of what nobody can read in the log, unless the digest of the thing is given with it."""
    check, _ = seen(approval, kept_about(db, approval))
    if check is AboutCheck.ABSENT and approval.subject_digest is not None and digest is None:
        raise Invalid(
            f"what approval {approval.id} is about is not in the log: to grant it, give the digest of what you looked at",
            hint="Compute it from the thing itself (sha256sum) and add: --subject-digest SHA256",
            field="subject_digest",
            id=approval.id,
        )


def shown(approval: Approval, content: bytes | None) -> ApprovalSubject:
    """Describe what an approval is about: its content as text, or as base64 where it is none, and what the check said."""
    check, content = seen(approval, content)
    if content is None:
        return {"check": check.value, "content": None, "encoding": None}
    text = _text(content)
    if text is not None:
        return {"check": check.value, "content": text, "encoding": "utf-8"}
    from binascii import b2a_base64

    return {"check": check.value, "content": b2a_base64(content, newline=False).decode(), "encoding": "base64"}
