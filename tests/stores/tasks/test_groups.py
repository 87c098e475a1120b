from datetime import UTC, datetime
from itertools import product

import pytest

from decklog import Conflict, Decklog, Invalid, ManualClock, NotFound
from decklog.records.record import find_all
from decklog.records.values import to_json
from decklog.stores.checks import check_group_id
from decklog.stores.tasks.groups import (
    GroupStatus,
    GroupTier,
    MergeStatus,
    ReviewStatus,
    check_task_group_id,
    normalize_specialization,
)
from tests.every import every

PREFIX = "bazinga/templates/specializations/"
EVERYTHING: dict[str, object] = {
    "name": "Payments",
    "status": "in_progress",
    "assigned_to": "developer_1",
    "revision_count": 2,
    "last_review_status": "CHANGES_REQUESTED",
    "feature_branch": "feature/payments",
    "merge_status": "conflict",
    "complexity": 7,
    "initial_tier": "Senior Software Engineer",
    "context_references": ["ctx_1", "ctx_2"],
    "specializations": [PREFIX + "languages/python.md"],
    "item_count": 4,
    "security_sensitive": True,
    "qa_attempts": 3,
    "tl_review_attempts": 1,
    "component_path": "services/payments",
    "review_iteration": 5,
    "no_progress_count": 1,
    "blocking_issues_count": 6,
    "speckit_task_ids": ["T001", "T002"],
}
OTHER: dict[str, object] = {
    "name": "Billing",
    "status": "failed",
    "assigned_to": "developer_2",
    "revision_count": 0,
    "last_review_status": "APPROVED",
    "feature_branch": "feature/billing",
    "complexity": 1,
    "initial_tier": "Developer",
    "context_references": [],
    "specializations": [],
    "item_count": 1,
    "security_sensitive": False,
    "qa_attempts": 0,
    "tl_review_attempts": 0,
    "component_path": "services/billing",
    "review_iteration": 6,
    "no_progress_count": 0,
    "blocking_issues_count": 0,
    "speckit_task_ids": [],
}


def fields_of(group: object) -> dict[str, object]:
    return {name: value for name, value in group.as_dict().items() if name in EVERYTHING}  # type: ignore[attr-defined]


def test_a_new_group_has_the_known_defaults(log: Decklog, run_id: str, clock: ManualClock) -> None:
    group = log.groups.add(run_id, "A")
    assert (group.name, group.status, group.initial_tier) == ("Task Group A", GroupStatus.PENDING, GroupTier.DEVELOPER)
    assert (group.item_count, group.review_iteration, group.revision_count) == (1, 1, 0)
    assert (group.context_references, group.specializations, group.speckit_task_ids) == (None, None, None)
    assert group.security_sensitive is False
    assert group.created_at == group.updated_at == clock.now()
    assert not group.already
    assert log.groups.get(run_id, "A") == group


def test_a_group_made_in_one_call_keeps_every_field_given(log: Decklog, run_id: str) -> None:
    log.groups.add(run_id, "A", **EVERYTHING)  # type: ignore[arg-type]
    group = log.groups.get(run_id, "A")
    assert fields_of(group) == EVERYTHING
    assert group.merge_status is MergeStatus.CONFLICT
    assert group.last_review_status is ReviewStatus.CHANGES_REQUESTED


def test_a_group_can_be_made_with_the_time_it_was_made_elsewhere(log: Decklog, run_id: str) -> None:
    then = datetime(2025, 3, 1, tzinfo=UTC)
    assert log.groups.add(run_id, "A", created_at=then).created_at == then
    assert log.groups.add(run_id, "A", created_at=datetime(2024, 1, 1, tzinfo=UTC)).created_at == then


