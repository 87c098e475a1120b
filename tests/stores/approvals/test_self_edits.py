import pytest

from decklog import Decklog, Invalid, ManualClock, NotFound
from decklog.stores.approvals.self_edits import PASSES
from tests.every import every


def document(**changes: object) -> dict[str, object]:
    """One line of a self-edit log, as telemetry gives it."""
    return {
        "ts": "2026-04-30T10:00:00Z",
        "pr": "https://example.org/pull/12",
        "fix_class": "tool",
        "files": ["src/tools/file.py"],
        "before_sha": "a" * 40,
        "after_sha": "b" * 40,
        "review_passes": dict.fromkeys(PASSES, "pass"),
        "confidence": 92,
        "em_review": "approved",
        "auto_merged": False,
        **changes,
    }


def test_a_self_edit_comes_back_as_it_was_given(log: Decklog) -> None:
    log.feedback.file("ana", "it loses the line endings", feedback_id="fb-1")
    edit = log.self_edits.record_document(document(feedback_id="fb-1"))
    assert log.self_edits.get(edit.id) == edit
    kept = {"ts" if name == "edited_at" else name: value for name, value in edit.as_dict().items() if name != "id"}
    assert kept == document(feedback_id="fb-1", ts="2026-04-30T10:00:00.000000Z")


def test_a_self_edit_is_recorded_from_its_parts(log: Decklog, clock: ManualClock) -> None:
    given = document()
    edit = log.self_edits.record(
        *(
            given[name]
            for name in ("pr", "fix_class", "files", "before_sha", "after_sha", "review_passes", "confidence", "em_review")
        ),  # type: ignore[arg-type]
    )
    assert (edit.edited_at, edit.auto_merged, edit.feedback_id) == (clock.now(), False, None)


@every(
    "bad",
    [
        {"fix_class": "magic"},
        {"files": []},
        {"files": "a.py"},
        {"files": ["a.py", ""]},
        {"files": [1]},
        {"before_sha": ""},
        {"after_sha": None},
        {"pr": 12},
        {"confidence": 101},
        {"confidence": -1},
        {"confidence": 92.5},
        {"confidence": True},
        {"confidence": "92"},
        {"em_review": ""},
        {"auto_merged": 1},
        {"auto_merged": "yes"},
        {"feedback_id": 7},
        {"ts": "yesterday"},
        {"ts": None},
        {"review_passes": dict.fromkeys(PASSES[:6], "pass")},
        {"review_passes": dict.fromkeys([*PASSES, "eighth"], "pass")},
        {"review_passes": dict.fromkeys(PASSES, None)},
        {"review_passes": ["pass"] * 7},
        {"colour": "red"},
        {"id": "mine"},
    ],
)
def test_a_bad_self_edit_is_refused(log: Decklog, bad: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        log.self_edits.record_document(document(**bad))
    assert log.self_edits.find() == []


@every("name", [name for name in document() if name != "feedback_id"])
def test_no_field_may_be_missing(log: Decklog, name: str) -> None:
    given = document()
    del given[name]
    with pytest.raises(Invalid) as refused:
        log.self_edits.record_document(given)
    assert refused.value.details["missing"] == [name]


def test_feedback_that_is_not_in_the_log_is_refused(log: Decklog) -> None:
    with pytest.raises(NotFound):
        log.self_edits.record_document(document(feedback_id="fb-nobody"))


def test_the_same_pull_request_at_the_same_commit_is_one_record(log: Decklog) -> None:
    first = log.self_edits.record_document(document())
    assert log.self_edits.record_document(document()).already
    assert log.self_edits.record_document(document(after_sha="c" * 40)).id != first.id
    assert len(log.self_edits.find()) == 2


def test_self_edits_are_listed_by_time_class_and_feedback(log: Decklog) -> None:
    log.feedback.file("ana", "x", feedback_id="fb-1")
    for day, fix_class in enumerate(["doc", "tool", "doc"], 1):
        log.self_edits.record_document(document(ts=f"2026-04-0{day}T00:00:00Z", after_sha=str(day), fix_class=fix_class))
    log.self_edits.record_document(document(after_sha="9", feedback_id="fb-1"))
    assert [edit.after_sha for edit in log.self_edits.find()] == ["9", "3", "2", "1"]
    assert [edit.after_sha for edit in log.self_edits.find(fix_class="doc", oldest_first=True)] == ["1", "3"]
    assert [edit.after_sha for edit in log.self_edits.find(feedback_id="fb-1")] == ["9"]
