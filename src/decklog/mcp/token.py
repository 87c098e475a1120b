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
    """A token that is compared and never shown; `is_new` is true if it was just created."""

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

    def is_shown_by(self, authorization: bytes) -> bool:
        """Compare the token of a request in constant time."""
        kind, _, shown = authorization.partition(b" ")
        return kind.lower() == b"bearer" and hmac.compare_digest(shown.strip(), self.text.encode())


def find_token(path: str | None, environment: MutableMapping[str, str], variable: str = VARIABLE) -> Token:
    """Return the token of a file, which is created if it is missing; else that of the environment, or a new one."""
    if path is not None:
        return _of_file(os.path.expanduser(path))
    # Removed: child processes must not see it.
    given = environment.pop(variable, None)
    return Token(secrets.token_urlsafe(32), is_new=True) if given is None else Token(given.strip())


def _of_file(path: str) -> Token:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return _made(path)
    except OSError as problem:
        raise Denied(f"{path} can't be read: {problem.strerror}", hint="Name a regular file that you own.", path=path) from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
            raise Denied(f"{path} can be read by others than you", hint=f"chmod 600 {path}", path=path)
        return Token(file.read(_MOST_BYTES).decode(errors="replace").strip())


def _made(path: str) -> Token:
    token = Token(secrets.token_urlsafe(32))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise Denied(f"{path} can't be written: {problem.strerror}", hint="Name another file.", path=path) from None
    with os.fdopen(descriptor, "w") as file:
        file.write(token.text + "\n")
    return token
