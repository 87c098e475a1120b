"""Claims by group, role and tag: the right task, found by an index, however many others there are."""

import re
from datetime import timedelta
from typing import Any

import pytest

from decklog import Decklog, ManualClock, TaskState
from decklog.core.clock import to_text
from decklog.stores.tasks.claimable import claim_sql, direct_claim_sql, ready_check_sql
from tests.stores.claiming import claimed, taken

NARROWED: list[dict[str, str]] = [{"role": "reviewer"}, {"tag": "rare"}, {"group_id": "B"}, {"tag": "rare", "role": "reviewer"}]
INDEXES = {("role",): "tasks_ready_by_role", ("group_id",): "tasks_ready_by_group"}


def plan_of(log: Decklog, sql: str) -> str:
    words = {"sqlite": "explain query plan ", "postgres": "explain "}[log.db.engine]
    now = to_text(log.clock.now())
    bound = {"run_id": "run_1", "worker": "w", **dict.fromkeys(("now", "steady_now", "until"), now)}
    bound |= {"role": "reviewer", "tag": "rare", "group_id": "B"}

    def explain() -> list[Any]:
        if log.db.engine == "postgres":
            # A plan is made by what is known of the rows, which may be of a test before.
            # A handful of rows is read faster without any index.
            log.db.rows("analyze tasks", {})
            log.db.rows("set local enable_seqscan = off", {})
            log.db.rows("set local enable_sort = off", {})
        return log.db.rows(words + sql.replace("returning *", ""), bound)[1]

    return " ".join(str(row[-1]) for row in log.db.write(explain)).lower()


def add_many(log: Decklog) -> None:
    log.tasks.add_many("run_1", [{"title": f"task {n}", "priority": 60, "tags": ["common"], "role": "dev"} for n in range(30)])
    for number in range(3):
        log.tasks.add("run_1", "rare", task_id=f"rare_{number}", tags=["odd", "rare"], role="reviewer", group_id="B")


@pytest.mark.parametrize("wanted", NARROWED, ids=str)
def test_the_task_is_found_by_an_index_in_its_order(log: Decklog, run_id: str, wanted: dict[str, str]) -> None:
    add_many(log)
    asked = tuple(wanted)
    for sql in (direct_claim_sql(asked), ready_check_sql((*asked, "run_id")), ready_check_sql((*asked, "run_id", "worker"))):
        plan = plan_of(log, sql)
        assert INDEXES.get(asked, "ready_tags") in plan, plan
        assert "temp b-tree" not in plan
        assert "sort" not in plan


@pytest.mark.parametrize("wanted", [{}, *NARROWED], ids=str)
def test_what_is_for_others_is_not_walked_over(log: Decklog, run_id: str, wanted: dict[str, str]) -> None:
    add_many(log)
    asked = tuple(wanted)
    # Where none is the worker's own is asked of the tasks, whatever the claim is narrowed to.
    at_once = 1 if "tag" in asked else 2
    for sql, times in (
        (direct_claim_sql(asked), at_once),
        (claim_sql(asked), 2),
        (ready_check_sql((*asked, "run_id", "worker")), 2),
    ):
        plan = plan_of(log, sql)
        whose = "assigned_to=?" if "tag" in asked else "<expr>=?"
        if log.db.engine == "postgres":
            whose = "assigned_to = '" if "tag" in asked else "coalesce(assigned_to, ''::text)"
            plan = " ".join(re.findall(r"index cond: .*?(?= filter| ->|$)", plan))
        assert plan.count(whose) == times, plan


@pytest.mark.parametrize("wanted", [{}, *NARROWED], ids=str)
def test_what_is_ones_own_and_what_is_anybodys_come_in_one_order(log: Decklog, run_id: str, wanted: dict[str, str]) -> None:
    """Urgency decides, and then age; what is for others stays where it is."""
    fields: dict[str, Any] = {"tags": ["odd", "rare"], "role": "reviewer", "group_id": "B"}
    for number, (whose, priority) in enumerate((("w", 50), (None, 50), ("other", 90), (None, 80), ("w", 60), ("w", 50))):
        log.tasks.add("run_1", "task", task_id=f"t{number}", assigned_to=whose, priority=priority, **fields)
    assert [task.id for task in taken(log, **wanted)] == ["t3", "t4", "t0", "t1", "t5"]
    assert log.journal.verify().ok


def test_tags_follow_a_task_that_is_assigned_and_freed(log: Decklog, run_id: str) -> None:
    log.tasks.add("run_1", "one", task_id="one", tags=["a"])
    log.tasks.assign("one", "w")
    assert log.tasks.claim("run_1", worker="other", tag="a") is None
    assert log.journal.verify().ok
    log.tasks.assign("one", None)
    assert log.tasks.claim("run_1", worker="other", tag="a") is not None


