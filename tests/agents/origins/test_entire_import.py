import json
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.agents.origins.importing import import_entire
from decklog.agents.spool import Spool
from decklog.provenance.blame import blame_file
from tests.provenance.formats.test_entire import CHECKPOINT, checkpoint_files, write_branch
from tests.provenance.text_repositories import TextFolder

SESSION = "11906c19-379b-4081-8da7-a0f4923759b6"
RUN = f"claude-{SESSION}"


@pytest.fixture
def folder(tmp_path: Path) -> TextFolder:
    """Make a repository with a transcript of Claude Code in Entire's branch."""
    found = TextFolder(tmp_path / "repo")
    own = {"sessionId": SESSION, "cwd": "/repo", "version": "2.0.0", "timestamp": "2026-01-15T03:00:00.000Z"}
    lines = [
        {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "Add a function"}, **own},
        {
            "type": "assistant",
            "uuid": "u2",
            "message": {"id": "m1", "role": "assistant", "model": "opus", "content": [{"type": "text", "text": "I add it."}]},
            **own,
        },
    ]
    base = f"{CHECKPOINT[:2]}/{CHECKPOINT[2:]}/0"
    files = {path: text for path, text in checkpoint_files().items() if not path.startswith(f"{base}/full.jsonl.")}
    write_branch(found, {**files, f"{base}/full.jsonl": "".join(json.dumps(line) + "\n" for line in lines)})
    found.commit(f"Add a function\n\nEntire-Checkpoint: {CHECKPOINT}", a="1\n")
    return found


def test_transcript_and_commits_of_a_checkpoint_are_imported(log: Decklog, folder: TextFolder, tmp_path: Path) -> None:
    summary = import_entire(folder.repository, log, Spool(str(tmp_path / "spool")))
    assert summary.sessions == {f"claude:{SESSION}", "cursor:s2"}
    entries = log.journal.find(RUN, oldest_first=True, limit=50)
    assert {"Add a function", "I add it."} <= {entry.body for entry in entries}
    (linked,) = log.journal.find(RUN, subtype="checkpoint.entire")
    assert isinstance(linked.payload, dict)
    assert linked.payload["commits"] == [folder.git("rev-parse", "HEAD")]
    assert log.runs.get("cursor-s2").metadata["source"] == "entire"


def test_second_import_adds_nothing(log: Decklog, folder: TextFolder, tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "spool"))
    assert import_entire(folder.repository, log, spool).new_entries > 0
    assert import_entire(folder.repository, log, spool).new_entries == 0


def test_lines_stay_unknown_because_entire_records_files_only(log: Decklog, folder: TextFolder, tmp_path: Path) -> None:
    import_entire(folder.repository, log, Spool(str(tmp_path / "spool")))
    assert [line.origin.kind for line in blame_file(folder.repository, log, "a")] == ["unknown"]


def test_dry_run_records_nothing(log: Decklog, folder: TextFolder, tmp_path: Path) -> None:
    summary = import_entire(folder.repository, log, Spool(str(tmp_path / "spool")), dry_run=True)
    assert (len(summary.sessions), list(log.runs.find())) == (2, [])
