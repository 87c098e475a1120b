"""GitHub's issues are taken over whole, again and again, from `gh` or from files."""

import json
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.core.errors import Unavailable
from decklog.importing.report import Outcome
from decklog.journal.entry import IMPORTED_ROW
from decklog.plugins.importers.github import GithubImport
from tests.conftest import on_both
from tests.plugins.importers import claims
from tests.plugins.importers.github.github_files import FULL, T2, by_api, by_gh, counts, write


def _taker(path: Path | str) -> claims.Take:
    return lambda log, **settings: GithubImport(log, str(path), run_id="github", **settings).run()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "issues.json")


@on_both
def test_every_row_arrives_once_and_a_second_import_changes_nothing(log: Decklog, file: Path) -> None:
    report = claims.check_whole(log, _taker(file), counts())

    assert report.tables["issues"][Outcome.KEPT] == 1
    assert report.tables["lines"][Outcome.KEPT] == 2


def test_what_an_issue_says_is_what_the_task_says(log: Decklog, file: Path) -> None:
    _taker(file)(log)

    task = log.tasks.get("acme/parser#1")
    assert (task.title, task.objective, task.state, task.priority) == ("Parse commas", FULL["body"], "pending", 70)
    assert (task.tags, task.assigned_to) == (["bug", "priority: high"], "ana")
    shown = task.inputs["github"]
    assert (shown["milestone"], shown["author"], shown["assignees"]) == ("1.0", "ana", ["ana", "ben"])
    assert [log.tasks.get(f"acme/parser#{number}").state for number in (2, 3, 7)] == ["done", "abandoned", "done"]
    said = [(one.author, one.body) for number in (1, 7) for one in log.tasks.comments(f"acme/parser#{number}")]
    assert said == [("ben", "Me too"), ("cy", "By the API")]


def test_what_an_issue_says_that_it_waits_for_holds_it_back(log: Decklog, file: Path) -> None:
    _taker(file)(log)

    assert log.tasks.dependencies("acme/parser#1") == ["acme/parser#2", "acme/parser#3"]
    # One of them is done, and what was given up is not.
    assert log.tasks.get("acme/parser#1").open_dependencies == 1
    assert log.tasks.dependencies("acme/parser#7", kind="parent") == ["acme/parser#1"]
    kept = {entry.payload["id"]: entry.payload["why"] for entry in log.journal.find("github", subtype=IMPORTED_ROW, limit=99)}
    assert kept["acme/parser#1/acme/parser#4"] == "acme/parser#4 is not in the source"
    assert "in a circle" in kept["acme/parser#6/acme/parser#5"]
    assert kept["acme/parser#8"] == "it is a pull request"


def test_gh_and_the_api_tell_the_same_issue(tmp_path: Path) -> None:
    said = {"title": "T", "body": "B"}
    one, other = write(tmp_path / "a.json", [by_gh(1, **said)]), write(tmp_path / "b.json", [by_api(1, **said)])

    claims.check_same_log(tmp_path, _taker(one), _taker(other))


def test_pages_that_stand_one_after_the_other_and_half_a_page_are_read(log: Decklog, tmp_path: Path) -> None:
    pages = json.dumps([by_api(1)]) + json.dumps([by_api(2), by_api(3, title="cut")])
    path = write(tmp_path / "issues.json", pages[: pages.index("cut")])

    claims.check_whole(log, _taker(path), {"issues": 2, "lines": 1})


def test_an_import_after_changes_brings_just_them(log: Decklog, tmp_path: Path) -> None:
    path = write(tmp_path / "issues.json", [by_gh(1), by_gh(2)])
    _taker(path)(log)

    write(path, [by_gh(1), by_gh(2, state="CLOSED", updatedAt=T2), by_gh(3)])
    report = _taker(path)(log)

    assert (report.total(Outcome.NEW), report.total(Outcome.CHANGED), report.total(Outcome.ALREADY)) == (1, 1, 1)
    assert log.tasks.get("acme/parser#2").state == "done"


def test_a_repository_is_asked_for_by_the_program_gh(log: Decklog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "issues.json", [by_gh(1)])
    gh = tmp_path / "gh"
    known = f'case "$*" in *"--repo acme/parser"*) exec cat "{tmp_path}/issues.json";; esac'
    gh.write_text(f'#!/bin/sh\n{known}\necho "no such repository" >&2\nexit 1\n')
    gh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    assert _taker("acme/parser")(log).total(Outcome.NEW) == 1
    with pytest.raises(Unavailable, match="no such repository"):
        _taker("acme/other")(log)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Unavailable, match="no program gh"):
        _taker("acme/parser")(log)
