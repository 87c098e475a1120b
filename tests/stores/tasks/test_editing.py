"""Tasks that can be worked with: edited, assigned and claimed by their id, each refusal saying what stands in the way."""

from datetime import timedelta
from typing import Any

import pytest

from decklog import Conflict, Decklog, Invalid, ManualClock, NotFound, Task
from tests.db.processes import together
from tests.stores.claiming import claimed

EVERYTHING: dict[str, Any] = {
    "title": "Read numbers",
    "objective": "with exponents",
    "group_id": "B",
    "priority": 90,
    "role": "qa",
    "tags": ["fast"],
    "acceptance": ["1e5 is read"],
    "verification": ["make test"],
    "allowed_paths": ["src/"],
    "inputs": {"spec": 7},
    "max_attempts": 9,
    "stage": "build",
    "state_name": "notes",
    "trace_file": "a.log",
    "loop_version": 2,
}


@pytest.fixture
def task(log: Decklog, run_id: str) -> Task:
    return log.tasks.add(run_id, "Read words", task_id="t1", tags=["slow"])


def shown(task: Task) -> dict[str, Any]:
    return {name: getattr(task, name) for name in EVERYTHING}


# Editing


def test_every_field_can_be_edited_and_the_entry_says_why(log: Decklog, task: Task, clock: ManualClock) -> None:
    start = clock.now() + timedelta(hours=1)
    edited = log.tasks.edit(task.id, reason="the grammar changed", not_before=start, **EVERYTHING)
    assert shown(edited) == EVERYTHING
    assert (edited.not_before, edited.state, edited.fence) == (start, "pending", 0)
    entry = list(log.journal.history("tasks", task.id))[-1]
    assert (entry.body or "").startswith("edited title, objective")
    assert (entry.body or "").endswith(": the grammar changed")
    assert log.tasks.edit(task.id, reason="again", title="Read numbers").already
    assert len(log.journal.history("tasks", task.id)) == 2
    assert log.journal.verify().ok


def test_fields_are_cleared_by_name(log: Decklog, task: Task) -> None:
    log.tasks.edit(task.id, reason="x", **EVERYTHING)
    empty = log.tasks.edit(
        task.id, reason="y", clear=["objective", "group_id", "role", "tags", "inputs", "stage", "loop_version"]
    )
    assert (empty.objective, empty.group_id, empty.role, empty.tags, empty.inputs) == ("", None, None, [], {})
    assert empty.acceptance == ["1e5 is read"]
    for wrong in ({"clear": ["title"]}, {"clear": ["role"], "role": "qa"}, {}, {"priority": 101}, {"title": " "}):
        with pytest.raises(Invalid):
            log.tasks.edit(task.id, reason="z", **wrong)
    with pytest.raises(Invalid, match="reason"):
        log.tasks.edit(task.id, reason=" ", priority=1)
    with pytest.raises(NotFound):
        log.tasks.edit("nobody", reason="x", priority=1)


def test_an_edited_task_is_found_by_what_it_is_now(log: Decklog, run_id: str, task: Task) -> None:
    log.tasks.add(run_id, "another", priority=60)
    log.tasks.edit(task.id, reason="urgent", priority=70, tags=["fast"], role="qa")
    assert log.tasks.claim(run_id, worker="w", tag="slow") is None
    claim = claimed(log, run_id)
    assert claim.task.id == task.id
    claim.release()
    assert log.tasks.claim(run_id, worker="w", tag="fast", role="qa") is not None
    assert log.journal.verify().ok


def test_what_its_worker_relies_on_is_not_changed_under_its_hands(log: Decklog, run_id: str, task: Task) -> None:
    claim = claimed(log, run_id, worker="ana")
    with pytest.raises(Conflict, match="ana works on task t1 and relies on its title, acceptance"):
        log.tasks.edit(task.id, reason="x", title="other", acceptance=["other"], priority=3)
    log.tasks.edit(task.id, reason="x", priority=3, max_attempts=1, tags=["t"], role="qa")
    assert claim.fail("no").state == "blocked"
    log.tasks.edit(task.id, reason="clearer", title="other", max_attempts=2)
    log.tasks.resume(task.id)
    again = claimed(log, run_id, worker="ben")
    assert again.task.title == "other"
    again.finish()
    with pytest.raises(Conflict, match="done and can't be changed"):
        log.tasks.edit(task.id, reason="x", priority=4)


