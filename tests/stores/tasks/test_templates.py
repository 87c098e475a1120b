"""Templates: plans that are used again, filled in, once for each key."""

from typing import Any

import pytest

from decklog import Conflict, Decklog, Invalid, NotFound
from tests.db.processes import together
from tests.stores.claiming import claimed

RELEASE: list[dict[str, object]] = [
    {"name": "test", "title": "Test {{version}}", "verification": ["make test V={{ version }}"], "priority": 80},
    {"name": "build", "title": "Build {{version}}", "depends_on": ["test"], "parent": "release"},
    {"name": "release", "title": "Release {{version}} to {{place}}", "depends_on": ["build"], "tags": ["release"]},
]
VALUES: dict[str, object] = {"version": "1.2", "place": "PyPI"}


@pytest.fixture
def template(log: Decklog) -> str:
    return log.templates.save("release", RELEASE, description="How we release").name


def test_a_template_becomes_tasks_with_its_places_filled_in(log: Decklog, run_id: str, template: str) -> None:
    made = {task.title: task for task in log.templates.use(template, run_id, values=VALUES)}
    assert set(made) == {"Test 1.2", "Build 1.2", "Release 1.2 to PyPI"}
    assert made["Test 1.2"].verification == ["make test V=1.2"]
    assert log.tasks.dependencies(made["Build 1.2"].id) == [made["Test 1.2"].id]
    assert log.tasks.subtasks(made["Release 1.2 to PyPI"].id)["subtasks"][0]["id"] == made["Build 1.2"].id
    claim = claimed(log, run_id)
    assert claim.task.title == "Test 1.2"
    assert len(log.templates.use(template, run_id, values=VALUES)) == 3
    assert len(log.tasks.find(run_id)) == 6
    assert log.journal.verify().ok


def test_a_key_makes_the_tasks_once_whatever_became_of_the_template(log: Decklog, run_id: str, template: str) -> None:
    first = log.templates.use(template, run_id, values=VALUES, key="r 1.2")
    log.templates.save(template, [{"title": "Ship it"}])
    again = log.templates.use(template, run_id, values=VALUES, key="r 1.2")
    assert {task.id for task in again} == {task.id for task in first}
    assert all(task.already for task in again)
    assert [task.title for task in log.templates.use(template, run_id, key="r 1.20")] == ["Ship it"]
    old = log.templates.use(template, run_id, values=VALUES, version=1)
    assert len(old) == 3


def test_versions_are_kept_and_nothing_new_makes_none(log: Decklog, template: str) -> None:
    assert log.templates.save(template, RELEASE, description="How we release").already
    second = log.templates.save(template, RELEASE[:1])
    assert (second.version, second.places) == (2, ["version"])
    assert log.templates.get(template).version == 2
    assert log.templates.get(template, version=1).places == ["place", "version"]
    assert [(one.name, one.version) for one in log.templates.find()] == [("release", 1), ("release", 2)]
    for wrong in ({"name": "none"}, {"name": template, "version": 9}):
        with pytest.raises(NotFound):
            log.templates.get(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "said"),
    [({}, "needs place, version"), ({**VALUES, "who": 1}, "has no placeholder who"), ({"version": 1}, "needs place")],
)
def test_places_and_values_must_fit(log: Decklog, run_id: str, template: str, values: dict[str, Any], said: str) -> None:
    with pytest.raises(Invalid, match=said):
        log.templates.use(template, run_id, values=values)
    assert log.tasks.find(run_id) == []


@pytest.mark.parametrize(
    "tasks",
    [
        [],
        [{"name": "a"}],
        [{"title": "a", "name": "x"}, {"title": "b", "name": "x"}],
        [{"title": "a", "depends_on": ["y"]}],
        [{"title": "a", "parent": "y"}],
        [{"title": "a", "task_id": "t"}],
        [{"title": "a", "colour": "red"}],
    ],
)
def test_a_set_that_does_not_hold_together_is_refused(log: Decklog, tasks: list[dict[str, object]]) -> None:
    with pytest.raises(Invalid):
        log.templates.save("bad", tasks)


def test_a_circle_is_refused_when_it_is_saved(log: Decklog) -> None:
    with pytest.raises(Conflict, match="circle"):
        log.templates.save("bad", [{"name": n, "title": n, "depends_on": [m]} for n, m in (("a", "b"), ("b", "a"))])


def test_processes_that_use_a_key_at_once_make_the_tasks_once(target: str) -> None:
    with Decklog.open(target) as log:
        run_id = log.runs.start("races").id
        log.templates.save("release", RELEASE)
    found = together("use_template", 4, target, run_id, VALUES)
    assert len({tuple(sorted(ids)) for ids in found}) == 1
    with Decklog.open(target) as log:
        assert len(log.tasks.find(run_id)) == 3
        assert log.journal.verify().ok
