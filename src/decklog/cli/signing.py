"""Secrets at the terminal: signatures of the owner, by a password or a key that is not stored, and tokens of servers."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from decklog.cli.call import WrongUsage
from decklog.cli.terminal import say
from decklog.core.folders import config_home

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.mcp.token import Token

    class Asking(Protocol):
        """Asks the person at the terminal; hidden input is not echoed."""

        def __call__(self, what: str, *, hidden: bool) -> str: ...


def proving(log: "Decklog", key: str | None, ask: "Asking | None" = None) -> AbstractContextManager[None]:
    """Ask for the owner's password or the passphrase of the key, if one is needed and a person can answer."""
    ask = ask or _prompted
    if key is not None:
        return log.proving(key=key, passphrase=passphrase_of(key, ask))
    shown = log.trust.show()
    if not shown["is_bound"] or "problem" in shown or not sys.stdin.isatty():
        return nullcontext()
    if shown["has_password"]:
        return log.proving(password=ask(f"Password of {shown['owner']}", hidden=True))
    path = key_path()
    if not os.path.exists(path):
        path = ask(f"Key file of {shown['owner']}", hidden=False)
    return log.proving(key=path, passphrase=passphrase_of(path, ask))


def key_path() -> str:
    """Return the path of the key that `decklog trust bind` creates, in the user's settings."""
    return os.path.join(config_home(), "owner_ed25519")


def passphrase_of(path: str, ask: "Asking | None" = None) -> str | None:
    """Return the passphrase of a key file, from DECKLOG_PASSPHRASE or the terminal; None if it has none."""
    given = os.environ.get("DECKLOG_PASSPHRASE")
    if given is not None or not sys.stdin.isatty():
        return given
    try:
        with open(os.path.expanduser(path), "rb") as file:
            is_locked = b"bcrypt" in _decoded(file.read())
    except (OSError, ValueError):
        return None  # the reader of the key reports what is wrong with it
    return (ask or _prompted)(f"Passphrase of {path}", hidden=True) if is_locked else None


def asked(what: str, *, twice: bool = False) -> str:
    """Ask for a value without echo."""
    import click

    answer: str = click.prompt(what, hide_input=True, err=True, confirmation_prompt=twice)
    return answer


def _prompted(what: str, *, hidden: bool) -> str:
    import click

    return asked(what) if hidden else str(click.prompt(what, err=True))


def _decoded(armoured: bytes) -> bytes:
    """Decode the body of an OpenSSH key, which names its cipher in the clear."""
    import base64

    lines = [line for line in armoured.splitlines() if line and not line.startswith(b"-----")]
    return base64.b64decode(b"".join(lines) + b"==")


def token_to_show(file: str | None, variable: str) -> "Token":
    """Return the token of a server: that of a file or a variable, or a new one if a person at a terminal will see it."""
    from decklog.mcp.token import find_token

    token = find_token(file, os.environ, variable)
    if token.is_new and not sys.stderr.isatty():
        raise WrongUsage(
            "a new token would be shown to nobody, since this is no terminal",
            hint=f"Name a file for it: --token-file FILE, or set {variable}.",
        )
    return token


def announce(address: str, token: "Token") -> None:
    """Print the address of a server, and its token if it is new."""
    say(address)
    sys.stdout.flush()
    if token.is_new:
        sys.stderr.write(f"Token, shown only now: {token.text}\n")
