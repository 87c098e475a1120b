"""A clock that is set ahead or back ends no lease that is being extended, and lets none live for ever."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from decklog import BudgetScope, Decklog, LeaseLost, ManualClock, TaskState
from tests.db.processes import alone
from tests.stores.claiming import claimed

JUMPS = (1.0, -1.0, 24.0 * 400, -24.0 * 400)


def claim(log: Decklog, **more: Any) -> Any:
    return claimed(log, "run_1", lease_seconds=60, **more)


@pytest.fixture
def task_id(log: Decklog, run_id: str) -> str:
    return log.tasks.add(run_id, "Change the lexer", task_id="lexer").id


@pytest.mark.parametrize("hours", JUMPS)
def test_a_lease_outlives_a_jump_and_ends_with_its_time(log: Decklog, clock: ManualClock, task_id: str, hours: float) -> None:
    held = claim(log)
    clock.jump(hours=hours)
    assert log.tasks.claim("run_1", worker="thief") is None
    assert log.tasks.ready("run_1")["not_ready"][0]["why"].startswith("w has it until")
    clock.advance(seconds=40)
    held.extend()
    clock.advance(seconds=40)
    assert log.tasks.claim("run_1", worker="thief") is None
    clock.advance(seconds=30)
    assert log.tasks.ready("run_1")["ready"][0]["id"] == task_id
    claimed(log, "run_1", worker="next")
    with pytest.raises(LeaseLost):
        held.finish()
    assert log.journal.verify().ok


@pytest.mark.parametrize("hours", JUMPS)
def test_the_wall_shows_when_a_lease_ends(log: Decklog, clock: ManualClock, task_id: str, hours: float) -> None:
    clock.jump(hours=hours)
    claim(log)
    ends = clock.now() + timedelta(seconds=60)
    assert log.tasks.ready("run_1")["not_ready"][0]["why"] == f"w has it until {ends:%H:%M:%S}"


@pytest.mark.parametrize("hours", [1.0, -1.0])
def test_the_money_of_a_lease_is_held_over_a_jump(log: Decklog, clock: ManualClock, task_id: str, hours: float) -> None:
    log.budgets.set(BudgetScope.RUN, scope_id="run_1", limit_microdollars=100)
    held = claim(log, reserve_microdollars=60)
    clock.jump(hours=hours)
    held.extend()
    clock.advance(seconds=50)
    held.extend()
    reservation = log.reservations.get(held.task.reservation_id)
    assert reservation.microdollars == 60
    assert reservation.expires_at > clock.now()
    held.finish()
    assert log.tasks.get(task_id).state is TaskState.DONE


@pytest.mark.slow
def test_money_that_another_has_meanwhile_does_not_end_the_lease(log: Decklog, clock: ManualClock, task_id: str) -> None:
    log.budgets.set(BudgetScope.RUN, scope_id="run_1", limit_microdollars=100)
    held = claim(log, reserve_microdollars=60)
    log.tasks.add("run_1", "Change the parser")
    clock.jump(hours=1)
    claim(log, reserve_microdollars=90)
    held.extend()
    held.finish()
    assert log.journal.verify().ok


@pytest.mark.slow
@pytest.mark.parametrize("hours", [1.0, -1.0])
def test_processes_whose_clocks_differ_agree_on_a_lease(tmp_path: Path, hours: float) -> None:
    path = str(tmp_path / "decklog.db")
    with Decklog.open(path) as log:
        log.runs.start("x", run_id="run_1")
        log.tasks.add("run_1", "one", task_id="one")
        short = claimed(log, "run_1", lease_seconds=300)
        assert alone("claim_with_a_clock_ahead", path, hours, 0.0) is None
        # What a process with another clock extends is as long to everybody.
        assert alone("extend_with_a_clock_ahead", path, hours, "one", short.task.fence, 0.3) == "running"
        assert alone("claim_with_a_clock_ahead", path, hours, 5.0) == "one"
        with pytest.raises(LeaseLost):
            short.finish()
        assert log.journal.verify().ok


def test_a_log_from_another_start_of_the_machine_is_judged_by_the_wall(tmp_path: Path) -> None:
    path = tmp_path / "decklog.db"
    with Decklog.open(path) as log:
        log.runs.start("x", run_id="run_1")
        log.tasks.add("run_1", "one", task_id="one")
    lock = Path(f"{path}-lock")
    lock.write_text("another-start/time:[1] 1999-01-01T00:00:00.000000Z\nnot a line that anyone wrote\n")
    with Decklog.open(path) as log:
        held = claimed(log, "run_1", lease_seconds=60)
        assert held.task.leased_until is not None
        assert 50 < (held.task.leased_until - log.clock.now()).total_seconds() < 70
    assert len([line for line in lock.read_text().splitlines() if line]) == 3
    assert lock.stat().st_mode & 0o777 == 0o600
