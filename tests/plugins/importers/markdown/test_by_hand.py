"""Plans as people leave them: other editors, other bullets, lines that are gone, code, and tasks with names of any kind."""

from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, Invalid, Task
from decklog.importing.report import Outcome, Report
from decklog.plugins.importers.beads import BeadsImport
from decklog.plugins.importers.markdown import MarkdownExport, MarkdownImport
from decklog.records.values import to_json

FENCED = "See:\n\n```md\n## Not a task\n### Nor a part\n- state: nor a fact\n```\n\nAnd so on."
UNCLOSED = "See:\n```\nwithout an end"


def _plan(log: Decklog, tmp_path: Path, *, goal: str = "Parse commas", **fields: Any) -> Path:
    log.runs.start(goal, run_id="commas")
    log.tasks.add("commas", "Read lists", task_id="lexer", **fields)
    return _export(log, tmp_path)


def _export(log: Decklog, tmp_path: Path) -> Path:
    MarkdownExport(log, str(tmp_path / "plan.md"), run_id="commas", replace=True).run()
    return tmp_path / "plan.md"


def _take(log: Decklog, path: Path) -> Report:
    return MarkdownImport(log, str(path)).run()


def _edited(log: Decklog, path: Path, old: str, new: str) -> Report:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return _take(log, path)


def _lexer(log: Decklog) -> Task:
    return log.tasks.get("lexer")


@pytest.mark.parametrize(
    "fields",
    [
        {"objective": "one\r\ntwo\u2028three\x0cfour"},
        {"objective": "what git leaves:\n<<<<<<< HEAD\nx\n>>>>>>> other"},
        {"objective": FENCED},
        {"objective": "* state: is a list\n+ tags: too\n##\tby a tab"},
        {"objective": UNCLOSED},
        {"tags": ["a, b", "c\\", "d\\,e"], "role": "a  b", "assigned_to": "ana\tb"},
        {"goal": "Quotes <!-- plan of run other -->"},
    ],
)
def test_what_nobody_edited_changes_nothing_whatever_it_says(log: Decklog, tmp_path: Path, fields: dict[str, Any]) -> None:
    plan = _plan(log, tmp_path, **fields)
    log.tasks.add("commas", "Another", task_id="other", objective=UNCLOSED)
    plan = _export(log, tmp_path)
    heads = log.journal.heads()

    report = _take(log, plan)

    assert (report.total(Outcome.ALREADY), report.notes) == (2, [])
    assert log.journal.heads() == heads


def test_names_of_other_trackers_are_no_sections(log: Decklog, tmp_path: Path) -> None:
    source = tmp_path / "issues.jsonl"
    issue = {"id": "bd 1\n## Evil", "title": "One", "labels": ["x\n\n## Evil label\n"]}
    needy = {"id": "bd-2", "title": "Two", "dependencies": [{"depends_on_id": issue["id"], "issue_id": "bd-2", "type": "blocks"}]}
    source.write_text(to_json(issue) + "\n" + to_json(needy) + "\n")
    BeadsImport(log, str(source), run_id="commas").run()
    plan = _export(log, tmp_path)

    report = _take(log, plan)

    assert (report.total(Outcome.ALREADY), report.notes) == (2, [])
    assert _edited(log, plan, "## One", "## Once").total(Outcome.CHANGED) == 1
    assert {task.title for task in log.tasks.find("commas")} == {"Once", "Two"}
    assert log.tasks.get("bd 1\n## Evil").tags == ["x\n\n## Evil label\n"]


@pytest.mark.parametrize("line", ["- state: pending\n", "- priority: 70\n"])
def test_what_every_task_has_stays_when_its_line_is_gone(log: Decklog, tmp_path: Path, line: str) -> None:
    plan = _plan(log, tmp_path, priority=70)

    report = _edited(log, plan, line, "")

    assert (report.total(Outcome.ALREADY), report.notes) == (1, [])
    assert (_lexer(log).state, _lexer(log).priority) == ("pending", 70)


