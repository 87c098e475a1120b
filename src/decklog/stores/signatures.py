<<<<<<< HEAD
"""Ed25519 signatures with OpenSSH keys: the one place that knows the `cryptography` package."""

import base64
import binascii
from hashlib import sha256

from decklog.errors import Denied, Invalid, NotFound, Unavailable
from decklog.records import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import Any

_KIND = b"ssh-ed25519"
# What is signed starts with these words, so that nothing signed for another purpose can be passed off as a statement.
_PURPOSE = b"decklog trust statement\n"


def sign(statement: "str | Mapping[str, Any]", private_key_path: str, passphrase: str | None = None) -> str:
    """Sign a statement with an OpenSSH private key file of kind ed25519; give the signature as base64 text."""
    text = statement if isinstance(statement, str) else to_json(dict(statement))
    try:
        with open(private_key_path, "rb") as file:
            content = file.read()
    except OSError as problem:
        raise NotFound(f"the key file {private_key_path} can't be read: {problem.strerror}") from None
    key = _private_key(content, private_key_path, passphrase)
    return base64.b64encode(key.sign(_PURPOSE + text.encode())).decode()


def _private_key(content: bytes, path: str, passphrase: str | None) -> "Any":
    serialization = _cryptography("hazmat.primitives.serialization")
    ed25519 = _cryptography("hazmat.primitives.asymmetric.ed25519")
    unsupported = _cryptography("exceptions").UnsupportedAlgorithm
    try:
        key = serialization.load_ssh_private_key(content, passphrase.encode() if passphrase else None)
    except TypeError:
        raise Denied(f"{path} is locked with a passphrase; give it", path=path) from None
    except unsupported as problem:
        raise Unavailable(f"{path} can't be unlocked: {problem}", hint="Run: pip install 'decklog[trust]'") from None
    except ValueError as problem:
        if passphrase and b"OPENSSH PRIVATE KEY" in content:
            raise Denied(f"the passphrase does not open {path}", path=path) from None
        raise Invalid(f"{path} is not an OpenSSH private key: {problem}", path=path) from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise Invalid(f"{path} is not of kind ed25519", hint="Make one: ssh-keygen -t ed25519", path=path)
    return key


def is_signed(statement: str, signature: str, public_key: str) -> bool:
    """Tell whether the owner of a public key signed exactly this text."""
    exceptions = _cryptography("exceptions")
    ed25519 = _cryptography("hazmat.primitives.asymmetric.ed25519")
    try:
        given = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return False
    key = ed25519.Ed25519PublicKey.from_public_bytes(_blob(public_key)[-32:])
    try:
        key.verify(given, _PURPOSE + statement.encode())
    except (exceptions.InvalidSignature, UnicodeEncodeError):
        return False
    return True


def public_key_of(text: str) -> str:
    """Read a public key line, such as an `id_ed25519.pub` holds, and give it without its comment."""
    return f"{_KIND.decode()} {base64.b64encode(_blob(text)).decode()}"


def fingerprint(public_key: str) -> str:
    """Give the fingerprint that `ssh-keygen -l` shows."""
    return "SHA256:" + base64.b64encode(sha256(_blob(public_key)).digest()).decode().rstrip("=")


def _blob(text: str) -> bytes:
    """Decode the key's own bytes: its kind, then 32 bytes of key, each after its length."""
    parts = text.split()
    try:
        blob = base64.b64decode(parts[1], validate=True) if len(parts) > 1 else b""
    except (binascii.Error, ValueError):
        blob = b""
    start = len(_KIND).to_bytes(4, "big") + _KIND + (32).to_bytes(4, "big")
    if not parts or parts[0] != _KIND.decode() or not blob.startswith(start) or len(blob) != len(start) + 32:
        raise Invalid(
            "a manager's key is one line of an OpenSSH public key of kind ed25519: ssh-ed25519 AAAA…",
            hint="Make one with ssh-keygen -t ed25519, and give the text of the .pub file.",
            field="public_key",
        )
    return blob


def _cryptography(name: str) -> "ModuleType":
    """Import a part of the package only when somebody signs or checks: it costs more than all of ours."""
    from importlib import import_module

    try:
        return import_module(f"cryptography.{name}")
    except ImportError as problem:
        raise Unavailable(
            f"signatures need a package that is not installed: {problem.name}",
            hint="Run: pip install 'decklog[trust]'",
        ) from problem
=======
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


def pattern_hash(error_type: str, message_pattern: str, hints: "list[str]") -> str:
    """Digest the parts of a signature that make two errors the same: the stack and the language do not."""
    return sha256(f"{error_type}:{message_pattern}:{','.join(sorted(hints))}".encode()).hexdigest()


def signature(message: str) -> str:
    """Reduce a message to what every occurrence of the error shares: no paths, numbers, ids, times or addresses."""
    message = message[:_READ_AT_MOST]
    for pattern, replacement in _OWN:
        message = pattern.sub(replacement, message)
    return message.strip()[:LONGEST]
>>>>>>> memory
