"""A run and a repository's issues, kept in step by the program gh: here one that keeps its issues in a file."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, Invalid, Unavailable
from decklog.importing.sync import SyncReport
from decklog.plugins.importers.github import GithubSync
from tests.plugins.importers.claims import Killed, fresh
from tests.plugins.importers.github.github_files import by_gh

REPOSITORY = "acme/parser"
GH = """#!/bin/sh
'''exec' "{python}" -SE "$0" "$@"
' '''
import csv, json, sys
path = {path!r}
with open(path) as file:
    issues = json.load(file)
words = sys.argv[1:]
given = [(name, words[place + 1]) for place, name in enumerate(words) if name.startswith("--")]
told = dict(given)
all_of = lambda name: [label for known, value in given if known == name for label in next(csv.reader([value], strict=True))]
act = words[:2]
if act == ["issue", "list"]:
    print(json.dumps(issues))
    sys.exit()
if act == ["label", "create"]:
    sys.exit(words[2] == "bug")
issue = next((one for one in issues if str(one["number"]) == words[2]), None)
if act == ["issue", "create"]:
    number = max((one["number"] for one in issues), default=0) + 1
    issue = dict(number=number, url="https://github.com/acme/parser/issues/" + str(number), state="OPEN", labels=[], comments=[])
    issue.update(createdAt="2026-01-05T00:00:00Z", updatedAt="2026-01-05T00:00:00Z")
    issues.append(issue)
if "--title" in told:
    issue["title"] = told["--title"]
if act[1] in ("create", "edit") and "--body" in told:
    issue["body"] = told["--body"]
for label in all_of("--label") + all_of("--add-label"):
    known = [one["name"] for other in issues for one in other["labels"] if one["name"].lower() == label.lower()]
    if known != [one["name"] for one in issue["labels"] if one["name"].lower() == label.lower()] or not known:
        issue["labels"].append(dict(name=(known or [label])[0]))
issue["labels"] = [label for label in issue["labels"] if label["name"] not in all_of("--remove-label")]
if act[1] == "comment":
    known = len(issue["comments"])
    issue["comments"].append(dict(id="c" + str(known), body=told["--body"], author=dict(login="bot")))
if act[1] in ("close", "reopen"):
    issue["state"] = "CLOSED" if act[1] == "close" else "OPEN"
    issue["stateReason"] = "NOT_PLANNED" if told.get("--reason") else ""
with open(path, "w") as file:
    json.dump(issues, file)
