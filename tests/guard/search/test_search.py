"""Searching finds the matching lines, by path and line."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decklog.core.errors import Denied, Invalid, NotFound
from decklog.guard.files.path_check import AccessRules
from decklog.guard.files.root import Root
from decklog.guard.search.search import Finder, _compiled, grep
from tests.searches import examples


@pytest.fixture
def project(root: Root, here: Path) -> Root:
    files = {
        "b.py": "import os\nneedle = 1\n",
        "a.py": "needle()\n# Needle\nneedle needle\n",
        "a-b/x.py": "needle\n",
        "a/x.py": "needle\n",
        "notes.txt": "no\r\nneedle at the end\r\nlast",
        "node_modules/m.js": "needle\n",
        ".git/config": "needle\n",
        ".decklog/x": "needle\n",
        ".env": "needle\n",
        ".hidden/y.py": "needle\n",
        "sub/.gitignore": "*.tmp\n!keep.tmp\n",
        "sub/x.tmp": "needle\n",
        "sub/keep.tmp": "needle\n",
        ".gitignore": "node_modules/\n",
    }
    for name, text in files.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(text.encode())
    (here / "binary").write_bytes(b"needle\0needle\n")
    (here / "link.py").symlink_to("a.py")
    os.link(here / "b.py", here / "hard.py")
    os.mkfifo(here / "pipe")
    return root


def _found(project: Root, *args: object, **kwargs: object) -> list[tuple[str, int]]:
    found = grep(project, *args, **kwargs)  # type: ignore[arg-type]
    return [(match.path, match.line_number) for match in found.matches]


def test_matches_come_by_path_and_line_and_leave_out_what_is_not_source(project: Root) -> None:
    assert _found(project, "needle") == [
        (".hidden/y.py", 1),
        ("a-b/x.py", 1),
        ("a.py", 1),
        ("a.py", 3),
        ("a/x.py", 1),
        ("notes.txt", 2),
        ("sub/keep.tmp", 1),
    ]


def test_what_was_left_out_for_safety_is_told(project: Root) -> None:
    skipped = {one.path: one.reason for one in grep(project, "needle").skipped}
    assert skipped == {".env": "it may hold secrets", "b.py": "it is a hard link", "hard.py": "it is a hard link"}


def test_hard_links_are_searched_where_they_are_allowed(project: Root) -> None:
    with Root(project.path, rules=AccessRules(allow_hardlinks=True)) as linked:
        assert ("b.py", 2) in _found(linked, "needle")


def test_the_number_of_matches_is_honest(project: Root) -> None:
    for count in (0, 1, 6):
        found = grep(project, "needle", max_matches=count)
        assert (len(found.matches), found.truncated) == (count, True)
    exact = grep(project, "needle", max_matches=7)
    assert (len(exact.matches), exact.truncated) == (7, False)
    assert not grep(project, "nothing at all", max_matches=0).truncated
    with pytest.raises(Invalid):
        grep(project, "needle", max_matches=-1)


def test_case_path_and_glob_narrow_the_search(project: Root) -> None:
    assert ("a.py", 2) in _found(project, "needle", case_sensitive=False)
    assert _found(project, "needle", "sub") == [("sub/keep.tmp", 1)]
    assert _found(project, "needle", "a.py") == [("a.py", 1), ("a.py", 3)]
    assert _found(project, "needle", glob="*.txt") == [("notes.txt", 2)]
    assert _found(project, "needle", glob="a/*") == [("a/x.py", 1)]
    assert ("a.py", 1) not in _found(project, "needle", glob="!*.py")
    assert _found(project, "needle", glob="*.{txt,tmp}") == [("notes.txt", 2), ("sub/keep.tmp", 1)]


def test_lines_come_without_their_ending_with_column_and_context(project: Root) -> None:
    (match,) = grep(project, "at the end$", context=1).matches
    assert match.line_text == "needle at the end"
    assert match.column == 8
    assert (match.before, match.after) == (("no",), ("last",))


def test_a_bad_pattern_is_invalid_and_so_is_what_re2_has_not(project: Root) -> None:
    for pattern in ("(", "[a", "(?=x)", r"(a)\1", "a{2000}", "\ud800"):
        with pytest.raises(Invalid):
            grep(project, pattern)


def test_a_search_stays_inside(project: Root) -> None:
    with pytest.raises(Denied):
        grep(project, "root", "/etc")
    with pytest.raises(NotFound):
        grep(project, "x", "missing")


def test_a_very_long_line_is_cut_to_the_part_that_matters(root: Root, here: Path) -> None:
    (here / "min.js").write_text("x" * 9000 + "needle" + "y" * 9000)
    (match,) = grep(root, "needle").matches
    assert len(match.line_text) == 2000
    assert "needle" in match.line_text
    assert match.column == 9001


def test_a_hostile_pattern_takes_no_time() -> None:
    data = (b"a" * 200 + b"\n") * 2000
    before = time.process_time()
    assert not list(Finder("(a*)*b").matches("x", data))
    assert not list(Finder("[^x]*\\zq|[^x]*b").matches("x", data))
    assert time.process_time() - before < 5


ATOMS = st.sampled_from(
    [
        *("a", "b", "é", "k", "s", "ſ", ".", r"\d", r"\w", r"\W", r"\s", r"\S", r"\D", r"\b", r"\B", "^", "$"),
        *("[ab]", "[^a]", r"[\w-]", r"[^\s]", "[]a]", "[a&&b]", "[[:alpha:]]", "[a~b[]", r"[\W_]", r"\.", r"\-"),
        *(r"\t", r"\x41", r"\x{e9}", "(?i)a", "(?:ab)", "(?s).", r"\pL", r"\Qa.\E", r"\r", r"\n", "-", "{"),
        *("a{2}", r"\"", r"\/", r"\A", r"\z"),
    ]
)
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: f"(?:{a}|{b})", inner, inner),
        st.builds(lambda a, mark: f"(?:{a}){mark}", inner, st.sampled_from(["*", "+", "?"])),
    ),
    max_leaves=5,
)
CONTENTS = st.lists(
    st.sampled_from(
        [
            *(b"a", b"b", b"A", b"1", b"_", b"-", b".", b" ", b"\t", b"\n", b"\r\n", b"\r", b"\xc3\xa9", b"\xff"),
            *(b"\xe2\x84\xaa", b"k", b"S", b"\x0b", b"\x0c", b"/", b'"', b"\xef\xbb\xbf", b"&", b"~", b"["),
            *(b"\xed\xa0\x80", b"\xc5\xbf"),
        ]
    ),
    max_size=14,
).map(b"".join)


@settings(max_examples=examples(200), deadline=None)
@given(pattern=PATTERNS, data=CONTENTS)
def test_searching_a_file_at_once_finds_what_searching_each_line_finds(pattern: str, data: bytes) -> None:
    try:
        finder = Finder(pattern)
    except Invalid:
        return
    at_once = [match.line_number for match in finder.matches("x", data)]
    lines = data.replace(b"\r\n", b"\n").replace(b"\xed\xa0", b"\xff\xff").removesuffix(b"\n").split(b"\n") if data else []
    by_line = _compiled(pattern, case_sensitive=True)
    assert at_once == [number for number, line in enumerate(lines, 1) if by_line.search(line)]
