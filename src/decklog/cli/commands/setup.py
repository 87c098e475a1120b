"""Making a log, finding it, and bringing it up to date."""

import os

import click

from decklog.cli.call import Call
from decklog.cli.locate import ADDRESS, FILE, FOLDER, Place, locate
from decklog.cli.manager import for_the_manager
from decklog.cli.show import show

PENDING = 7


@click.command()
@click.argument("folder", default=".")
@click.pass_obj
def init(call: Call, folder: str) -> int:
    """Make a log for this folder and everything below it.

    With --db postgresql://… the folder remembers that address, and the database gets its tables.
    """
    from decklog.app import Decklog

    inside = os.path.join(os.path.abspath(folder), FOLDER)
    place = Place(call.db or os.path.join(inside, FILE), "named with --db" if call.db else f"made in {inside}")
    already = place.exists and not place.is_server
    Decklog.open(place.target, migrate=True).close()
    if place.is_server:
        _remember(inside, place.target)
    _ignore(inside)
    return show({"target": place.shown, "already": already}, as_json=call.json)


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
    return show({"target": place.shown, "because": place.reason, "exists": place.exists}, as_json=call.json)


@for_the_manager
@click.command()
@click.option("--check", is_flag=True, help="Only tell what would be applied; exit 7 when something would.")
@click.pass_obj
def migrate(call: Call, check: bool) -> int:
    """Bring the log's schema up to date, and a SQLite file's journal mode back to WAL.

    A SQLite file is copied first and is also migrated when it is opened; PostgreSQL is migrated only by this.
    """
    from decklog.app import Decklog

    place = locate(call.db)
    place.must_exist()
    if check:
        return _check(call, place)
    with Decklog.open(place.target, migrate=True) as log:
        log.db.migrate()
        facts = log.db.facts()
    return show({"target": place.shown, "schema": facts["schema"]}, as_json=call.json)


def _check(call: Call, place: Place) -> int:
    """Open the log as it is, and tell which steps it lacks."""
    from decklog.app import Decklog
    from decklog.errors import SchemaTooOld

    missing: list[str] = []
    try:
        Decklog.open(place.target, read_only=True).close()
    except SchemaTooOld as problem:
        missing = problem.details["missing"]
    show({"target": place.shown, "missing": missing, "up_to_date": not missing}, as_json=call.json)
    return PENDING if missing else 0
