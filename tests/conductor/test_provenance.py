"""Lines that agents of a run wrote are theirs."""

from pathlib import Path

import pytest

from decklog import Decklog
from decklog.provenance.blame import blame_file
from decklog.provenance.git import GitRepository
from decklog.provenance.recording import captured_between
from tests.conductor.plans import TRIPLE, Work, target_of, work_item
from tests.conductor.repositories import git, write


@pytest.mark.slow
def test_lines_of_a_run_that_landed_belong_to_its_agent_and_task(sqlite_target: str, checked: Path) -> None:
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, work_item("triple", TRIPLE)).run()
        repo = GitRepository.find(str(checked))
        assert repo is not None
        found = {line.text: line.origin for line in blame_file(repo, log, "calc.py", target_of(context))}
        [edit] = log.edits.find(path="calc.py")
        assert found["    return a * 3"].edits == (edit.id,)
        assert found["def add(a, b):"].kind == "unknown"
        assert (edit.run_id, edit.task_id) == (context.run_id, f"{context.run_id}.triple.w1")


def test_content_that_a_history_had_before_is_not_an_edit(folder: Path) -> None:
    write(folder, {"a.txt": "one\n"})
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    write(folder, {"a.txt": "two\n"})
    git(folder, "commit", "-q", "-am", "two")
    start = git(folder, "rev-parse", "HEAD").strip()
    write(folder, {"a.txt": "one\n", "b.txt": "two\n", "c.txt": "three\n"})
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "back")
    repo = GitRepository.find(str(folder))
    assert repo is not None
    assert [edit["path"] for edit in captured_between(repo, start, "HEAD")["edits"]] == ["c.txt"]
