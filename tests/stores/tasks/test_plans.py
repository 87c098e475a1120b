from datetime import UTC, datetime

import pytest

from decklog import Conflict, Decklog, Invalid, ManualClock, NotFound
from decklog.records.values import to_json
from decklog.stores.tasks.plans import PhaseStatus, PlanPhase
from tests.every import every

PHASES = ["Design", "Build", "Ship"]


def recorded(log: Decklog, run_id: str, phases: object = PHASES, **more: object) -> list[PlanPhase]:
    log.plans.record(run_id, "Make it fast", "First measure, then cut", phases, **more)  # type: ignore[arg-type]
    return log.plans.phases(run_id)


def test_a_plan_comes_back_as_it_was_given(log: Decklog, run_id: str, clock: ManualClock) -> None:
    plan = log.plans.record(run_id, "Make it fast", "First measure", PHASES, current_phase=1, metadata={"by": "pm"})
    assert (plan.original_prompt, plan.plan_text, plan.metadata) == ("Make it fast", "First measure", {"by": "pm"})
    assert (plan.current_phase, plan.total_phases) == (1, 3)
    assert plan.created_at == plan.updated_at == clock.now()
    assert log.plans.get(run_id) == plan
    assert [(p.number, p.name, p.status, p.progress_percent) for p in log.plans.phases(run_id)] == [
        (1, "Design", "pending", 0),
        (2, "Build", "pending", 0),
        (3, "Ship", "pending", 0),
    ]


def test_a_phase_keeps_its_own_facts_and_everything_else_as_extra(log: Decklog, run_id: str) -> None:
    given = [
        {"phase": 3, "name": "Ship", "status": "blocked", "progress_percent": 40, "risk": "high", "steps": [1, None]},
        {
            "number": "1",
            "status": "completed",
            "completed_at": "2025-06-01T10:00:00Z",
            "started_at": datetime(2025, 5, 1, tzinfo=UTC),
        },
        {"phase": 0, "name": "Warm up", "extra": {"a": 1}, "b": 2, "status": None, "number": None},
    ]
    zero, one, three = recorded(log, run_id, given, total_phases=9)
    assert (zero.number, zero.status, zero.extra) == (0, PhaseStatus.PENDING, {"a": 1, "b": 2})
    assert (one.name, one.progress_percent) == ("Phase 1", 100)
    assert one.completed_at == datetime(2025, 6, 1, 10, tzinfo=UTC)
    assert one.started_at == datetime(2025, 5, 1, tzinfo=UTC)
    assert (three.status, three.progress_percent, three.extra) == ("blocked", 40, {"risk": "high", "steps": [1, None]})
    assert log.plans.get(run_id).total_phases == 9


def test_a_new_phase_that_is_called_done_is_not_given_a_time_nobody_knows(log: Decklog, run_id: str) -> None:
    (phase,) = recorded(log, run_id, [{"name": "Design", "status": "completed"}])
    assert (phase.progress_percent, phase.started_at, phase.completed_at) == (100, None, None)


def test_a_plan_may_be_recorded_with_no_phase_and_with_its_own_time(log: Decklog, run_id: str) -> None:
    then = datetime(2025, 3, 1, tzinfo=UTC)
    assert recorded(log, run_id, [], created_at=then) == []
    assert log.plans.get(run_id).created_at == then


def test_a_phase_is_marked_by_number_or_by_name(log: Decklog, run_id: str, clock: ManualClock) -> None:
    recorded(log, run_id)
    clock.advance(minutes=1)
    begun = log.plans.mark(run_id, "Design", PhaseStatus.IN_PROGRESS, progress_percent=30)
    assert (begun.number, begun.progress_percent, begun.started_at, begun.completed_at) == (1, 30, clock.now(), None)
    started_at = clock.now()
    clock.advance(minutes=1)
    done = log.plans.mark(run_id, "1", PhaseStatus.COMPLETED)
    assert (done.progress_percent, done.started_at, done.completed_at) == (100, started_at, clock.now())
    assert log.plans.mark(run_id, 2, "blocked").name == "Build"  # type: ignore[arg-type]
    assert log.plans.phase(run_id, "Build").status is PhaseStatus.BLOCKED
    assert [phase.name for phase in log.plans.phases(run_id, status=PhaseStatus.PENDING)] == ["Ship"]


