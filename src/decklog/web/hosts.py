"""The host name that the dashboard answers to: a random local one, or a given one for other machines.

Browsers send a cookie to every port of a host. Under `localhost` any other local server would receive ours, so each log gets a
random host name. The server never reveals it: only the link that the terminal prints contains it. Other machines use a given
name, by TLS or behind a TLS proxy, and a password.
"""

import hmac
import json
import os
import re
import secrets
import ssl
import stat
from contextlib import suppress
from dataclasses import dataclass
from hashlib import scrypt, sha256
from ipaddress import ip_address

from decklog.core.errors import Invalid
from decklog.core.folders import state_home

_PORTS = range(1024, 65536)
FIRST_PORT = 8471


@dataclass(frozen=True)
class Names:
    """The server's host name and port. `way` is how browsers connect: `local`, `tls` or `proxy`."""

    own: str
    port: int
    way: str = "local"

    def __post_init__(self) -> None:
        if self.port not in _PORTS:
            raise Invalid(f"{self.port} can't be the port: it is from {_PORTS.start} to {_PORTS.stop - 1}", field="port")

    @property
    def host(self) -> str:
        """The `Host` header that requests must have."""
        return self.own if self.way == "proxy" else f"{self.own}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{'https' if self.is_secure else 'http'}://{self.host}"

    @property
    def is_secure(self) -> bool:
        """Whether browsers connect by TLS, so that the cookie is sent by TLS only."""
        return self.way != "local"


def new_name() -> str:
    """Return a host name that nobody can guess. Browsers resolve every name below `.localhost` to this machine."""
    return f"dl-{secrets.token_hex(10)}.localhost"


def load_server_names(target: str, port: int | None) -> Names:
    """Return a log's host name and port from its last start, so that open pages reconnect. Create them at the first start."""
    path = _path(target)
    name, last = _read(path)
    names = Names(name or new_name(), port or last or FIRST_PORT)
    # If they can't be stored, the next start has another name and open pages stop working.
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump({"name": names.own, "port": names.port}, file)
    return names


def _path(target: str) -> str:
    place = target if "://" in target else os.path.realpath(os.path.expanduser(target))
    return os.path.join(state_home(), "serve", f"{sha256(place.encode()).hexdigest()[:24]}.json")


def _read(path: str) -> tuple[str | None, int | None]:
    """Load the stored name and port. Values in an unexpected form count as missing."""
    try:
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
    except (OSError, ValueError):
        return None, None
    name, port = (known.get("name"), known.get("port")) if isinstance(known, dict) else (None, None)
    is_name = isinstance(name, str) and re.fullmatch(r"dl-[0-9a-f]{20}\.localhost", name) is not None
    return name if is_name else None, port if type(port) is int and port in _PORTS else None


# Other machines


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
        return Names(_checked_name(self.proxy or self.name or self._own_name()), port, "tls" if has_tls else "proxy")

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
            reason = getattr(problem, "reason", None) or getattr(problem, "strerror", None) or "they can't be read"
            raise Invalid(f"the certificate and its key can't be used: {reason}", field="tls_cert") from None

    def password(self) -> Password:
        """Load the password from its file. Raise Invalid if other users can read the file."""
        if self.password_file is None:
            raise Invalid("users of other machines log in with a password: give --password-file FILE", field="password_file")
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


def _checked_name(text: str) -> str:
    name, _, port = text.lower().partition("]:") if text.startswith("[") else text.lower().partition(":")
    name += "]" if text.startswith("[") and not name.endswith("]") else ""
    if not _NAME.fullmatch(name) or (port and not (port.isdecimal() and len(port) <= 5)):
        raise Invalid(f"{text!r} is no name of a machine", field="name")
    return f"{name}:{port}" if port else name
