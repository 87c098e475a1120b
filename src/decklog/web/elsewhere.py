"""Access from other machines: under a given host name, by TLS or behind a TLS proxy, and with a password."""

import hmac
import os
import re
import secrets
import ssl
import stat
from dataclasses import dataclass
from hashlib import scrypt
from ipaddress import ip_address

from decklog.core.errors import Invalid
from decklog.web.names import Names

LEAST_PASSWORD = 12
_COST = {"n": 2**14, "r": 8, "p": 1}
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:]{2,45}\]")


class Password:
    """The password for logins from other machines. Only its digest is kept, in memory."""

    def __init__(self, text: str) -> None:
        self._salt = secrets.token_bytes(16)
        self._digest = self._made(text)

    def _made(self, text: str) -> bytes:
        return scrypt(text.encode(errors="replace"), salt=self._salt, **_COST)

    def fits(self, text: str) -> bool:
        return hmac.compare_digest(self._made(text), self._digest)


@dataclass(frozen=True)
class Elsewhere:
    """Settings for listening to other machines. A password and TLS (ours or the proxy's) are always required."""

    host: str | None = None
    name: str | None = None
    certificate: str | None = None
    certificate_key: str | None = None
    proxy: str | None = None
    password_file: str | None = None

    def names(self, port: int) -> Names:
        """Return the host name that the server answers to. Raise Invalid for settings that would allow eavesdropping."""
        has_tls = self.certificate is not None and self.certificate_key is not None
        if (self.certificate is None) != (self.certificate_key is None):
            raise Invalid("--tls-cert and --tls-key belong together: give both", field="tls_cert")
        if has_tls == (self.proxy is not None):
            raise Invalid(
                "from elsewhere the dashboard is reached by TLS or behind a proxy that has it: give one of the two",
                hint="Give --tls-cert and --tls-key, or --behind-proxy. Or forward the port: ssh -L 8471:127.0.0.1:8471 HOST",
                field="host",
            )
        if has_tls:
            self._check_certificate()
        return Names(_named(self.proxy or self.name or self._own_name()), port, "tls" if has_tls else "proxy")

    @property
    def is_near(self) -> bool:
        """Whether listening on loopback is enough, because the proxy runs on this machine."""
        return self.host is None

    def _own_name(self) -> str:
        """Return the listening address as host name. Raise Invalid if no browser can open it."""
        if self.host is None:
            raise Invalid("give where to listen with --host", field="host")
        try:
            address = ip_address(self.host)
        except ValueError:
            return self.host
        if address.is_unspecified:
            raise Invalid(f"{self.host} is no name that a browser can call: give it with --name", field="name")
        return f"[{self.host}]" if address.version == 6 else self.host

    def _check_certificate(self) -> None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(str(self.certificate), str(self.certificate_key))
        except (OSError, ssl.SSLError) as problem:
            said = getattr(problem, "reason", None) or getattr(problem, "strerror", None) or "they can't be read"
            raise Invalid(f"the certificate and its key can't be used: {said}", field="tls_cert") from None

    def password(self) -> Password:
        """Load the password from its file. Raise Invalid if other users can read the file."""
        if self.password_file is None:
            raise Invalid(
                "whoever comes from elsewhere logs in with a password: give --password-file FILE", field="password_file"
            )
        try:
            with open(self.password_file, encoding="utf-8") as file:
                mode, text = os.fstat(file.fileno()).st_mode, file.readline().rstrip("\r\n")
        except (OSError, UnicodeDecodeError):
            raise Invalid(f"the password file {self.password_file} can't be read", field="password_file") from None
        if stat.S_IMODE(mode) & 0o077:
            raise Invalid(f"others can read {self.password_file}: chmod 600 it", field="password_file")
        if len(text) < LEAST_PASSWORD:
            raise Invalid(f"the password has fewer than {LEAST_PASSWORD} characters", field="password_file")
        return Password(text)


def _named(text: str) -> str:
    name, _, port = text.lower().partition("]:") if text.startswith("[") else text.lower().partition(":")
    name += "]" if text.startswith("[") and not name.endswith("]") else ""
    if not _NAME.fullmatch(name) or (port and not (port.isdecimal() and len(port) <= 5)):
        raise Invalid(f"{text!r} is no name of a machine", field="name")
    return f"{name}:{port}" if port else name