def test_a_phase_marked_the_same_way_again_stays_as_it_is(log: Decklog, run_id: str, clock: ManualClock) -> None:
    recorded(log, run_id)
    done = log.plans.mark(run_id, "Build", PhaseStatus.COMPLETED)
    clock.advance(minutes=1)
    again = log.plans.mark(run_id, "Build", PhaseStatus.COMPLETED)
    assert again == done
    assert again.already
    assert len(log.journal.history("phases", to_json([run_id, "2"]))) == 2


def test_a_phase_taken_up_again_is_not_done_any_more(log: Decklog, run_id: str) -> None:
    recorded(log, run_id)
    log.plans.mark(run_id, "Build", PhaseStatus.IN_PROGRESS)
    log.plans.mark(run_id, "Build", PhaseStatus.COMPLETED)
    again = log.plans.mark(run_id, "Build", PhaseStatus.IN_PROGRESS)
    assert (again.progress_percent, again.completed_at) == (0, None)
    assert again.started_at is not None
    log.plans.mark(run_id, "Build", PhaseStatus.IN_PROGRESS, progress_percent=60)
    assert log.plans.mark(run_id, "Build", PhaseStatus.BLOCKED).progress_percent == 60
    fresh = log.plans.mark(run_id, "Build", PhaseStatus.PENDING)
    assert (fresh.progress_percent, fresh.started_at) == (0, None)


def test_a_name_of_digits_gives_way_to_the_number(log: Decklog, run_id: str) -> None:
    recorded(log, run_id, ["2", "second", "2026"])
    assert log.plans.phase(run_id, "2").name == "second"
    assert log.plans.phase(run_id, "2026").number == 3


def test_a_name_that_two_phases_share_needs_the_number(log: Decklog, run_id: str) -> None:
    recorded(log, run_id, ["Test", "Test"])
    with pytest.raises(Conflict, match="1, 2"):
        log.plans.mark(run_id, "Test", PhaseStatus.COMPLETED)
    assert log.plans.mark(run_id, "2", PhaseStatus.COMPLETED).number == 2


def test_a_replaced_plan_keeps_its_birth_and_the_progress_of_phases_that_stay(
    log: Decklog, run_id: str, clock: ManualClock
) -> None:
    recorded(log, run_id, current_phase=2, metadata={"by": "pm"})
    born = clock.now()
    design = log.plans.mark(run_id, "Design", PhaseStatus.COMPLETED)
    build = log.plans.mark(run_id, "Build", PhaseStatus.IN_PROGRESS, progress_percent=70)
    clock.advance(hours=1)
    plan = log.plans.record(
        run_id, "Make it fast", "Another way", ["Measure", "Design", {"name": "Build", "owner": "qa"}, "Sell"]
    )
    assert (plan.created_at, plan.updated_at, plan.plan_text) == (born, clock.now(), "Another way")
    assert (plan.metadata, plan.current_phase, plan.total_phases) == ({"by": "pm"}, 2, 4)
    phases = log.plans.phases(run_id)
    assert [(p.number, p.name, p.status, p.progress_percent) for p in phases] == [
        (1, "Measure", "pending", 0),
        (2, "Design", "completed", 100),
        (3, "Build", "in_progress", 70),
        (4, "Sell", "pending", 0),
    ]
    assert phases[1].completed_at == design.completed_at
    assert (phases[2].started_at, phases[2].extra) == (build.started_at, {"owner": "qa"})
    assert log.journal.verify().ok


