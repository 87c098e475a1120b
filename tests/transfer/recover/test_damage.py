"""Damaged copies of a log with something in every store, against what the undamaged one held."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.searches import FULL
from tests.transfer.recover.damage import KINDS, Outcome, try_out
from tests.transfer.recover.source_log import source_log
from tests.transfer.recover.truth import Truth

# Each kind with a write-ahead log or without one, in full both; `python -m benchmarks.damage` tries a hundred of a larger log.
SEEDS = range(2 * len(KINDS)) if FULL else [kind + kind % 2 * len(KINDS) for kind in range(len(KINDS))]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with source_log(tmp_path_factory.mktemp("source") / "log.db", entries=240, late=5) as path:
        yield path


@pytest.fixture(scope="module")
def truth(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Truth:
    return Truth.of(source, tmp_path_factory.mktemp("truth"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS, ids=[f"{seed}-{list(KINDS)[seed % len(KINDS)]}" for seed in SEEDS])
def test_what_is_still_in_a_damaged_copy_comes_back_in_order_and_only_what_is_lost_is_called_lost(
    source: Path, truth: Truth, tmp_path: Path, seed: int
) -> None:
    outcome = try_out(source, truth, tmp_path, seed)
    assert outcome.failed == ""
    assert outcome.there > 0
    assert outcome.back >= 0.99 * outcome.there
    assert outcome == Outcome(
        kind=outcome.kind,
        there=outcome.there,
        back=outcome.back,
        besides=outcome.besides,
        problems=outcome.problems,
        is_called_whole=outcome.is_called_whole,
    )
