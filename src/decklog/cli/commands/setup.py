"""Making a log, finding it, and bringing it up to date."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click

from decklog.agents.sessions import present
from decklog.agents.setup.supported import agents_md as notes
from decklog.cli import terminal
from decklog.cli.agent_programs.setting_up import installer
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.manager import for_the_manager
from decklog.cli.meant import SuggestingGroup
from decklog.cli.projects import accept_project, project_log
from decklog.cli.short.program import is_a_person
from decklog.cli.show import show
from decklog.cli.terminal import written_out
from decklog.core.errors import Busy, Conflict, DecklogError, Denied, NotAccepted, SchemaTooOld
from decklog.core.folders import state_home
from decklog.location.locate import (
    ADDRESS,
    FILE,
    FOLDER,
    LogLocation,
    in_folder,
    locate,
    outside_of,
    own_log,
    repository,
    users_own,
)
from decklog.log import Decklog

PENDING = 7


@click.command()
@click.argument("folder", required=False)
@click.option("--switch", is_flag=True, help="Have the folder use the log of --db from now on instead of the one it has.")
@click.option("--user", is_flag=True, help="Make the log for everything outside of repositories and folders with a log.")
@click.option("--outside", is_flag=True, help="Keep the file in your own data folder, where no command of an agent can write.")
@click.option("--agents-md/--no-agents-md", default=None, help="Write the commands for agents into AGENTS.md; or do not ask.")
@click.pass_obj
def init(call: Invocation, folder: str | None, switch: bool, user: bool, outside: bool, agents_md: bool | None) -> int:
    """Create a log for this repository or folder, or use the one it has.

    Without FOLDER the log serves the whole repository; outside of a repository, this folder and all below it.
    A log named by --db or DECKLOG_DB, a file or postgresql://…, is created there, and the folder remembers its address.
    With --outside the file is in your data folder, and only its address here. An existing log is copied there first.
    """
    if user:
        return _make(call, users_own())
    # What calls from there mean when nothing is named.
    has = in_folder(os.path.abspath(folder)) if folder else own_log(os.getcwd())
    home = os.path.abspath(folder or (has and has.folder) or repository(os.getcwd()) or ".")
    if has is not None:
        # Making a log is no yes to one that came with the folder.
        has.check()
    code = _lay_outside(call, home, has) if outside else _lay_inside(call, home, has, switch=switch)
    _offer_notes(call, home, agents_md)
    return code


def _lay_inside(call: Invocation, home: str, has: LogLocation | None, *, switch: bool) -> int:
    meant = _named(call) or has or LogLocation(os.path.join(home, FOLDER, FILE), f"made in {os.path.join(home, FOLDER)}")
    if has is not None and call.db and not _same(has, meant) and not switch:
        raise _has_another(has, meant, home)
    return _make(call, meant, lambda: _point(meant, has, home, switch=bool(call.db)))


def _offer_notes(call: Invocation, home: str, agents_md: bool | None) -> None:
    """Write the commands for agents into their files, if the option or a person at a terminal asks for it."""
    may_ask = agents_md is None and not call.json and terminal.is_terminal() and terminal.is_terminal(sys.stdin)
    if not (agents_md or may_ask):
        return
    try:
        steps = [step for step in installer().putting_in(notes(home)) if step.is_change]
    except DecklogError:
        if agents_md:
            raise
        # Nobody asked for it, and the log itself was made.
        return
    names = ", ".join(step.path for step in steps)
    if steps and (agents_md or click.confirm(f"Write the commands for agents into {names}?", default=False)):
        installer().carry_out(steps)
        if not call.json:
            terminal.say(f"Written: {names}")


def _make(call: Invocation, meant: LogLocation, settle: Callable[[], list[str]] = list) -> int:
    already = meant.exists and not meant.is_server
    Decklog.open(meant.target, migrate=True).close()
    return _made(call, meant, already=already, warnings=settle())


def _named(call: Invocation) -> LogLocation | None:
    if not (named := call.db or os.environ.get("DECKLOG_DB")):
        return None
    reason = "named with --db" if call.db else "from the environment variable DECKLOG_DB"
    return LogLocation(named if "://" in named else os.path.abspath(os.path.expanduser(named)), reason, is_named=True)


def _same(one: LogLocation, other: LogLocation) -> bool:
    return one.target == other.target or (
        not one.is_server and not other.is_server and os.path.realpath(one.path) == os.path.realpath(other.path)
    )


def _has_another(has: LogLocation, meant: LogLocation, home: str) -> Conflict:
    return Conflict(
        f"{home} has a log already, {has.shown}; nothing was made",
        hint=f"Take what it holds along with `decklog move {meant.shown}`; "
        f"then, or without, `decklog init --db {meant.shown} --switch` has the folder use that one.",
        has=has.shown,
        named=meant.shown,
    )


def _point(meant: LogLocation, has: LogLocation | None, home: str, *, switch: bool) -> list[str]:
    """Make the folder find the log; warn if it already has another one."""
    inside = os.path.join(home, FOLDER)
    if has is not None and not _same(has, meant):
        if not switch:
            return [f"{home} has a log of its own, {has.shown}, which serves whoever has no DECKLOG_DB"]
        _forget(inside)
    found = locate(None, home, environment={})
    if not _same(found, meant):
        _remember(inside, meant.target)
    _settle(home)
    return [f"{has.shown} is left as it is; nothing uses it from here any more"] if has and not _same(has, meant) else []


def _made(call: Invocation, meant: LogLocation, *, already: bool, warnings: list[str]) -> int:
    facts = {"target": meant.shown, "already": already, "because": meant.reason}
    if call.json:
        return show(facts, as_json=True, warnings=warnings)
    terminal.say(f"{'This log is used' if already or meant.is_server else 'Made a log'}: {meant.shown}")
    for warning in warnings:
        terminal.say(f"Note: {warning}")
    for line in _next_steps():
        terminal.say(line)
    return 0


def _next_steps() -> list[str]:
    """Suggest what to do with a log: import and record the agents that were used here, or else start a run."""
    found = present()
    commands = [
        *((f"decklog import {one.program}", f"import your sessions of {one.title}") for one in found),
        *((f"decklog setup {one.program}", f"record new sessions of {one.title}") for one in found),
    ]
    if not commands:
        return ['Next: decklog runs start "What is to be done"']
    size = max(len(command) for command, _ in commands)
    heads = ["Next: ", *("      " for _ in commands[1:])]
    return [f"{head}{command:<{size}}  {what}" for head, (command, what) in zip(heads, commands, strict=True)]


def _forget(inside: str) -> None:
    """Remove the remembered address of a folder; its own log stays."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(inside, ADDRESS))


