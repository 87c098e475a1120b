"""Git repositories for tests, with fixed authors and times."""

import os
import subprocess
from pathlib import Path

AUTHOR = "Ada Example <ada@example.org>"


class TestRepository:
    """A repository in a folder, driven by the git program."""

    __test__ = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._minute = 0
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str, given: str | None = None, ok: bool = True) -> str:
        """Run git and return what it printed."""
        self._minute += 1
        when = f"2026-01-01T{self._minute // 60 % 24:02}:{self._minute % 60:02}:00Z"
        name, _, mail = AUTHOR.removesuffix(">").partition(" <")
        people = {
            f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in (("NAME", name), ("EMAIL", mail))
        }
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true"}
        times = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        done = subprocess.run(
            ["git", "-C", str(self.folder), *words],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **people, **settings, **times},
        )
        assert done.returncode == 0 or not ok, done.stderr
        return done.stdout.strip()

    def write(self, path: str, text: str) -> None:
        """Write a file of the worktree."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, message: str = "Change", **files: str) -> str:
        """Write files, commit everything, and return the commit."""
        for path, text in files.items():
            self.write(path, text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")
