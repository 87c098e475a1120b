"""Diffs are exact, and a patch is applied whole or not at all."""

import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decklog.core.errors import Conflict, Denied, Invalid, NotFound
from decklog.guard.files.path_check import AccessRules
from decklog.guard.files.root import Root
from decklog.guard.patches.apply import apply_patch, diff_texts, generate_diff
from tests.searches import examples

LINES = st.lists(st.sampled_from(["a", "b", "c", "", " x", "-", "+", "\\", "@@", "é", "tail\r"]), max_size=12)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


def _files(here: Path) -> dict[str, bytes]:
    return {str(file.relative_to(here)): file.read_bytes() for file in here.rglob("*") if file.is_file()}


def test_equal_files_give_an_empty_diff_and_missing_ones_are_not_found(root: Root, here: Path) -> None:
    (here / "a").write_text("x\n")
    (here / "b").write_text("x\n")
    assert generate_diff(root, "a", "b") == ""
    with pytest.raises(NotFound):
        generate_diff(root, "a", "c")


def test_a_missing_final_newline_is_told_and_lines_stay_apart(root: Root, here: Path) -> None:
    (here / "a").write_text("one\ntwo")
    (here / "b").write_text("one\ntwo\nthree")
    assert generate_diff(root, "a", "b") == (
        "--- a/a\n+++ b/b\n@@ -1,2 +1,3 @@\n one\n-two\n\\ No newline at end of file\n+two\n+three\n"
        "\\ No newline at end of file\n"
    )


def test_a_binary_file_has_no_diff(root: Root, here: Path) -> None:
    (here / "a").write_bytes(b"\0")
    (here / "b").write_bytes(b"x")
    with pytest.raises(Invalid, match="binary"):
        generate_diff(root, "a", "b")


def test_context_can_be_any_number_of_lines_but_not_negative() -> None:
    a, b = "1\n2\n3\n4\n5\n", "1\n2\nx\n4\n5\n"
    assert diff_texts(a, b, "f", "f", 0) == "--- a/f\n+++ b/f\n@@ -3 +3 @@\n-3\n+x\n"
    assert diff_texts(a, b, "f", "f", 1).count("\n ") == 2
    with pytest.raises(Invalid):
        diff_texts(a, b, "f", "f", -1)


@settings(max_examples=examples(300), deadline=None)
@given(a=TEXTS, b=TEXTS, context=st.integers(0, 4))
def test_a_diff_applied_to_the_first_gives_the_second_to_the_byte(a: str, b: str, context: int) -> None:
    with tempfile.TemporaryDirectory() as directory, Root(directory) as root:
        (Path(directory) / "f.txt").write_bytes(a.encode())
        patch = diff_texts(a, b, "f.txt", "f.txt", context)
        if patch:
            apply_patch(root, patch)
        assert (Path(directory) / "f.txt").read_bytes() == b.encode()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=examples(40), deadline=None)
@given(a=TEXTS, b=TEXTS)
def test_git_and_decklog_read_each_others_diffs(a: str, b: str) -> None:
    if not a or not b or a == b:
        return
    with tempfile.TemporaryDirectory() as directory, Root(directory) as root:
        here = Path(directory)
        (here / "f").write_bytes(a.encode())
        (here / "ours.diff").write_bytes(diff_texts(a, b, "f", "f").encode())
        command = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "ours.diff"]
        subprocess.run(command, cwd=here, check=True, capture_output=True)
        assert (here / "f").read_bytes() == b.encode()
        (here / "g").write_bytes(a.encode())
        diff = subprocess.run(["git", "diff", "--no-index", "g", "f"], cwd=here, capture_output=True)
        apply_patch(root, diff.stdout.decode())
        assert (here / "g").read_bytes() == b.encode()


