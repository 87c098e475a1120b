"""A repository with a log, and a home without anything."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog import Decklog
from tests.programs import call


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    assert call(["init"], cwd=folder, variables={"HOME": str(tmp_path / "home")}).code == 0
    return folder


@pytest.fixture
def log(place: Path) -> Iterator[Decklog]:
    with Decklog.open(place / ".decklog" / "decklog.db") as log:
        yield log
