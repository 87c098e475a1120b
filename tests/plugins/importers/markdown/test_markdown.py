"""A plan that people read and edit: written, changed by hand and in the log, taken back."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from decklog import Conflict, Decklog, Invalid
from decklog.importing.report import Outcome, Report
from decklog.plugins.importers.markdown import MarkdownExport, MarkdownImport
from tests.conftest import on_both

ODD = "## Not a heading\n- state: not a fact\n<!-- task x as of entry 1 -->\n\\# escaped\n\n- a list\n\nLast line"


def _export(log: Decklog, path: Path) -> Path:
    MarkdownExport(log, str(path), run_id="commas", replace=True).run()
    return path


def _take(log: Decklog, path: Path, **settings: Any) -> Report:
    return MarkdownImport(log, str(path), **settings).run()


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.fixture
def plan(log: Decklog, tmp_path: Path) -> Path:
    log.runs.start("Parse commas", run_id="commas")
    log.tasks.add("commas", "Read lists", task_id="lexer", objective="As in JSON.", tags=["parser"], priority=70)
    log.tasks.add("commas", "Write tests", task_id="tests", depends_on=["lexer"], acceptance=["All pass", "No warning"])
    log.tasks.add("commas", "Odd texts", task_id="odd", objective=ODD, parent_id="tests", assigned_to="ana", role="developer")
    return _export(log, tmp_path / "plan.md")


def test_a_plan_that_nobody_edited_changes_nothing(log: Decklog, plan: Path, tmp_path: Path) -> None:
    heads = log.journal.heads()

    report = _take(log, plan)

    assert report.total(Outcome.ALREADY) == 3
    assert report.notes == []
    assert log.journal.heads() == heads
    assert _export(log, tmp_path / "again.md").read_text() == plan.read_text()


def test_a_plan_reads_as_one(plan: Path) -> None:
    start = "# Parse commas\n\n<!-- plan of run commas -->\n\n## Read lists\n\n<!-- task lexer as of entry "
    assert plan.read_text().startswith(start)
    assert "\n- state: pending\n- priority: 70\n- tags: parser\n\nAs in JSON.\n\n## Odd texts\n" in plan.read_text()
    assert "\n- needs: lexer\n\n### Acceptance\n\n- All pass\n- No warning\n" in plan.read_text()


@on_both
def test_what_was_edited_comes_back(log: Decklog, plan: Path) -> None:
    _replace(plan, "## Read lists", "## Read lists and maps")
    _replace(plan, "- priority: 70\n- tags: parser", "- priority: 90\n- tags: parser, maps\n- assigned to: ben")
    _replace(plan, "- No warning", "- No warning\n- It is fast")
    _replace(plan, "- needs: lexer\n", "")
    _replace(plan, "- role: developer\n", "")

    report = _take(log, plan)

    lexer, tests, odd = (log.tasks.get(name) for name in ("lexer", "tests", "odd"))
    assert (report.total(Outcome.CHANGED), report.notes) == (3, [])
    assert (lexer.title, lexer.priority, set(lexer.tags)) == ("Read lists and maps", 90, {"parser", "maps"})
    assert (lexer.assigned_to, tests.acceptance) == ("ben", ["All pass", "No warning", "It is fast"])
    assert log.tasks.dependencies("tests") == []
    assert (odd.role, odd.objective) == (None, ODD)
    assert _take(log, plan).total(Outcome.ALREADY) == 3


def test_what_was_changed_here_since_stays(log: Decklog, plan: Path) -> None:
    log.tasks.edit("lexer", reason="found out", objective="As in JSON5.", tags=["parser", "json5"])
    log.tasks.depend("lexer", log.tasks.add("commas", "Choose a format", task_id="format").id)
    _replace(plan, "- priority: 70\n- tags: parser", "- priority: 90\n- tags: parser, maps")

    report = _take(log, plan)

    task = log.tasks.get("lexer")
    assert report.notes == []
    assert (task.objective, task.priority, set(task.tags)) == ("As in JSON5.", 90, {"parser", "json5", "maps"})
    assert log.tasks.dependencies("lexer") == ["format"]


def test_what_both_changed_stays_and_is_put_to_a_person_once(log: Decklog, plan: Path) -> None:
    log.tasks.edit("lexer", reason="found out", title="Read lists here")
    _replace(plan, "## Read lists", "## Read lists there")

    report = _take(log, plan)
    _take(log, plan)

    assert "title was changed here and in the plan" in report.notes[0]
    assert log.tasks.get("lexer").title == "Read lists here"
    [message] = log.inbox.find()
    assert "Read lists there" in message.body
    assert message.task_id == "lexer"


def test_a_section_that_somebody_adds_is_a_new_task_once(log: Decklog, plan: Path) -> None:
    with plan.open("a") as file:
        file.write("\n## Measure it\n\n- needs: lexer, Tell others\n\nOn a quiet machine.\n\n## Tell others\n")

    first, second = _take(log, plan), _take(log, plan)

    assert (first.total(Outcome.NEW), second.total(Outcome.ALREADY)) == (2, 5)
    made = {task.title: task for task in log.tasks.find("commas", limit=50)}
    assert made["Measure it"].objective == "On a quiet machine."
    assert set(log.tasks.dependencies(made["Measure it"].id)) == {"lexer", made["Tell others"].id}


def test_a_plan_pauses_resumes_and_abandons_and_no_more(log: Decklog, plan: Path) -> None:
    text = plan.read_text()
    start, lexer, odd, tests = text.split("\n## ")
    changed = [lexer.replace("pending", "paused"), odd.replace("pending", "abandoned"), tests.replace("pending", "done")]
    plan.write_text("\n## ".join([start, *changed]))

    report = _take(log, plan)

    assert [log.tasks.get(name).state for name in ("lexer", "tests", "odd")] == ["paused", "pending", "abandoned"]
    assert report.total(Outcome.REFUSED) == 1
    assert "can't make a task that is pending done" in report.notes[0]

    _export(log, plan)
    _replace(plan, "- state: paused", "- state: pending")
    _take(log, plan)
    assert log.tasks.get("lexer").state == "pending"


def test_what_is_being_worked_on_is_not_disturbed(log: Decklog, plan: Path) -> None:
    log.tasks.claim("commas", worker="w")
    _replace(plan, "As in JSON.", "As in YAML.")

    report = _take(log, plan)

    assert report.total(Outcome.REFUSED) == 1
    assert log.tasks.get("lexer").objective == "As in JSON."


def test_a_dry_run_changes_nothing(log: Decklog, plan: Path) -> None:
    heads = log.journal.heads()
    _replace(plan, "## Read lists", "## Read maps")
    plan.write_text(plan.read_text() + "\n## One more\n")

    report = _take(log, plan, dry_run=True)

    assert (report.total(Outcome.CHANGED), report.total(Outcome.NEW)) == (1, 1)
    assert log.journal.heads() == heads


def test_git_merges_two_plans_where_they_changed_different_tasks(log: Decklog, plan: Path, tmp_path: Path) -> None:
    mine, yours = tmp_path / "mine.md", tmp_path / "yours.md"
    mine.write_text(plan.read_text().replace("As in JSON.", "As in YAML."))
    log.tasks.edit("odd", reason="clearer", objective="Plain")
    _export(log, yours)

    merged = subprocess.run(
        ["git", "merge-file", "-p", str(mine), str(plan), str(yours)], capture_output=True, text=True, check=True
    )
    plan.write_text(merged.stdout)
    _take(log, plan)

    assert (log.tasks.get("lexer").objective, log.tasks.get("odd").objective) == ("As in YAML.", "Plain")


def test_what_is_no_plan_is_refused(log: Decklog, plan: Path, tmp_path: Path) -> None:
    other = tmp_path / "README.md"
    other.write_text("# Read me\n")
    with pytest.raises(Invalid, match="is no plan"):
        _take(log, other)
    _replace(plan, "## Read lists", "<<<<<<< mine\n## Read lists")
    with pytest.raises(Conflict, match="git conflict markers"):
        _take(log, plan)
