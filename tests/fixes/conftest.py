"""A repository with seeded faults, and a bench to fix them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog import Decklog
from tests.cli.conftest import decklog as decklog
from tests.conductor.conftest import sqlite_target as sqlite_target
from tests.conductor.repositories import copied
from tests.fixes.bench import Bench, make_faulty_repository


@pytest.fixture(scope="session")
def first_faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that each test copies."""
    return make_faulty_repository(tmp_path_factory.mktemp("faulty") / "repository")


@pytest.fixture
def faulty(first_faulty: Path, tmp_path: Path) -> Path:
    return copied(first_faulty, tmp_path)


@pytest.fixture
def bench(faulty: Path, sqlite_target: str) -> Iterator[Bench]:
    with Decklog.open(sqlite_target) as log:
        yield Bench(log, faulty)
