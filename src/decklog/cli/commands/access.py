"""Access control: trust in a found log, the owner's signatures, and projects on a server."""

import json
import os
import sys
from pathlib import Path
from typing import IO

import click

from decklog.agents.caller import is_agent
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.groups import SuggestingGroup, for_the_owner
from decklog.cli.parameters import read_file
from decklog.cli.projects import accept_project, project_log
from decklog.cli.show import show
from decklog.cli.signing import ask_hidden, key_path, owner_signature, read_passphrase
from decklog.cli.store_verbs import attribute_writes
from decklog.cli.terminal import escape_controls, escape_for_terminal
from decklog.core.errors import Denied, Invalid
from decklog.core.folders import state_home
from decklog.location.locate import locate
from decklog.log import Decklog


@for_the_owner
@click.command()
@click.argument("folder", default=".")
@click.option("--settings", is_flag=True, help="consent to what decklog.toml of this repository loosens, shown first")
@click.option("--commit", metavar="COMMIT", default="HEAD", help="with --settings: the commit whose file it is, default HEAD")
@click.pass_obj
def accept(call: Invocation, folder: str, settings: bool, commit: str) -> int:
    """Trust the log found in this directory.

    A log may come with a clone or an archive, or be another user's, with its own budgets, approvals and trust. Your consent is
    kept in your own settings, for this log in this place.

    With --settings it is about the repository's decklog.toml, which may name programs, lower the sandbox or pass on your
    variables. It shows each setting that loosens something and asks for your consent to exactly this version of the file.
    That takes a terminal.
    """
    if settings:
        return _accept_settings(call, folder, commit)
    place = locate(None, os.path.abspath(folder), environment={})
    if place.folder != os.path.abspath(folder) and (log := project_log(os.path.abspath(folder))) is not None:
        with Decklog.open(log, read_only=True) as opened:
            accept_project(log, opened)
        return show({"target": log, "because": f"the project {os.path.abspath(folder)}", "accepted": True}, as_json=call.json)
    if place.folder is None:
        raise WrongUsage(f"no folder above {os.path.abspath(folder)} has a log", hint="Run `decklog init` to create one here.")
    place.accept()
    return show({"target": place.shown, "because": place.reason, "accepted": True}, as_json=call.json)


def _accept_settings(call: Invocation, folder: str, commit: str) -> int:
    """Show the settings of a commit that loosen restrictions, and record the consent of the person at the terminal."""
    from decklog.conductor.git.repository import Repository, starting_commit
    from decklog.conductor.settings import consent_request, record_consent

    repository = Repository.find(Path(folder), Path(state_home()))
    request = consent_request(repository, starting_commit(repository, commit))
    facts = {"commit": request.commit, "digest": request.digest, "loosens": [one.key for one in request.settings]}
    if not request.settings or request.is_given:
        return show({**facts, "accepted": True}, as_json=call.json)
    click.echo(f"decklog.toml of commit {request.commit[:12]} in {escape_controls(str(repository.folder))} loosens:", err=True)
    for one in request.settings:
        click.echo(f"  {escape_controls(one.line())}", err=True)
    if is_agent() or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Denied("consent to settings takes a person at a terminal", hint="Run the same command in a terminal of your own.")
    if not click.confirm("Consent to this version of the file?", err=True):
        raise Denied("you did not consent; nothing was recorded")
    record_consent(repository, request)
    return show({**facts, "accepted": True}, as_json=call.json)


@click.group(cls=SuggestingGroup)
def projects() -> None:
    """Create and list the databases of several teams on one PostgreSQL server.

    `--db` names the server by any of its databases. To use a project in a directory: decklog --db URL init
    """


@for_the_owner
@projects.command()
@click.argument("name")
@click.pass_obj
def create(call: Invocation, name: str) -> int:
    """Create the database and the roles of a project; an existing one is migrated, and its roles are renewed.

    Grant one of the roles to each login of the team. Logins of other teams can't connect to the database.
    """
    from decklog.transfer.projects import create_project

    return show(create_project(locate(call.db), name), as_json=call.json)


