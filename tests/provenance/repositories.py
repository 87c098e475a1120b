"""Git repositories for tests, and edits recorded in them as a capture records them."""

import os
import subprocess
from pathlib import Path

from decklog import Decklog, Edit
from decklog.provenance.git import GitRepository

_WHO = {
    "GIT_AUTHOR_NAME": "Ana",
    "GIT_AUTHOR_EMAIL": "ana@example.invalid",
    "GIT_COMMITTER_NAME": "Ana",
    "GIT_COMMITTER_EMAIL": "ana@example.invalid",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_EDITOR": "true",
}


class GitFolder:
    """A repository with a worktree, as its user works with it."""

    def __init__(self, folder: Path, *, is_new: bool = True) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        if is_new:
            self.git("init", "-q", "-b", "main")

    def git(self, *words: str, is_checked: bool = True, **more: str) -> str:
        variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env={**variables, **_WHO, **more},
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
        )
        if is_checked and done.returncode != 0:
            raise AssertionError(f"git {words}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def write(self, path: str, *lines: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in lines))

    def commit(self, message: str = "work") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    @property
    def repository(self) -> GitRepository:
        found = GitRepository.find(str(self.folder))
        assert found is not None
        return found


def record_edit(folder: GitFolder, log: Decklog, session: str, path: str, *lines: str) -> Edit:
    """Change a file as an edit tool does, and record it."""
    repo, file = folder.repository, folder.folder / path
    old = repo.text("hash-object", "-w", "--", path) if file.exists() else None
    folder.write(path, *lines)
    new, head = repo.text("hash-object", "-w", "--", path), repo.resolve("HEAD^{commit}")
    return log.edits.record(repo.identity, path, old_blob=old, new_blob=new, session=session, head=head)
