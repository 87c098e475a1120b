"""With whom the work stands: by role, in the runs that go on, at a cost that what is over does not add to."""

from typing import Any

import pytest

from decklog import Decklog, ManualClock
from decklog.stores.overview import board
from tests.statements import statements
from tests.stores.claiming import claimed


def counts(log: Decklog) -> dict[str | None, dict[str, Any]]:
    return {one["who"]: {name: one[name] for name in board.FIELDS if one[name]} for one in log.overview.stations()}  # type: ignore[misc]


def test_tasks_count_for_their_role_by_how_they_stand(log: Decklog, run_id: str) -> None:
    assert counts(log) == {}
    for role in ("developer", "developer", "tester", None):
        log.tasks.add(run_id, "one", role=role)
    first = log.tasks.add(run_id, "first", role="lead")
    log.tasks.add(run_id, "second", role="lead", depends_on=[first.id])
    assert counts(log) == {"developer": {"to_do": 2}, "tester": {"to_do": 1}, "lead": {"to_do": 2}, None: {"to_do": 1}}
    for role in ("developer", "tester", "lead"):
        claim = claimed(log, run_id, worker=f"{role}-1", role=role)
        if role == "tester":
            claim.block("no access")
        if role == "lead":
            claim.finish("done")
    assert counts(log) == {
        "developer": {"to_do": 1, "working": 1},
        "tester": {"blocked_or_paused": 1},
        "lead": {"to_do": 1},
        None: {"to_do": 1},
    }


def test_what_used_up_its_attempts_has_failed(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "one", role="developer", max_attempts=1)
    claim = claimed(log, run_id)
    claim.fail("no")
    assert counts(log) == {"developer": {"failed": 1}}


def test_a_task_at_work_without_a_role_counts_for_its_worker(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "one")
    log.tasks.claim(run_id, worker="developer-2")
    assert counts(log) == {"developer-2": {"working": 1}}


def test_groups_count_for_whom_they_are_assigned_to(log: Decklog, run_id: str) -> None:
    log.groups.add(run_id, "A", name="parser", assigned_to="developer")
    log.groups.add(run_id, "B", name="lexer")
    log.groups.update(run_id, "B", status="failed", assigned_to="developer")
    assert counts(log) == {"developer": {"groups": 1, "failed_groups": 1}}


def test_runs_that_are_over_count_for_nobody(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "one", role="developer")
    log.runs.finish(run_id, status="cancelled")  # type: ignore[arg-type]
    assert counts(log) == {}


def test_there_is_an_end_to_counting(log: Decklog, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "MOST", 5)
    log.tasks.add_many(run_id, [{"title": "one", "role": "developer"} for _ in range(9)])
    assert counts(log) == {"developer": {"to_do": 5}}


def test_what_is_over_is_not_read(log: Decklog, clock: ManualClock) -> None:
    log.runs.start("goal", run_id="r")
    with statements(log) as seen:
        log.overview.stations()
    assert len(seen) == 1
    if log.db.engine == "postgres":
        pytest.skip("a server reads a table of a few rows as a whole")
    plan = log.db.read(lambda: log.db.rows(f"explain query plan {seen[0][0]}", seen[0][1])[1])
    steps = [str(row[-1]) for row in plan if " tasks" in str(row[-1]) or " groups" in str(row[-1])]
    used = {step.split(" INDEX ")[-1].split()[0] for step in steps}
    assert used == {"tasks_ready", "tasks_dependent", "tasks_running", "tasks_held", "groups_by_status"}
