"""Secrets at the terminal: the owner's password or key passphrase, and server tokens."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from decklog.cli.call import WrongUsage
from decklog.cli.terminal import print_text
from decklog.core.folders import config_home

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.mcp.token import Token

    class Prompt(Protocol):
        """Prompts the person at the terminal; hidden input is not echoed."""

        def __call__(self, what: str, *, hidden: bool) -> str: ...


def owner_signature(log: "Decklog", key: str | None, ask: "Prompt | None" = None) -> AbstractContextManager[None]:
    """Return a context with the owner's signature; prompt for the password or passphrase, if needed and possible."""
    ask = ask or _prompt
    if key is not None:
        return log.proving(key=key, passphrase=read_passphrase(key, ask))
    shown = log.trust.show()
    if not shown["is_bound"] or "problem" in shown or not sys.stdin.isatty():
        return nullcontext()
    if shown["has_password"]:
        return log.proving(password=ask(f"Password of {shown['owner']}", hidden=True))
    path = key_path()
    if not os.path.exists(path):
        path = ask(f"Key file of {shown['owner']}", hidden=False)
    return log.proving(key=path, passphrase=read_passphrase(path, ask))


def key_path() -> str:
    """Return the path of the key that `decklog trust bind` creates, in the user's settings."""
    return os.path.join(config_home(), "owner_ed25519")


def read_passphrase(path: str, ask: "Prompt | None" = None) -> str | None:
    """Return the passphrase of a key file, from DECKLOG_PASSPHRASE or the terminal; None if it has none."""
    given = os.environ.get("DECKLOG_PASSPHRASE")
    if given is not None or not sys.stdin.isatty():
        return given
    try:
        with open(os.path.expanduser(path), "rb") as file:
            is_locked = b"bcrypt" in _decode_key(file.read())
    except (OSError, ValueError):
        return None  # loading the key reports the problem
    return (ask or _prompt)(f"Passphrase of {path}", hidden=True) if is_locked else None


def ask_hidden(what: str, *, twice: bool = False) -> str:
    """Ask for a value without echo."""
    import click

    answer: str = click.prompt(what, hide_input=True, err=True, confirmation_prompt=twice)
    return answer


def _prompt(what: str, *, hidden: bool) -> str:
    import click

    return ask_hidden(what) if hidden else str(click.prompt(what, err=True))


def _decode_key(armoured: bytes) -> bytes:
    """Decode the body of an OpenSSH key, which names its cipher in the clear."""
    import base64

    lines = [line for line in armoured.splitlines() if line and not line.startswith(b"-----")]
    return base64.b64decode(b"".join(lines) + b"==")


def load_token(file: str | None, variable: str) -> "Token":
    """Return a server's token from a file or variable, or a new one if stderr is a terminal that can show it."""
    from decklog.mcp.token import find_token

    token = find_token(file, os.environ, variable)
    if token.is_new and not sys.stderr.isatty():
        raise WrongUsage(
            "a new token can only be shown on a terminal",
            hint=f"Name a file for the token with --token-file FILE, or set {variable}.",
        )
    return token


def print_address(address: str, token: "Token") -> None:
    """Print the address of a server, and its token if it is new."""
    print_text(address)
    sys.stdout.flush()
    if token.is_new:
        sys.stderr.write(f"Token, shown only now: {token.text}\n")
