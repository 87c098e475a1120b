from datetime import UTC, datetime, timedelta

import pytest

from decklog import Conflict, Decklog, Invalid, ManualClock, NotFound
from tests.every import every

START = datetime(2026, 1, 1, 8, tzinfo=UTC)


def ran(log: Decklog, number: int, seconds: int | None, branch: str = "main", conclusion: str = "success") -> None:
    log.ci.record(
        "tests",
        branch,
        number,
        started_at=START + timedelta(hours=number),
        duration_seconds=seconds,
        conclusion=conclusion,  # type: ignore[arg-type]
    )


def test_a_run_is_recorded_when_it_starts_and_completed_when_it_ends(log: Decklog, clock: ManualClock) -> None:
    started = log.ci.record("tests", "main", 17)
    assert (started.started_at, started.completed_at, started.conclusion) == (clock.now(), None, None)
    clock.advance(minutes=3, seconds=20)
    done = log.ci.record("tests", "main", 17, completed_at=clock.now(), conclusion="success")
    assert (done.duration_seconds, done.conclusion, done.started_at) == (200, "success", started.started_at)
    assert log.ci.get("tests", "main", 17) == done


def test_saying_the_same_again_changes_nothing(log: Decklog) -> None:
    given = {"started_at": START, "completed_at": START + timedelta(seconds=90), "conclusion": "failure"}
    first = log.ci.record("tests", "main", 1, **given)  # type: ignore[arg-type]
    again = log.ci.record("tests", "main", 1, **given)  # type: ignore[arg-type]
    assert again == first
    assert again.already
    assert log.ci.record("tests", "main", 1).already
    assert len(log.journal.find("@desk")) == 1


@pytest.mark.parametrize(
    "other", [{"conclusion": "failure"}, {"duration_seconds": 91}, {"started_at": START + timedelta(1)}, {"completed_at": START}]
)
def test_what_is_known_is_not_changed(log: Decklog, other: dict[str, object]) -> None:
    known = log.ci.record("tests", "main", 1, started_at=START, completed_at=START + timedelta(seconds=90), conclusion="success")
    with pytest.raises(Conflict, match="run 1 of tests on main"):
        log.ci.record("tests", "main", 1, **other)  # type: ignore[arg-type]
    assert log.ci.get("tests", "main", 1) == known


@every(
    "bad",
    [
        {"workflow_name": ""},
        {"branch": " "},
        {"ci_run_id": -1},
        {"ci_run_id": True},
        {"ci_run_id": 2**63},
        {"duration_seconds": -1},
        {"conclusion": "maybe"},
        {"completed_at": START - timedelta(1)},
        {"run_id": "run_1"},
    ],
)
def test_a_bad_run_is_refused(log: Decklog, bad: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        log.ci.record(**{"workflow_name": "tests", "branch": "main", "ci_run_id": 1, "started_at": START, **bad})  # type: ignore[arg-type]
    assert log.ci.find() == []


def test_the_three_parts_together_are_the_key(log: Decklog) -> None:
    for workflow, branch, number in (("tests", "main", 1), ("tests", "main", 2), ("tests", "dev", 1), ("lint", "main", 1)):
        assert not log.ci.record(workflow, branch, number).already
    assert len(log.ci.find()) == 4
    with pytest.raises(NotFound, match="run 2 of tests on dev"):
        log.ci.get("tests", "dev", 2)


def test_runs_are_listed_by_their_start(log: Decklog) -> None:
    for number in (3, 1, 2):
        ran(log, number, 60, conclusion="success" if number != 2 else "cancelled")
    assert [run.ci_run_id for run in log.ci.find()] == [3, 2, 1]
    assert [run.ci_run_id for run in log.ci.find(conclusion="success")] == [3, 1]
    page = log.ci.find(limit=2)
    assert [run.ci_run_id for run in log.ci.find(limit=2, after=page.next)] == [1]
    assert [run.ci_run_id for run in log.ci.find(since=START + timedelta(hours=2))] == [3, 2]


@pytest.mark.parametrize(
    ("durations", "median", "p90"),
    [
        ([60], 60, 60),
        ([60, 120], 90, 120),
        ([100, 60, 80], 80, 100),
        (list(range(10, 110, 10)), 55, 90),
        (list(range(1, 21)), 10.5, 18),
    ],
)
def test_the_expected_time_is_the_median_and_the_ninetieth_in_a_hundred(
    log: Decklog, durations: list[int], median: float, p90: float
) -> None:
    for number, seconds in enumerate(durations):
        ran(log, number, seconds)
    assert log.ci.expected("tests", "main") == {
        "workflow_name": "tests",
        "branch": "main",
        "median_s": median,
        "p90_s": p90,
        "runs": len(durations),
        "source": "branch",
    }


def test_only_the_last_successful_runs_with_a_duration_count(log: Decklog) -> None:
    for number in range(30):
        ran(log, number, 1000 if number < 10 else 60)
    ran(log, 31, 5, conclusion="failure")
    ran(log, 32, 7, conclusion="cancelled")
    ran(log, 33, None)
    expected = log.ci.expected("tests", "main")
    assert (expected["median_s"], expected["runs"]) == (60, 20)
    assert log.ci.expected("tests", "main", last=30)["p90_s"] == 1000


def test_a_new_branch_is_judged_by_the_others(log: Decklog) -> None:
    ran(log, 1, 100)
    ran(log, 2, 200, branch="dev")
    ran(log, 3, 5, branch="new", conclusion="failure")
    log.ci.record("lint", "new", 9, duration_seconds=3, conclusion="success")
    expected = log.ci.expected("tests", "new")
    assert (expected["median_s"], expected["runs"], expected["source"]) == (150, 2, "other-branches")


def test_without_any_run_nothing_is_expected(log: Decklog) -> None:
    ran(log, 1, None)
    expected = log.ci.expected("tests", "main")
    assert (expected["median_s"], expected["p90_s"], expected["runs"], expected["source"]) == (None, None, 0, "unknown")
    with pytest.raises(Invalid):
        log.ci.expected("tests", "main", last=0)
