"""`decklog blame`, as people call it."""

import json
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.provenance.blame import blame_file
from tests.programs import ProcessResult, call
from tests.provenance.repositories import GitFolder, record_edit


@pytest.fixture
def folder(tmp_path: Path) -> GitFolder:
    found = GitFolder(tmp_path / "repository")
    found.write("sub/a.txt", "person 1", "person 2")
    found.commit()
    with Decklog.open(tmp_path / "log.db") as log:
        log.runs.start("goal", run_id="r")
        edit = record_edit(found, log, "claude:0123456789", "sub/a.txt", "person 1", "agent", "person 2")
        log.edits.record(edit.repository, "sub/b.txt", new_blob="a" * 40, session="codex:2", task_id="t")
    found.commit("agent's work")
    return found


def blamed(folder: GitFolder, *words: str, cwd: str = "sub") -> ProcessResult:
    return call(["blame", "--db", str(folder.folder.parent / "log.db"), *words], cwd=folder.folder / cwd, variables={})


def test_blame_shows_the_session_in_the_place_of_the_author(folder: GitFolder) -> None:
    rows = blamed(folder, "a.txt").out.decode().splitlines()
    assert [row.partition("(")[2].split(" 20")[0].strip() for row in rows] == ["Ana", "claude 01234567", "Ana"]
    assert rows[1].endswith("2) agent")
    assert rows[1].startswith(folder.git("rev-parse", "HEAD")[:8])


def test_blame_of_some_lines_of_a_revision(folder: GitFolder) -> None:
    assert blamed(folder, "a.txt", "HEAD~1", "-L", "2,2").out.endswith(b"2) person 2\n")


def test_blame_as_json_has_origins(folder: GitFolder) -> None:
    data = json.loads(blamed(folder, "a.txt", "--json", "-L", "2").out)["data"]
    [line] = data
    assert (line["origin"]["kind"], line["origin"]["sessions"]) == ("agent", ["claude:0123456789"])
    assert (line["text"], line["path"], line["summary"]) == ("agent", "sub/a.txt", "agent's work")


def test_blame_as_porcelain_has_lines_of_its_own(folder: GitFolder) -> None:
    out = blamed(folder, "a.txt", "--porcelain").out.decode()
    assert out.count("decklog-kind unknown\n") == 2
    assert "decklog-session claude:0123456789\n" in out
    assert out.count("\n\t") == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code"),
    [(["none.txt"], 1), (["a.txt", "nowhere"], 1), (["a.txt", "-L", "x"], 2), (["../../out.txt"], 3), (["a.txt", "--", "-s"], 2)],
)
def test_blame_refuses_what_it_can_not_show(folder: GitFolder, words: list[str], code: int) -> None:
    done = blamed(folder, *words)
    assert (done.code, done.out) == (code, b"")


def test_a_second_blame_reads_cached_origins(folder: GitFolder) -> None:
    with Decklog.open(folder.folder.parent / "log.db") as log:
        first = blame_file(folder.repository, log, "sub/a.txt")
        kept = log.edits.origins(folder.repository.identity, "sub/a.txt")[first[1].commit]
        assert kept[0][2]["sessions"] == ["claude:0123456789"]
        assert blame_file(folder.repository, log, "sub/a.txt") == first
        assert log.journal.verify().ok
