"""Random programs against the model, whose every line is unique."""

import os
from pathlib import Path

import pytest

from decklog import Decklog
from tests.provenance.programs import run

# `make explore` runs others, and longer ones.
PROGRAMS = 60
STEPS = 3


@pytest.mark.parametrize("start", range(0, PROGRAMS, 10))
def test_lines_have_the_origins_that_the_model_expects(tmp_path: Path, start: int) -> None:
    for seed in range(start, start + 10):
        with Decklog.open(tmp_path / f"{seed}.db", durability="relaxed") as log:
            run(seed, STEPS, tmp_path / str(seed), log, is_checked_at_end=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1000 + (1000 if os.environ.get("DECKLOG_TEST_FULL") else 4)))
def test_long_programs_have_the_origins_that_the_model_expects(tmp_path: Path, seed: int) -> None:
    with Decklog.open(tmp_path / "log.db") as log:
        run(seed, 60 if os.environ.get("DECKLOG_TEST_FULL") else 20, tmp_path, log)
