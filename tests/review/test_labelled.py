"""Labelled sets of changes: stages 1 and 4 with the linters of this environment find what is bad and stop nothing honest.

A file of `spellings/` has `=== KIND PATH` before each; with `@@base` and `@@head` it is changed, `@@none` means it is removed.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from decklog.review import deterministic, linters
from decklog.review.change import Change, between
from decklog.review.result import Finding
from tests.conductor.repositories import git, write
from tests.review.changes import Desk, rules_of_stage_1

HERE = Path(__file__).parent / "spellings"


@pytest.fixture(autouse=True)
def no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report everything: a set is one change with hundreds of files."""
    for module in (deterministic, linters):
        monkeypatch.setattr(module, "_MOST_FINDINGS", 10_000)


def find(desk: Desk, change: Change) -> dict[str, list[Finding]]:
    gate = desk.gate(change)
    found: dict[str, list[Finding]] = {}
    for result in (rules_of_stage_1(change), gate.run_stage(4)):
        for one in result.findings:
            found.setdefault(one.file or "", []).append(one)
    return found


def read(name: str) -> dict[str, tuple[str | None, str | None]]:
    """Return the files of a list before and after, each in a folder named by its kind."""
    found: dict[str, tuple[str | None, str | None]] = {}
    for number, part in enumerate(re.split(r"(?m)^=== ", (HERE / f"{name}.txt").read_text(encoding="utf-8"))[1:]):
        head, _, body = part.partition("\n")
        kind, path = head.split()
        before, _, after = (
            body.removeprefix("@@base\n").partition("@@head\n") if body.startswith("@@base\n") else (None, "", body)
        )
        found[f"{number}/{kind}/{path}"] = (before, None if after.strip() == "@@none" else after)
    return found


def commit(desk: Desk, files: Mapping[str, tuple[str | None, str | None]]) -> Change:
    write(desk.folder, {path: before for path, (before, _) in files.items() if before is not None})
    git(desk.folder, "add", "-A")
    git(desk.folder, "commit", "-q", "--allow-empty", "-m", "Before")
    desk.commit({path: after for path, (_, after) in files.items()})
    return between(desk.repository, "main..change")


@pytest.mark.slow
def test_every_spelling_is_found_by_its_kind(desk: Desk) -> None:
    files = read("bad")
    found = find(desk, commit(desk, files))
    missed = [path for path in files if path.split("/")[1] not in {one.kind for one in found.get(path, ())}]
    assert (len(files), missed) == (154, [])


@pytest.mark.slow
def test_honest_files_that_look_alike_are_not_stopped(desk: Desk) -> None:
    files = read("honest")
    found = find(desk, commit(desk, files))
    reported = {path.partition("/")[2]: [(one.kind, str(one.severity)) for one in found[path]] for path in files if path in found}
    assert len(files) == 104
    # ruff reports every statement that is put together, and every handler that passes.
    assert reported == {
        "sql/a.py": [("ruff:S608", "minor")],
        "sql/h.py": [("ruff:S608", "minor")],
        "swallowed/n.py": [("ruff:S110", "minor")],
    }