def test_what_the_new_plan_says_itself_comes_first(log: Decklog, run_id: str, clock: ManualClock) -> None:
    recorded(log, run_id)
    log.plans.mark(run_id, "Design", PhaseStatus.COMPLETED)
    clock.advance(minutes=1)
    design, build = recorded(log, run_id, [{"name": "Design", "status": "pending"}, {"name": "Build", "status": "in_progress"}])
    assert (design.status, design.progress_percent, design.completed_at) == ("pending", 0, None)
    assert (build.status, build.started_at) == ("in_progress", clock.now())


def test_phases_of_one_name_keep_their_numbers_progress(log: Decklog, run_id: str) -> None:
    recorded(log, run_id, ["Test", "Test"])
    log.plans.mark(run_id, "2", PhaseStatus.COMPLETED)
    assert [p.status for p in recorded(log, run_id, ["Test", "Test", "Test"])] == ["pending", "completed", "pending"]


def test_the_same_plan_again_writes_nothing(log: Decklog, run_id: str, clock: ManualClock) -> None:
    given = [{"phase": 1, "name": "Design", "risk": "low"}, "Build"]
    first = log.plans.record(run_id, "p", "t", given, metadata={"a": 1})
    log.plans.mark(run_id, "Build", PhaseStatus.COMPLETED)
    entries = len(log.journal.find(run_id))
    clock.advance(minutes=1)
    again = log.plans.record(run_id, "p", "t", given, metadata={"a": 1})
    assert again == first
    assert again.already
    assert log.plans.phase(run_id, "Build").status is PhaseStatus.COMPLETED
    assert len(log.journal.find(run_id)) == entries
    assert not log.plans.record(run_id, "p", "t", ["Design"], total_phases=2).already


FIELDS: dict[str, object] = {
    "original_prompt": "other prompt",
    "plan_text": "",
    "current_phase": 0,
    "total_phases": 7,
    "metadata": {},
}


@pytest.mark.parametrize("field", FIELDS)
def test_an_update_changes_only_what_is_given(log: Decklog, run_id: str, field: str, clock: ManualClock) -> None:
    before = recorded(log, run_id, current_phase=2, metadata={"by": "pm"})
    plan = log.plans.get(run_id)
    clock.advance(minutes=1)
    after = log.plans.update(run_id, **{field: FIELDS[field]})  # type: ignore[arg-type]
    changed = {name for name, value in after.as_dict().items() if value != plan.as_dict()[name]}
    assert changed == {field, "updated_at"}
    assert getattr(after, field) == FIELDS[field]
    assert log.plans.phases(run_id) == before
    assert log.plans.update(run_id, **{field: FIELDS[field]}).already  # type: ignore[arg-type]


def test_fields_of_a_plan_can_be_cleared(log: Decklog, run_id: str) -> None:
    recorded(log, run_id, current_phase=2, metadata={})
    assert log.plans.get(run_id).metadata == {}
    plan = log.plans.update(run_id, clear=["metadata", "current_phase"])
    assert (plan.metadata, plan.current_phase) == (None, None)
    with pytest.raises(Invalid, match="can't be cleared"):
        log.plans.update(run_id, clear=["plan_text"])


@pytest.mark.slow
@every(
    "phases",
    [
        "Design",
        {"name": "Design"},
        [""],
        [7],
        [{"name": " "}],
        [{"name": 7}],
        [{"number": -1}],
        [{"number": True}],
        [{"phase": "one"}],
        [{"phase": "9" * 5000}],
        [{"number": 1}, {"phase": 1}],
        [{"number": 2}, "second"],
        [{"status": "done"}],
        [{"progress_percent": 101}],
        [{"progress_percent": "50"}],
        [{"started_at": "yesterday"}],
        [{"started_at": datetime(2026, 1, 1)}],
        [{"completed_at": "2026-01-01T00:00:00Z"}],
        [{"status": "blocked", "completed_at": "2026-01-01T00:00:00Z"}],
        [{"extra": []}],
        [{"cost": float("nan")}],
    ],
)
def test_phases_that_make_no_sense_are_refused_whole(log: Decklog, phases: object) -> None:
    run_id = log.runs.start("A plan that makes no sense").id
    with pytest.raises(Invalid):
        log.plans.record(run_id, "p", "t", phases)
    with pytest.raises(NotFound):
        log.plans.get(run_id)
    before = recorded(log, run_id)
    with pytest.raises(Invalid):
        log.plans.record(run_id, "p", "t", phases)
    assert log.plans.phases(run_id) == before


