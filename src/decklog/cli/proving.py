"""Proving at the terminal that it is the manager who acts: by a password or a key, which are asked for and kept nowhere."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from decklog.log import Decklog

    class Asking(Protocol):
        """Asks whoever sits at the terminal; what is hidden is not shown as it is typed."""

        def __call__(self, what: str, *, hidden: bool) -> str: ...


def proving(log: "Decklog", key: str | None, ask: "Asking | None" = None) -> AbstractContextManager[None]:
    """Ask for the manager's password, or for the passphrase of the key, where somebody can answer and one is needed."""
    ask = ask or _prompted
    if key is not None:
        return log.proving(key=key, passphrase=passphrase_of(key, ask))
    shown = log.trust.show()
    if not shown["is_bound"] or "problem" in shown or not sys.stdin.isatty():
        return nullcontext()
    if shown["has_password"]:
        return log.proving(password=ask(f"Password of {shown['manager']}", hidden=True))
    path = key_path()
    if not os.path.exists(path):
        path = ask(f"Key file of {shown['manager']}", hidden=False)
    return log.proving(key=path, passphrase=passphrase_of(path, ask))


def key_path() -> str:
    """Return where the key is that `decklog trust bind` makes: in the user's settings, outside of every repository."""
    settings = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(settings, "decklog", "manager_ed25519")


def passphrase_of(path: str, ask: "Asking | None" = None) -> str | None:
    """Return the passphrase of a key file: from DECKLOG_PASSPHRASE, or as it is typed; None where it has none."""
    given = os.environ.get("DECKLOG_PASSPHRASE")
    if given is not None or not sys.stdin.isatty():
        return given
    try:
        with open(os.path.expanduser(path), "rb") as file:
            is_locked = b"bcrypt" in _decoded(file.read())
    except (OSError, ValueError):
        return None  # whoever reads the key says what is wrong with it
    return (ask or _prompted)(f"Passphrase of {path}", hidden=True) if is_locked else None


def asked(what: str, *, twice: bool = False) -> str:
    """Ask for something that is not shown as it is typed."""
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
