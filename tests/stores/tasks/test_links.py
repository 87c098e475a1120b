"""Links between tasks: what holds a task back, what is a part of it, and what people said of it."""

import pytest

from decklog import Conflict, Decklog, Invalid, LinkKind, NotFound
from tests.db.processes import together
from tests.stores.claiming import claimed, taken

PARENT, RELATED, DISCOVERED = LinkKind.PARENT, LinkKind.RELATED, LinkKind.DISCOVERED_FROM


@pytest.fixture
def plan(log: Decklog, run_id: str) -> Decklog:
    """Four tasks: a, b, c and d."""
    log.tasks.add_many(run_id, [{"title": name.upper(), "task_id": name} for name in "abcd"])
    return log


def test_a_dependency_is_taken_off_and_its_task_is_ready(plan: Decklog, run_id: str) -> None:
    plan.tasks.depend("b", "a")
    plan.tasks.depend("b", "c")
    assert plan.tasks.undepend("b", "a", reason="not needed").open_dependencies == 1
    assert plan.tasks.undepend("b", "a").already
    assert plan.tasks.undepend("b", "c").open_dependencies == 0
    assert plan.tasks.dependencies("b") == []
    assert plan.tasks.claim(task_id="b", worker="w") is not None
    assert plan.journal.verify().ok
    with pytest.raises(NotFound):
        plan.tasks.undepend("b", "nobody")


def test_a_link_with_what_is_done_counts_for_nothing(plan: Decklog) -> None:
    claimed(plan, task_id="a").finish()
    plan.tasks.depend("b", "a")
    plan.tasks.depend("b", "c")
    assert plan.tasks.undepend("b", "a").open_dependencies == 1
    plan.tasks.abandon("c", reason="x")
    assert plan.tasks.undepend("b", "c").open_dependencies == 0
    with pytest.raises(Conflict, match="c is abandoned"):
        plan.tasks.depend("c", "d", kind=RELATED)
        plan.tasks.undepend("c", "d")


def test_only_blocks_holds_back(plan: Decklog, run_id: str) -> None:
    plan.tasks.depend("a", "b", kind=RELATED)
    plan.tasks.depend("b", "a", kind=DISCOVERED)
    plan.tasks.depend("c", "a", kind=PARENT)
    assert {task.open_dependencies for task in plan.tasks.find(run_id)} == {0}
    assert plan.tasks.dependencies("a", kind=RELATED) == ["b"]
    assert plan.tasks.depend("c", "a", kind=PARENT).already
    with pytest.raises(Conflict, match="already linked with a as parent"):
        plan.tasks.depend("c", "a")
    claimed(plan, task_id="b").finish()
    assert plan.tasks.get("a").open_dependencies == 0
    assert plan.journal.verify().ok


def test_what_could_only_be_done_after_itself_is_refused(plan: Decklog) -> None:
    plan.tasks.depend("b", "a", kind=PARENT)
    plan.tasks.depend("c", "b", kind=PARENT)
    with pytest.raises(Conflict, match="cycle: c -> a -> b -> c"):
        plan.tasks.depend("a", "c", kind=PARENT)
    with pytest.raises(Conflict, match="cycle"):
        plan.tasks.depend("c", "a")  # a is done only after c, its part
    plan.tasks.depend("a", "c")  # to wait for a part of its own is well
    plan.tasks.depend("d", "c", kind=RELATED)
    plan.tasks.depend("c", "d", kind=DISCOVERED)
    with pytest.raises(Conflict, match="b already has the parent a"):
        plan.tasks.depend("b", "d", kind=PARENT)


def test_a_task_is_not_done_before_its_parts(plan: Decklog, run_id: str) -> None:
    claim = claimed(plan, task_id="a")
    part = plan.tasks.add(run_id, "part", task_id="a.1", parent_id="a")
    plan.tasks.add(run_id, "part", task_id="a.2", parent_id="a")
    with pytest.raises(Conflict, match=r"a has 2 open subtasks .* a.1 \(pending\), a.2 \(pending\)"):
        claim.finish()
    assert plan.tasks.get("a").state == "running"
    plan.tasks.abandon("a.2", reason="not needed")
    with plan.tasks.claim(task_id=part.id, worker="v"):  # type: ignore[union-attr]
        pass
    assert claim.finish().state == "done"
    with pytest.raises(Conflict, match="a is done"):
        plan.tasks.add(run_id, "late", parent_id="a")
    assert [task.title for task in plan.tasks.find(run_id)].count("late") == 0
    assert plan.journal.verify().ok


