"""What a change leaves behind in other files, in its documents and in its own message, in many spellings, beside honest changes.

A change of `spellings/structure*.txt` has `=== KIND NAME`, its message after bars, `--- PATH` before a file as it was, `+++ PATH`
before one as it is, and `!!! PATH` for one that goes. Whoever wrote the rules wrote them, before the rules.
"""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from decklog.conductor.git.repository import Repository
from decklog.review.change import Change
from decklog.review.passes.architectural import architectural
from decklog.review.result import Finding
from decklog.review.settings import ReviewSettings, Rules, read
from decklog.review.structure.looking import of_message, of_paths, structure
from tests.conductor.repositories import git, make_repository
from tests.searches import FULL

HERE = Path(__file__).parent / "spellings"
SETTINGS = ReviewSettings(digest="d", rules=Rules(model_passes=()))
_PART = re.compile(r"(---|\+\+\+|!!!) (\S+)$")


@dataclass(frozen=True)
class Case:
    """A change: its kind, its message, and its files before and after."""

    kind: str
    name: str
    message: str
    before: dict[str, str]
    after: dict[str, str]


@cache
def cases(name: str) -> tuple[Case, ...]:
    """Read a list of changes; a part of it, spread over all kinds, unless everything is asked for."""
    found = [_case(part) for part in re.split(r"(?m)^=== ", (HERE / f"{name}.txt").read_text(encoding="utf-8"))[1:]]
    return tuple(found if FULL else found[::6])


def _case(part: str) -> Case:
    kind, name = part.partition("\n")[0].split()
    texts: dict[str, dict[str, list[str]]] = {"---": {}, "+++": {}, "!!!": {}}
    message: list[str] = []
    rows: list[str] = []
    for line in part.split("\n")[1:]:
        if (found := _PART.match(line)) is not None:
            rows = texts[found[1]].setdefault(found[2], [])
        elif line.startswith("|") and not any(texts.values()):
            message.append(line[2:])
        else:
            rows.append(line)
    before, after = ({path: "\n".join(some).rstrip("\n") + "\n" for path, some in texts[sign].items()} for sign in ("---", "+++"))
    kept = {path: text for path, text in {**before, **after}.items() if path not in texts["!!!"]}
    return Case(kind, name, "\n".join(message), before, kept)


def committed(folder: Path, all_cases: tuple[Case, ...]) -> Iterator[Change]:
    """Make every change in one repository, by one call of git."""
    make_repository(folder, {"a.txt": "x\n"})
    stream = b"".join(
        _commit(f"{side}{number}", files, one.message, f"before{number}" if side == "after" else "")
        for number, one in enumerate(all_cases)
        for side, files in (("before", one.before or {".keep": ""}), ("after", one.after))
    )
    subprocess.run(["git", "fast-import", "--quiet"], input=stream, cwd=folder, check=True)
    commits = dict(line.split()[::-1] for line in git(folder, "show-ref").splitlines())
    repository = Repository.find(folder, folder.parent / "state")
    for number, one in enumerate(all_cases):
        sides = [commits[f"refs/heads/{side}{number}"] for side in ("before", "after")]
        yield Change(repository, *sides, (one.message,))


def _commit(branch: str, files: dict[str, str], message: str, onto: str) -> bytes:
    said = message.encode()
    head = f"commit refs/heads/{branch}\ncommitter Ana <ana@example.test> 1700000000 +0000\ndata {len(said)}\n".encode() + said
    start = f"\nfrom refs/heads/{onto}\ndeleteall\n" if onto else "\ndeleteall\n"
    body = b"".join(
        f"M 100644 inline {path}\ndata {len(text.encode())}\n".encode() + text.encode() + b"\n" for path, text in files.items()
    )
    return head + start.encode() + body + b"\n"


def told(change: Change) -> list[Finding]:
    return [*structure(change, SETTINGS), *of_message(change, SETTINGS.tests), *of_paths(change, SETTINGS.tests)]


def test_what_a_change_leaves_behind_is_told(tmp_path: Path) -> None:
    found = cases("structure")
    missed = [
        (one.kind, one.name)
        for one, change in zip(found, committed(tmp_path / "r", found), strict=True)
        if one.kind not in {finding.kind for finding in told(change)}
    ]
    assert len(found) >= (203 if FULL else 33)
    assert missed == []


def test_honest_changes_that_look_alike_are_let_go(tmp_path: Path) -> None:
    found = cases("structure_honest")
    said = [
        (one.name, finding.kind, finding.text)
        for one, change in zip(found, committed(tmp_path / "r", found), strict=True)
        for finding in told(change)
    ]
    assert len(found) >= (88 if FULL else 14)
    assert said == []


@pytest.mark.parametrize(("rules", "status"), [("", "pass"), ("needs_tests = true", "fail")])
def test_behaviour_without_a_test_is_only_told_unless_the_repository_asks_for_more(
    tmp_path: Path, rules: str, status: str
) -> None:
    before = {"door.py": "def may(age):\n    return age >= 18\n", "tests/test_door.py": "from door import may\n"}
    case = Case("untested", "door", "Let more in", before, {**before, "door.py": "def may(age):\n    return age >= 16\n"})
    [change] = committed(tmp_path / "r", (case,))
    settings = read(f"[review]\nmodel_passes = []\n{rules}\n".encode())
    result = architectural(change, settings, None)  # type: ignore[arg-type]
    assert (result.status, [one.kind for one in result.findings]) == (status, ["untested"])
