"""Signatures: what two messages of the same error have in common."""

import re
from hashlib import sha256

LONGEST = 500
_READ_AT_MOST = 8 * LONGEST

# In this order, as the systems Decklog takes over from have it: their hashes must come out the same.
_CLASSIC = (
    (re.compile(r"/[^\s]*/"), ".../"),
    (re.compile(r"[A-Za-z]:\\[^\s]*\\"), r"...\\"),
    (re.compile(r"line \d+"), "line N"),
    (re.compile(r"'[^']{1,50}'"), "'...'"),
    (re.compile(r'"[^"]{1,50}"'), '"..."'),
)

# Decklog's own: whatever differs from one occurrence to the next goes, the names of errors and settings stay. From special to
# general, since a UUID is also hexadecimal and a time is also digits.
_OWN = (
    (re.compile(r"\x1b\[[0-9;?]*[A-Za-z]"), ""),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"), "<time>"),
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)\]]+", re.IGNORECASE), "<url>"),
    (re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.-]+\b"), "<mail>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "<address>"),
    (re.compile(r"\[[0-9a-fA-F]*:[0-9a-fA-F:]+\](?::\d+)?"), "<address>"),
    (re.compile(r"\b0[xX][0-9a-fA-F]+\b"), "<hex>"),
    # A path begins with a separator or a drive, or has two separators, or one and an extension: `read/write` is none.
    (re.compile(r"\b[A-Za-z]:(?:\\[\w.@+~-]+)+(?::\d+)*"), "<path>"),
    (re.compile(r"(?<!\w)\.{0,2}(?:[\\/][\w.@+~-]+)+(?::\d+)*"), "<path>"),
    (re.compile(r"\b[\w.@+~-]+(?:[\\/][\w.@+~-]+){2,}(?::\d+)*"), "<path>"),
    (re.compile(r"\b[\w.@+~-]+[\\/][\w@+~-]+\.\w{1,5}\b(?::\d+)*"), "<path>"),
    (re.compile(r"\b[\w-]+\.[A-Za-z]{1,4}:\d+(?::\d+)?\b"), "<path>"),
    (re.compile(r"\b[a-z]+_[0-9a-z]{20,}\b"), "<id>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b"), "<hex>"),
    (re.compile(r"\bline \d+\b", re.IGNORECASE), "line <n>"),
    (re.compile(r"(?<![A-Za-z_])[-+]?\d+(?:[.,]\d+)*(?=(?:[a-zA-Z%]{0,3})\b)"), "<n>"),
    (re.compile(r"(?<=[A-Za-z_-])\d{4,}\b"), "<n>"),
    (re.compile(r"\s+"), " "),
)


def classic_message(message: str) -> str:
    """Normalise a message as the error patterns' hash wants it."""
    for pattern, replacement in _CLASSIC:
        message = pattern.sub(replacement, message)
    return message.strip()[:LONGEST]


def message_pattern(message: str) -> str:
    """Normalise a message as Decklog's own error patterns have it: without what differs from one occurrence to the next."""
    return classic_message(signature(message))


def pattern_hash(error_type: str, message_pattern: str, hints: list[str]) -> str:
    """Digest the parts of a signature that make two errors the same: the stack and the language do not."""
    return sha256(f"{error_type}:{message_pattern}:{','.join(sorted(hints))}".encode()).hexdigest()


def signature(message: str) -> str:
    """Reduce a message to what every occurrence of the error shares: no paths, numbers, ids, times or addresses."""
    message = message[:_READ_AT_MOST]
    for pattern, replacement in _OWN:
        message = pattern.sub(replacement, message)
    return message.strip()[:LONGEST]
