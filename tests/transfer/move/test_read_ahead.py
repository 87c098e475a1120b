"""Entries that another process reads and checks arrive as if this one had read them."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.core.errors import Damaged
from decklog.transfer.move import child, read_ahead
from decklog.transfer.move.move import Move
from tests.transfer.conftest import exported
from tests.transfer.move.test_proof import TAMPERED, tamper

# Which engine it is written to is all the same to whoever reads.
ON_A_FILE = pytest.mark.parametrize("target", ["sqlite"], indirect=True)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Read every log ahead, however small; gives the processes that did."""
    processes: list[Any] = []
    plain = child.child

    @contextmanager
    def noted(module: str, given: Any) -> Iterator[Any]:
        with plain(module, given) as process:
            processes.append(process)
            yield process

    monkeypatch.setattr(read_ahead, "child", noted)
    monkeypatch.setattr(child, "WORTH_A_PROCESS", 1)
    return processes


@pytest.mark.slow
def test_a_log_arrives_whole_through_another_process(log: Decklog, source: Decklog, started: list[Any], tmp_path: Path) -> None:
    Move(source, log).run()
    assert len(started) == 1
    assert started[0].returncode == 0
    assert exported(log, tmp_path / "there") == exported(source, tmp_path / "here")


@ON_A_FILE
def test_what_the_other_process_had_not_read_is_read_here(
    log: Decklog, source: Decklog, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, plain = [], read_ahead._received

    def killed(pipe: Any) -> Iterator[Any]:
        for stretch in plain(pipe):
            yield stretch
            taken.append(stretch.rows[-1][2])
            os.kill(started[0].pid, signal.SIGKILL)
            return

    monkeypatch.setattr(read_ahead, "_received", killed)
    assert Move(source, log).run().verified == 360
    assert 0 < taken[0] < 300


@ON_A_FILE
def test_a_broken_chain_is_refused_as_when_it_is_read_here(log: Decklog, source: Decklog, started: list[Any]) -> None:
    tamper(source, TAMPERED["altered"][0])
    with pytest.raises(Damaged, match="run_1:100"):
        Move(source, log).run()
    assert started[0].returncode != 0
    assert log.journal.verify().ok


@ON_A_FILE
def test_a_transaction_that_is_open_is_read_by_whoever_holds_it(log: Decklog, source: Decklog, started: list[Any]) -> None:
    with source.transaction():
        source.journal.append("run_1", "not committed yet")
        Move(source, log).run(prove=False)
    assert started == []
    assert log.journal.heads() == source.journal.heads()
