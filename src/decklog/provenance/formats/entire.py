"""Entire's checkpoints: read sessions from the branch `entire/checkpoints/v1`, and from refs below `refs/entire/checkpoints`.

The branch has a folder for each checkpoint, `<first two digits>/<rest>/`; a ref has one checkpoint. Each has `metadata.json` and
a numbered folder for each session: `metadata.json`, `prompt.txt` and the transcript `full.jsonl` (further parts are
`full.jsonl.001` and so on). Commits name their checkpoint in the trailer `Entire-Checkpoint`. Entire records files, not lines.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from decklog.core.errors import Invalid, NotFound
from decklog.provenance.formats.git_ai import read_blobs
from decklog.provenance.git import GitRepository

BRANCH = "entire/checkpoints/v1"
REFS = "refs/entire/checkpoints"
TRAILER = "Entire-Checkpoint"
_TRANSCRIPTS = ("full.jsonl", "full.log")
# The names that Entire gives to agents whose transcripts Decklog reads.
_PROGRAMS = {"claude code": "claude", "codex": "codex", "gemini cli": "gemini", "opencode": "opencode"}


@dataclass(frozen=True, kw_only=True)
class EntireSession:
    """What a checkpoint has about one session. `transcript` has the object ids of its parts, in order."""

    session: str
    agent: str
    model: str | None
    created_at: str | None
    files: tuple[str, ...]
    prompt: str | None
    transcript: tuple[str, ...]

    @property
    def program(self) -> str | None:
        """The agent as Decklog names it; None where Decklog can't read its transcripts."""
        return _PROGRAMS.get(self.agent.lower())


@dataclass(frozen=True, kw_only=True)
class EntireCheckpoint:
    """One checkpoint with its sessions and the commits that name it."""

    id: str
    branch: str | None
    files: tuple[str, ...]
    sessions: tuple[EntireSession, ...]
    commits: tuple[str, ...]


def find_branch(repo: GitRepository) -> str | None:
    """Return the ref of Entire's branch: the local one, or that of a remote; None where there is none."""
    words = ("for-each-ref", "--format=%(refname)", f"refs/heads/{BRANCH}", f"refs/remotes/*/{BRANCH}")
    return next(iter(repo.call(*words).decode().split()), None)


def read_checkpoints(repo: GitRepository) -> Iterator[EntireCheckpoint]:
    """Yield all checkpoints, by their ids; raise NotFound where there are none."""
    folders = _folders(repo)
    if not folders:
        raise NotFound(
            f"there is no branch {BRANCH}, nor a ref below {REFS}",
            hint=f"Fetch it: git fetch origin {BRANCH}:{BRANCH}",
        )
    named = (pair for files in folders.values() for pair in files.items())
    wanted = dict.fromkeys(blob for name, blob in named if name.endswith(("metadata.json", "prompt.txt")))
    texts = {blob: content.decode(errors="replace") for blob, content in read_blobs(repo, wanted).items()}
    commits = _commits_by_checkpoint(repo)
    for identity, files in sorted(folders.items()):
        if "metadata.json" in files:
            yield _checkpoint(identity, files, texts, commits)


def _folders(repo: GitRepository) -> dict[str, dict[str, str]]:
    """Return the files of each checkpoint, by the checkpoint's id."""
    folders: dict[str, dict[str, str]] = {}
    branch = find_branch(repo)
    for path, blob in repo.tree(branch).items() if branch else ():
        parts = path.split("/")
        if len(parts) > 2:
            folders.setdefault("".join(parts[:2]), {})["/".join(parts[2:])] = blob
    for ref in repo.call("for-each-ref", "--format=%(refname)", REFS).decode().split():
        folders[ref.rpartition("/")[2]] = repo.tree(ref)
    return folders


def read_transcript(repo: GitRepository, session: EntireSession) -> bytes:
    """Return a session's transcript, its parts joined."""
    contents = read_blobs(repo, session.transcript)
    parts = [contents[part] for part in session.transcript]
    return b"".join(part if part.endswith(b"\n") else part + b"\n" for part in parts)


def _commits_by_checkpoint(repo: GitRepository) -> dict[str, list[str]]:
    """Return the commits of branches, remotes and tags that name each checkpoint, the newest first."""
    form = f"--format=%H%x1f%(trailers:key={TRAILER},valueonly,separator=%x1f)"
    words = ("log", "--branches", "--remotes", "--tags", f"--grep={TRAILER}:", form)
    found: dict[str, list[str]] = {}
    for line in repo.call(*words).decode(errors="replace").split("\n"):
        commit, *checkpoints = line.split("\x1f")
        for checkpoint in filter(None, (one.strip() for one in checkpoints)):
            found.setdefault(checkpoint, []).append(commit)
    return found


def _checkpoint(identity: str, files: dict[str, str], texts: dict[str, str], commits: dict[str, list[str]]) -> EntireCheckpoint:
    facts = _facts(texts[files["metadata.json"]], identity)
    numbers = sorted({int(name.split("/")[0]) for name in files if name.split("/")[0].isdigit()})
    sessions = (_session(identity, files, texts, f"{number}/") for number in numbers)
    found = tuple(session for session in sessions if session is not None)
    # `commit_sha` of the metadata is where an import was made, not a commit of the session.
    return EntireCheckpoint(
        id=identity,
        branch=facts.get("branch") or None,
        files=_names(facts.get("files_touched")),
        sessions=found,
        commits=tuple(commits.get(identity, ())),
    )


def _session(identity: str, files: dict[str, str], texts: dict[str, str], folder: str) -> EntireSession | None:
    if f"{folder}metadata.json" not in files:
        return None
    facts = _facts(texts[files[f"{folder}metadata.json"]], identity)
    prompt = files.get(f"{folder}prompt.txt")
    return EntireSession(
        session=str(facts.get("session_id") or ""),
        agent=str(facts.get("agent") or ""),
        model=facts.get("model") or None,
        created_at=facts.get("created_at"),
        files=_names(facts.get("files_touched")),
        prompt=None if prompt is None else texts[prompt],
        transcript=tuple(_parts(files, folder)),
    )


def _parts(files: dict[str, str], folder: str) -> Iterator[str]:
    """Yield the objects of a transcript: the first part has no number."""
    for name in _TRANSCRIPTS:
        if f"{folder}{name}" in files:
            yield files[f"{folder}{name}"]
            break
    start = f"{folder}{_TRANSCRIPTS[0]}."
    numbered = (name for name in files if name.startswith(start) and name[len(start) :].isdigit())
    yield from (files[name] for name in sorted(numbered, key=lambda name: int(name[len(start) :])))


def _facts(text: str, identity: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise Invalid(f"the metadata of Entire's checkpoint {identity} is not JSON: {problem}") from None
    return found if isinstance(found, dict) else {}


def _names(value: Any) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
