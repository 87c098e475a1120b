"""A log written as Task Master has it: what was imported comes back, and what was done here is told there."""

import json
import subprocess
from pathlib import Path
from typing import Any

from decklog import Decklog
from decklog.importing.report import Outcome
from decklog.plugins.importers.taskmaster.importer import TaskMasterImport
from decklog.plugins.importers.taskmaster.sync import TaskMasterExport
from tests.conftest import on_both
from tests.plugins.importers.taskmaster.taskmaster_files import document, task, write


def _take(log: Decklog, path: Path) -> Any:
    return TaskMasterImport(log, str(path), run_id="taskmaster").run()


def _export(log: Decklog, path: Path, **settings: Any) -> Any:
    TaskMasterExport(log, str(path), run_id="taskmaster", **settings).run()
    return json.loads(path.read_text())


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    """Give a task without what says nothing, dependencies in one spelling."""
    kept = {name: value for name, value in found.items() if value not in (None, "", [])}
    kept["id"] = int(kept["id"])
    if kept.get("description") == kept["title"]:
        kept.pop("description")
    kept.pop("updatedAt", None)
    for name in ("parentTaskId", "parentId", "parentTask"):
        kept.pop(name, None)
    if "dependencies" in kept:
        kept["dependencies"] = sorted(str(one) for one in kept["dependencies"])
    if "subtasks" in kept:
        kept["subtasks"] = [_plain(one) for one in kept["subtasks"]]
    return {"priority": "medium", **kept}


@on_both
def test_what_was_imported_comes_back_as_it_was(log: Decklog, tmp_path: Path) -> None:
    _take(log, write(tmp_path / "tasks.json"))

    found = _export(log, tmp_path / "out.json")

    there = document()
    assert list(found) == ["master", "empty", "feature: lists"]
    for tag in ("master", "feature: lists", "empty"):
        whole = [one for one in there[tag]["tasks"] if isinstance(one, dict) and "id" in one]
        mine = {one["id"]: _plain(one) for one in found[tag]["tasks"]}
        for one in whole:
            expected = _plain(one)
            if expected["id"] == 2 and tag == "master":
                # Said in the shorter of two spellings.
                expected["subtasks"][1]["dependencies"] = ["1", "3"]
            assert mine[int(one["id"])] == expected, one["id"]
        assert found[tag]["metadata"] == there[tag].get("metadata", {})


def test_what_was_done_here_is_told_there_and_known_again(log: Decklog, tmp_path: Path) -> None:
    _take(log, write(tmp_path / "tasks.json", {"master": {"tasks": [task(1), task(2, dependencies=[1])]}}))
    claimed = log.tasks.claim("taskmaster", worker="w")
    log.tasks.finish("taskmaster-1", fence=claimed.task.fence, summary="Done")
    log.tasks.add("taskmaster", "Made here", task_id="ours", depends_on=["taskmaster-2"])
    log.tasks.add("taskmaster", "A part", task_id="part", parent_id="ours")

    found = _export(log, tmp_path / "out.json")
    report = _take(log, tmp_path / "out.json")

    done, _, ours = found["master"]["tasks"]
    assert (done["status"], ours["id"], ours["dependencies"], ours["metadata"]) == ("done", 3, [2], {"decklog": "ours"})
    assert [one["title"] for one in ours["subtasks"]] == ["A part"]
    assert report.total(Outcome.NEW) == 0
    assert len(log.tasks.find("taskmaster")) == 4


def test_git_merges_two_exports(log: Decklog, tmp_path: Path) -> None:
    _take(log, write(tmp_path / "tasks.json", {"master": {"tasks": [task(number) for number in range(1, 9)]}}))
    _export(log, tmp_path / "base.json")
    log.tasks.edit("taskmaster-2", title="Ours", reason="better")
    _export(log, tmp_path / "ours.json")
    (tmp_path / "theirs.json").write_text((tmp_path / "base.json").read_text().replace("Task 7", "Theirs"))

    words = ["git", "merge-file", "-p", *(str(tmp_path / f"{side}.json") for side in ("ours", "base", "theirs"))]
    merged = subprocess.run(words, capture_output=True, text=True, check=False)

    assert merged.returncode == 0
    titles = [one["title"] for one in json.loads(merged.stdout)["master"]["tasks"]]
    assert (titles[1], titles[6]) == ("Ours", "Theirs")