def test_a_task_that_is_ones_own_again_is_found_by_the_same_claim(log: Decklog, clock: ManualClock, run_id: str) -> None:
    """The lease ends as the claim looks: what was said of the worker's own before no longer holds."""
    log.tasks.add("run_1", "one", task_id="one", assigned_to="w")
    assert log.tasks.claim("run_1", worker="w", lease_seconds=60) is not None
    clock.advance(minutes=2)
    assert log.tasks.claim("run_1", worker="w") is not None


@pytest.mark.parametrize("wanted", NARROWED, ids=str)
def test_the_oldest_of_the_most_urgent_is_taken(log: Decklog, clock: ManualClock, run_id: str, wanted: dict[str, str]) -> None:
    add_many(log)
    clock.advance(seconds=1)
    log.tasks.add("run_1", "rare", task_id="urgent", tags=["rare"], role="reviewer", group_id="B", priority=90)
    assert [task.id for task in taken(log, **wanted)] == ["urgent", "rare_0", "rare_1", "rare_2"]


@pytest.mark.slow
def test_tags_follow_a_task_through_its_whole_life(log: Decklog, clock: ManualClock, run_id: str) -> None:
    def found(**wanted: Any) -> str | None:
        claim = log.tasks.claim("run_1", worker="w", lease_seconds=60, **wanted)
        return None if claim is None else claim.task.id

    log.tasks.add("run_1", "first", task_id="first")
    log.tasks.add("run_1", "tagged", task_id="tagged", tags=["a", "b", 'with "quotes", commas'], depends_on=["first"])
    assert found(tag="a") is None
    assert found() == "first"
    log.tasks.finish("first", fence=1)
    for fence, tag in enumerate(("a", "b", 'with "quotes", commas'), 1):
        assert found(tag=tag) == "tagged"
        assert found(tag=tag) is None
        assert log.journal.verify().ok
        log.tasks.release("tagged", fence=fence)
    assert found(tag="a") == "tagged"
    clock.advance(minutes=2)
    assert found(tag="b") == "tagged"  # the lease of the one before was over
    log.tasks.fail("tagged", fence=5, retry_after_seconds=60)
    assert found(tag="b") is None
    clock.advance(minutes=2)
    assert found(tag="b") == "tagged"
    log.tasks.pause("tagged", reason="wait")
    assert found(tag="a") is None
    log.tasks.resume("tagged")
    assert log.journal.verify().ok
    log.tasks.abandon("tagged", reason="enough")
    assert log.db.read(lambda: log.db.rows("select * from ready_tags", {}))[1] == []


def test_tasks_without_a_tag_or_role_leave_nothing_beside_them(log: Decklog, run_id: str) -> None:
    for number in range(5):
        log.tasks.add("run_1", f"task {number}")
    claimed(log, "run_1").finish()
    assert log.db.read(lambda: log.db.one("select count(*) from ready_tags", {})) == (0,)


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        "delete from ready_tags where task_id = 'rare_1'",
        "update ready_tags set tag = 'even' where tag = 'odd'",
        "update ready_tags set rank = 0 where task_id = 'rare_2'",
        "update ready_tags set assigned_to = 'w' where task_id = 'rare_2'",
        "insert into ready_tags (tag, run_id, assigned_to, rank, created_at, task_id) values ('x', 'run_1', '', 0, '', 'x')",
    ],
)
def test_tags_that_were_changed_behind_our_back_are_found_and_made_anew(log: Decklog, run_id: str, damage: str) -> None:
    add_many(log)
    assert log.journal.verify().ok
    log.db.write(lambda: log.db.count(damage, {}))
    first = log.journal.verify().first
    assert first is not None
    assert first.table == "ready_tags"
    log.tasks.derive()
    assert log.journal.verify().ok


def test_a_forked_or_moved_task_is_found_by_its_tags(log: Decklog, run_id: str) -> None:
    add_many(log)
    fork = log.runs.fork("run_1")
    claim = claimed(log, fork.id, tag="rare")
    assert claim.task.run_id == fork.id
    assert log.journal.verify().ok


def test_without_a_run_the_most_urgent_task_of_all_is_taken(log: Decklog, clock: ManualClock, run_id: str) -> None:
    log.tasks.add("run_1", "idle", task_id="one", priority=20)
    clock.advance(seconds=1)
    log.runs.start("another", run_id="run_2")
    log.tasks.add("run_2", "urgent", task_id="two", priority=90, tags=["x"])
    log.runs.start("held", run_id="run_3")
    log.tasks.add("run_3", "later", task_id="three", priority=99, not_before=clock.now() + timedelta(days=1), tags=["x"])
    claims = [log.tasks.claim(worker="w", tag="x"), log.tasks.claim(worker="w"), log.tasks.claim(worker="w")]
    assert [claim and claim.task.id for claim in claims] == ["two", "one", None]
    assert log.tasks.get("three").state is TaskState.PENDING
