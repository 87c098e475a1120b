"""Kinds of trouble in many spellings and languages, each in a file of its own, beside honest files that look alike.

A file of `spellings/` has `=== KIND PATH` before each; with `@@base` and `@@head` it is changed, and `@@none` means that it goes.
They were written by whoever wrote the rules: they hold what is found, and say nothing of strangers' code.
"""

import re
from pathlib import Path

from decklog.review.change import between
from decklog.review.passes.security import security
from decklog.review.passes.static import static
from decklog.review.result import Finding
from decklog.review.settings import ReviewSettings
from tests.conductor.repositories import git, write
from tests.review.changes import Desk

HERE = Path(__file__).parent / "spellings"
BAD = ("left_over", "weakened", "dangers")


def read(name: str) -> dict[str, tuple[str | None, str | None]]:
    """Give the files of a list as they are before and after, each in a folder of its own."""
    found: dict[str, tuple[str | None, str | None]] = {}
    for number, part in enumerate(re.split(r"(?m)^=== ", (HERE / f"{name}.txt").read_text(encoding="utf-8"))[1:]):
        head, _, body = part.partition("\n")
        kind, path = head.split()
        before, _, after = (
            body.removeprefix("@@base\n").partition("@@head\n") if body.startswith("@@base\n") else (None, "", body)
        )
        found[f"{name}{number}-{kind}/{path}"] = (before, None if after.strip() == "@@none" else after)
    return found


def told(desk: Desk, files: dict[str, tuple[str | None, str | None]]) -> list[Finding]:
    write(desk.folder, {path: before for path, (before, _) in files.items() if before is not None})
    git(desk.folder, "add", "-A")
    git(desk.folder, "commit", "-q", "--allow-empty", "-m", "Before")
    desk.commit({path: after for path, (_, after) in files.items()})
    change = between(desk.repository, "main..change", cwd=desk.folder)
    results = (static(change, ReviewSettings(digest="d"), None), security(change, most=1000))  # type: ignore[arg-type]
    return [one for result in results for one in result.findings if one.file is not None]


def test_every_spelling_of_trouble_is_told(desk: Desk) -> None:
    files = {path: texts for name in BAD for path, texts in read(name).items()}
    found = {one.file for one in told(desk, files)}
    assert len(files) >= 385
    assert sorted(set(files) - found) == []


def test_honest_files_that_look_alike_are_let_go(desk: Desk) -> None:
    files = read("honest")
    assert len(files) >= 165
    assert [(one.file, one.kind) for one in told(desk, files) if one.file in files] == []