@pytest.mark.parametrize("facts", ["\n- Priority: 80\n\n- tags: x", "* priority: 80\n* TAGS: x", "+ priority:\t80\n+ tags: x"])
def test_facts_are_read_as_other_editors_write_them(log: Decklog, tmp_path: Path, facts: str) -> None:
    plan = _plan(log, tmp_path, priority=70, objective="As in JSON.")

    report = _edited(log, plan, "- priority: 70", facts)

    assert (report.total(Outcome.CHANGED), report.notes) == (1, [])
    assert (_lexer(log).priority, _lexer(log).tags, _lexer(log).objective) == (80, ["x"], "As in JSON.")


def test_a_fact_that_there_is_not_is_told(log: Decklog, tmp_path: Path) -> None:
    plan = _plan(log, tmp_path)

    with pytest.raises(Invalid, match="Read lists has a fact 'prioriti'; there are state, priority"):
        _edited(log, plan, "- priority: 50", "- prioriti: 60")
    assert _edited(log, plan, "- prioriti: 60", "\n- prioriti: 60").total(Outcome.CHANGED) == 1
    assert _lexer(log).objective == "- prioriti: 60"


@pytest.mark.parametrize("written", ["- one two\n  three\n- four", "1. one two three\n2) four", "one\ntwo three\n* four"])
def test_no_word_of_a_list_is_lost(log: Decklog, tmp_path: Path, written: str) -> None:
    plan = _plan(log, tmp_path, acceptance=["one two"])

    assert _edited(log, plan, "- one two", written).total(Outcome.CHANGED) == 1

    assert _lexer(log).acceptance == ["one two three", "four"]


def test_code_that_somebody_adds_makes_no_tasks(log: Decklog, tmp_path: Path) -> None:
    plan = _plan(log, tmp_path, objective="As in JSON.")

    assert _edited(log, plan, "As in JSON.", FENCED).total(Outcome.CHANGED) == 1

    assert [task.objective for task in log.tasks.find("commas")] == [FENCED]


def test_a_heading_may_have_a_tab_and_a_state_capitals(log: Decklog, tmp_path: Path) -> None:
    plan = _plan(log, tmp_path)
    plan.write_text(plan.read_text().replace("- state: pending", "- state: Paused"))

    assert _edited(log, plan, "## Read lists", "##\tRead \U0001f600\tlists").total(Outcome.CHANGED) == 1

    assert (_lexer(log).title, _lexer(log).state) == ("Read \U0001f600 lists", "paused")


def test_a_part_of_a_new_task_is_so_once(log: Decklog, tmp_path: Path) -> None:
    plan = _plan(log, tmp_path)
    plan.write_text(plan.read_text().replace("- state", "- part of: Whole\n- state") + "\n## Whole\n")

    report = _take(log, plan)

    assert (report.total(Outcome.NEW), report.total(Outcome.CHANGED), report.notes) == (1, 1, [])
    assert _take(log, plan).notes == []
    assert log.inbox.find() == []


def test_two_new_tasks_of_one_title_are_told_apart_by_whoever_wrote_them(log: Decklog, tmp_path: Path) -> None:
    plan = _plan(log, tmp_path)
    plan.write_text(plan.read_text() + "\n## Twice\n\n- priority: 60\n\n## Twice\n\n- priority: 70\n")

    report = _take(log, plan)

    assert (report.total(Outcome.NEW), report.total(Outcome.REFUSED)) == (1, 1)
    assert report.notes == ["Twice: another new task of the plan is called so; give this one another title"]
    assert log.inbox.find() == []


def test_nothing_is_taken_of_a_plan_that_has_a_section_without_a_title(log: Decklog, tmp_path: Path) -> None:
    plan = _plan(log, tmp_path)

    with pytest.raises(Invalid, match="a section without a title"):
        _edited(log, plan, "## Read lists", "## New\n\n## ")
    assert len(log.tasks.find("commas")) == 1