def test_progress_is_rolled_up_from_the_smallest_parts(plan: Decklog, run_id: str) -> None:
    for child, parent in (("b", "a"), ("c", "b"), ("d", "b")):
        plan.tasks.depend(child, parent, kind=PARENT)
    plan.tasks.add(run_id, "e", task_id="e", parent_id="a")
    assert plan.tasks.subtasks("a")["state"] == "pending"
    claim = claimed(plan, task_id="c")
    assert plan.tasks.subtasks("a")["state"] == "running"
    claim.finish()
    plan.tasks.abandon("e", reason="x")
    shown = plan.tasks.subtasks("a")
    assert (shown["state"], shown["progress_percent"], shown["done"], shown["count"]) == ("pending", 50, 1, 2)
    assert {part["id"]: part["parent_id"] for part in shown["subtasks"]} == {"b": "a", "c": "b", "d": "b", "e": "a"}
    assert plan.tasks.subtasks("d")["progress_percent"] == 0


def test_a_plan_may_have_parents_that_wait_for_their_parts(log: Decklog, run_id: str) -> None:
    tasks: list[dict[str, object]] = [
        {"title": "whole", "task_id": "whole", "depends_on": ["one", "two"]},
        {"title": "one", "task_id": "one", "parent_id": "whole"},
        {"title": "two", "task_id": "two", "parent_id": "whole"},
    ]
    log.tasks.add_many(run_id, tasks)
    log.tasks.add(run_id, "three", task_id="three")
    assert all(task.already for task in log.tasks.add_many(run_id, tasks))
    with pytest.raises(Conflict, match="another parent_id"):
        log.tasks.add_many(run_id, [{**tasks[1], "parent_id": "three"}])
    log.tasks.abandon("three", reason="x")
    assert [task.id for task in taken(log)] == ["one", "two", "whole"]


def test_a_view_shows_all_that_belongs_to_a_task(plan: Decklog, run_id: str) -> None:
    plan.tasks.depend("b", "a")
    plan.tasks.depend("c", "a", kind=PARENT)
    plan.tasks.depend("a", "d", kind=DISCOVERED)
    with plan.acting("developer"):
        plan.tasks.comment("a", "Half of it is there")
    plan.tasks.comment("a", "Which half?", author="ana")
    seen = plan.tasks.details("a")
    assert {name: [one["id"] for one in linked] for name, linked in seen["links"].items()} == {
        "holds_back": ["b"],
        "subtasks": ["c"],
        "discovered_from": ["d"],
    }
    assert [(said["author"], said["body"]) for said in seen["comments"]] == [
        ("developer", "Half of it is there"),
        ("ana", "Which half?"),
    ]
    assert seen["progress"]["count"] == 1
    assert [entry.body for entry in plan.journal.find(run_id, task_id="a", limit=1)] == ["ana: Which half?"]
    with pytest.raises(Invalid, match="author"):
        plan.tasks.comment("a", "by nobody")
    assert [said.author for said in plan.tasks.comments("a")] == ["developer", "ana"]


def test_a_fork_has_the_links_the_comments_and_who_a_task_is_for(plan: Decklog, run_id: str) -> None:
    plan.tasks.depend("b", "a")
    plan.tasks.depend("c", "a", kind=PARENT)
    plan.tasks.assign("a", "ana")
    plan.tasks.comment("a", "said", author="ana")
    plan.tasks.depend("d", "a")
    plan.tasks.undepend("d", "a")
    fork = plan.runs.fork(run_id)
    tasks = {task.title: task for task in plan.tasks.find(fork.id)}
    assert (tasks["A"].assigned_to, tasks["B"].open_dependencies, tasks["D"].open_dependencies) == ("ana", 1, 0)
    assert plan.tasks.subtasks(tasks["A"].id)["count"] == 1
    assert [said.body for said in plan.tasks.comments(tasks["A"].id)] == ["said"]
    assert plan.journal.verify().ok


@pytest.mark.slow
def test_a_dependency_taken_off_while_others_claim_leaves_a_true_count(target: str) -> None:
    with Decklog.open(target) as log:
        run_id = log.runs.start("races").id
        log.tasks.add(run_id, "first", task_id="first")
        log.tasks.add_many(run_id, [{"title": "x", "task_id": f"t{n}", "depends_on": ["first"]} for n in range(20)])
    together("undepend_and_work", 4, target, run_id, 20)
    with Decklog.open(target) as log:
        assert {task.state.value for task in log.tasks.find(run_id, limit=100)} == {"done"}
        assert {task.open_dependencies for task in log.tasks.find(run_id, limit=100)} == {0}
        assert log.journal.verify().ok
