"""Ignore patterns mean what they mean to git."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decklog.guard.files.gitignore import IgnoreFile
from decklog.guard.files.root import Root
from decklog.guard.search.search import walk
from tests.searches import examples

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.mark.parametrize(
    ("patterns", "path", "is_listed"),
    [
        (["*.pyc"], "a/b/c.pyc", True),
        (["*.pyc", "!keep.pyc"], "a/keep.pyc", False),
        (["/build"], "build/x", True),
        (["/build"], "src/build/x", False),
        (["build/"], "src/build/x", True),
        (["build/"], "src/build", False),
        (["docs/*.txt"], "docs/a.txt", True),
        (["docs/*.txt"], "docs/deep/a.txt", False),
        (["docs/**/*.txt"], "docs/a.txt", True),
        (["docs/**/*.txt"], "docs/x/y/a.txt", True),
        (["**/logs"], "logs", True),
        (["a/**"], "a", False),
        (["a/**"], "a/b/c", True),
        (["# comment", "\\#file"], "#file", True),
        (["\\!important"], "!important", True),
        (["trailing   "], "trailing", True),
        (["kept\\ "], "kept ", True),
        (["[a-c].txt"], "b.txt", True),
        (["[!a-c].txt"], "b.txt", False),
        (["[[:digit:]].txt"], "7.txt", True),
        (["a[/]b"], "a/b", False),
        (["[unclosed"], "[unclosed", False),
        (["dir", "!dir/kept.txt"], "dir/kept.txt", True),
        (["[[:digit:]]*"], "a/sub", False),
        (["[[:alpha:]]"], "a/7", True),
        (["[\\]a]"], "a/b", True),
        (["[a/b]"], "b", True),
        (["a\\", "b"], "b", True),
        (["**", "!a/b", "!*/"], "a/b", False),
        (["*.x", "!dir/"], "dir/a.x", True),
    ],
)
def test_a_pattern_lists_what_git_would_list(patterns: list[str], path: str, is_listed: bool) -> None:
    assert IgnoreFile(tuple(patterns)).covers(path) is is_listed


def test_a_hostile_pattern_takes_no_time() -> None:
    patterns = IgnoreFile(("*a" * 30 + "b",))
    before = time.process_time()
    assert not patterns.covers("a" * 200)
    assert time.process_time() - before < 1


NAMES = st.sampled_from(["a", "b", "ab", "a.x", "b.x", "dir", "sub"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
LINES = st.one_of(
    st.sampled_from(
        [
            "*.x",
            "!a.x",
            "/a",
            "/dir",
            "dir/",
            "sub/",
            "**/a",
            "a/**",
            "dir/**/b",
            "dir/*",
            "!dir/a",
            "[ab]",
            "[!a]",
            "?",
            "a?",
            "*.*",
            "/",
            "#",
            "\\a",
            "a\\",
            "**",
            "!**",
            "**/",
            "/**",
        ]
    ),
    st.text(alphabet="ab*?/!.[]dirx", min_size=1, max_size=6),
)


def _git_listed(directory: Path) -> list[str]:
    command = ["git", "-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=directory, capture_output=True, check=True)
    return sorted(name.decode() for name in done.stdout.split(b"\0") if name)


@needs_git
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(files=st.lists(PATHS, min_size=1, max_size=8), outer=st.lists(LINES, max_size=4), inner=st.lists(LINES, max_size=3))
def test_a_walk_finds_the_files_that_git_finds(files: list[str], outer: list[str], inner: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        subprocess.run(["git", "init", "-q"], cwd=here, check=True)
        for name in files:
            _place(here / name)
        _place(here / "dir/.gitignore", "\n".join(inner))
        _place(here / ".gitignore", "\n".join(outer))
        with Root(here) as root:
            assert list(walk(root).files) == _git_listed(here)


@needs_git
def test_an_inner_ignore_file_speaks_of_a_directory_and_not_of_what_lies_in_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for name in ("sub/dir/a.x", "sub/dir/b.y", "sub/a.x"):
        _place(tmp_path / name)
    _place(tmp_path / ".gitignore", "*.x\n")
    _place(tmp_path / "sub/.gitignore", "!dir\n")
    with Root(tmp_path) as root:
        assert list(walk(root).files) == _git_listed(tmp_path) == [".gitignore", "sub/.gitignore", "sub/dir/b.y"]


def _place(file: Path, text: str = "") -> None:
    if any(parent.is_file() for parent in file.parents) or file.is_dir():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
