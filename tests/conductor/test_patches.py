"""Patches as people read them: the files and numbered lines that git wrote."""

from pathlib import Path

from decklog.conductor.git.changes import parse_files
from decklog.conductor.git.repository import Repository
from tests.conductor.repositories import git, write


def build_patch(folder: Path) -> str:
    return git(folder, "diff", "--find-renames", "--no-color", "HEAD~1", "HEAD")


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Next")


def test_lines_are_numbered_on_both_sides(repository: Repository) -> None:
    write(repository.folder, {"notes.txt": "one\ntwo and a half\nthree\n-- four\n"})
    commit(repository.folder)
    (file,) = parse_files(build_patch(repository.folder))
    assert (file.path, file.count("+"), file.count("-")) == ("notes.txt", 2, 1)
    assert [(line.sign, line.old, line.new, line.text) for line in file.blocks[0].lines] == [
        (" ", 1, 1, "one"),
        ("-", 2, None, "two"),
        ("+", None, 2, "two and a half"),
        (" ", 3, 3, "three"),
        ("+", None, 4, "-- four"),
    ]


def test_lines_that_look_like_heads_of_a_patch_are_lines(repository: Repository) -> None:
    write(repository.folder, {"notes.txt": "one\n-- a/other\n++ b/other\n@@ -1 +1 @@\ndiff --git a/x b/x\n"})
    commit(repository.folder)
    (file,) = parse_files(build_patch(repository.folder))
    assert [line.text for line in file.blocks[0].lines if line.sign == "+"][-1] == "diff --git a/x b/x"
    write(repository.folder, {"notes.txt": "one\n"})
    commit(repository.folder)
    (file,) = parse_files(build_patch(repository.folder))
    assert next(line.text for line in file.blocks[0].lines if line.sign == "-") == "-- a/other"


def test_new_deleted_renamed_and_binary_files_are_named(repository: Repository) -> None:
    folder = repository.folder
    write(folder, {"new file.txt": "x", "ümlaut.txt": "y\n"})
    (folder / "notes.txt").unlink()
    git(folder, "mv", "calc.py", "sums.py")
    (folder / "picture.png").write_bytes(bytes(range(256)))
    commit(folder)
    found = {file.path: file.notes for file in parse_files(build_patch(folder))}
    assert found == {
        "new file.txt": ("new file",),
        "notes.txt": ("deleted",),
        "picture.png": ("new file", "binary"),
        "sums.py": ("renamed from calc.py",),
        "ümlaut.txt": ("new file",),
    }


def test_a_change_of_nothing_has_no_files() -> None:
    assert parse_files("") == []