EVERYTHING = (
    "A word from the mail it came in.\n"
    "diff --git a/change.txt b/change.txt\nindex 1..2 100644\n--- a/change.txt\n+++ b/change.txt\n"
    "@@ -1,3 +1,3 @@ heading\n 1\n-2\n+two\n 3\n"
    "diff --git a/new/dir/made.txt b/new/dir/made.txt\nnew file mode 100755\nindex 0..1\n--- /dev/null\n"
    "+++ b/new/dir/made.txt\n@@ -0,0 +1 @@\n+hello\n\\ No newline at end of file\n"
    "diff --git a/gone.txt b/gone.txt\ndeleted file mode 100644\nindex 1..0\n"
    "--- a/gone.txt\n+++ /dev/null\n"
    "@@ -1 +0,0 @@\n-bye\n"
    "diff --git a/old name.txt b/sub/new name.txt\nsimilarity index 80%\nrename from old name.txt\n"
    "rename to sub/new name.txt\n--- a/old name.txt\t\n+++ b/sub/new name.txt\t\n"
    "@@ -1,2 +1,2 @@\n same\n-here\n+there\n"
    "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
    "diff --git a/empty b/empty\nnew file mode 100644\nindex 0..0\n"
    'diff --git "a/caf\\303\\251.txt" "b/caf\\303\\251.txt"\nnew file mode 100644\n--- /dev/null\n'
    '+++ "b/caf\\303\\251.txt"\n@@ -0,0 +1 @@\n+x\n'
)


def test_one_patch_creates_changes_deletes_renames_and_sets_modes(root: Root, here: Path) -> None:
    (here / "change.txt").write_text("1\n2\n3\n")
    (here / "gone.txt").write_text("bye\n")
    (here / "old name.txt").write_text("same\nhere\n")
    (here / "run.sh").write_text("#!/bin/sh\n")
    done = apply_patch(root, EVERYTHING)
    assert [file.action for file in done.files] == ["changed", "created", "deleted", "renamed", "changed", "created", "created"]
    assert _files(here) == {
        "change.txt": b"1\ntwo\n3\n",
        "new/dir/made.txt": b"hello",
        "sub/new name.txt": b"same\nthere\n",
        "run.sh": b"#!/bin/sh\n",
        "empty": b"",
        "café.txt": b"x\n",
    }
    assert stat.S_IMODE((here / "run.sh").stat().st_mode) & 0o111
    assert stat.S_IMODE((here / "new/dir/made.txt").stat().st_mode) & 0o100
    assert (done.files[0].added, done.files[0].removed) == (1, 1)
    assert done.files[3].old_path == "old name.txt"


def test_a_copy_keeps_its_source(root: Root, here: Path) -> None:
    (here / "a").write_text("x\n")
    apply_patch(root, "diff --git a/a b/b\nsimilarity index 100%\ncopy from a\ncopy to b\n")
    assert _files(here) == {"a": b"x\n", "b": b"x\n"}


def test_a_plain_diff_without_prefixes_is_read_too(root: Root, here: Path) -> None:
    (here / "src").mkdir()
    (here / "src/a.py").write_text("x = 1\n")
    apply_patch(root, "--- src/a.py\t2020-01-01 00:00:00\n+++ src/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n")
    assert (here / "src/a.py").read_text() == "x = 2\n"


