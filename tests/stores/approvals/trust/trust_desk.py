"""A log, its owner and keys made at run time, for the tests of trust."""

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from decklog import Decklog, ManualClock
from decklog.stores.approvals.trust.signatures import sign


@dataclass
class Key:
    path: str
    public: str


def make_keys(folder: Path) -> dict[str, Key]:
    """Save keys of the owner, of two others, one with a passphrase and one of another kind."""
    made = {}
    for name, (private, public) in _pairs().items():
        (folder / name).write_bytes(private)
        made[name] = Key(str(folder / name), public)
    return made


@cache
def _pairs() -> dict[str, tuple[bytes, str]]:
    """Make keys once: to find large primes and to lock with a passphrase take a second, and no test needs keys of its own."""
    made = {name: _pair(Ed25519PrivateKey.generate()) for name in ("owner", "next", "mallory")}
    made["locked"] = _pair(Ed25519PrivateKey.generate(), "open " + "sesame")
    made["rsa"] = _pair(rsa.generate_private_key(65537, 2048))
    return made


def _pair(key: "Ed25519PrivateKey | rsa.RSAPrivateKey", passphrase: str | None = None) -> tuple[bytes, str]:
    locked = cheaply_locked(passphrase) if passphrase else serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, locked)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private, public.decode()


def cheaply_locked(passphrase: str) -> serialization.KeySerializationEncryption:
    """Lock a key so that opening it takes a hundredth of a second, not a seventh; the file says itself what it takes."""
    return serialization.PrivateFormat.OpenSSH.encryption_builder().kdf_rounds(1).build(passphrase.encode())


class Desk:
    """A log, its owner's key, and what they do all day."""

    def __init__(self, log: Decklog, clock: ManualClock, keys: dict[str, Key]) -> None:
        self.log, self.clock, self.keys = log, clock, keys
        self.trust = log.trust

    def bind(self, name: str = "owner") -> None:
        self.trust.bind("ana", "gh-comment", self.keys[name].public)

    def proving(self, name: str = "owner") -> AbstractContextManager[None]:
        """Act as the owner."""
        return self.log.proving(key=self.keys[name].path)

    def sign(self, statement: str, name: str = "owner") -> str:
        return sign(statement, self.keys[name].path)

    def proposed(self) -> str:
        return self.trust.propose("promote", "good work").statement

    def promote(self, times: int = 1) -> tuple[str, str]:
        for _ in range(times):
            statement = self.proposed()
            signature = self.sign(statement)
            self.trust.apply(statement, signature)
        return statement, signature

    def refusals(self) -> int:
        return len(self.log.journal.find("@desk", subtype="trust.refused", limit=100))

    def tier(self) -> int:
        tier: int = self.trust.show()["tier"]
        return tier


def altered(statement: str, **changes: object) -> str:
    """Change a statement and keep it canonical."""
    return json.dumps({**json.loads(statement), **changes}, sort_keys=True, separators=(",", ":"))