"""


@pytest.fixture
def issues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the file behind a program gh."""
    path, program = tmp_path / "issues.json", tmp_path / "bin" / "gh"
    program.parent.mkdir()
    program.write_text(GH.format(python=sys.executable, path=str(path)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    path.write_text(
        json.dumps([by_gh(1, title="One", labels=[{"name": "bug"}], comments=[]), by_gh(2, title="Two", comments=[])])
    )
    return path


def _sync(log: Decklog, **settings: Any) -> SyncReport:
    return GithubSync(log, REPOSITORY, run_id="github", **settings).run()


def _there(path: Path) -> dict[int, dict[str, Any]]:
    return {one["number"]: one for one in json.loads(path.read_text())}


def _edit(path: Path, number: int, **fields: Any) -> None:
    found = _there(path)
    found[number].update(fields)
    path.write_text(json.dumps(list(found.values())))


def _name(number: int) -> str:
    return f"{REPOSITORY}#{number}"


def test_each_side_gets_what_the_other_changed_and_then_nothing_more(log: Decklog, issues: Path) -> None:
    _sync(log)
    assert log.tasks.get(_name(1)).title == "One"
    said = [{"id": "c1", "body": "Said there", "author": {"login": "ben"}, "createdAt": "2026-01-04T00:00:00Z"}]
    _edit(issues, 1, title="Renamed there", comments=said)
    log.tasks.edit(_name(1), reason="sorted", tags=["bug", "lists"], priority=77)
    log.tasks.comment(_name(2), "Said here", author="ana")
    log.tasks.abandon(_name(2), reason="not needed")
    mine = log.tasks.add("github", "Made here", objective="In short")

    done, again = _sync(log), _sync(log)

    assert (done.taken, done.given) == ([_name(1)], sorted([_name(1), _name(2), mine.id]))
    here, there = log.tasks.get(_name(1)), _there(issues)
    assert (here.title, here.priority) == ("Renamed there", 77)
    assert [one.body for one in log.tasks.comments(_name(1))] == ["Said there"]
    assert [label["name"] for label in there[1]["labels"]] == ["bug", "lists"]
    assert (there[2]["state"], there[2]["stateReason"]) == ("CLOSED", "NOT_PLANNED")
    assert [one["body"] for one in there[2]["comments"]] == ["Said here"]
    assert there[3]["title"] == "Made here"
    assert there[3]["body"].startswith("In short")
    assert (again.taken, again.given, again.disputed) == ([], [], [])
    assert len(log.tasks.find("github")) == 3


def test_an_issue_that_was_made_of_a_task_stays_that_task(log: Decklog, issues: Path) -> None:
    _sync(log)
    mine = log.tasks.add("github", "Made here", objective="In short", inputs={"hint": "see the lexer"})
    _sync(log)
    _edit(issues, 3, title="Renamed there", state="CLOSED", stateReason="COMPLETED")

    done = _sync(log)

    task = log.tasks.get(mine.id)
    assert (done.taken, done.disputed) == ([mine.id], [])
    assert (task.title, task.objective, task.state) == ("Renamed there", "In short", "done")
    assert task.inputs["hint"] == "see the lexer"
    assert mine.id in _there(issues)[3]["body"]


def test_what_both_changed_is_put_to_a_person_and_stays_on_both_sides(log: Decklog, issues: Path) -> None:
    _sync(log)
    _edit(issues, 1, title="Theirs")
    log.tasks.edit(_name(1), reason="mine", title="Ours")

    done = _sync(log)

    assert [one["field"] for one in done.disputed] == ["title"]
    assert (log.tasks.get(_name(1)).title, _there(issues)[1]["title"]) == ("Ours", "Theirs")
    assert len(log.inbox.find()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("calls", range(1, 5))
def test_killed_between_any_calls_of_gh_it_comes_to_the_same_end(tmp_path: Path, issues: Path, calls: int) -> None:
    with fresh(tmp_path, "killed") as log:
        _sync(log)
        _edit(issues, 1, title="Theirs")
        log.tasks.edit(_name(2), reason="mine", title="Ours", tags=["lists"])
        log.tasks.add("github", "Made here")
        sync, left = GithubSync(log, REPOSITORY, run_id="github"), iter(range(calls))
        ask = sync._gh

        def killed(*words: str, is_needed: bool = True) -> None:
            ask(*words, is_needed=is_needed)
            if next(left, None) == calls - 1:
                raise Killed

        sync._gh = killed  # type: ignore[method-assign]
        if calls <= 3:
            with pytest.raises(Killed):
                sync.run()
        _sync(log)

        assert sorted(one["title"] for one in _there(issues).values()) == ["Made here", "Ours", "Theirs"]
        assert sorted(task.title for task in log.tasks.find("github")) == ["Made here", "Ours", "Theirs"]
        assert log.inbox.find() == []


def test_what_gh_refuses_is_told(log: Decklog, issues: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Invalid, match="OWNER/REPOSITORY"):
        GithubSync(log, str(issues), run_id="github")
    _sync(log)
    log.tasks.edit(_name(1), reason="mine", title="Ours")
    (issues.parent / "bin" / "gh").write_text("#!/bin/sh\necho 'not logged in' >&2; exit 4\n")
    with pytest.raises(Unavailable, match="not logged in"):
        _sync(log)


def test_labels_that_differ_by_case_are_the_same(log: Decklog, issues: Path) -> None:
    _sync(log)
    log.tasks.edit("acme/parser#2", reason="found", tags=["Bug"])

    _sync(log)
    again = _sync(log)

    assert _there(issues)[2]["labels"] == [{"name": "bug"}]
    assert (again.taken, again.given, again.disputed) == ([], [], [])


@pytest.mark.slow
def test_labels_may_have_commas_and_quotation_marks(log: Decklog, issues: Path) -> None:
    odd = ["one, two", 'say "no"']
    _sync(log)
    log.tasks.edit("acme/parser#2", reason="found", tags=odd)
    log.tasks.add("github", "Made here", tags=odd)
    _sync(log)
    again = _sync(log)

    assert [sorted(label["name"] for label in _there(issues)[number]["labels"]) for number in (2, 3)] == [odd, odd]
    assert (again.taken, again.given, again.disputed) == ([], [], [])

    log.tasks.edit("acme/parser#2", reason="no more", tags=odd[:1])
    _sync(log)
    assert [label["name"] for label in _there(issues)[2]["labels"]] == odd[:1]
