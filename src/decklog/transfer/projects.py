"""The projects of a PostgreSQL server: one database and one set of roles for each team."""

from typing import Any

from decklog.core.errors import Invalid
from decklog.location.locate import LogLocation
from decklog.log import Decklog


def create_project(place: LogLocation, name: str) -> dict[str, Any]:
    """Create a project on the server of a log location, or complete one; return its address and roles."""
    from decklog.db.postgres.roles import create, role_names, url_of

    _check_server(place)
    create(place.target, name, lambda url: Decklog.open(url, migrate=True).close())
    return {"name": name, "target": url_of(place.shown, name), "roles": list(role_names(name))}


def list_projects(place: LogLocation) -> list[dict[str, Any]]:
    """List the projects of the server of a log location."""
    from decklog.db.postgres.roles import projects, url_of

    _check_server(place)
    return [{**project, "target": url_of(place.shown, project["name"])} for project in projects(place.target)]


def _check_server(place: LogLocation) -> None:
    if not place.is_server:
        raise Invalid("projects are kept on a PostgreSQL server", hint="Name it: --db postgresql://ADMIN@HOST/postgres")


def roles_sql(place: str = "public") -> str:
    """Return the SQL that creates the roles of readers, agents and managers, for a log in this schema."""
    from decklog.db.postgres.roles import statements

    return statements(place)
