"""A large document of Task Master's is read task by task, and gives what it gives when it is read as a whole."""

import json
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.core.errors import Invalid
from decklog.importing import json_pieces
from decklog.plugins.importers.taskmaster import reading
from decklog.plugins.importers.taskmaster.importer import TaskMasterImport
from tests.plugins.importers import claims

TASK = {
    "id": 1,
    "title": "Pärse",
    "status": "done",
    "dependencies": [2],
    "subtasks": [{"id": 1, "title": "Ä", "dependencies": []}],
}
TASKS = [TASK, {"id": 2, "title": "half \ud800 a character"}, {"title": "without an id"}, 7]
TAG = {"tasks": TASKS, "metadata": {"created": "2026-01-02T03:04:05.000Z", "updated": None}}
USUAL = [
    {"master": TAG},
    {"master": TAG, "feature": {"metadata": {}, "tasks": []}, "other": {"tasks": [TASK], "metadata": [], "more": 1}},
    {"tasks": TASKS, "metadata": {"created": "2026-01-02T03:04:05.000Z"}, "feature": {"tasks": [TASK]}},
    {"tasks": {"tasks": [TASK]}},
]
UNUSUAL = [
    '{"master": {"tasks": []}, "notes": {"text": "no tag"}}',
    '{"master": {"tasks": [{"id": 1}]}, "list": [1]}',
    '{"master": {"tasks": [{"id": 1}]}, "tasks": [{"id": 2}]}',
    '{"master": {"tasks": [{"id": 1}]}, "master": {"tasks": [{"id": 2}]}}',
    '{"master": {"tasks": [{"id": 1}, {"id": 2}',
    '{"master": {"tasks": [{"id": 1},]}}',
    '{"master": {"tasks": [{"id": 1}]}} {}',
    # With versions of one task, of which none may stay.
    '{"master": {"tasks": [{"id": 1}, {"id": 1, "title": "Other"}, {"id": 2, "metadata": {"decklog": "task_1"}}]}, "list": [1]}',
    '{"master": {"tasks": [\n<<<<<<< ours\n{"id": 1}\n=======\n{"id": 2}\n>>>>>>> theirs\n]}}',
]


def _held(log: Decklog, path: Path) -> tuple[Any, ...]:
    importer = TaskMasterImport(log, str(path), run_id="taken")
    try:
        importer.gather()
        rows = {table: [*importer.gathered.texts(table)] for table in importer.mappings()}
        return rows, importer.tags, importer.begun, importer.metadata, importer.ours
    finally:
        importer.gathered.close()


def _is_held_in_pieces(log: Decklog, path: Path) -> bool:
    importer = TaskMasterImport(log, str(path), run_id="taken")
    try:
        is_held = importer._hold_in_pieces(reading.TaskFile(str(path)))
        assert is_held or not (importer.gathered.count("tasks") or importer.tags or importer.ours)
        return is_held
    finally:
        importer.gathered.close()


@pytest.mark.parametrize("piece", [1, 5, 1024])
@pytest.mark.parametrize("text", [*map(json.dumps, USUAL), "\ufeff" + json.dumps(USUAL[1], indent=2), *UNUSUAL])
def test_pieces_give_what_the_whole_gives(
    log: Decklog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, piece: int
) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(text, encoding="utf-8")
    whole = _held(log, path)
    monkeypatch.setattr(json_pieces, "_PIECE", piece)
    monkeypatch.setattr(reading, "_LARGE", 0)

    assert _is_held_in_pieces(log, path) is (text not in UNUSUAL)
    assert _held(log, path) == whole


@pytest.mark.parametrize("text", ["{}", "[]", "", "{"])
def test_what_holds_no_tasks_is_refused_either_way(
    log: Decklog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(text)
    for large in (0, 2**40):
        monkeypatch.setattr(reading, "_LARGE", large)
        with pytest.raises(Invalid):
            _held(log, path)


def _peak(log: Decklog, path: Path, count: int) -> int:
    tasks = [{"id": number, "title": "One", "details": "word " * 100, "dependencies": []} for number in range(1, count + 1)]
    path.write_text(json.dumps({"master": {"tasks": tasks, "metadata": {}}}))
    del tasks
    return claims.peak_of_gathering(TaskMasterImport(log, str(path), run_id="taken"), "tasks", count)


def test_many_tasks_are_gathered_in_no_more_memory_than_few(
    log: Decklog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_LARGE", 1024**2)
    few, many = _peak(log, tmp_path / "few.json", claims.FEW), _peak(log, tmp_path / "many.json", claims.MANY)

    assert many < 1.2 * few
    assert many < (tmp_path / "many.json").stat().st_size / 2