@pytest.mark.slow
@every(("verb", "field"), product(["add", "update"], OTHER))
def test_a_change_of_one_field_leaves_all_the_others(log: Decklog, verb: str, field: str, clock: ManualClock) -> None:
    run_id = log.runs.start("Change").id
    before = log.groups.add(run_id, "A", **EVERYTHING)  # type: ignore[arg-type]
    clock.advance(minutes=1)
    after = getattr(log.groups, verb)(run_id, "A", **{field: OTHER[field]})
    assert fields_of(after) == EVERYTHING | {field: OTHER[field]}
    assert after.created_at == before.created_at
    assert after.updated_at == clock.now()
    assert log.groups.get(run_id, "A") == after


def test_the_same_add_again_writes_nothing(log: Decklog, run_id: str, clock: ManualClock) -> None:
    first = log.groups.add(run_id, "A", **EVERYTHING)  # type: ignore[arg-type]
    clock.advance(minutes=1)
    again = log.groups.add(run_id, "A", **EVERYTHING)  # type: ignore[arg-type]
    assert again == first
    assert again.already
    assert log.groups.add(run_id, "A").already
    assert log.groups.update(run_id, "A", complexity=7).already
    assert len(log.journal.history("groups", to_json([run_id, "A"]))) == 1


def test_no_list_and_an_empty_list_are_different(log: Decklog, run_id: str) -> None:
    for field in ("context_references", "specializations", "speckit_task_ids"):
        group = log.groups.add(run_id, "A")
        assert getattr(group, field) is None
        assert getattr(log.groups.update(run_id, "A", **{field: []}), field) == []
        assert getattr(log.groups.get(run_id, "A"), field) == []
        assert getattr(log.groups.update(run_id, "A", clear=[field]), field) is None


def test_cleared_fields_are_empty_and_the_rest_stays(log: Decklog, run_id: str) -> None:
    log.groups.add(run_id, "A", **EVERYTHING)  # type: ignore[arg-type]
    names = ["assigned_to", "last_review_status", "feature_branch", "complexity", "component_path", "specializations"]
    group = log.groups.update(run_id, "A", clear=names)
    assert fields_of(group) == EVERYTHING | dict.fromkeys(names)


@pytest.mark.parametrize("name", ["name", "status", "merge_status", "item_count", "run_id", "nonsense"])
def test_what_a_group_must_have_is_not_cleared(log: Decklog, run_id: str, name: str) -> None:
    log.groups.add(run_id, "A")
    with pytest.raises(Invalid, match="can't be cleared"):
        log.groups.update(run_id, "A", clear=[name])
    with pytest.raises(Invalid, match="given and cleared"):
        log.groups.update(run_id, "A", complexity=3, clear=["complexity"])


BAD: dict[str, list[object]] = {
    "name": ["", "  "],
    "status": ["done", ""],
    "assigned_to": [""],
    "revision_count": [-1, True, 2**63],
    "last_review_status": ["approved", "MAYBE"],
    "feature_branch": [" "],
    "complexity": [0, 11, True, 3.0, "3"],
    "initial_tier": ["developer"],
    "context_references": ["ctx_1", [1], [""]],
    "specializations": [["../secrets.md"], [7]],
    "item_count": [0],
    "security_sensitive": [1, "true"],
    "qa_attempts": [-1],
    "tl_review_attempts": [-1],
    "component_path": [3],
    "review_iteration": [0],
    "no_progress_count": [-1],
    "blocking_issues_count": [-1, False],
    "speckit_task_ids": [{"T001": 1}],
    "colour": ["red"],
}


@pytest.mark.slow
@every("bad", [{name: value} for name, values in BAD.items() for value in values])
def test_bad_values_are_refused_and_nothing_is_written(log: Decklog, bad: dict[str, object]) -> None:
    run_id = log.runs.start("Groups that make no sense").id
    with pytest.raises(Invalid):
        log.groups.add(run_id, "A", **bad)  # type: ignore[arg-type]
    assert log.groups.find(run_id) == []
    log.groups.add(run_id, "A")
    with pytest.raises(Invalid):
        log.groups.update(run_id, "A", **bad)  # type: ignore[arg-type]
    assert len(log.journal.history("groups", to_json([run_id, "A"]))) == 1


