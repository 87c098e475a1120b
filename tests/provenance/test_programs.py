"""Random programs against the model, whose every line is unique."""

from pathlib import Path

import pytest

from decklog import Decklog
from tests.provenance.programs import run

# Ten short ones in `make test`; more, and a few longer ones, in `make test-slow`.
# `make explore` runs as many as it is given, of 60 steps.
PROGRAMS = 60
STEPS = 3
LONG = 4
LONG_STEPS = 20
EXPLORED_STEPS = 60


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        number = metafunc.config.getoption("--programs") or LONG
        metafunc.parametrize("seed", range(1000, 1000 + number))


@pytest.mark.parametrize("start", [0, *(pytest.param(start, marks=pytest.mark.slow) for start in range(10, PROGRAMS, 10))])
def test_lines_have_the_origins_that_the_model_expects(tmp_path: Path, start: int) -> None:
    for seed in range(start, start + 10):
        with Decklog.open(tmp_path / f"{seed}.db", durability="relaxed") as log:
            run(seed, STEPS, tmp_path / str(seed), log, is_checked_at_end=True)


@pytest.mark.slow
def test_long_programs_have_the_origins_that_the_model_expects(tmp_path: Path, seed: int, request: pytest.FixtureRequest) -> None:
    is_explored = request.config.getoption("--programs") is not None
    with Decklog.open(tmp_path / "log.db", durability="relaxed") as log:
        run(seed, EXPLORED_STEPS if is_explored else LONG_STEPS, tmp_path, log)
