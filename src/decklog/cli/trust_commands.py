"""Trust for the manager: signing with one's own key."""

import os
import sys

import click

from decklog.cli.call import Call
from decklog.cli.show import show


@click.command()
@click.argument("statement", type=click.File("r", encoding="utf-8"), default="-")
@click.option("--key", required=True, metavar="FILE", help="your OpenSSH private key, an Ed25519 one")
@click.pass_obj
def sign(call: Call, statement: "IO[str]", key: str) -> int:
    """Sign a proposed change of trust, read from a file or stdin, with the manager's own key.

    A passphrase comes from DECKLOG_PASSPHRASE, or is asked for on a terminal. Give the result to `decklog trust apply`.
    """
    text = statement.read().strip("\n")
    with call.open(writing=False) as log:
        return show({"signature": log.trust.sign(text, key, _passphrase(key))}, as_json=call.json)


def _passphrase(key: str) -> str | None:
    given = os.environ.get("DECKLOG_PASSPHRASE")
    if given is not None or not sys.stdin.isatty():
        return given
    with open(key, "rb") as file:
        is_locked = b"bcrypt" in _decoded(file.read())
    return click.prompt(f"Passphrase of {key}", hide_input=True, err=True) if is_locked else None


def _decoded(armoured: bytes) -> bytes:
    """Decode the body of an OpenSSH key, which names its cipher in the clear."""
    import base64

    lines = [line for line in armoured.splitlines() if line and not line.startswith(b"-----")]
    return base64.b64decode(b"".join(lines) + b"==")


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO
