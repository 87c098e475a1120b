"""A kill at any point of migrating, archiving or restoring loses no entry and repeats none."""

from pathlib import Path

import pytest

from tests.transfer import archive_kills


@pytest.mark.slow
def test_kills_while_archiving_and_restoring_lose_nothing(empty_postgres_url: str, tmp_path: Path) -> None:
    assert archive_kills.archive_and_restore(empty_postgres_url, str(tmp_path), kills=20, seed=7) > 5


@pytest.mark.slow
def test_kills_while_migrating_to_partitions_lose_nothing(empty_postgres_url: str, postgres_server: str) -> None:
    assert archive_kills.migrate(empty_postgres_url, postgres_server, kills=10, seed=7) > 3