@projects.command("list")
@click.pass_obj
def list_(call: Invocation) -> int:
    """List the projects of a server, with their sizes and whether you can open them."""
    from decklog.transfer.projects import list_projects

    return show(list_projects(locate(call.db)), as_json=call.json)


_BOUND_TEXT = """\
This log answers to {owner} now. What that means:
  approvals, budgets, prices, workflows and doubtful effects are decided by {owner} alone, who proves it by {means}.
  {keep}
  Going up a tier is proposed by anybody and signed by {owner}: decklog trust propose promote REASON, then decklog trust apply.
  `decklog verify` replays every signature; `decklog proofs find` lists what was proven.
"""


@for_the_owner
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
        raise WrongUsage("give a public key or --password, not both")
    secret = _ask_new_password() if password else None
    with call.open() as log, attribute_writes(log, call):
        line = None if password else _read_text(public_key) if public_key else _owner_public_key(log)
        contract = log.trust.bind(handle, channel, line, password=secret, persona_name=persona_name)
    if not call.json:
        means = "a password" if password else "the key"
        keep = "The password is kept nowhere: remember it." if password else "Keep the key, and its passphrase, from your agents."
        sys.stderr.write(_BOUND_TEXT.format(owner=escape_for_terminal(contract.handle, sys.stderr), means=means, keep=keep))
    return show(contract, as_json=call.json)


def _ask_new_password() -> str:
    if not sys.stdin.isatty():
        raise WrongUsage("a password needs a terminal to be typed at", hint="Use a public key instead.")
    return ask_hidden("A new password, of 12 characters or more", twice=True)


def _owner_public_key(log: Decklog) -> str:
    """Show the public half of your owner key; create the key if there is none."""
    path = key_path()
    if os.path.exists(path + ".pub"):
        with open(path + ".pub", encoding="utf-8") as file:
            return file.read()
    passphrase = os.environ.get("DECKLOG_PASSPHRASE")
    if passphrase is None and sys.stdin.isatty():
        passphrase = ask_hidden(f"A passphrase for the new key {path}", twice=True)
    if not passphrase:
        raise WrongUsage("give a public key: one is created only with a passphrase, typed at a terminal")
    return log.trust.make_key(path, passphrase)


@for_the_owner
@click.command()
@click.argument("statement", type=click.File("r", encoding="utf-8"), default="-")
@click.option("--key", required=True, metavar="FILE", help="your OpenSSH private key, an Ed25519 one")
@click.pass_obj
def sign(call: Invocation, statement: IO[str], key: str) -> int:
    """Sign a proposed change of trust, read from a file or stdin, with the owner's key; only the signature is written.

    The file has the statement, or all that `decklog trust propose --json` gave. A passphrase comes from DECKLOG_PASSPHRASE or
    from the terminal. Pass the result to `decklog trust apply`, as its text or as @FILE.
    """
    text = _parse_statement(statement.read())
    if sys.stderr.isatty():
        sys.stderr.write(f"You sign: {escape_for_terminal(text, sys.stderr)}\n")
    with call.open(writing=False) as log:
        signature = log.trust.sign(text, key, read_passphrase(key))
    return show({"signature": signature}, as_json=call.json, text=signature)


@for_the_owner
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
    text = _parse_statement(sys.stdin.read()) if statement == "-" else _read_text(statement)
    text = _parse_statement(text) if statement.startswith("@") else text
    with call.open() as log, attribute_writes(log, call):
        if signature is not None:
            return show(log.trust.apply(text, _read_text(signature).strip()), as_json=call.json)
        if sys.stderr.isatty():
            sys.stderr.write(f"You sign: {escape_for_terminal(text, sys.stderr)}\n")
        with owner_signature(log, key):
            return show(log.trust.apply(text), as_json=call.json)


def _read_text(given: str) -> str:
    """Return the text, or the content of the file for @FILE."""
    return read_file(given).decode() if given.startswith("@") else given


def _parse_statement(text: str) -> str:
    """Return a statement, given as it is or within the JSON of `propose`; raise Invalid for anything else."""
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
