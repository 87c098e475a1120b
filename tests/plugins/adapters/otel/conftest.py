"""Logs on one engine, for what does not touch a store; the rest takes `log` and runs on both."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog import Decklog, ManualClock
from tests.plugins.adapters.otel.servers import Collector, Listening, collecting, receiving


@pytest.fixture
def here(empty_log_file: Path, tmp_path: Path) -> Iterator[Decklog]:
    """A log that spans come from, or go to."""
    with Decklog.open(shutil.copy(empty_log_file, tmp_path / "here.db"), clock=ManualClock()) as log:
        yield log


@pytest.fixture
def there(empty_log_file: Path, tmp_path: Path) -> Iterator[Decklog]:
    """Another log."""
    with Decklog.open(shutil.copy(empty_log_file, tmp_path / "there.db"), clock=ManualClock()) as log:
        yield log


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


@pytest.fixture
def listening(there: Decklog) -> Iterator[Listening]:
    """A receiver of ours that writes to the other log."""
    with receiving(there) as found:
        yield found
