"""Every store test takes `log`, which runs it on SQLite and on PostgreSQL."""

import gc
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import tests.passwords  # noqa: F401 - cheap keys, also where only a folder is run
from decklog import Decklog, ManualClock
from tests.databases import Databases, named
from tests.fork_server import NO_MODELS
from tests.homes import Homes
from tests.new_logs import BY_STEPS, Copying
from tests.parent_death import end_with_parent
from tests.pgbouncer import PgBouncer
from tests.postgres import get_server
from tests.searches import FULL, list_characters  # before any test module: their settings start from the profile that it loads

_named = named
os.environ["DECKLOG_MODELS"] = NO_MODELS

ENGINES = ("sqlite", "postgres")
# Tests that mostly wait for other processes. They run first: at the end of a run they would leave a processor idle.
WAITING = (
    "tests/guard/toolbox/test_kills.py",
    "tests/db/test_lost_server.py",
    "tests/stores/money/test_budgets_under_load.py",
    "tests/cli/test_demo.py",
    "tests/stores/tasks/test_clock_jumps.py",
    "tests/conductor/test_kills.py",
    "tests/conductor/test_machines.py",
    "tests/conductor/test_protocol.py",
    "tests/conductor/test_sessions.py",
    "tests/hooks/proxy/test_kills.py",
    "tests/guard/shell/test_shell.py",
)
# Tests of code on top of verbs run on PostgreSQL in the full run only, or if they are marked `on_both`.
ON_VERBS = tuple(f"tests/{name}/" for name in ("agents", "plugins/importers", "mcp", "models", "notify", "web"))
# PostgreSQL gets the first case of a test, and the others in the full run: most differ in what Python refuses before any
# statement. In these files each case is another verb or another damage, and PostgreSQL gets all.
EACH_CASE = (
    *("tests/stores/test_contention.py", "tests/stores/approvals/trust/test_proofs.py"),
    *("tests/db/", "tests/journal/", "tests/transfer/", "tests/test_"),
)
on_both = pytest.mark.parametrize("target", ENGINES, indirect=True)
_numbers = itertools.count(1)
_homes = pytest.StashKey[Homes]()
_copying = Copying()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--programs", type=int, help="run this many programs of each state machine")
    parser.addoption("--left-out", action="store_true", help="run exactly the tests that other runs leave out")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_homes] = Homes()
    _copying.begin()
    if hasattr(config, "workerinput"):
        end_with_parent()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if a test accepted a log in the settings of the user who runs the tests."""
    folder: Path = session.config._tmp_path_factory.getbasetemp().resolve()
    if written := session.config.stash[_homes].accepted_below(folder):
        pytest.exit("tests wrote to the user's home:\n" + "\n".join(written), returncode=1)


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[_homes].close()
    _copying.end()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _copying.is_on = not item.nodeid.startswith(BY_STEPS)


def pytest_collection(session: pytest.Session) -> None:
    """Disable garbage collection while tests are collected; it takes an eighth of the time."""
    gc.disable()
    list_characters()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wants_left_out = config.getoption("--left-out")
    # Named files run all of their tests.
    is_whole = {Path(argument).name for argument in config.args} == {"tests"}
    deselected = [] if FULL or not is_whole else [item for item in items if _is_for_the_full_run(item) != wants_left_out]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if _is_for_the_full_run(item) == wants_left_out]
    items.sort(key=lambda item: not item.nodeid.startswith(WAITING))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name what the run left to another command."""
    if FULL or config.getoption("--left-out") or config.args_source is pytest.Config.ArgsSource.ARGS:
        return
    surfaces = ", ".join(name.removeprefix("tests/").strip("/") for name in ON_VERBS)
    terminalreporter.write_line(f"LEFT OUT slow tests, further cases and {surfaces} on PostgreSQL - make test-slow")
    terminalreporter.write_line("LEFT OUT a real browser and real agents - make test-browser, make test-agents")


def _is_for_the_full_run(item: pytest.Item) -> bool:
    if item.get_closest_marker("slow") is not None:
        return True
    case = getattr(item, "callspec", None)
    if case is None or case.params.get("target") != "postgres":
        return False
    if any("target" in str(mark.args[:1]) for mark in item.iter_markers("parametrize")):
        return False
    is_further_case = any(place for name, place in case.indices.items() if name != "target")
    return item.nodeid.startswith(ON_VERBS) or (is_further_case and not item.nodeid.startswith(EACH_CASE))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Enable garbage collection, without the collected tests."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A PostgreSQL server for each test process."""
    # Not pytest's temporary folder: its path is too long for a socket, and old ones are removed during other runs.
    folder = tempfile.mkdtemp(prefix="decklog-pg-")
    server = get_server(os.path.join(folder, "data"))
    # Tests do not cut the power: without the sync they run several times faster.
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for statement in ("alter system set fsync = off", "alter system set full_page_writes = off", "select pg_reload_conf()"):
            connection.execute(statement)
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_databases(postgres_server: str) -> Iterator[Databases]:
    """Databases with the schema in place; migrating once is ten times cheaper."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("create database decklog_template")
    Decklog.open(named(postgres_server, "decklog_template"), migrate=True).close()
    databases = Databases(postgres_server, "decklog_template")
    yield databases
    databases.close()


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str, postgres_databases: Databases) -> str:
    """A server with the database `decklog_template`, for tests that copy it."""
    return postgres_server


@pytest.fixture(scope="session")
def pooler(postgres_server: str) -> Iterator[PgBouncer | None]:
    """PgBouncer before the server, in the mode that DECKLOG_TEST_POOLER names; else None."""
    mode = os.environ.get("DECKLOG_TEST_POOLER")
    if mode is None:
        yield None
        return
    with PgBouncer(postgres_server, mode) as pooler:
        yield pooler


@pytest.fixture
def postgres_url(postgres_databases: Databases, pooler: PgBouncer | None) -> Iterator[str]:
    """A database with an empty log."""
    with postgres_databases.one() as url:
        yield url if pooler is None else pooler.address_of(url)


@pytest.fixture
def empty_postgres_url(postgres_server: str) -> Iterator[str]:
    """A fresh database without any table."""
    name = f"empty_{next(_numbers)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"create database {name} strategy file_copy".encode())
    yield named(postgres_server, name)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        # Hundreds of them would make stopping the server slow.
        connection.execute(f"drop database {name} with (force)".encode())


@pytest.fixture(scope="session")
def empty_log_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty log that each test copies: making one costs four times as much."""
    path = tmp_path_factory.mktemp("empty") / "decklog.db"
    Decklog.open(path).close()
    return path


@pytest.fixture(params=ENGINES)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a log can be opened, on each engine."""
    if request.param == "sqlite":
        empty: Path = request.getfixturevalue("empty_log_file")
        return str(shutil.copy(empty, tmp_path / "decklog.db"))
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of asynchronous tests."""
    return "asyncio"


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


@pytest.fixture(autouse=True)
def _nobody_acts_after_a_test() -> Iterator[None]:
    """Check that no test leaves an acting agent or a lease, which would change later tests."""
    yield
    from decklog.journal import attribution
    from decklog.records.operations import lease

    state = attribution.acting.get(), attribution.owner_act.get(), lease.get()
    assert state == (None, None, None), state
