"""Small repositories made for a test, with real git."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from unittest.mock import patch

from decklog.core.user_consents import give_consent

FILES = {"calc.py": "def add(a, b):\n    return a + b\n", "notes.txt": "one\ntwo\nthree\n", ".gitignore": "*.log\n"}
_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_DATE": "1700000000 +0000",
}


def git(folder: Path, *words: str, **variables: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**_ENVIRONMENT, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (words, done.stderr)
    if "commit" in words:
        consent(folder)
    return done.stdout.strip()


def consent(folder: Path, *homes: Path) -> None:
    """Consent to the settings of a repository as the person who committed them: in this home, that of programs, and others."""
    settings = folder / "decklog.toml"
    if not settings.exists():
        return
    digest = hashlib.sha256(settings.read_bytes()).hexdigest()
    for home in (Path.home(), folder.parent / "home", *homes):
        with patch.dict(os.environ, HOME=str(home)):
            give_consent(str(folder / ".git"), digest)


def make_repository(folder: Path, files: dict[str, str] | None = None) -> Path:
    """Make a repository with one commit of these files."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ana")
    git(folder, "config", "user.email", "ana@example.test")
    write(folder, FILES if files is None else files)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "First")
    return folder


def copied(first: Path, folder: Path) -> Path:
    """Give a test a repository of its own: making one costs five calls of git, and copying none."""
    copy = Path(shutil.copytree(first, folder / "repository"))
    consent(copy)
    return copy


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def everything(folder: Path) -> dict[str, bytes]:
    """Read every file of a folder, those of git too, but for objects and our own refs."""
    found = {}
    for parent, names, files in os.walk(folder):
        names[:] = [name for name in names if Path(parent, name) not in (folder / ".git/objects", folder / ".git/refs/decklog")]
        found.update({str(Path(parent, name).relative_to(folder)): Path(parent, name).read_bytes() for name in files})
    return found
