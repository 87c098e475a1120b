"""The file tools read, write, edit and list as an agent expects, to the byte."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decklog.core.errors import Conflict, Denied, Invalid, NotFound, TooLarge
from decklog.guard.files.files import edit_file, read_file, write_file
from decklog.guard.files.path_check import AccessRules
from decklog.guard.files.root import Root
from decklog.guard.files.text import decode, replace
from decklog.guard.search.search import full_match, glob, list_files, name_match
from tests.searches import examples


def test_a_range_of_lines_is_counted_from_one_and_includes_both_ends(root: Root, here: Path) -> None:
    (here / "a.txt").write_text("one\ntwo\nthree\nfour\n")
    assert read_file(root, "a.txt", 2, 3).text == "two\nthree\n"
    assert read_file(root, "a.txt", 3).text == "three\nfour\n"
    assert read_file(root, "a.txt", end_line=1).text == "one\n"
    assert read_file(root, "a.txt").total_lines == 4


def test_lines_past_the_end_are_simply_not_there(root: Root, here: Path) -> None:
    (here / "a.txt").write_text("one\ntwo")
    assert read_file(root, "a.txt", 2, 99).text == "two"
    beyond = read_file(root, "a.txt", 9)
    assert (beyond.text, beyond.total_lines) == ("", 2)


@pytest.mark.parametrize(("start", "end"), [(0, None), (-1, 2), (3, 2), (None, 0)])
def test_a_range_that_is_none_is_invalid(root: Root, here: Path, start: int | None, end: int | None) -> None:
    (here / "a.txt").write_text("one\n")
    with pytest.raises(Invalid, match="not a range"):
        read_file(root, "a.txt", start, end)


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"caf\xc3\xa9\n", "café\n", "utf-8"),
        (b"\xef\xbb\xbfmark\n", "mark\n", "utf-8"),
        (b"caf\xe9\n", "café\n", "latin-1"),
        (b"\xff\xfea\x00\n\x00", "a\n", "utf-16-le"),
        (b"\xfe\xff\x00a\x00\n", "a\n", "utf-16-be"),
        (b"\x80\x00\xff", "\x80\x00\xff", "latin-1"),
        (b"", "", "utf-8"),
    ],
)
def test_any_bytes_can_be_read_and_the_decoding_is_told(root: Root, here: Path, data: bytes, text: str, encoding: str) -> None:
    (here / "a.txt").write_bytes(data)
    found = read_file(root, "a.txt")
    assert (found.text, found.encoding) == (text, encoding)


@given(st.binary(max_size=60))
def test_decoding_loses_no_byte(data: bytes) -> None:
    text, form = decode(data)
    assert form.encode(text) == data


def test_a_missing_file_is_not_found_and_a_large_one_refused(root: Root, here: Path) -> None:
    with pytest.raises(NotFound):
        read_file(root, "missing.txt")
    (here / "big").write_bytes(b"x" * 100)
    with pytest.raises(TooLarge):
        read_file(root, "big", limit=99)


def test_writing_creates_directories_and_says_how_much(root: Root, here: Path) -> None:
    written = write_file(root, "new/dir/a.txt", "é\n")
    assert (written.path, written.written_bytes) == ("new/dir/a.txt", 3)
    assert (here / "new/dir/a.txt").read_bytes() == b"\xc3\xa9\n"
    assert write_file(root, "new/dir/a.txt", "").written_bytes == 0


def test_text_that_is_no_unicode_is_invalid(root: Root) -> None:
    with pytest.raises(Invalid):
        write_file(root, "a.txt", "\ud800")


def test_writing_where_a_directory_stands_is_refused(root: Root, here: Path) -> None:
    (here / "src").mkdir()
    with pytest.raises(Denied, match="is a directory"):
        write_file(root, "src", "x")


def test_an_edit_keeps_crlf_a_byte_order_mark_and_all_other_bytes(root: Root, here: Path) -> None:
    (here / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    assert edit_file(root, "a.txt", "two", "2").replacements == 1
    assert (here / "a.txt").read_bytes() == b"\xef\xbb\xbfone\r\n2\r\nthree"


def test_a_passage_with_line_feeds_matches_the_endings_of_a_crlf_file(root: Root, here: Path) -> None:
    (here / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    edit_file(root, "a.txt", "one\ntwo\n", "1\n1b\n2\n")
    assert (here / "a.txt").read_bytes() == b"1\r\n1b\r\n2\r\nthree\r\n"
    edit_file(root, "a.txt", "three", "3\n4")
    assert (here / "a.txt").read_bytes() == b"1\r\n1b\r\n2\r\n3\r\n4\r\n"


def test_a_passage_with_crlf_matches_a_file_of_line_feeds_without_changing_its_endings(root: Root, here: Path) -> None:
    (here / "a.txt").write_bytes(b"one\ntwo\n")
    edit_file(root, "a.txt", "one\r\ntwo", "1\r\n2")
    assert (here / "a.txt").read_bytes() == b"1\n2\n"


def test_an_edit_keeps_an_encoding_that_is_not_utf8(root: Root, here: Path) -> None:
    (here / "latin.txt").write_bytes(b"caf\xe9 one\n")
    edit_file(root, "latin.txt", "café", "thé")
    assert (here / "latin.txt").read_bytes() == b"th\xe9 one\n"
    (here / "wide.txt").write_bytes(b"\xff\xfe" + "one\r\ntwo".encode("utf-16-le"))
    edit_file(root, "wide.txt", "two", "日")
    assert (here / "wide.txt").read_bytes() == b"\xff\xfe" + "one\r\n日".encode("utf-16-le")
    with pytest.raises(Invalid, match="latin-1"):
        edit_file(root, "latin.txt", "one", "日")


def test_an_edit_needs_a_passage_that_is_there_once(root: Root, here: Path) -> None:
    (here / "a.txt").write_text("x = 1\ny = 1\n\nx = 1\n")
    with pytest.raises(Invalid, match=r"old_string not unique \(2 matches at lines 1, 4\)") as refused:
        edit_file(root, "a.txt", "x = 1", "x = 2")
    assert refused.value.details["lines"] == [1, 4]
    with pytest.raises(Invalid, match="old_string not found"):
        edit_file(root, "a.txt", "z", "w")
    with pytest.raises(NotFound):
        edit_file(root, "b.txt", "x", "y")
    assert edit_file(root, "a.txt", "x = 1", "x = 2", replace_all=True).replacements == 2


@pytest.mark.parametrize("replace_all", [False, True])
def test_an_empty_passage_and_one_replaced_by_itself_are_invalid(root: Root, here: Path, replace_all: bool) -> None:
    (here / "a.txt").write_text("abc")
    for old, new in (("", "x"), ("abc", "abc")):
        with pytest.raises(Invalid):
            edit_file(root, "a.txt", old, new, replace_all=replace_all)
    assert (here / "a.txt").read_text() == "abc"


def test_a_passage_that_overlaps_itself_is_not_unique() -> None:
    with pytest.raises(Invalid, match="not unique"):
        replace("aaa", "aa", "b")
    assert replace("aaa", "aa", "b", replace_all=True) == ("ba", 1)


@given(before=st.text(max_size=20), old=st.text(min_size=1, max_size=6), after=st.text(max_size=20), new=st.text(max_size=6))
def test_a_unique_passage_is_replaced_and_nothing_else(before: str, old: str, after: str, new: str) -> None:
    text = before + old + after
    if old == new or "\r" in text + new or text.find(old) != len(before) or text.find(old, len(before) + 1) >= 0:
        return
    assert replace(text, old, new) == (before + new + after, 1)


@given(st.text(alphabet="ab\n", max_size=30), st.text(alphabet="ab\n", min_size=1, max_size=3))
def test_an_edit_of_a_crlf_text_is_that_of_its_line_feeds(text: str, old: str) -> None:
    new = "c\nd"
    try:
        expected = replace(text, old, new, replace_all=True)[0].replace("\n", "\r\n")
    except Invalid:
        return
    if "\n" in text:
        assert replace(text.replace("\n", "\r\n"), old, new, replace_all=True)[0] == expected


def test_an_edit_over_someone_elses_change_is_a_conflict(root: Root, here: Path) -> None:
    (here / "a.txt").write_text("one")
    content = root.read("a.txt")
    (here / "a.txt").write_text("changed")
    with pytest.raises(Conflict):
        root.write("a.txt", b"mine", over=content)
    assert (here / "a.txt").read_text() == "changed"


@pytest.fixture
def project(root: Root, here: Path) -> Root:
    for name in [
        "b.py",
        "a.py",
        "src/app.py",
        "src/deep/x.py",
        "src/deep/y.txt",
        "node_modules/m.js",
        ".git/config",
        ".github/ci.yml",
        "build/out.py",
        "src/build/keep.py",
        "src/.gitignore",
        "notes.log",
    ]:
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text("")
    (here / ".gitignore").write_text("node_modules/\n/build\n*.log\n")
    (here / "link.py").symlink_to("a.py")
    (here / "link-out.py").symlink_to("/etc/passwd")
    (here / "link-dir").symlink_to("src")
    os.mkfifo(here / "pipe.py")
    return root


def test_glob_gives_files_only_sorted_and_deterministic(project: Root) -> None:
    assert glob(project, "*") == [".gitignore", "a.py", "b.py", "link.py"]
    assert glob(project, "*.py") == ["a.py", "b.py", "link.py"]
    assert glob(project, "**/*.py") == ["a.py", "b.py", "link.py", "src/app.py", "src/build/keep.py", "src/deep/x.py"]
    assert glob(project, "src/**") == ["src/.gitignore", "src/app.py", "src/build/keep.py", "src/deep/x.py", "src/deep/y.txt"]
    assert glob(project, "**/deep/*.{py,txt}") == ["src/deep/x.py", "src/deep/y.txt"]
    assert glob(project, "[ab].py") == ["a.py", "b.py"]
    assert glob(project, "deep/?.py", "src") == ["src/deep/x.py"]
    assert glob(project, "**", "src/deep") == ["src/deep/x.py", "src/deep/y.txt"]
    assert glob(project, "nothing") == []


def test_ignored_files_are_listed_when_asked_for_but_never_gits_own(project: Root) -> None:
    assert glob(project, "**/*.js", with_ignored=True) == ["node_modules/m.js"]
    assert "notes.log" in list_files(project, with_ignored=True)
    assert not [file for file in list_files(project, with_ignored=True) if file.startswith(".git/")]


def test_a_glob_that_points_out_is_refused(project: Root) -> None:
    for pattern in ("../*", "/etc/*", "src/../../*"):
        with pytest.raises(Denied):
            glob(project, pattern)
    with pytest.raises(Invalid, match="not a glob"):
        glob(project, "[a")
    with pytest.raises(Invalid, match="alternatives"):
        glob(project, "{a,b}" * 20)


def test_list_files_takes_a_directory_a_pattern_and_a_depth(project: Root) -> None:
    assert list_files(project, "src", recursive=False) == ["src/.gitignore", "src/app.py"]
    assert list_files(project, "src", "*.py") == ["src/app.py", "src/build/keep.py", "src/deep/x.py"]
    assert list_files(project, ".", "src/*.py") == ["src/app.py"]
    assert list_files(project, "src/app.py") == ["src/app.py"]
    assert list_files(project, "link-dir", "app.py") == ["src/app.py"]
    with pytest.raises(NotFound):
        list_files(project, "missing")
    with pytest.raises(Denied):
        list_files(project, "..")


def test_a_file_whose_name_is_not_utf8_is_left_out(root: Root) -> None:
    with open(os.fsencode(root.path) + b"/bad\xff.txt", "wb"):
        pass
    assert list_files(root) == []


def test_a_task_is_kept_to_its_paths_by_the_tools_too(root: Root) -> None:
    with Root(root.path, rules=AccessRules(allowed=("src/",))) as bound:
        write_file(bound, "src/a.py", "x = 1\n")
        with pytest.raises(Denied, match="allowed paths"):
            write_file(bound, "setup.py", "")


@settings(max_examples=examples(50))
@given(st.lists(st.text(alphabet="ab*?/[]{},\\.!", max_size=8), max_size=3))
def test_no_glob_makes_the_tools_fail_otherwise_than_by_saying_so(patterns: list[str]) -> None:
    for pattern in patterns:
        for make in (full_match, name_match):
            with suppress(Denied, Invalid):
                assert make(pattern)("a/b.a") in (True, False)
