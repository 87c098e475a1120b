"""Token of HTTP clients: from the environment, from a file that only its user can read, or a new one."""

import hmac
import os
import secrets
import stat
from collections.abc import MutableMapping

from decklog.core.errors import Denied, Invalid

VARIABLE = "DECKLOG_MCP_TOKEN"
_FEWEST_CHARACTERS = 20
_MOST_BYTES = 1000


class Token:
    """A secret token; its representation hides it. `is_new` is true if it was just created."""

    def __init__(self, text: str, *, is_new: bool = False) -> None:
        if len(text) < _FEWEST_CHARACTERS or not text.isascii() or not text.isprintable() or " " in text:
            raise Invalid(
                f"a token needs at least {_FEWEST_CHARACTERS} letters and digits, without blanks",
                hint="Omit it to get a new one.",
            )
        self.text = text
        self.is_new = is_new

    def __repr__(self) -> str:
        return "Token(…)"

    def matches_header(self, authorization: bytes) -> bool:
        """Return whether an Authorization header has this token; compare in constant time."""
        kind, _, sent = authorization.partition(b" ")
        return kind.lower() == b"bearer" and hmac.compare_digest(sent.strip(), self.text.encode())


def find_token(path: str | None, environment: MutableMapping[str, str], variable: str = VARIABLE) -> Token:
    """Return the token of a file, which is created if it is missing; else that of the environment, or a new one."""
    if path is not None:
        return _read_token(os.path.expanduser(path))
    # Remove the variable, so that child processes do not inherit the token.
    value = environment.pop(variable, None)
    return Token(secrets.token_urlsafe(32), is_new=True) if value is None else Token(value.strip())


def _read_token(path: str) -> Token:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return _create_token(path)
    except OSError as problem:
        raise Denied(f"{path} can't be read: {problem.strerror}", hint="Name a regular file that you own.", path=path) from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
            raise Denied(f"{path} can be read by other users", hint=f"chmod 600 {path}", path=path)
        return Token(file.read(_MOST_BYTES).decode(errors="replace").strip())


def _create_token(path: str) -> Token:
    token = Token(secrets.token_urlsafe(32))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise Denied(f"{path} can't be written: {problem.strerror}", hint="Name another file.", path=path) from None
    with os.fdopen(descriptor, "w") as file:
        file.write(token.text + "\n")
    return token
