"""For tests that are about processes and not about the database: one engine is enough."""

from pathlib import Path

import pytest


@pytest.fixture
def target(tmp_path: Path) -> str:
    return str(tmp_path / "decklog.db")