@pytest.mark.slow
def test_an_edit_and_a_claim_at_once_never_mix(target: str) -> None:
    """Whoever claims has the task as it was before the edit, or as it is after it, and keeps it so."""
    with Decklog.open(target) as log:
        run_id = log.runs.start("races").id
        log.tasks.add_many(run_id, [{"title": "before", "task_id": f"t{number}"} for number in range(30)])
    results = together("edit_and_claim", 4, target, run_id, 30)
    with Decklog.open(target) as log:
        tasks = {task.id: task for task in log.tasks.find(run_id, limit=100)}
        claimed = {name: title for result in results for name, title in result.get("claimed", {}).items()}
        edited = {name for result in results for name in result.get("edited", [])}
        assert len(claimed) == 30
        for name, title in claimed.items():
            assert tasks[name].title == title == ("after" if name in edited else "before")
        assert log.journal.verify().ok


# Adding what is known


def test_adding_a_known_task_as_something_else_names_the_fields(log: Decklog, run_id: str, task: Task) -> None:
    assert log.tasks.add(run_id, "Read words", task_id="t1", tags=["slow"]).already
    assert log.tasks.add(run_id, "Read words", task_id="t1").already
    with pytest.raises(Conflict, match="another title and another priority") as refused:
        log.tasks.add(run_id, "Read more", task_id="t1", priority=80)
    assert refused.value.details["fields"] == ["title", "priority"]
    with pytest.raises(Conflict, match="depends_on"):
        log.tasks.add(run_id, "other", task_id="t2")
        log.tasks.add(run_id, "Read words", task_id="t1", depends_on=["t2"])
    keyed = log.tasks.add(run_id, "keyed", key="k")
    assert log.tasks.add(run_id, "keyed", key="k").id == keyed.id
    with pytest.raises(Conflict, match="another title"):
        log.tasks.add(run_id, "something else", key="k")
    with pytest.raises(Conflict, match="another id"):
        log.tasks.add(run_id, "keyed", task_id="t9", key="k")


def test_whoever_added_a_task_may_say_so_again_after_it_was_edited(log: Decklog, run_id: str, task: Task) -> None:
    log.tasks.edit("t1", reason="x", title="Read all words")
    log.tasks.add(run_id, "later", task_id="t2", depends_on=["t1"])
    log.tasks.undepend("t2", "t1")
    assert log.tasks.add(run_id, "Read words", task_id="t1", tags=["slow"]).title == "Read all words"
    assert log.tasks.add(run_id, "Read all words", task_id="t1").already
    assert log.tasks.add(run_id, "later", task_id="t2", depends_on=["t1"]).already


# Assigning


def test_an_assigned_task_is_for_its_worker_alone(log: Decklog, run_id: str, task: Task) -> None:
    assert log.tasks.assign(task.id, "ana", reason="knows lexers").assigned_to == "ana"
    assert log.tasks.assign(task.id, "ana").already
    for wanted in ({}, {"tag": "slow"}):
        assert log.tasks.claim(run_id, worker="ben", **wanted) is None  # type: ignore[arg-type]
    assert log.tasks.claim(worker="ben") is None
    assert log.tasks.why_none(run_id, worker="ben")["code"] == "assigned"
    assert log.tasks.why_none(run_id)["code"] == "assigned"
    assert log.tasks.why_none(run_id, worker="ana")["code"] == "just_now"
    with pytest.raises(Conflict, match="it is assigned to ana"):
        log.tasks.claim(task_id=task.id, worker="ben")
    claim = claimed(log, worker="ana", tag="slow")
    log.tasks.assign(task.id, "ben")
    assert claim.extend().worker == "ana"
    claim.release()
    assert log.tasks.claim(run_id, worker="ana") is None
    assert log.tasks.assign(task.id).assigned_to is None
    assert log.tasks.claim(run_id, worker="ana") is not None
    assert log.journal.verify().ok