def _lay_outside(call: Invocation, home: str, found: LogLocation | None) -> int:
    """Make the log of a folder in the user's data folder, with all that the folder's own log holds, and remember its address."""
    if call.db:
        raise WrongUsage("--outside chooses the place itself", hint="Leave out --db, or --outside.")
    if found is not None and found.target != os.path.join(home, FOLDER, FILE):
        return _made(call, found, already=True, warnings=[])
    target = outside_of(home)
    with Decklog.open(target) as log:
        if found is not None:
            _copy(found, log)
    _remember(os.path.join(home, FOLDER), target)
    _settle(home)
    left = [f"{found.target} is left as it is; nothing uses it from here any more"] if found is not None else []
    return _made(call, LogLocation(target, "kept out of reach of an agent's commands"), already=False, warnings=left)


def _copy(found: LogLocation, target: Decklog) -> None:
    from decklog.transfer.doctor import holders
    from decklog.transfer.move import Move

    with found.open() as source:
        if held := holders(source):
            raise Busy(f"process {held[0]['pid']} has {found.target} open", hint="End it first: it would go on writing there.")
        Move(source, target).run()


def _settle(home: str) -> None:
    """Keep what is in the folder out of git, and remember that this user made it there."""
    _ignore(os.path.join(home, FOLDER))
    if (made := in_folder(home)) is not None:
        made.accept()


@for_the_manager
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
        raise WrongUsage(f"no folder above {os.path.abspath(folder)} has a log", hint="Run `decklog init` to make one here.")
    place.accept()
    return show({"target": place.shown, "because": place.reason, "accepted": True}, as_json=call.json)


