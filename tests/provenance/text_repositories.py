"""Git repositories for tests that are about texts, authors and times."""

import os
import subprocess
from pathlib import Path

from tests.provenance.repositories import GitFolder

AUTHOR = "Ada Example <ada@example.org>"


class TextFolder(GitFolder):
    """A repository whose files are given as whole texts. Commits are a minute apart."""

    def __init__(self, folder: Path) -> None:
        self._minute = 0
        super().__init__(folder)

    def git(self, *words: str, is_checked: bool = True, given: str | None = None, **more: str) -> str:
        """Run git and return what it printed."""
        self._minute += 1
        when = f"2026-01-01T{self._minute // 60 % 24:02}:{self._minute % 60:02}:00Z"
        name, _, mail = AUTHOR.removesuffix(">").partition(" <")
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true"}
        for role in ("AUTHOR", "COMMITTER"):
            settings |= {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": mail, f"GIT_{role}_DATE": when}
        variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            input=given,
            capture_output=True,
            text=True,
            check=False,
            env={**variables, **settings, **more},
        )
        assert done.returncode == 0 or not is_checked, done.stderr
        return done.stdout.strip()

    def put(self, path: str, text: str) -> None:
        """Write a file of the worktree."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, message: str = "Change", **files: str) -> str:
        """Write files, commit everything, and return the commit."""
        for path, text in files.items():
            self.put(path, text)
        return super().commit(message)
