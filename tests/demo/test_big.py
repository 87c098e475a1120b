"""A large demonstration: valid, the same every time, and with something of everything that a person looks at."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from decklog import Conflict, Decklog
from decklog.demo.big import Big, opened

END = datetime(2026, 11, 15, 14, 2, 52, tzinfo=UTC)


def made(target: str, seed: int = 7) -> Decklog:
    log, clock = opened(target, END, seed)
    Big(log, clock, END, 500, seed, lambda _done, _whole: None).run()
    return log


@pytest.mark.slow
def test_a_large_log_is_valid_and_has_a_run_of_each_kind(target: str) -> None:
    with made(target) as log:
        assert log.journal.verify().ok
        summary = log.overview.now()
        assert summary.counts == {"needs attention": 1, "stalled": 1, "running": 2, "paused": 1}
        assert (summary.decisions, summary.agents, summary.spent_today > 0) == (1, 2, True)
        words = Counter(run.status.value for run in log.overview.runs(limit=100))
        assert words["done"] > 1
        assert words["failed"] > 0
        tables = {table for run in log.runs.find(limit=100) for table in log.runs.snapshot(run.id).records}
        assert tables >= {"tasks", "dependencies", "charges", "criteria", "plans", "agents", "approvals", "checkpoints"}
        assert log.memory.topics()


@pytest.mark.slow
def test_the_same_seed_and_end_make_the_same_log(tmp_path: Path) -> None:
    heads = []
    for name, seed in (("a.db", 7), ("b.db", 7), ("c.db", 8)):
        with made(str(tmp_path / name), seed) as log:
            heads.append(log.journal.heads())
    assert heads[0] == heads[1] != heads[2]


def test_a_log_that_has_entries_is_refused(tmp_path: Path) -> None:
    target = str(tmp_path / "used.db")
    with Decklog.open(target) as log:
        log.runs.start("mine")
    with pytest.raises(Conflict, match="entries already"):
        opened(target, END, 7)
