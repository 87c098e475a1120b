"""Repositories, and the conductor's view of one."""

import shutil
from pathlib import Path

import pytest

from decklog.conductor.git.repository import Repository
from tests.cli.conftest import decklog as decklog
from tests.conductor.plans import make_checked_repository
from tests.conductor.repositories import copied, make_repository


@pytest.fixture(scope="session")
def first_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that each test copies."""
    return make_repository(tmp_path_factory.mktemp("first") / "repository")


@pytest.fixture
def folder(first_repository: Path, tmp_path: Path) -> Path:
    """A repository of a test's own."""
    return copied(first_repository, tmp_path)


@pytest.fixture
def repository(folder: Path, tmp_path: Path) -> Repository:
    return Repository.find(folder, tmp_path / "state")


@pytest.fixture(scope="session")
def first_checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with tests, and settings that say how to run them."""
    return make_checked_repository(tmp_path_factory.mktemp("checked") / "repository")


@pytest.fixture
def checked(first_checked: Path, tmp_path: Path) -> Path:
    """A repository of a test's own, in which a plan can be worked through."""
    return copied(first_checked, tmp_path)


@pytest.fixture
def sqlite_target(empty_log_file: Path, tmp_path: Path) -> str:
    """An empty log, for what does not depend on the engine."""
    return str(shutil.copy(empty_log_file, tmp_path / "decklog.db"))


@pytest.fixture
def target(sqlite_target: str) -> str:
    """One engine is enough for most of this: the verbs are tested on both, and the whole way in test_stages."""
    return sqlite_target


@pytest.fixture
def postgres_target(postgres_url: str) -> str:
    return postgres_url
