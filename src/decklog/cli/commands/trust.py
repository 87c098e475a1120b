"""Trust for the owner: binding the log to one's own key or password, and signing with it."""

import json
import os
import sys
from typing import IO

import click

from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.derived import acting
from decklog.cli.manager import for_the_manager
from decklog.cli.parameters import read_file
from decklog.cli.proving import asked, key_path, passphrase_of, proving
from decklog.cli.show import show
from decklog.cli.terminal import visible
from decklog.core.errors import Invalid
from decklog.log import Decklog

_BOUND = """\
This log answers to {manager} now. What that means:
  approvals, budgets, prices, workflows and doubtful effects are decided by {manager} alone, who proves it by {means}.
  {keep}
  Going up a tier is proposed by anybody and signed by {manager}: decklog trust propose promote REASON, then decklog trust apply.
  `decklog verify` replays every signature; `decklog proofs find` lists what was proven.
"""


@for_the_manager
@click.command()
@click.argument("handle")
@click.argument("channel")
@click.argument("public_key", required=False)
@click.option("--password", is_flag=True, help="prove by a password, asked for now, instead of a key")
@click.option("--persona-name", metavar="TEXT", help="name the agent uses")
@click.pass_obj
def bind(call: Invocation, handle: str, channel: str, public_key: str | None, *, password: bool, persona_name: str | None) -> int:
    """Bind the log to its owner, once; from then on only the owner's signature hands it over.

    The key is the text of an OpenSSH public key of kind ed25519, or @FILE. Without one, and without --password, a key is made in
    your settings, outside of every repository, and locked with a passphrase.
    """
    if password and public_key is not None:
        raise WrongUsage("a manager has a key or a password, not both")
    secret = _new_password() if password else None
    with call.open() as log, acting(log, call):
        line = None if password else _text(public_key) if public_key else _own_key(log)
        contract = log.trust.bind(handle, channel, line, password=secret, persona_name=persona_name)
    if not call.json:
        means = "a password" if password else "the key"
        keep = "The password is kept nowhere: remember it." if password else "Keep the key, and its passphrase, from your agents."
        sys.stderr.write(_BOUND.format(manager=visible(contract.handle, sys.stderr), means=means, keep=keep))
    return show(contract, as_json=call.json)


def _new_password() -> str:
    if not sys.stdin.isatty():
        raise WrongUsage("a password needs a terminal to be typed at", hint="Use a public key instead.")
    return asked("A new password, of 12 characters or more", twice=True)


def _own_key(log: Decklog) -> str:
    """Show the public half of your owner key; create the key if there is none."""
    path = key_path()
    if os.path.exists(path + ".pub"):
        with open(path + ".pub", encoding="utf-8") as file:
            return file.read()
    passphrase = os.environ.get("DECKLOG_PASSPHRASE")
    if passphrase is None and sys.stdin.isatty():
        passphrase = asked(f"A passphrase for the new key {path}", twice=True)
    if not passphrase:
        raise WrongUsage("give a public key: one is made only with a passphrase, which is asked for at a terminal")
    return log.trust.make_key(path, passphrase)


@for_the_manager
@click.command()
@click.argument("statement", type=click.File("r", encoding="utf-8"), default="-")
@click.option("--key", required=True, metavar="FILE", help="your OpenSSH private key, an Ed25519 one")
@click.pass_obj
def sign(call: Invocation, statement: IO[str], key: str) -> int:
    """Sign a proposed change of trust, read from a file or stdin, with the owner's key; only the signature is written.

    The file has the statement, or all that `decklog trust propose --json` gave. A passphrase comes from DECKLOG_PASSPHRASE or
    from the terminal. Pass the result to `decklog trust apply`, as its text or as @FILE.
    """
    text = _statement(statement.read())
    if sys.stderr.isatty():
        sys.stderr.write(f"You sign: {visible(text, sys.stderr)}\n")
    with call.open(writing=False) as log:
        signature = log.trust.sign(text, key, passphrase_of(key))
    if call.json:
        return show({"signature": signature}, as_json=True)
    click.echo(signature)
    return 0


@for_the_manager
@click.command()
@click.argument("statement")
@click.argument("signature", required=False)
@click.option("--key", metavar="FILE", help="sign it now, with this key")
@click.pass_obj
def apply(call: Invocation, statement: str, signature: str | None, key: str | None) -> int:
    """Apply a proposed change, given its exact statement and the owner's signature.

    Both are their text or @FILE; the statement may be - for stdin, and a file may also have all that `decklog trust propose` gave
    with --json. Without a signature it is signed now: with --key, or at a terminal. It works once, in this log, before it
    expires, and only on the contract it was written for.
    """
    text = _statement(sys.stdin.read()) if statement == "-" else _text(statement)
    text = _statement(text) if statement.startswith("@") else text
    with call.open() as log, acting(log, call):
        if signature is not None:
            return show(log.trust.apply(text, _text(signature).strip()), as_json=call.json)
        if sys.stderr.isatty():
            sys.stderr.write(f"You sign: {visible(text, sys.stderr)}\n")
        with proving(log, key):
            return show(log.trust.apply(text), as_json=call.json)


def _text(given: str) -> str:
    """Read what was given as @FILE."""
    return read_file(given).decode() if given.startswith("@") else given


def _statement(text: str) -> str:
    """Take a statement as it is, or out of the answer that `propose` gave; nothing else is signed."""
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
