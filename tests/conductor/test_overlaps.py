"""Items that are in each other's way are told so while both are still open."""

import itertools
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.conductor.conductor import Conductor
from decklog.conductor.overlaps import OverlapProbe
from decklog.conductor.status import run_status
from tests.conductor.plans import Work, landed_titles, work_item
from tests.conductor.repositories import git, write
from tests.waiting import wait_until

# Settings of a test runner are for a person to allow: the item waits with its change.
HELD = ["write", "setup.cfg", ""]


def changing(word: str) -> list[Any]:
    return ["replace", "notes.txt", "two", word]


@pytest.mark.slow
def test_two_open_items_that_do_not_merge_are_told_of_each_other_and_others_are_not(log: Decklog, checked: Path) -> None:
    own = work_item("own", ["write", "own.txt", "1\n"], ["append", "notes.txt", "four\n"], HELD)
    work = Work(log, checked, work_item("one", changing("TWO"), HELD), work_item("other", changing("zwei"), HELD), own)
    context = work.run()
    (entry,) = log.journal.find(context.run_id, subtype="conductor.overlap")
    payload: Any = entry.payload
    assert (payload["items"], payload["paths"]) == (["one", "other"], ["notes.txt"])
    told = {str(message.task_id).split(".")[1]: message.body for message in log.inbox.find(context.run_id)}
    assert set(told) == {"one", "other"}
    assert "one conflicts with open work items: other in notes.txt" in told["one"]
    meets = {one.name: one.meets for one in run_status(log, context.run_id).items}
    assert meets == {"one": ("other in notes.txt",), "other": ("one in notes.txt",), "own": ()}
    work.run()
    assert len(log.inbox.find(context.run_id)) == 2, "the same again is not told again"


@pytest.mark.slow
def test_an_agent_that_still_works_is_seen_and_its_next_attempt_is_told(log: Decklog, checked: Path, tmp_path: Path) -> None:
    go, told = tmp_path / "go", tmp_path / "told"
    first = ["once", str(tmp_path / "first"), [["wait", str(go)], ["exit", 3]]]
    slow = work_item("slow", changing("TWO"), first, ["copy-brief", str(told)])
    context = Work(log, checked, slow, work_item("kept", changing("zwei"), HELD)).context()
    thread = threading.Thread(target=Conductor(context).run)
    thread.start()
    try:
        wait_until((tmp_path / "first").exists)
        wait_until(lambda: len(log.tasks.find(context.run_id, state="waiting")) == 1)  # type: ignore[arg-type]
        OverlapProbe(context).search()
        assert {message.task_id for message in log.inbox.find(context.run_id)} == {
            f"{context.run_id}.kept.c1",
            f"{context.run_id}.slow.w1",
        }
    finally:
        go.touch()
        thread.join()
    assert landed_titles(context) == ["Item slow"]
    assert "- kept in notes.txt" in told.read_text()


def merges(folder: Path, one: str, other: str) -> bool:
    """Ask git itself."""
    return subprocess.run(["git", "merge-tree", "--write-tree", one, other], cwd=folder, capture_output=True).returncode == 0


@pytest.mark.slow
def test_what_is_told_of_many_features_in_one_file_is_what_git_can_not_merge(log: Decklog, checked: Path) -> None:
    count = 12 if "DECKLOG_TEST_FULL" in os.environ else 4
    # Each two stand on lines beside each other, apart from the next two.
    lines = [number + number // 2 * 2 for number in range(count)]
    write(checked, {"notes.txt": "".join(f"line {number}.\n" for number in range(lines[-1] + 1))})
    git(checked, "commit", "-q", "-a", "-m", "Lines")
    features = [work_item(f"f{line}", ["replace", "notes.txt", f"line {line}.", f"feature {line}."], HELD) for line in lines]
    context = Work(log, checked, *features).run()
    tips = {str(task.inputs["item"]): str(task.inputs["tip"]) for task in log.tasks.find(context.run_id, role="check", limit=200)}
    assert len(tips) == count
    payloads: list[Any] = [entry.payload for entry in log.journal.find(context.run_id, subtype="conductor.overlap", limit=200)]
    found = {tuple(sorted(payload["items"])) for payload in payloads}
    pairs = list(itertools.combinations(sorted(tips), 2))
    assert found == {pair for pair in pairs if not merges(checked, *(tips[name] for name in pair))}
    assert 0 < len(found) < len(pairs)
