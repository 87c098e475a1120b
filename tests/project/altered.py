"""A copy of the package, changed as a developer would change it, and programs that run on the copy."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import decklog


class Altered:
    """The package as it will be one day. Its programs run in processes of their own, which import the copy."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "decklog"
        # With what Python has compiled of it, which is as old as the files and so is taken for theirs until one is changed.
        shutil.copytree(Path(decklog.__file__).parent, self.package)

    def write(self, name: str, text: str) -> None:
        """Add a file."""
        (self.package / name).parent.mkdir(parents=True, exist_ok=True)
        (self.package / name).write_text(text, encoding="utf-8")

    def replace(self, name: str, old: str, new: str) -> None:
        """Change one place of a file."""
        path = self.package / name
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def rename(self, name: str, old: str, new: str) -> None:
        """Rename a word of a file everywhere."""
        path = self.package / name
        path.write_text(re.sub(rf"\b{old}\b", new, path.read_text(encoding="utf-8")), encoding="utf-8")

    def run(self, program: str, *arguments: str) -> str:
        """Run a program on the copy; give what it prints."""
        return self._run([sys.executable, "-c", program, *arguments])

    def call(self, *words: str, expected: int = 0) -> str:
        """Run the copy's command line."""
        return self._run([sys.executable, "-m", "decklog", *words], expected)

    def _run(self, command: list[str], expected: int = 0) -> str:
        environment = {**os.environ, "PYTHONPATH": str(self.package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == expected, done.stdout + done.stderr
        return done.stdout
