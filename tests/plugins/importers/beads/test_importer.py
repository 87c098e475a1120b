"""Beads' issues are taken over whole, again and again, from files as people have them."""

import json
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.importing.report import Outcome, Report
from decklog.journal.entry import IMPORTED_COLUMNS, IMPORTED_ROW
from decklog.plugins.importers.beads import BeadsImport
from tests.conftest import on_both
from tests.plugins.importers import claims
from tests.plugins.importers.beads.beads_files import BROKEN, EVERY_FIELD, KINDS, counts, issue, needs, write


def _taker(path: Path) -> claims.Take:
    return lambda log, **settings: BeadsImport(log, str(path), run_id="beads", **settings).run()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "issues.jsonl")


def _take(log: Decklog, path: Path, *found: dict[str, object]) -> Report:
    write(path, [json.dumps(one) for one in found])
    return _taker(path)(log)


@pytest.mark.slow
@on_both
def test_every_row_arrives_once_and_a_second_import_changes_nothing(log: Decklog, file: Path) -> None:
    report = claims.check_whole(log, _taker(file), counts())

    assert report.tables["lines"][Outcome.KEPT] == len(BROKEN)
    # One was deleted there; two versions of the same time differ.
    assert report.tables["issues"][Outcome.KEPT] == 2
    assert any("git conflict markers" in note for note in report.notes)
    assert any("begin with 'other'" in note for note in report.notes)


def test_every_field_of_an_issue_is_in_the_log(log: Decklog, file: Path) -> None:
    _taker(file)(log)

    task = log.tasks.get("bd-full")
    assert (task.title, task.objective, task.state, task.priority) == ("Parse commas", "Lists end in commas.", "done", 90)
    assert (task.tags, task.acceptance, task.summary) == (["parser", "lists"], ["All tests pass"], "Fixed in the lexer")
    assert task.assigned_to == "ana"
    shown = task.inputs["beads"]
    taken = {"id", "title", "description", "status", "priority", "labels", "acceptance_criteria", "close_reason", "assignee"}
    taken |= {"_type", "created_at", "updated_at", "comments", "dependency_count", "dependent_count", "comment_count"}
    assert {**shown, "from_the_future": {"kept": True}} == {n: v for n, v in EVERY_FIELD.items() if n not in taken}
    kept = [entry.payload for entry in log.journal.find("beads", subtype=IMPORTED_COLUMNS, limit=200)]
    assert [one["columns"] for one in kept if one["id"] == "bd-full"] == [{"from_the_future": {"kept": True}}]
    assert [(one.author, one.body) for one in log.tasks.comments("bd-full")] == [
        ("ana", "Number seven"),
        ("ben", "By its own id"),
    ]


def test_states_are_read_so_that_nobody_is_given_what_is_not_to_be_worked_on(log: Decklog, file: Path) -> None:
    _taker(file)(log)

    states = [log.tasks.get(f"bd-s{number}").state for number in (0, 1, 2, 3, 4, 5, 7)]
    assert states == ["pending", "paused", "blocked", "paused", "paused", "paused", "paused"]
    later = log.tasks.get("bd-later")
    assert (later.state, later.not_before.year) == ("pending", 2027)
    assert log.tasks.get("bd-template").state == "paused"
    assert log.tasks.get("bd-old").inputs == {"beads": {"issue_type": "feature", "closed_at": "1970-01-01T00:00:00Z"} | _unset()}
    assert log.tasks.get("bd-odd").priority == 50


def _unset() -> dict[str, str]:
    return {"due_at": "0001-01-01T00:00:00Z"}


def test_links_hold_back_what_they_held_back_there(log: Decklog, file: Path) -> None:
    _taker(file)(log)

    assert log.tasks.dependencies("bd-1.1", kind="parent") == ["bd-1"]
    assert log.tasks.get("bd-1.1").open_dependencies == 1
    # What it waits for is closed.
    assert log.tasks.get("bd-1.2").open_dependencies == 0
    kinds = {kind: log.tasks.details(f"bd-k{number}")["links"] for number, kind in enumerate(KINDS)}
    assert all("waits_for" in kinds[kind] for kind in ("blocks", "conditional-blocks", "waits-for"))
    assert "part_of" in kinds["parent-child"]
    assert "discovered_from" in kinds["discovered-from"]
    assert all("related" in kinds[kind] for kind in KINDS[6:])


