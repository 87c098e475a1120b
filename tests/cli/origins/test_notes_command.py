import json
from pathlib import Path

import pytest

from decklog import Decklog
from tests.cli.conftest import Program
from tests.provenance.text_repositories import TextFolder


@pytest.mark.slow
def test_notes_are_exported_and_setup_lists_what_a_push_publishes(folder: TextFolder, decklog: Program) -> None:
    assert decklog("notes", "export", "--dry-run").out.startswith("Would write 2 notes")
    assert folder.git("for-each-ref", "refs/notes") == ""
    assert decklog("notes", "export").out.startswith("Wrote 2 notes; 0 unchanged.")
    assert "claude" in folder.git("notes", "--ref=ai", "show", "HEAD~2")
    shown = decklog("notes", "setup").out
    for text in ("sessions (1): claude:s1", "models (1): opus", "people (1): Bo <bo@example.org>", "no prompts"):
        assert text in shown
    assert "git push origin refs/notes/ai" in shown
    assert folder.git("config", "--get-all", "remote.origin.fetch", is_checked=False) == ""


def test_setup_adds_the_refspec_on_request_only(folder: TextFolder, decklog: Program) -> None:
    assert decklog("notes", "setup", "--apply").code == 0
    decklog("notes", "setup", "--apply")
    assert folder.git("config", "--get-all", "remote.origin.fetch") == "+refs/notes/ai:refs/notes/ai"


def test_records_of_agent_trace_are_printed_and_written(folder: TextFolder, decklog: Program, tmp_path: Path) -> None:
    lines = decklog("notes", "export", "--format", "agent-trace").out.splitlines()
    assert [json.loads(line)["version"] for line in lines] == ["0.1.0"] * 2
    decklog("notes", "export", "--format", "agent-trace", "--out", "trace.jsonl")
    assert (tmp_path / "trace.jsonl").read_text().splitlines() == lines


@pytest.mark.slow
def test_notes_are_imported_into_another_log(folder: TextFolder, decklog: Program, tmp_path: Path) -> None:
    decklog("notes", "export")
    decklog("notes", "export", "--format", "agent-trace", "--out", "trace.jsonl")
    with Decklog.open(tmp_path / "other.db"):
        pass
    other = ("--db", str(tmp_path / "other.db"))
    assert decklog("notes", "import", "--dry-run", *other).out.startswith("Would import 2 files with 2 lines")
    assert decklog("notes", "import", *other).out.startswith("Imported 2 files with 2 lines; 0 already known.")
    assert "agent claude:s1" in decklog("why", "a:2", *other).out


@pytest.mark.slow
def test_wrong_options_are_refused(folder: TextFolder, decklog: Program) -> None:
    assert decklog("notes", "import", "--format", "agent-trace").code == 2
    assert decklog("notes", "import", "x.jsonl").code == 2
    assert decklog("notes", "export", "--format", "agent-trace", "--prompts").code == 2
    assert decklog("notes", "import", "--format", "entire").code == 3
