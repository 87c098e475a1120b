import json
import subprocess
import sys

import pytest

from tests.conftest import ENGINES
from tests.db.processes import ROOT, environment
from tests.searches import FULL

KILLS = {"sqlite": 20, "postgres": 10} if FULL else {"sqlite": 8, "postgres": 5}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_writer_killed_at_any_moment_loses_nothing_that_was_acknowledged(engine: str, request: pytest.FixtureRequest) -> None:
    """`python -m benchmarks.crash` does the same two hundred times."""
    words = [
        sys.executable,
        "-m",
        "benchmarks.crash",
        "--engine",
        engine,
        "--kills",
        str(KILLS[engine]),
        "--seed",
        "1",
        "--json",
    ]
    if engine == "postgres":
        words += ["--target", request.getfixturevalue("postgres_url")]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=environment(), timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout)
    assert (figures["lost"], figures["half_done"], figures["whole"]) == (0, 0, True)
    assert figures["acknowledged"] > 10