def test_a_hunk_that_moved_is_found_where_its_lines_are_if_that_is_one_place(root: Root, here: Path) -> None:
    (here / "f").write_text("new\nnew\na\nb\nc\n")
    apply_patch(root, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")
    assert (here / "f").read_text() == "new\nnew\na\nB\nc\n"
    (here / "f").write_text("x\na\nb\na\nb\n")
    with pytest.raises(Invalid, match="several places"):
        apply_patch(root, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n")


def test_context_is_never_matched_loosely(root: Root, here: Path) -> None:
    (here / "f").write_text("a \nb\n")
    with pytest.raises(Invalid, match="does not fit"):
        apply_patch(root, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n")
    assert (here / "f").read_text() == "a \nb\n"


def test_a_patch_of_line_feeds_fits_a_crlf_file_and_keeps_its_endings(root: Root, here: Path) -> None:
    (here / "f").write_bytes(b"a\r\nb\r\n")
    apply_patch(root, "--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n a\n-b\n+B\n+C\n")
    assert (here / "f").read_bytes() == b"a\r\nB\r\nC\r\n"


def test_a_patch_keeps_an_encoding_that_is_not_utf8(root: Root, here: Path) -> None:
    (here / "a").write_bytes(b"caf\xe9\nx\n")
    (here / "b").write_bytes(b"caf\xe9\ny\xff\n")
    apply_patch(root, generate_diff(root, "a", "b"))
    assert (here / "a").read_bytes() == b"caf\xe9\ny\xff\n"


FITS = "--- a/good\n+++ b/good\n@@ -1 +1 @@\n-good\n+better\n"


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ("--- a/bad\n+++ b/bad\n@@ -1 +1 @@\n-nothing like it\n+x\n", Invalid),
        ("--- a/missing\n+++ b/missing\n@@ -1 +1 @@\n-a\n+b\n", NotFound),
        ("--- /dev/null\n+++ b/bad\n@@ -0,0 +1 @@\n+x\n", Conflict),
        ("--- a/bad\n+++ /dev/null\n@@ -1 +0,0 @@\n-bad\n", Invalid),
        ("--- /dev/null\n+++ b/../outside.txt\n@@ -0,0 +1 @@\n+x\n", Denied),
        ("--- /dev/null\n+++ /etc/cron.d/x\n@@ -0,0 +1 @@\n+x\n", Denied),
        ("--- /dev/null\n+++ b/.git/hooks/pre-commit\n@@ -0,0 +1 @@\n+x\n", Denied),
        ("--- /dev/null\n+++ b/out/x\n@@ -0,0 +1 @@\n+x\n", Denied),
        ("--- a/hard\n+++ b/hard\n@@ -1 +1 @@\n-canary\n+x\n", Denied),
        ("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n", Denied),
        ("diff --git a/bad b/../x\nrename from bad\nrename to ../x\n", Denied),
        ("diff --git a/good b/bad\nrename from good\nrename to bad\n", Conflict),
        ("diff --git a/x b/x\nindex 1..2\nBinary files a/x and b/x differ\n", Invalid),
        ("--- a/bad\n+++ b/bad\n@@ -1,5 +1,5 @@\n bad\n", Invalid),
        ("--- a/bad\n+++ b/bad\nno hunk\n", Invalid),
        ("--- a/bad\n+++ b/bad\n@@ -1,2 +1,2 @@\n bad\n\\ No newline at end of file\n-2\n+3\n", Invalid),
        ("diff --git a/bad b/bad\nold mode 100644\nnew mode 104755\n", Invalid),
    ],
)
def test_one_bad_file_refuses_the_whole_patch(root: Root, here: Path, tmp_path: Path, bad: str, error: type[Exception]) -> None:
    (tmp_path / "canary").write_text("canary\n")
    (here / "good").write_text("good\n")
    (here / "bad").write_text("bad\n2\n")
    (here / "out").symlink_to(tmp_path)
    os.link(tmp_path / "canary", here / "hard")
    before = _files(here)
    with pytest.raises(error):
        apply_patch(root, FITS + bad)
    assert _files(here) == before
    assert sorted(os.listdir(tmp_path)) == ["canary", "root"]


@pytest.mark.parametrize("text", ["", "no patch at all\n", "@@ -1 +1 @@\n-a\n+b\n", "--- /dev/null\n+++ /dev/null\n"])
def test_a_text_that_is_no_patch_is_invalid(root: Root, text: str) -> None:
    with pytest.raises(Invalid):
        apply_patch(root, text)


def test_a_failure_while_writing_puts_back_what_was_written(here: Path) -> None:
    for name in ("a", "b"):
        (here / name).write_text("old\n")
    patch = "".join(f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-old\n+new\n" for name in ("a", "b"))
    patch += "--- /dev/null\n+++ b/c/new\n@@ -0,0 +1 @@\n+x\n"

    class Interfering(Root):
        """A root in which someone else changes a file just when all is staged."""

        def stage(self, path: str, data: bytes | None, *, is_executable: bool | None = None):  # type: ignore[no-untyped-def]
            change = super().stage(path, data, is_executable=is_executable)
            if path == "c/new":
                (here / "b").write_text("theirs\n")
            return change

    with Interfering(here) as busy, pytest.raises(Conflict):
        apply_patch(busy, patch)
    assert _files(here) == {"a": b"old\n", "b": b"theirs\n"}


def test_a_task_is_kept_to_its_paths_by_a_patch_too(here: Path) -> None:
    (here / "setup.py").write_text("good\n")
    with Root(here, rules=AccessRules(allowed=("src/",))) as bound, pytest.raises(Denied):
        apply_patch(bound, FITS.replace("good\n+", "setup.py\n+").replace("a/good", "a/setup.py"))


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.sampled_from([*FITS.splitlines(), "+", "-x", " y", "\\ No", "diff --git a/x b/x", "@@ -1 +1"])))
def test_no_text_makes_a_patch_fail_otherwise_than_by_saying_so(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory, Root(directory) as root:
        (Path(directory) / "good").write_text("good\n")
        try:
            apply_patch(root, "\n".join(lines))
        except (Invalid, NotFound, Conflict, Denied) as error:
            message = error.message
            assert message
