"""Edits and snapshots as records, and the cache of origins."""

import pytest

from decklog import Decklog, EditKind, Invalid

ROOT, A, B, C = "f" * 40, "a" * 40, "b" * 40, "c" * 40


def test_an_edit_that_is_told_twice_is_recorded_once(log: Decklog) -> None:
    first = log.edits.record(ROOT, "a.py", old_blob=A, new_blob=B, session="claude:1", call_id="t1")
    again = log.edits.record(ROOT, "a.py", old_blob=A, new_blob=B, session="claude:1", call_id="t1")
    assert again.id == first.id
    assert again.already
    other = log.edits.record(ROOT, "a.py", old_blob=A, new_blob=B, session="claude:1", call_id="t2")
    assert other.id != first.id


def test_a_deletion_that_is_told_twice_is_recorded_once(log: Decklog) -> None:
    first = log.edits.record(ROOT, "a.py", old_blob=A, session="claude:1", call_id="t1")
    assert log.edits.record(ROOT, "a.py", old_blob=A, session="claude:1", call_id="t1").id == first.id


def test_edits_are_found_by_blob_path_and_run(log: Decklog) -> None:
    log.runs.start("g", run_id="r")
    log.edits.record(ROOT, "a.py", new_blob=A, session="claude:1", run_id="r")
    log.edits.record(ROOT, "b.py", new_blob=B, session="claude:1", kind="shell")
    assert [edit.path for edit in log.edits.find(blob=A)] == ["a.py"]
    assert [edit.kind for edit in log.edits.find(path="b.py")] == [EditKind.SHELL]
    assert [edit.path for edit in log.edits.find(run_id="r")] == ["a.py"]
    assert [edit.path for edit in log.edits.find(oldest_first=True)] == ["a.py", "b.py"]


@pytest.mark.parametrize(
    "given",
    [{}, {"person": "Ana"}, {"session": "claude:1", "kind": "person"}, {"session": "s:1", "person": "Ana", "kind": "person"}],
)
def test_an_edit_has_a_session_or_a_person(log: Decklog, given: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        log.edits.record(ROOT, "a.py", new_blob=A, **given)  # type: ignore[arg-type]


def test_an_edit_changes_something(log: Decklog) -> None:
    with pytest.raises(Invalid):
        log.edits.record(ROOT, "a.py", old_blob=A, new_blob=A, session="claude:1")


def test_a_snapshot_that_is_told_twice_is_recorded_once(log: Decklog) -> None:
    first = log.edits.record_snapshot(ROOT, "/tree", "claude:1", "end", C, skipped={"big": "too large"})
    assert log.edits.record_snapshot(ROOT, "/tree", "claude:1", "end", C).id == first.id
    assert [one.skipped for one in log.edits.snapshots(session="claude:1")] == [{"big": "too large"}]


def test_a_new_edit_drops_cached_unknown_origins_of_its_path(log: Decklog) -> None:
    edit = log.edits.record(ROOT, "a.py", new_blob=A, session="claude:1")
    known = [[1, 2, {"kind": "agent", "sessions": ["claude:1"], "edits": [edit.id]}]]
    log.edits.keep_origins(ROOT, {(B, "a.py"): known, (C, "a.py"): [[1, 1, {"kind": "unknown"}]]})
    log.edits.record(ROOT, "a.py", old_blob=A, new_blob=C, session="claude:1")
    assert log.edits.origins(ROOT, "a.py") == {B: known}


def test_verify_finds_cached_origins_of_an_edit_that_does_not_exist(log: Decklog) -> None:
    log.edits.keep_origins(ROOT, {(B, "a.py"): [[1, 2, {"kind": "agent", "edits": ["edit_none"]}]]})
    problems = log.journal.verify().problems
    assert any("edit_none" in problem.what for problem in problems)
    log.rebuild()
    assert log.journal.verify().ok
