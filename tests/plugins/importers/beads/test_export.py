"""A log written as beads has it: what was imported comes back, and two such files merge."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.plugins.importers.beads import BeadsExport, BeadsImport
from tests.conftest import on_both
from tests.plugins.importers.beads.beads_files import MEMORIES, issue, issues, write

# Worked out by beads itself.
DERIVED = {"dependency_count", "dependent_count", "comment_count", "_type"}


def _export(log: Decklog, path: Path, **settings: Any) -> dict[str, dict[str, Any]]:
    BeadsExport(log, str(path), **settings).run()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {line.get("id") or line["key"]: line for line in lines}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "issues.jsonl")


def _text(found: object) -> str:
    return json.dumps(found, sort_keys=True)


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    """Give an issue without what is derived, without times' spellings, and without what says nothing."""
    kept = {name: value for name, value in found.items() if name not in DERIVED and value not in (None, "", [], False)}
    kept.pop("issue_id", None)
    times = [name for name in kept if name in ("created_at", "updated_at")]
    parts = {
        part: sorted((_plain(one) for one in kept.get(part, []) if isinstance(one, dict)), key=_text)
        for part in ("dependencies", "comments")
        if isinstance(kept.get(part), list)
    }
    return {**{name: value for name, value in kept.items() if name not in times}, **parts}


@pytest.mark.slow
@on_both
def test_what_was_imported_comes_back_as_it_was(log: Decklog, file: Path, tmp_path: Path) -> None:
    BeadsImport(log, str(file), run_id="beads").run()

    found = _export(log, tmp_path / "out.jsonl")

    for one in issues():
        back, there = _plain(found[one["id"]]), _plain(one)
        if one["status"] != "tombstone":
            there.setdefault("issue_type", there.pop("type", "task"))
        assert back == there, one["id"]
    assert [found["build"], found["style"]] == MEMORIES


def test_what_was_done_here_is_told_there(log: Decklog, tmp_path: Path) -> None:
    path = write(tmp_path / "issues.jsonl", [json.dumps(issue("bd-a", status="in_progress")), json.dumps(issue("bd-b"))])
    BeadsImport(log, str(path), run_id="beads").run()
    log.tasks.resume("bd-a")
    log.tasks.depend("bd-b", "bd-a")
    log.tasks.comment("bd-b", "Soon", author="ana")
    claimed = log.tasks.claim("beads", worker="w")
    log.tasks.finish("bd-a", fence=claimed.task.fence, summary="Commas are tokens")

    found = _export(log, tmp_path / "out.jsonl", run_id="beads")

    assert (found["bd-a"]["status"], found["bd-a"]["close_reason"]) == ("closed", "Commas are tokens")
    assert found["bd-a"]["closed_at"]
    assert [link["depends_on_id"] for link in found["bd-b"]["dependencies"]] == ["bd-a"]
    assert [comment["text"] for comment in found["bd-b"]["comments"]] == ["Soon"]


def test_a_task_of_our_own_is_an_issue_and_what_has_no_place_is_counted(log: Decklog, run_id: str, tmp_path: Path) -> None:
    log.tasks.add(run_id, "Lexer", task_id="lexer", objective="Read commas", priority=80, role="dev", allowed_paths=["src"])

    report = BeadsExport(log, str(tmp_path / "out.jsonl")).run()

    (line,) = [json.loads(text) for text in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert (line["id"], line["status"], line["priority"], line["issue_type"]) == ("lexer", "open", 0, "task")
    assert report["left_out"] == {"tasks.role": 1, "tasks.allowed_paths": 1}


def test_git_merges_two_exports(log: Decklog, tmp_path: Path) -> None:
    names = [f"bd-{number:02}" for number in range(20)]
    path = write(tmp_path / "in.jsonl", [json.dumps(issue(name)) for name in names])
    BeadsImport(log, str(path), run_id="beads").run()
    _export(log, tmp_path / "base.jsonl")
    log.tasks.edit("bd-03", title="Ours", reason="better")
    _export(log, tmp_path / "ours.jsonl")
    text = (tmp_path / "base.jsonl").read_text().replace("Issue bd-15", "Theirs")
    (tmp_path / "theirs.jsonl").write_text(text)

    words = ["git", "merge-file", "-p", *(str(tmp_path / f"{side}.jsonl") for side in ("ours", "base", "theirs"))]
    merged = subprocess.run(words, capture_output=True, text=True, check=False)

    assert merged.returncode == 0
    titles = {json.loads(line)["id"]: json.loads(line)["title"] for line in merged.stdout.splitlines()}
    assert (titles["bd-03"], titles["bd-15"]) == ("Ours", "Theirs")
