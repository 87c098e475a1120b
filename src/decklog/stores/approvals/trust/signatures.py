"""Ed25519 signatures with OpenSSH keys: the only module that uses the `cryptography` package."""

import base64
import binascii
import os
from collections.abc import Mapping
from hashlib import scrypt, sha256
from types import ModuleType
from typing import Any

from decklog.core.errors import Denied, Invalid, NotFound, Unavailable
from decklog.core.extras import install_hint
from decklog.records.values import to_json

_KIND = b"ssh-ed25519"
# Prefix of signed texts, so that no signature for another purpose is accepted.
_PURPOSE = b"decklog trust statement\n"


# Cost of scrypt for each tried password: 32 MiB and about 0.1 seconds.
_SCRYPT = (2**15, 8, 1)
SHORTEST_PASSWORD = 12


class Signer:
    """A private key, ready to sign."""

    def __init__(self, key: Any) -> None:
        self._key = key

    @property
    def public_key(self) -> str:
        """The public key in OpenSSH format."""
        raw = self._key.public_key().public_bytes_raw()
        return f"{_KIND.decode()} {base64.b64encode(_head() + raw).decode()}"

    def sign(self, statement: str) -> str:
        """Sign a statement; return the signature as base64 text."""
        return base64.b64encode(self._key.sign(_PURPOSE + statement.encode())).decode()


class Prover:
    """Signs for the owner, with a key file or a password."""

    def __init__(self, *, key: str | None = None, passphrase: str | None = None, password: str | None = None) -> None:
        if (key is None) == (password is None):
            raise Invalid("a proof takes a key or a password", field="key")
        self._path = key
        self._passphrase = passphrase
        self.password = password
        self._made: dict[str | None, Signer] = {}

    def signer(self, phrase: str | None) -> Signer:
        """Return the signing key; `phrase` is how it is derived from the owner's password."""
        if phrase not in self._made:
            if self._path is not None:
                made = signer_of_file(self._path, self._passphrase)
            elif phrase is None:
                raise Denied("the owner of this log has a key file, not a password", hint="Give the path of the key.")
            else:
                made = signer_of_password(self.password or "", phrase)
            self._made[phrase] = made
        return self._made[phrase]


def new_phrase() -> str:
    """Return how a new password is converted to a key: the parameters of scrypt and a random salt."""
    return " ".join(map(str, ("scrypt", *_SCRYPT, os.urandom(16).hex())))


def signer_of_password(password: str, phrase: str) -> Signer:
    """Derive the Ed25519 key of a password with scrypt. The log stores the public key and the salt."""
    ed25519 = _cryptography("hazmat.primitives.asymmetric.ed25519")
    _, n, r, p, salt = phrase.split()
    cost = {"n": int(n), "r": int(r), "p": int(p)}
    seed = scrypt(password.encode(), salt=bytes.fromhex(salt), maxmem=2**27, dklen=32, **cost)
    return Signer(ed25519.Ed25519PrivateKey.from_private_bytes(seed))


def signer_of_file(private_key_path: str, passphrase: str | None = None) -> Signer:
    """Load an OpenSSH private key file of type ed25519."""
    try:
        with open(private_key_path, "rb") as file:
            content = file.read()
    except OSError as problem:
        raise NotFound(f"the key file {private_key_path} can't be read: {problem.strerror}") from None
    return Signer(_private_key(content, private_key_path, passphrase))


def make_key_file(path: str, passphrase: str | None) -> str:
    """Create an Ed25519 key file as ssh-keygen does, readable only by its user. An existing file is never overwritten."""
    serialization = _cryptography("hazmat.primitives.serialization")
    key = _cryptography("hazmat.primitives.asymmetric.ed25519").Ed25519PrivateKey.generate()
    locked = serialization.BestAvailableEncryption(passphrase.encode()) if passphrase else serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, locked)
    public = Signer(key).public_key
    try:
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        for name, content in ((path, private), (f"{path}.pub", f"{public}\n".encode())):
            with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
    except OSError as problem:
        raise Unavailable(f"the key can't be made at {path}: {problem.strerror}", path=path) from None
    return public


def sign(statement: str | Mapping[str, Any], private_key_path: str, passphrase: str | None = None) -> str:
    """Sign a statement with an OpenSSH private key file of type ed25519; return the signature as base64 text."""
    text = statement if isinstance(statement, str) else to_json(dict(statement))
    return signer_of_file(private_key_path, passphrase).sign(text)


def _private_key(content: bytes, path: str, passphrase: str | None) -> Any:
    serialization = _cryptography("hazmat.primitives.serialization")
    ed25519 = _cryptography("hazmat.primitives.asymmetric.ed25519")
    unsupported = _cryptography("exceptions").UnsupportedAlgorithm
    try:
        key = serialization.load_ssh_private_key(content, passphrase.encode() if passphrase else None)
    except TypeError:
        raise Denied(f"{path} is locked with a passphrase; give it", path=path) from None
    except unsupported as problem:
        raise Unavailable(f"{path} can't be unlocked: {problem}", hint=install_hint("trust")) from None
    except ValueError as problem:
        if passphrase and b"OPENSSH PRIVATE KEY" in content:
            raise Denied(f"the passphrase does not open {path}", path=path) from None
        raise Invalid(f"{path} is not an OpenSSH private key: {problem}", path=path) from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise Invalid(f"{path} is not of kind ed25519", hint="Make one: ssh-keygen -t ed25519", path=path)
    return key


def is_signed(statement: str, signature: str, public_key: str) -> bool:
    """Return whether the owner of a public key signed exactly this text."""
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
    """Parse a public key line, as in `id_ed25519.pub`, and return it without its comment."""
    return f"{_KIND.decode()} {base64.b64encode(_blob(text)).decode()}"


def fingerprint(public_key: str) -> str:
    """Return the fingerprint that `ssh-keygen -l` shows."""
    return "SHA256:" + base64.b64encode(sha256(_blob(public_key)).digest()).decode().rstrip("=")


def _blob(text: str) -> bytes:
    """Decode the bytes of a key: its type, then 32 bytes of key, each with its length."""
    parts = text.split()
    try:
        blob = base64.b64decode(parts[1], validate=True) if len(parts) > 1 else b""
    except (binascii.Error, ValueError):
        blob = b""
    start = _head()
    if not parts or parts[0] != _KIND.decode() or not blob.startswith(start) or len(blob) != len(start) + 32:
        raise Invalid(
            "an owner's key is one line of an OpenSSH public key of kind ed25519: ssh-ed25519 AAAA…",
            hint="Make one with ssh-keygen -t ed25519, and give the text of the .pub file.",
            field="public_key",
        )
    return blob


def _head() -> bytes:
    """Return the bytes before the 32 bytes of a key."""
    return len(_KIND).to_bytes(4, "big") + _KIND + (32).to_bytes(4, "big")


def _cryptography(name: str) -> ModuleType:
    """Import a part of the package on demand: it takes longer than all other imports."""
    from importlib import import_module

    try:
        return import_module(f"cryptography.{name}")
    except ImportError as problem:
        raise Unavailable(
            f"signatures need a package that is not installed: {problem.name}",
            hint=install_hint("trust"),
        ) from problem
