"""The host name that the dashboard answers to.

Browsers send a cookie to every port of a host. Under `localhost` any other local server would receive ours, so each log gets a
random host name. The server never reveals it: only the link that the terminal prints contains it.
"""

import json
import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

from decklog.core.errors import Invalid

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


def remembered(target: str, port: int | None) -> Names:
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
    settings = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    place = target if "://" in target else os.path.realpath(os.path.expanduser(target))
    return os.path.join(settings, "decklog", "serve", f"{sha256(place.encode()).hexdigest()[:24]}.json")


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
