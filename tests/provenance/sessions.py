"""Recorded sessions with edits, as hooks leave them in a log."""

from datetime import datetime

from decklog import Decklog, Edit
from decklog.provenance.attribution import Attribution, LineRange, group_ranges
from decklog.provenance.git import GitRepository
from tests.provenance.repositories import GitFolder


class RecordedSession:
    """A session of an agent: its run, and what it said and called before each edit."""

    def __init__(self, log: Decklog, folder: GitFolder, program: str, session: str, *, model: str = "opus") -> None:
        self.log = log
        self.folder = folder
        self.name = f"{program}:{session}"
        self.program = program
        self.run_id = f"{program}-{session}"
        self._calls = 0
        log.runs.start("Session", run_id=self.run_id, metadata={"program": program, "session": session, "model": model})

    def now(self) -> datetime:
        """Return the log's time."""
        return self.log.clock.now()

    def append(self, kind: str, subtype: str, body: str, **payload: object) -> None:
        """Append an entry of the session."""
        self.log.journal.append(
            self.run_id, body, kind=kind, subtype=subtype, agent=self.program, payload=payload or None, at=self.now()
        )

    def prompt(self, text: str) -> None:
        """Have a person prompt the session."""
        self.append("interaction", "prompt", text)

    def say(self, text: str) -> None:
        """Have the agent say something."""
        self.append("interaction", "said", text)

    def bash(self, command: str, outcome: str = "ok") -> None:
        """Have the agent run a command."""
        self._calls += 1
        call = f"call-{self._calls}"
        self.append("tool", "call", command, call=call, tool="Bash")
        self.append("tool", "result", outcome, call=call, tool="Bash", outcome=outcome)

    def edit(self, path: str, text: str, *, task_id: str | None = None, mixed_with: list[str] | None = None) -> Edit:
        """Have the agent change a file."""
        self._calls += 1
        call = f"call-{self._calls}"
        self.append("tool", "call", f"Edit {path}", call=call, tool="Edit")
        return record_text(
            self.log,
            self.folder,
            path,
            text,
            session=self.name,
            run_id=self.run_id,
            call_id=call,
            task_id=task_id,
            mixed_with=mixed_with,
            edited_at=self.now(),
        )


def record_text(log: Decklog, folder: GitFolder, path: str, text: str, **given: object) -> Edit:
    """Write a file and record the edit."""
    repo, file = folder.repository, folder.folder / path
    old = repo.text("hash-object", "-w", "--", path) if file.exists() else None
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    new, head = repo.text("hash-object", "-w", "--", path), repo.resolve("HEAD^{commit}")
    return log.edits.record(repo.identity, path, old_blob=old, new_blob=new, head=head, **given)


def attribute_blob(repo: GitRepository, log: Decklog, blob: str, path: str, commit: str | None = None) -> list[LineRange]:
    """Return the origins of all lines of a blob.

    With a commit the blob is that commit's file at the path; without one it is a file of the worktree.
    """
    attribution = Attribution(repo, log)
    if commit is not None:
        blamed = attribution.blamed(commit, path)
        attribution.prefetch((one.commit, one.path) for one in blamed.values())
        origins = {line: attribution.find_in_commit(one.commit, one.path, one.line, one.text) for line, one in blamed.items()}
        return group_ranges(origins)
    head = repo.resolve("HEAD^{commit}")
    lines = range(1, len(repo.lines_of([blob])[blob]) + 1)
    return group_ranges({line: attribution.find_in_worktree(blob, path, head, line) for line in lines})
