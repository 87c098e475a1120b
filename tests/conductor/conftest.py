"""A repository and the conductor's view of it."""

import shutil
from pathlib import Path

import pytest

from decklog.conductor.git.repository import Repository
from tests.conductor.repositories import make_repository


@pytest.fixture(scope="session")
def first_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that each test copies: making one costs five calls of git."""
    return make_repository(tmp_path_factory.mktemp("first") / "repository")


@pytest.fixture
def folder(first_repository: Path, tmp_path: Path) -> Path:
    """A repository of a test's own."""
    shutil.copytree(first_repository, tmp_path / "repository")
    return tmp_path / "repository"


@pytest.fixture
def repository(folder: Path, tmp_path: Path) -> Repository:
    return Repository.find(folder, tmp_path / "state")
