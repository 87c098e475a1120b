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