def test_an_unknown_merge_status_is_refused_by_verb_and_by_schema(log: Decklog, run_id: str) -> None:
    with pytest.raises(Invalid):
        log.groups.add(run_id, "A", merge_status="maybe")  # type: ignore[arg-type]
    log.groups.add(run_id, "A")
    for statement in (
        "update groups set merge_status = 'maybe'",
        "update groups set last_review_status = 'approved'",
        "update groups set complexity = 11",
        "update groups set review_iteration = 0",
    ):
        with pytest.raises(Invalid), log.transaction():
            log.db.rows(statement, {})


@every("bad", [None, 7, "", "   ", "a" * 65, "A\n", "A B", "ä", "a/b", "a.b", "a:b"])
def test_a_bad_group_id_is_refused(log: Decklog, run_id: str, bad: str) -> None:
    with pytest.raises(Invalid):
        check_group_id(bad)
    with pytest.raises(Invalid):
        log.groups.add(run_id, bad)
    assert log.groups.find(run_id) == []


@pytest.mark.parametrize("good", ["A", "a" * 64, "group_1", "1-2", "-", "_"])
def test_a_good_group_id_is_taken_as_it_is(log: Decklog, run_id: str, good: str) -> None:
    assert check_group_id(good) == check_task_group_id(good) == log.groups.add(run_id, good).group_id == good


@pytest.mark.parametrize("word", ["global", "session", "all", "default", "Global", "ALL", "dEfault"])
def test_a_reserved_word_is_a_scope_and_not_a_group(log: Decklog, run_id: str, word: str) -> None:
    assert check_group_id(word) == word
    with pytest.raises(Invalid, match="reserved identifier"):
        check_task_group_id(word)
    with pytest.raises(Invalid, match="reserved identifier"):
        log.groups.add(run_id, word)


@every(
    ("given", "normal"),
    [
        ("python.md", "python.md"),
        ("languages/python.md", "languages/python.md"),
        ("specializations/languages/python.md", "languages/python.md"),
        ("templates/specializations/languages/python.md", "languages/python.md"),
        (PREFIX + "languages/python.md", "languages/python.md"),
        ("./languages//python.md", "languages/python.md"),
        ("languages/./python.md", "languages/python.md"),
        ("./specializations/python.md", "python.md"),
        ("languages/", "languages"),
        ("bazinga/other.md", "bazinga/other.md"),
    ],
)
def test_a_specialisation_has_one_full_form(log: Decklog, run_id: str, given: str, normal: str) -> None:
    assert normalize_specialization(given) == PREFIX + normal
    assert normalize_specialization(PREFIX + normal) == PREFIX + normal
    assert log.groups.add(run_id, "A", specializations=[given]).specializations == [PREFIX + normal]


@pytest.mark.parametrize(
    "bad",
    [
        *("", " ", ".", "./", "/", "/etc/passwd", "../x.md", "a/../../x.md", "a..b", "a b.md", "a\\b.md", "a.md\n", "ä.md"),
        *("specializations/", "templates/specializations/", PREFIX, PREFIX + "../../x.md", "/" + PREFIX + "a.md", "~/a.md"),
        *(None, 7, ["a.md"]),
    ],
)
def test_a_specialisation_outside_its_folder_is_refused(bad: object) -> None:
    with pytest.raises(Invalid):
        normalize_specialization(bad)


