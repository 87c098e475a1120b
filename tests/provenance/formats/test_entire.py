import json
from pathlib import Path

import pytest

from decklog.core.errors import Invalid, NotFound
from decklog.provenance.formats.entire import find_branch, read_checkpoints, read_transcript
from tests.provenance.text_repositories import TextFolder

CHECKPOINT = "a3b2c4d5e6f7"


def write_branch(repository: TextFolder, files: dict[str, str]) -> None:
    """Write Entire's branch from paths and texts, without a worktree."""
    stream = "commit refs/heads/entire/checkpoints/v1\ncommitter E <e@example.org> 1767225600 +0000\ndata 1\nx\n"
    for path, text in files.items():
        stream += f"M 644 inline {path}\ndata {len(text.encode())}\n{text}\n"
    repository.git("fast-import", "--quiet", given=stream)


def checkpoint_files() -> dict[str, str]:
    """Return the files of a checkpoint with two sessions, by hand as Entire's documents describe them."""
    folder = f"{CHECKPOINT[:2]}/{CHECKPOINT[2:]}"
    summary = {"checkpoint_id": CHECKPOINT, "strategy": "manual-commit", "branch": "main", "files_touched": ["a.py", "b.py"]}
    first = {
        "checkpoint_id": CHECKPOINT,
        "session_id": "11906c19-379b-4081-8da7-a0f4923759b6",
        "created_at": "2026-01-15T14:30:39.127678+11:00",
        "files_touched": ["a.py"],
        "agent": "Claude Code",
        "model": "claude-sonnet-4",
        "commit_sha": "0" * 40,
    }
    second = {"checkpoint_id": CHECKPOINT, "session_id": "s2", "files_touched": None, "agent": "Cursor", "model": ""}
    return {
        f"{folder}/metadata.json": json.dumps(summary),
        f"{folder}/0/metadata.json": json.dumps(first),
        f"{folder}/0/prompt.txt": "Add a function",
        f"{folder}/0/full.jsonl": '{"n": 0}',
        f"{folder}/0/full.jsonl.002": '{"n": 2}\n',
        f"{folder}/0/full.jsonl.001": '{"n": 1}\n',
        f"{folder}/0/transcript.jsonl": "{}",
        f"{folder}/1/metadata.json": json.dumps(second),
        "README.md": "about",
    }


@pytest.fixture
def repository(tmp_path: Path) -> TextFolder:
    return TextFolder(tmp_path / "repo")


def test_checkpoint_is_read_with_its_sessions_and_commits(repository: TextFolder) -> None:
    write_branch(repository, checkpoint_files())
    repository.commit(a="0")
    named = repository.commit(f"Add a function\n\nEntire-Checkpoint: {CHECKPOINT}", a="1")
    (found,) = read_checkpoints(repository.repository)
    assert (found.id, found.branch, found.files) == (CHECKPOINT, "main", ("a.py", "b.py"))
    assert found.commits == (named,)
    first, second = found.sessions
    assert (first.session, first.program, first.model) == ("11906c19-379b-4081-8da7-a0f4923759b6", "claude", "claude-sonnet-4")
    assert (first.files, first.prompt) == (("a.py",), "Add a function")
    assert (second.agent, second.program, second.model, second.files, second.transcript) == ("Cursor", None, None, (), ())


def test_parts_of_a_transcript_are_joined_in_order(repository: TextFolder) -> None:
    write_branch(repository, checkpoint_files())
    (found,) = read_checkpoints(repository.repository)
    assert read_transcript(repository.repository, found.sessions[0]) == b'{"n": 0}\n{"n": 1}\n{"n": 2}\n'


def test_commit_of_the_metadata_is_no_commit_of_the_session(repository: TextFolder) -> None:
    write_branch(repository, checkpoint_files())
    repository.commit(a="0")
    (found,) = read_checkpoints(repository.repository)
    assert found.commits == ()


def test_branch_of_a_remote_is_found(repository: TextFolder, tmp_path: Path) -> None:
    write_branch(repository, checkpoint_files())
    repository.commit(a="0")
    clone = TextFolder(tmp_path / "clone")
    clone.git("fetch", "-q", str(repository.folder), "entire/checkpoints/v1:refs/remotes/origin/entire/checkpoints/v1")
    assert find_branch(clone.repository) == "refs/remotes/origin/entire/checkpoints/v1"
    assert [one.id for one in read_checkpoints(clone.repository)] == [CHECKPOINT]


def test_repository_without_the_branch_is_refused(repository: TextFolder) -> None:
    with pytest.raises(NotFound, match="entire/checkpoints/v1"):
        list(read_checkpoints(repository.repository))


def test_broken_metadata_names_its_checkpoint(repository: TextFolder) -> None:
    write_branch(repository, {**checkpoint_files(), f"{CHECKPOINT[:2]}/{CHECKPOINT[2:]}/metadata.json": "{"})
    with pytest.raises(Invalid, match=CHECKPOINT):
        list(read_checkpoints(repository.repository))


def test_checkpoint_with_a_ref_of_its_own_is_read(repository: TextFolder) -> None:
    identity = "01KVBJCWYA4YW6J5M9GP655HZN"
    start = f"{CHECKPOINT[:2]}/{CHECKPOINT[2:]}/"
    files = {path.removeprefix(start): text for path, text in checkpoint_files().items() if path.startswith(start)}
    write_branch(repository, files)
    repository.git("update-ref", f"refs/entire/checkpoints/HZ/{identity}", "refs/heads/entire/checkpoints/v1")
    repository.git("update-ref", "-d", "refs/heads/entire/checkpoints/v1")
    commit = repository.commit(f"Work\n\nEntire-Checkpoint: {identity}", a="1")
    (found,) = read_checkpoints(repository.repository)
    assert (found.id, found.commits, len(found.sessions)) == (identity, (commit,), 2)
    assert read_transcript(repository.repository, found.sessions[0]).startswith(b'{"n": 0}')
