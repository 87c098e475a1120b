"""Trust for the manager: signing with one's own key."""

import os
import sys

import click

from decklog.cli.call import Call
from decklog.cli.derived import acting
from decklog.cli.manager import for_the_manager
from decklog.cli.show import show
from decklog.cli.terminal import visible
from decklog.errors import Invalid


@for_the_manager
@click.command()
@click.argument("statement", type=click.File("r", encoding="utf-8"), default="-")
@click.option("--key", required=True, metavar="FILE", help="your OpenSSH private key, an Ed25519 one")
@click.pass_obj
def sign(call: Call, statement: "IO[str]", key: str) -> int:
    """Sign a proposed change of trust, read from a file or stdin, with the manager's own key.

    The file has the statement, or all that `decklog trust propose --json` gave. A passphrase comes from DECKLOG_PASSPHRASE, or is
    asked for on a terminal. Give the result to `decklog trust apply`.
    """
    text = _statement(statement.read())
    if sys.stderr.isatty():
        sys.stderr.write(f"You sign: {visible(text, sys.stderr)}\n")
    with call.open(writing=False) as log:
        return show({"signature": log.trust.sign(text, key, _passphrase(key))}, as_json=call.json)


@for_the_manager
@click.command()
@click.argument("statement")
@click.argument("signature")
@click.pass_obj
def apply(call: Call, statement: str, signature: str) -> int:
    """Make a proposed change, given its exact statement and the manager's signature of it.

    The statement is its text, @FILE or - for stdin; a file may also have all that `decklog trust propose --json` gave. It works
    once, in this log, before it expires, and only on the contract it was written for.
    """
    if statement == "-":
        statement = _statement(sys.stdin.read())
    elif statement.startswith("@") and os.path.exists(statement[1:]):
        with open(statement[1:], encoding="utf-8") as file:
            statement = _statement(file.read())
    with call.open() as log, acting(log, call):
        return show(log.trust.apply(statement, signature), as_json=call.json)


def _statement(text: str) -> str:
    """Take a statement as it is, or out of the answer that `propose` gave; nothing else is signed."""
    import json

    text = text.strip("\r\n")
    try:
        said = json.loads(text)
    except ValueError:
        said = None
    if isinstance(said, dict) and isinstance(data := said.get("data"), dict) and isinstance(data.get("statement"), str):
        return str(data["statement"])
    if not isinstance(said, dict) or "nonce" not in said:
        raise Invalid("this is no statement of a change of trust", hint="decklog trust propose CHANGE REASON --json > FILE")
    return text


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