def test_what_does_not_exist_is_not_updated(log: Decklog, run_id: str) -> None:
    acts = (
        lambda run, group: log.groups.get(run, group),
        lambda run, group: log.groups.update(run, group, complexity=3),
        lambda run, group: log.groups.count_revision(run, group),
        lambda run, group: log.groups.count_qa_attempt(run, group),
        lambda run, group: log.groups.count_review_attempt(run, group),
        lambda run, group: log.groups.record_review(run, group, "APPROVED"),
        lambda run, group: log.groups.record_merge(run, group, "pending"),
    )
    for act in acts:
        with pytest.raises(NotFound, match="no group 'B'"):
            act(run_id, "B")
        with pytest.raises(NotFound):
            act("nobody", "B")
    for nobody in ("nobody", "@desk", "@memory"):
        with pytest.raises(NotFound, match="no run"):
            log.groups.add(nobody, "A")
    log.groups.add(run_id, "A")
    with pytest.raises(Invalid, match="no changes given"):
        log.groups.update(run_id, "A")
    assert log.groups.find("nobody") == []


def test_the_same_id_in_two_runs_is_two_groups(log: Decklog, run_id: str) -> None:
    log.runs.start("another", run_id="run_2")
    log.groups.add(run_id, "A", name="one")
    log.groups.add("run_2", "A", name="two")
    assert log.groups.get(run_id, "A").name == "one"
    assert log.groups.get("run_2", "A").name == "two"


def test_groups_are_listed_in_the_order_of_their_making(log: Decklog, run_id: str) -> None:
    ids = ["C", "a", "B", "10", "9"]
    for group_id in ids:  # the clock stands still: times can't tell them apart
        log.groups.add(run_id, group_id)
    log.groups.update(run_id, "C", complexity=2)
    assert [group.group_id for group in log.groups.find(run_id)] == ids
    seen = [group.group_id for group in find_all(log.groups.find, run_id, limit=2)]
    assert seen == ids


def test_groups_are_found_by_status_person_and_merge(log: Decklog, run_id: str) -> None:
    log.runs.start("another", run_id="run_2")
    log.groups.add(run_id, "A", status="failed", assigned_to="ana")
    log.groups.add(run_id, "B", merge_status="conflict")
    log.groups.add("run_2", "A", status="failed")
    assert [(g.run_id, g.group_id) for g in log.groups.find(status="failed")] == [(run_id, "A"), ("run_2", "A")]
    assert [g.group_id for g in log.groups.find(run_id, assigned_to="ana")] == ["A"]
    assert [g.group_id for g in log.groups.find(run_id, merge_status="conflict")] == ["B"]
    with pytest.raises(Invalid):
        log.groups.find(run_id, status="")  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        log.groups.find(run_id, after="elsewhere")


def test_the_review_iteration_only_grows(log: Decklog, run_id: str) -> None:
    log.groups.add(run_id, "A", review_iteration=4)
    assert log.groups.update(run_id, "A", review_iteration=2).review_iteration == 4
    assert log.groups.add(run_id, "A", review_iteration=3, complexity=2).review_iteration == 4
    assert log.groups.update(run_id, "A", review_iteration=5).review_iteration == 5


def test_reviews_count_iterations_and_the_lack_of_progress(log: Decklog, run_id: str) -> None:
    log.groups.add(run_id, "A")
    seen = []
    for verdict, blocking in [("CHANGES_REQUESTED", 5), ("CHANGES_REQUESTED", 5), ("CHANGES_REQUESTED", 6)]:
        group = log.groups.record_review(run_id, "A", verdict, blocking_issues=blocking)  # type: ignore[arg-type]
        seen.append((group.review_iteration, group.blocking_issues_count, group.no_progress_count))
    assert seen == [(2, 5, 0), (3, 5, 1), (4, 6, 2)]
    group = log.groups.record_review(run_id, "A", ReviewStatus.CHANGES_REQUESTED, blocking_issues=2)
    assert (group.review_iteration, group.no_progress_count) == (5, 0)
    group = log.groups.record_review(run_id, "A", ReviewStatus.CHANGES_REQUESTED, blocking_issues=2, no_progress_count=9)
    assert group.no_progress_count == 9
    group = log.groups.record_review(run_id, "A", ReviewStatus.APPROVED)
    assert (group.last_review_status, group.blocking_issues_count, group.no_progress_count) == ("APPROVED", 0, 0)
    assert log.groups.record_review(run_id, "A", "CHANGES_REQUESTED", blocking_issues=1).no_progress_count == 0  # type: ignore[arg-type]