def _accept_settings(call: Invocation, folder: str, commit: str) -> int:
    """Show the loosening settings of a commit, and record the consent of the person at the terminal."""
    from decklog.conductor.git.repository import Repository, starting_commit
    from decklog.conductor.settings import consent_request, record_consent

    repository = Repository.find(Path(folder), state_home())
    asked = consent_request(repository, starting_commit(repository, commit, cwd=Path(folder)))
    facts = {"commit": asked.commit, "digest": asked.digest, "loosens": [one.key for one in asked.settings]}
    if not asked.settings or asked.is_given:
        return show({**facts, "accepted": True}, as_json=call.json)
    click.echo(f"decklog.toml of commit {asked.commit[:12]} in {written_out(str(repository.folder))} loosens:", err=True)
    for one in asked.settings:
        click.echo(f"  {written_out(one.line())}", err=True)
    if not is_a_person() or not sys.stderr.isatty():
        raise Denied("consent to settings takes a person at a terminal", hint="Run the same command in a terminal of your own.")
    if not click.confirm("Consent to this version of the file?", err=True):
        raise Denied("you did not consent; nothing was recorded")
    record_consent(repository, asked)
    return show({**facts, "accepted": True}, as_json=call.json)


def _remember(inside: str, address: str) -> None:
    os.makedirs(inside, mode=0o700, exist_ok=True)
    descriptor = os.open(os.path.join(inside, ADDRESS), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(address + "\n")


def _ignore(inside: str) -> None:
    """Keep the log out of git: it holds what the agents did, not what they made."""
    if os.path.isdir(inside) and not os.path.exists(os.path.join(inside, ".gitignore")):
        with open(os.path.join(inside, ".gitignore"), "w", encoding="utf-8") as file:
            file.write("*\n")


@click.command()
@click.pass_obj
def where(call: Invocation) -> int:
    """Show which log is used here, and how it was found."""
    place = locate(call.db)
    facts: dict[str, object] = {"target": place.shown, "because": place.reason, "exists": place.exists}
    try:
        place.check()
    except NotAccepted as problem:
        facts |= {"problem": problem.message, "hint": problem.hint}
    return show(facts, as_json=call.json)


@click.command()
@click.option("--schema", default="public", metavar="NAME", help="the schema that the log's tables are in, default public")
@click.pass_obj
def roles(call: Invocation, schema: str) -> int:
    """Write the SQL that creates PostgreSQL roles for readers, agents and managers; the database owner runs it.

    It connects to nothing and changes nothing: decklog roles | psql postgresql://OWNER@HOST/DATABASE
    """
    from decklog.transfer.projects import roles_sql

    sql = roles_sql(schema)
    if call.json:
        return show({"sql": sql}, as_json=True)
    click.echo(sql, nl=False)
    return 0


@for_the_manager
@click.command()
@click.option("--check", is_flag=True, help="Only tell what would be applied; exit 7 when something would.")
@click.pass_obj
def migrate(call: Invocation, check: bool) -> int:
    """Bring the log's schema up to date, and a SQLite file's journal mode back to WAL.

    A SQLite file is copied first and is also migrated when it is opened; PostgreSQL is migrated only by this.
    """
    place = locate(call.db)
    place.must_exist()
    if check:
        return _check(call, place)
    with place.open(migrate=True) as log:
        log.db.migrate()
        facts = log.db.facts()
    return show({"target": place.shown, "schema": facts["schema"]}, as_json=call.json)


def _check(call: Invocation, place: LogLocation) -> int:
    """Open the log without migrating it, and list its missing steps."""
    missing: list[str] = []
    try:
        place.open(read_only=True).close()
    except SchemaTooOld as problem:
        missing = problem.details["missing"]
    show({"target": place.shown, "missing": missing, "up_to_date": not missing}, as_json=call.json)
    return PENDING if missing else 0


@click.group(cls=SuggestingGroup)
def projects() -> None:
    """Create and list the databases of several teams on one PostgreSQL server.

    `--db` names the server by any of its databases. To use a project in a directory: decklog --db URL init
    """


@for_the_manager
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
