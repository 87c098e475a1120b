"""Several teams on one PostgreSQL server."""

import click

from decklog.cli.call import Invocation
from decklog.cli.manager import for_the_manager
from decklog.cli.meant import SuggestingGroup
from decklog.cli.show import show
from decklog.location.locate import locate


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