def test_links_that_cannot_be_made_are_kept_and_told(log: Decklog, file: Path) -> None:
    report = _taker(file)(log)

    kept = {entry.payload["id"]: entry.payload["why"] for entry in log.journal.find("beads", subtype=IMPORTED_ROW, limit=200)}
    assert kept["bd-c1/external:x:y/blocks"] == "external:x:y is not in the source"
    assert kept["bd-c2/bd-c2/blocks"] == "it links bd-c2 with itself"
    assert kept["bd-p/bd-c1/parent-child"] == "bd-p is a part of bd-1 already"
    assert kept["bd-t/bd-1/related"] == "bd-t is linked with bd-1 already, as blocks"
    assert kept["bd-c3/bd-c1/blocks"] == "bd-c1 and bd-c3 would wait for each other in a circle"
    assert report.tables["dependencies"][Outcome.KEPT] == 5


def test_memories_are_recalled_and_a_changed_one_replaces_the_old(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    first = {"_type": "memory", "key": "build", "value": "Run make before the tests"}
    _take(log, path, first)

    report = _take(log, path, {**first, "value": "Nothing is built any more, run pytest alone"})
    again = _take(log, path, first)

    assert report.tables["memories"][Outcome.CHANGED] == 1
    assert again.tables["memories"][Outcome.ALREADY] == 1
    found = log.memory.find(source_kind="beads", source_id="build")
    assert [lesson.body for lesson in found] == ["Nothing is built any more, run pytest alone"]


def test_an_import_after_changes_brings_just_them(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    waits = issue("bd-b", dependencies=[needs("bd-b", "bd-a")])
    _take(log, path, issue("bd-a"), waits)
    assert log.tasks.get("bd-b").open_dependencies == 1
    before = sum(head["seq"] for head in log.journal.heads())

    report = _take(log, path, issue("bd-a", status="closed", updated_at="2026-02-01T00:00:00Z"), waits, issue("bd-n"))

    assert (report.total(Outcome.NEW), report.total(Outcome.CHANGED), report.total(Outcome.ALREADY)) == (1, 1, 2)
    assert log.tasks.get("bd-b").open_dependencies == 0
    # The changed issue, the one that waited for it, and the new one.
    assert sum(head["seq"] for head in log.journal.heads()) == before + 3


def test_a_link_that_was_taken_off_there_goes_here_and_one_that_was_made_here_stays(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    waits = issue("bd-b", dependencies=[needs("bd-b", "bd-a")])
    _take(log, path, issue("bd-a"), issue("bd-c"), waits)
    log.tasks.depend("bd-b", "bd-c")

    _take(log, path, issue("bd-a"), issue("bd-c"), {**waits, "dependencies": [], "updated_at": "2027-02-01T00:00:00Z"})

    assert log.tasks.dependencies("bd-b") == ["bd-c"]
    assert log.tasks.get("bd-b").open_dependencies == 1


def test_an_older_copy_brings_nothing_back(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    _take(log, path, issue("bd-a", title="New", updated_at="2026-02-01T00:00:00Z"))

    report = _take(log, path, issue("bd-a", title="Old"))

    assert report.total(Outcome.ALREADY) == 1
    assert log.tasks.get("bd-a").title == "New"


def test_whoever_works_on_a_task_here_is_not_disturbed(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    _take(log, path, issue("bd-a"))
    log.tasks.claim("beads", worker="w")

    report = _take(log, path, issue("bd-a", title="Other", updated_at="2027-02-01T00:00:00Z"))

    assert log.tasks.get("bd-a").title == "Issue bd-a"
    assert any("is being worked on here by w" in note for note in report.notes)


def test_an_issue_that_was_deleted_there_is_given_up_here(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    _take(log, path, issue("bd-a"))

    _take(log, path, issue("bd-a", status="tombstone", updated_at="2026-02-01T00:00:00Z"))

    task = log.tasks.get("bd-a")
    assert (task.state, task.reason) == ("abandoned", "deleted in beads")


def test_a_circle_over_a_link_that_was_made_here_is_not_closed(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    _take(log, path, issue("bd-a"), issue("bd-b"))
    log.tasks.depend("bd-a", "bd-b")

    report = _take(log, path, issue("bd-a"), issue("bd-b", dependencies=[needs("bd-b", "bd-a")]))

    assert report.tables["dependencies"][Outcome.KEPT] == 1


@on_both
def test_link_removed_there_alone_is_removed_here(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    one, other = issue("bd-1"), issue("bd-2")
    linked = {**one, "dependencies": [needs("bd-1", "bd-2")]}
    _take(log, path, linked, other)
    assert log.tasks.get("bd-1").open_dependencies == 1

    _take(log, path, one, other)

    assert log.tasks.get("bd-1").open_dependencies == 0
    assert log.journal.verify().ok


def test_title_that_went_back_to_an_earlier_one_is_brought(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    for title in ("first", "second", "first"):
        _take(log, path, {**issue("bd-1"), "title": title})
        assert log.tasks.get("bd-1").title == title
