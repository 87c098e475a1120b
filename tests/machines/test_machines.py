"""A thousand programs would do: these run a few of them each time, the same ones; `make explore` runs others."""

from pathlib import Path

import pytest

from tests.conftest import ENGINES
from tests.databases import Databases
from tests.machines.base import Place, files_like, search
from tests.machines.journal import JournalMachine
from tests.machines.money import MoneyMachine
from tests.machines.tasks import TaskMachine
from tests.searches import FULL

pytestmark = pytest.mark.hypothesis

# A program takes three times as long on a server.
PROGRAMS = {"sqlite": 9, "postgres": 3} if FULL else {"sqlite": 4, "postgres": 2}


@pytest.fixture
def places(empty_log_file: Path, postgres_databases: Databases) -> dict[str, Place]:
    return {"sqlite": files_like(empty_log_file), "postgres": postgres_databases.one}


@pytest.fixture
def programs(request: pytest.FixtureRequest) -> int | None:
    """How many programs to run of each machine; None for as many as make a test run."""
    number: int | None = request.config.getoption("--programs")
    return number


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_tasks_match_their_model_through_claims_transactions_and_forks(
    engine: str, places: dict[str, Place], programs: int | None
) -> None:
    search(TaskMachine, engine, places, programs=programs or PROGRAMS[engine], steps=40)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_budgets_hold_through_reservations_charges_claims_and_forks(
    engine: str, places: dict[str, Place], programs: int | None
) -> None:
    search(MoneyMachine, engine, places, programs=programs or PROGRAMS[engine], steps=40)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_journal_survives_pruning_restoring_moves_and_exports(
    engine: str, places: dict[str, Place], programs: int | None
) -> None:
    search(JournalMachine, engine, places, programs=programs or PROGRAMS[engine], steps=25)
