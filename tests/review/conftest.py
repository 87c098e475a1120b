"""Repositories with a gate, and changes to them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog import Decklog
from tests.cli.conftest import decklog as decklog
from tests.conductor.conftest import sqlite_target as sqlite_target
from tests.conductor.repositories import copied
from tests.review.changes import Desk, make_gated_repository


@pytest.fixture(scope="session")
def first_gated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that each test copies."""
    return make_gated_repository(tmp_path_factory.mktemp("gated") / "repository")


@pytest.fixture
def gated(first_gated: Path, tmp_path: Path) -> Path:
    return copied(first_gated, tmp_path)


@pytest.fixture
def desk(gated: Path, sqlite_target: str) -> Iterator[Desk]:
    """Somebody who changes a repository and has it reviewed."""
    with Decklog.open(sqlite_target) as log:
        yield Desk(log, gated)
