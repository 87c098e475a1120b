"""Several teams on one server: each has a database and roles, and can't read what the others have."""

from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from decklog import Decklog
from decklog.core.errors import Conflict, Denied, Invalid, ReadOnly, Unavailable
from decklog.db.postgres.roles import url_of
from decklog.location.locate import LogLocation
from decklog.transfer.projects import create_project, list_projects

TEAMS = ("ants", "bees")
LOGINS = {f"{team}_{role}_login": f"{team}_{role}" for team in TEAMS for role in ("reader", "agent")}


def as_login(url: str, login: str) -> str:
    return url.replace("postgres:@", f"{login}@").replace("postgres@", f"{login}@")


@pytest.fixture(scope="module")
def server(postgres_server: str) -> Iterator[LogLocation]:
    place = LogLocation(postgres_server, "by a test", is_named=True)
    with psycopg.connect(postgres_server, autocommit=True) as connection, ExitStack() as stack:
        for team in TEAMS:
            create_project(place, team)
            stack.callback(connection.execute, f"drop database {team} with (force)".encode())
        for login, role in LOGINS.items():
            connection.execute(f"create role {login} login; grant {role} to {login}".encode())
            stack.callback(connection.execute, f"drop role {login}".encode())
        yield place


@pytest.mark.slow
def test_team_works_in_its_own_project(server: LogLocation) -> None:
    with Decklog.open(as_login(url_of(server.target, "ants"), "ants_agent_login")) as log:
        log.runs.start("x", run_id="run_1")
    with Decklog.open(as_login(url_of(server.target, "ants"), "ants_reader_login")) as log:
        assert log.runs.get("run_1").id == "run_1"
        with pytest.raises(ReadOnly):
            log.runs.start("y")


@pytest.mark.parametrize("login", ["bees_reader_login", "bees_agent_login"])
def test_role_of_one_team_cannot_open_the_project_of_another(server: LogLocation, login: str) -> None:
    with pytest.raises((Denied, Unavailable), match="permission denied for database"):
        Decklog.open(as_login(url_of(server.target, "ants"), login))


def test_role_of_one_team_has_no_rights_in_the_tables_of_another(server: LogLocation) -> None:
    with psycopg.connect(url_of(server.target, "ants")) as connection:
        connection.execute("set role bees_agent")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("select * from entries")


def test_projects_are_listed_with_who_can_open_them(server: LogLocation) -> None:
    assert [(one["name"], one["can_open"]) for one in list_projects(server)] == [("ants", True), ("bees", True)]
    own = LogLocation(as_login(url_of(server.target, "bees"), "bees_reader_login"), "by a test", is_named=True)
    assert [(one["name"], one["can_open"], one["bytes"] is None) for one in list_projects(own)] == [
        ("ants", False, True),
        ("bees", True, False),
    ]


def test_create_again_completes_a_project_and_keeps_what_is_in_it(server: LogLocation) -> None:
    with Decklog.open(url_of(server.target, "bees")) as log:
        log.runs.start("x", run_id="kept")
    assert create_project(server, "bees")["roles"] == ["bees_reader", "bees_agent", "bees_manager"]
    with Decklog.open(as_login(url_of(server.target, "bees"), "bees_reader_login")) as log:
        assert log.runs.get("kept").id == "kept"


def test_name_of_another_database_or_of_no_project_is_refused(server: LogLocation) -> None:
    with pytest.raises(Conflict):
        create_project(server, "postgres")
    for name in ("Ants", 'x"y', "1a", "a" * 41, ""):
        with pytest.raises(Invalid):
            create_project(server, name)


def test_projects_need_a_server() -> None:
    with pytest.raises(Invalid, match="PostgreSQL"):
        list_projects(LogLocation("log.db", "by a test", is_named=True))