@every(
    "bad",
    [
        {"original_prompt": " "},
        {"plan_text": 7},
        {"current_phase": -1},
        {"current_phase": True},
        {"total_phases": -1},
        {"metadata": []},
        {"colour": "red"},
    ],
)
def test_bad_values_of_a_plan_are_refused(log: Decklog, run_id: str, bad: dict[str, object]) -> None:
    given = {"original_prompt": "p", "plan_text": "t", "phases": PHASES} | bad
    with pytest.raises(Invalid):
        log.plans.record(run_id, **given)  # type: ignore[arg-type]
    recorded(log, run_id)
    plan = log.plans.get(run_id)
    with pytest.raises(Invalid):
        log.plans.update(run_id, **bad)  # type: ignore[arg-type]
    assert log.plans.get(run_id) == plan


def test_a_mark_that_makes_no_sense_is_refused(log: Decklog, run_id: str) -> None:
    before = recorded(log, run_id)
    for status, percent in [("done", None), ("", None), ("completed", 101), ("in_progress", -1), ("in_progress", True)]:
        with pytest.raises(Invalid):
            log.plans.mark(run_id, "Build", status, progress_percent=percent)  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        log.plans.phases(run_id, status="")  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        log.plans.update(run_id)
    assert log.plans.phases(run_id) == before


def test_what_does_not_exist_is_not_found(log: Decklog, run_id: str) -> None:
    for run in (run_id, "nobody"):
        for act in (
            lambda run: log.plans.get(run),
            lambda run: log.plans.phases(run),
            lambda run: log.plans.phase(run, "1"),
            lambda run: log.plans.mark(run, "1", PhaseStatus.COMPLETED),
            lambda run: log.plans.update(run, plan_text="x"),
        ):
            with pytest.raises(NotFound):
                act(run)
    for nobody in ("nobody", "@desk"):
        with pytest.raises(NotFound, match="no run"):
            log.plans.record(nobody, "p", "t", PHASES)
    recorded(log, run_id)
    for phase in ("4", "design", "", "-1", "01"):
        with pytest.raises(NotFound, match="no plan phase"):
            log.plans.mark(run_id, phase, PhaseStatus.COMPLETED)


def test_a_plan_is_replaced_whole_or_not_at_all(log: Decklog, run_id: str) -> None:
    before, plan = recorded(log, run_id), log.plans.get(run_id)
    with pytest.raises(ZeroDivisionError), log.transaction():
        log.plans.record(run_id, "p", "other", ["Other"])
        raise ZeroDivisionError
    assert (log.plans.get(run_id), log.plans.phases(run_id)) == (plan, before)


def test_a_secret_in_a_plan_is_not_kept(log: Decklog, run_id: str) -> None:
    secret = "gh" + "p_" + "Zk3x" * 9
    phases = [{"name": f"use {secret}", "note": secret}]
    plan = log.plans.record(run_id, secret, secret, phases, metadata={"x": secret})
    assert secret not in str(plan.as_dict()) + str([phase.as_dict() for phase in log.plans.phases(run_id)])
    log.plans.mark(run_id, f"use {secret}", PhaseStatus.COMPLETED)
    assert log.plans.record(run_id, secret, secret, phases, metadata={"x": secret}).already
    assert log.plans.phase(run_id, "1").status is PhaseStatus.COMPLETED
