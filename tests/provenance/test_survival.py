"""Lines that survive are those that `git blame` finds, in random histories with branches, merges and renames."""

import random
from collections import Counter
from pathlib import Path

import pytest

from decklog.provenance.history import read_changes
from decklog.provenance.survival import Survival
from tests.provenance.text_repositories import TextFolder


class History:
    """A random history of unique lines, so that which line is which is never in doubt."""

    def __init__(self, folder: TextFolder, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self._count = 0

    def change(self) -> None:
        """Change, add, rename or delete a file, and commit it."""
        files = sorted(path.name for path in self.folder.folder.iterdir() if path.is_file())
        kind = self.random.choice(["change"] * 6 + ["add", "rename", "delete", "mode"])
        if kind == "add" or not files:
            self.folder.put(f"f{self.random.randrange(1000)}", "".join(self._line() for _ in range(8)))
        elif kind == "rename":
            self.folder.git("mv", self.random.choice(files), f"r{self.random.randrange(1000)}")
        elif kind == "mode":
            file = self.folder.folder / self.random.choice(files)
            file.chmod(file.stat().st_mode ^ 0o111)
        elif kind == "delete" and len(files) > 1:
            self.folder.git("rm", "-q", self.random.choice(files))
        else:
            self._edit(self.random.choice(files))
        self.folder.commit(kind)

    def _edit(self, name: str) -> None:
        lines = (self.folder.folder / name).read_text().splitlines(keepends=True)
        for _ in range(3):
            place = self.random.randint(0, len(lines))
            if lines and self.random.random() < 0.5:
                del lines[min(place, len(lines) - 1)]
            else:
                lines.insert(place, self._line())
        self.folder.put(name, "".join(lines))

    def _line(self) -> str:
        self._count += 1
        return f"line {self._count}\n"

    def merge(self, name: str) -> None:
        """Merge a branch; a conflict is resolved by keeping both sides and a line of the merge."""
        self.folder.git("merge", "-q", "--no-edit", "--no-ff", name, is_checked=False)
        for path in self.folder.git("diff", "--name-only", "--diff-filter=U").split():
            file = self.folder.folder / path
            if file.exists():
                marks = ("<<<<<<<", "=======", ">>>>>>>")
                kept = [line for line in file.read_text().splitlines(keepends=True) if not line.startswith(marks)]
                file.write_text("".join([*kept, self._line()]))
        if self.folder.git("status", "--porcelain") or (self.folder.folder / ".git" / "MERGE_HEAD").exists():
            self.folder.commit(f"Merge {name}")


def blamed(folder: TextFolder, base: str) -> Counter[str]:
    """Count the lines of each commit of the range, by git blame."""
    found: Counter[str] = Counter()
    known = set(folder.git("rev-list", f"{base}..HEAD").split())
    for path in folder.git("ls-files").split():
        for line in folder.git("blame", "-s", "-l", "HEAD", "--", path).splitlines():
            found[line.split(" ")[0].lstrip("^")] += 1
    return Counter({commit: count for commit, count in found.items() if commit in known})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_surviving_lines_are_those_of_git_blame(tmp_path: Path, seed: int) -> None:
    folder = TextFolder(tmp_path / "repo")
    history = History(folder, seed)
    folder.commit("First", a="".join(history._line() for _ in range(20)), b="".join(history._line() for _ in range(20)))
    base = folder.git("rev-parse", "HEAD")
    for number in range(3):
        folder.git("checkout", "-q", "-b", f"side{number}")
        for _ in range(3):
            history.change()
        folder.git("checkout", "-q", "main")
        for _ in range(2):
            history.change()
        history.merge(f"side{number}")
    span = f"{base}..HEAD"
    commits = list(read_changes(folder.repository, span, oldest_first=True))
    end = folder.git("rev-parse", "HEAD")
    survival = Survival(folder.repository, lambda commit, _file, start, last: [(last - start + 1, commit.commit)])
    found = survival.count(commits, span, end)
    assert found == blamed(folder, base), f"seed {seed}"