def test_a_task_may_be_added_for_somebody(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "for ana", assigned_to="ana", priority=99)
    log.tasks.add(run_id, "for all")
    assert [task.title for task in log.tasks.find(run_id, assigned_to="ana")] == ["for ana"]
    taken = [log.tasks.claim(run_id, worker=worker) for worker in ("ben", "ben", "ana")]
    assert [claim and claim.task.title for claim in taken] == ["for all", None, "for ana"]


@pytest.mark.slow
def test_only_the_one_it_is_assigned_to_gets_a_task_when_many_claim_at_once(target: str) -> None:
    with Decklog.open(target) as log:
        run_id = log.runs.start("races").id
        log.tasks.add_many(run_id, [{"title": "x", "task_id": f"t{number}"} for number in range(24)])
    results = together("assign_and_claim", 4, target, run_id, 24)
    with Decklog.open(target) as log:
        for task in log.tasks.find(run_id, limit=100):
            told = [entry.body or "" for entry in log.journal.history("tasks", task.id)]
            (claimed,) = [place for place, body in enumerate(told) if body.startswith("claimed by")]
            assigned = [body.split()[-1] for body in told[:claimed] if body.startswith("assigned to")]
            assert told[claimed].split()[-1] in (assigned or [task.worker])
        assert sum(len(result["claimed"]) for result in results) == 24
        assert log.journal.verify().ok


# Claiming by id


def test_a_task_is_claimed_by_its_id(log: Decklog, run_id: str, task: Task) -> None:
    log.tasks.add(run_id, "more urgent", priority=99)
    claim = claimed(log, task_id="t1", worker="ana", reserve_tokens=None)
    assert (claim.task.id, claim.task.fence, claim.task.worker) == ("t1", 1, "ana")
    assert log.tasks.claim(run_id, worker="ben") is not None


def test_a_claim_by_id_says_what_stands_in_the_way(log: Decklog, run_id: str, task: Task, clock: ManualClock) -> None:
    def why(task_id: str = "t1") -> tuple[str, str]:
        with pytest.raises(Conflict, match=f"task {task_id} can't be claimed") as refused:
            log.tasks.claim(task_id=task_id, worker="ben")
        return refused.value.details["why"], str(refused.value).partition(": ")[2]

    log.tasks.add(run_id, "after", task_id="t2", depends_on=["t1"])
    log.tasks.add(run_id, "tomorrow", task_id="t3", not_before=clock.now() + timedelta(days=1))
    assert why("t2") == ("waits", "waits for t1 (pending)")
    assert why("t3") == ("later", "not before 2026-01-02 00:00:00")
    claimed(log, task_id="t1", worker="ana", lease_seconds=60)
    assert why() == ("taken", "ana has it until 00:01:00")
    clock.advance(seconds=61)
    second = claimed(log, task_id="t1", worker="ben", lease_seconds=60)
    assert second.task.fence == 2
    second.finish("here")
    assert why() == ("done", "done")
    log.runs.update(run_id, status="paused")
    assert why("t2") == ("run_held", "run run_1 is paused or over")


def test_a_claim_by_id_is_not_narrowed_and_knows_its_run(log: Decklog, run_id: str, task: Task) -> None:
    other = log.runs.start("another").id
    with pytest.raises(Invalid, match="by its id, or by role"):
        log.tasks.claim(task_id="t1", worker="w", role="qa")
    with pytest.raises(Conflict, match="to run run_1, not to"):
        log.tasks.claim(other, task_id="t1", worker="w")
    with pytest.raises(NotFound):
        log.tasks.claim(task_id="nobody", worker="w")
    assert log.tasks.claim(run_id, task_id="t1", worker="w", wait_seconds=0.01) is not None
    with pytest.raises(Conflict, match="w has it"):
        log.tasks.claim(task_id="t1", worker="v", wait_seconds=0.01)
