"""Random work by agents, a person and somebody unknown: notes never name a wrong author in another log."""

import random
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.agents.origins.exporting import export_notes
from decklog.agents.origins.importing import import_notes
from decklog.provenance.formats.git_ai import read_notes
from tests.provenance.formats import second_reader
from tests.provenance.sessions import RecordedSession, record_text
from tests.provenance.text_repositories import TextFolder

BO = "Bo <bo@example.org>"
SEEDS = range(3)


class Work:
    """A file that actors change line by line. The model has the author of each line; it never reads an answer of ours."""

    def __init__(self, log: Decklog, folder: TextFolder, seed: int, *, are_unique: bool) -> None:
        self.log = log
        self.folder = folder
        self.random = random.Random(seed)
        self.are_unique = are_unique
        self.lines: list[tuple[str, str]] = []
        self._count = 0
        self._agents = {name: RecordedSession(log, folder, name, f"s-{name}") for name in ("claude", "codex")}

    def step(self) -> None:
        """Have one actor add, change or remove some lines."""
        actor = self.random.choice(["claude", "codex", BO, "unknown"])
        for _ in range(self.random.randint(1, 4)):
            place = self.random.randint(0, len(self.lines))
            if self.lines and self.random.random() < 0.3:
                del self.lines[min(place, len(self.lines) - 1)]
            else:
                self.lines.insert(place, (self._line(), actor))
        self._write(actor)

    def _line(self) -> str:
        self._count += 1
        return f"line {self._count}" if self.are_unique else self.random.choice(["x", "", "}"])

    def _write(self, actor: str) -> None:
        text = "".join(f"{line}\n" for line, _ in self.lines)
        if (self.folder.folder / "f").exists() and (self.folder.folder / "f").read_text() == text:
            return
        if actor in self._agents:
            self._agents[actor].edit("f", text)
        elif actor == BO:
            record_text(self.log, self.folder, "f", text, kind="person", person=BO)
        else:
            self.folder.put("f", text)


def authors(note: str) -> dict[int, str]:
    """Return the author of each line that a note attests, by the second reader."""
    files, metadata = second_reader.read(note)
    sessions = {key: one["agent_id"]["tool"] for key, one in metadata["sessions"].items()}
    people = {key: one["author"] for key, one in metadata["humans"].items()}
    return {line: sessions.get(key.partition("::")[0]) or people[key] for line, key in files.get("f", {}).items()}


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_notes_of_unique_lines_name_exactly_their_authors(log: Decklog, tmp_path: Path, seed: int) -> None:
    folder = TextFolder(tmp_path / "repo")
    folder.commit("First", base="1\n")
    work = Work(log, folder, seed, are_unique=True)
    for _ in range(5):
        before = {line for line, _ in work.lines}
        for _ in range(3):
            work.step()
        commit = folder.commit()
        expected = {
            number: author for number, (line, author) in enumerate(work.lines, 1) if line not in before and author != "unknown"
        }
        export_notes(folder.repository, log, f"{commit}~1..{commit}")
        notes = dict(read_notes(folder.repository))
        assert (authors(notes[commit]) if commit in notes else {}) == expected, f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("are_unique", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_imported_notes_are_exact_or_unknown(tmp_path: Path, seed: int, are_unique: bool) -> None:
    folder = TextFolder(tmp_path / "repo")
    folder.commit("First", base="1\n")
    with Decklog.open(tmp_path / "own.db") as log:
        work = Work(log, folder, seed, are_unique=are_unique)
        for _ in range(4):
            work.step()
            work.step()
            folder.commit()
        export_notes(folder.repository, log, "HEAD")
    notes = dict(read_notes(folder.repository))
    with Decklog.open(tmp_path / "other.db") as other:
        import_notes(folder.repository, other)
        # What the other log attests itself comes from the import alone.
        folder.git("update-ref", "-d", "refs/notes/ai")
        export_notes(folder.repository, other, "HEAD")
        export = dict(read_notes(folder.repository))
    for commit, text in notes.items():
        own = authors(text)
        imported = authors(export[commit]) if commit in export else {}
        assert imported.items() <= own.items(), f"seed {seed}"
        assert not are_unique or imported == own, f"seed {seed}"