def test_a_review_sent_twice_counts_once(log: Decklog, run_id: str) -> None:
    log.groups.add(run_id, "A")
    first = log.groups.record_review(run_id, "A", ReviewStatus.CHANGES_REQUESTED, blocking_issues=3, iteration=1)
    again = log.groups.record_review(run_id, "A", ReviewStatus.CHANGES_REQUESTED, blocking_issues=3, iteration=1)
    assert first.review_iteration == again.review_iteration == 2
    assert again.already
    with pytest.raises(Conflict, match="not yet at 5"):
        log.groups.record_review(run_id, "A", ReviewStatus.APPROVED, iteration=5)


@pytest.mark.parametrize(
    ("verdict", "more"),
    [
        ("MAYBE", {}),
        ("APPROVED", {"blocking_issues": 1}),
        ("APPROVED", {"blocking_issues": -1}),
        ("CHANGES_REQUESTED", {"blocking_issues": True}),
        ("CHANGES_REQUESTED", {"no_progress_count": -1}),
        ("CHANGES_REQUESTED", {"iteration": 0}),
    ],
)
def test_a_review_that_makes_no_sense_is_refused(log: Decklog, run_id: str, verdict: ReviewStatus, more: dict[str, int]) -> None:
    group = log.groups.add(run_id, "A")
    with pytest.raises(Invalid):
        log.groups.record_review(run_id, "A", verdict, **more)  # type: ignore[arg-type]
    assert log.groups.get(run_id, "A") == group


LAWFUL = {
    (None, "pending"),
    (None, "in_progress"),
    ("pending", "in_progress"),
    ("in_progress", "merged"),
    ("in_progress", "conflict"),
    ("in_progress", "test_failure"),
    ("conflict", "in_progress"),
    ("test_failure", "in_progress"),
}


@every(("present", "wanted"), product([None, *MergeStatus], MergeStatus))
def test_a_merge_goes_only_the_lawful_ways(log: Decklog, present: MergeStatus | None, wanted: MergeStatus) -> None:
    run_id = log.runs.start("Merge").id
    log.groups.add(run_id, "A", merge_status=present)
    if present == wanted:
        assert log.groups.record_merge(run_id, "A", wanted).already
    elif (present, wanted) in LAWFUL:
        assert log.groups.record_merge(run_id, "A", wanted).merge_status is wanted
    else:
        with pytest.raises(Conflict, match="can't become"):
            log.groups.record_merge(run_id, "A", wanted)
        with pytest.raises(Conflict, match="can't become"):
            log.groups.add(run_id, "A", merge_status=wanted)
        assert log.groups.get(run_id, "A").merge_status is present


def test_the_status_moves_with_the_merge(log: Decklog, run_id: str) -> None:
    log.groups.add(run_id, "A", status="in_progress")
    steps = ["pending", "in_progress", "conflict", "in_progress", "test_failure", "in_progress", "merged"]
    seen = [str(log.groups.record_merge(run_id, "A", step).status) for step in steps]  # type: ignore[arg-type]
    assert seen == ["approved_pending_merge", "merging", "in_progress", "merging", "in_progress", "merging", "completed"]


def test_attempts_are_counted_one_by_one(log: Decklog, run_id: str) -> None:
    log.groups.add(run_id, "A", qa_attempts=2)
    assert log.groups.count_revision(run_id, "A").revision_count == 1
    assert log.groups.count_qa_attempt(run_id, "A").qa_attempts == 3
    assert log.groups.count_review_attempt(run_id, "A").tl_review_attempts == 1
