"""What a program wrote and no record can hold is kept and told, and harms nothing else of its document."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.importing.row import to_storable
from decklog.journal.entry import IMPORTED_COLUMNS
from decklog.plugins.importers.beads import BeadsImport
from decklog.plugins.importers.github import GithubImport
from decklog.plugins.importers.taskmaster.importer import TaskMasterImport
from tests.plugins.importers import claims

Odd = Callable[[Path, str], claims.Take]


def _taskmaster(path: Path, odd: str) -> claims.Take:
    path.write_text(f'{{"master": {{"tasks": [{{"id": 1, "title": "One", {odd}}}, {{"id": 2, "title": "Two"}}]}}}}')
    return lambda log, **settings: TaskMasterImport(log, str(path), run_id="taken", **settings).run()


def _github(path: Path, odd: str) -> claims.Take:
    path.write_text(f'[{{"number": 1, "title": "One", {odd}}}, {{"number": 2, "title": "Two"}}]')
    return lambda log, **settings: GithubImport(log, str(path), run_id="taken", **settings).run()


def _beads(path: Path, odd: str) -> claims.Take:
    path.write_text(f'{{"id": "bd-1", "title": "One", {odd}}}\n{{"id": "bd-2", "title": "Two"}}\n')
    return lambda log, **settings: BeadsImport(log, str(path), run_id="taken", **settings).run()


def _left(log: Decklog) -> dict[str, Any]:
    kept = log.journal.find("taken", subtype=IMPORTED_COLUMNS, limit=9)
    return {name: value for entry in kept for name, value in entry.payload["columns"].items()}


@pytest.mark.parametrize("written", ["NaN", "1e999"])
@pytest.mark.parametrize(
    ("write", "name", "table"),
    [
        (_taskmaster, "complexity", "tasks"),
        (_taskmaster, "from_the_future", "tasks"),
        (_github, "milestone", "issues"),
        (_github, "from_the_future", "issues"),
        (_beads, "estimated_minutes", "issues"),
    ],
)
def test_what_is_no_number_is_left_over(log: Decklog, tmp_path: Path, write: Odd, name: str, table: str, written: str) -> None:
    report = claims.check_whole(log, write(tmp_path / "source.json", f'"{name}": {written}'), {table: 2})

    assert [task.title for task in log.tasks.find("taken")] == ["One", "Two"]
    assert _left(log) == {name: {"float": repr(float(written))}}
    assert any(name in note for note in report.notes)


@pytest.mark.parametrize("write", [_taskmaster, _github, _beads])
@pytest.mark.parametrize("depth", [150, 400])
def test_what_is_nested_without_end_is_left_over_as_text(log: Decklog, tmp_path: Path, write: Odd, depth: int) -> None:
    nested = "[" * depth + "]" * depth
    write(tmp_path / "source.json", f'"from_the_future": {nested}')(log)

    assert [task.title for task in log.tasks.find("taken")] == ["One", "Two"]
    found = _left(log)["from_the_future"]
    assert json.dumps(found).count("[") == depth


@pytest.mark.parametrize("write", [_taskmaster, _github, _beads])
def test_half_a_character_beside_what_is_nested_without_end_harms_nothing(log: Decklog, tmp_path: Path, write: Odd) -> None:
    odd = f'"from_the_future": {"[" * 700}{"]" * 700}, "milestone": "half \\ud800"'

    write(tmp_path / "source.json", odd)(log)

    assert [task.title for task in log.tasks.find("taken")] == ["One", "Two"]


def test_a_tag_that_says_odd_things_of_itself_is_a_run(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    path.write_text('{"master": {"tasks": [{"id": 1}, {"title": NaN}], "metadata": {"share": NaN}}}')
    TaskMasterImport(log, str(path), run_id="taken").run()

    assert log.runs.get("taken").metadata == {"taskmaster": {"tag": "master", "metadata": {"share": {"float": "nan"}}}}
    assert [task.id for task in log.tasks.find("taken")] == ["taken-1"]


def test_a_comment_and_a_row_without_a_name_may_hold_what_is_no_number(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "issues.json"
    comment = '{"id": 1, "body": "Said", "issue_url": "https://github.com/a/b/issues/1", "odd": NaN}'
    inner = '{"id": 2, "body": "Said too", "odd": [Infinity]}'
    path.write_text(f'[{{"number": 1, "title": "One", "url": "https://github.com/a/b/issues/1", "comments": [{inner}]}}')
    path.write_text(f'{path.read_text()}, {comment}, {{"number": NaN}}]')
    report = GithubImport(log, str(path), run_id="taken").run()

    assert sorted(one.body for one in log.tasks.comments("a/b#1")) == ["Said", "Said too"]
    assert report.tables["lines"]["kept"] == 1


@pytest.mark.parametrize(
    ("written", "held"),
    [
        ({"a": [float("inf"), 1.5]}, {"a": [{"float": "inf"}, 1.5]}),
        (b"\x00", {"base64": "AA=="}),
        ("a\x00", {"base64_text": "YQA="}),
        ({"half \ud800": "\ud800"}, {"half \ufffd": "\ufffd"}),
    ],
)
def test_any_value_can_be_written_down(written: object, held: object) -> None:
    assert to_storable(written) == held
