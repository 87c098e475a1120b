"""Making a log, finding it, and bringing it up to date."""

import os

import click

from decklog.cli.call import Call, Usage
from decklog.cli.locate import ADDRESS, FILE, FOLDER, Place, in_folder, locate, outside_of
from decklog.cli.manager import for_the_manager
from decklog.cli.show import show
from decklog.errors import NotAccepted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from decklog.app import Decklog

PENDING = 7


@click.command()
@click.argument("folder", default=".")
@click.option("--outside", is_flag=True, help="keep the file in your own data folder, where no command of an agent can write")
@click.pass_obj
def init(call: Call, folder: str, outside: bool) -> int:
    """Make a log for this folder and everything below it.

    With --db postgresql://… the folder remembers that address, and the database gets its tables. With --outside the file lies in
    your data folder and only its address here; a log that is here already is copied there first.
    """
    from decklog.app import Decklog

    home = os.path.abspath(folder)
    if (found := in_folder(home)) is not None:
        # Making a log is no yes to one that came with the folder.
        found.check()
    if outside:
        return _lay_outside(call, home, found)
    inside = os.path.join(home, FOLDER)
    place = Place(call.db or os.path.join(inside, FILE), "named with --db" if call.db else f"made in {inside}")
    already = place.exists and not place.is_server
    Decklog.open(place.target, migrate=True).close()
    if place.is_server:
        _remember(inside, place.target)
    _settle(home)
    return show({"target": place.shown, "already": already}, as_json=call.json)


def _lay_outside(call: Call, home: str, found: Place | None) -> int:
    """Make the log of a folder in the user's data folder, with all that the folder's own log holds, and remember its address."""
    from decklog.app import Decklog

    if call.db:
        raise Usage("--outside chooses the place itself", hint="Leave out --db, or --outside.")
    if found is not None and found.target != os.path.join(home, FOLDER, FILE):
        return show({"target": found.shown, "already": True}, as_json=call.json)
    target = outside_of(home)
    with Decklog.open(target) as log:
        if found is not None:
            _copy(found, log)
    _remember(os.path.join(home, FOLDER), target)
    _settle(home)
    left = [f"{found.target} is left as it is; nothing uses it from here any more"] if found is not None else []
    return show({"target": target, "already": False}, as_json=call.json, warnings=left)


def _copy(found: Place, target: "Decklog") -> None:
    from decklog.errors import Busy
    from decklog.transfer.doctor import holders
    from decklog.transfer.move.move import Move

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
@click.pass_obj
def accept(call: Call, folder: str) -> int:
    """Say yes to the log that was found for this folder and that you did not make there.

    A log may come with a clone or an archive, or be another user's: whoever uses it believes what it says of budgets, approvals
    and trust. Your yes is kept in your own settings, for this log in this place.
    """
    place = locate(None, os.path.abspath(folder), environment={})
    if place.folder is None:
        raise Usage(f"no folder above {os.path.abspath(folder)} has a log", hint="Run `decklog init` to make one here.")
    place.accept()
    return show({"target": place.shown, "because": place.reason, "accepted": True}, as_json=call.json)


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
def where(call: Call) -> int:
    """Say which log a call from here means, and why."""
    place = locate(call.db)
    facts: dict[str, object] = {"target": place.shown, "because": place.reason, "exists": place.exists}
    try:
        place.check()
    except NotAccepted as problem:
        facts |= {"problem": problem.message, "hint": problem.hint}
    return show(facts, as_json=call.json)


@for_the_manager
@click.command()
@click.option("--check", is_flag=True, help="Only tell what would be applied; exit 7 when something would.")
@click.pass_obj
def migrate(call: Call, check: bool) -> int:
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


def _check(call: Call, place: Place) -> int:
    """Open the log as it is, and tell which steps it lacks."""
    from decklog.errors import SchemaTooOld

    missing: list[str] = []
    try:
        place.open(read_only=True).close()
    except SchemaTooOld as problem:
        missing = problem.details["missing"]
    show({"target": place.shown, "missing": missing, "up_to_date": not missing}, as_json=call.json)
    return PENDING if missing else 0
