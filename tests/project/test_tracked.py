"""What is tracked is text that people wrote, and small: nothing that a measurement or a run left behind."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_MOST_BYTES = 1 << 20
_FOLDERS = {".ci", ".github", "benchmarks", "docker", "docs", "examples", "packages", "site", "src", "tests"}
_MADE = {".db", ".db-wal", ".db-shm", ".db-lock", ".sqlite", ".pyc", ".log"}


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    # Who made the clone is none of git's business here.
    words = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True, text=True)
    return [Path(name) for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]


def test_no_tracked_file_is_large(tracked: list[Path]) -> None:
    assert tracked
    assert [str(name) for name in tracked if (ROOT / name).stat().st_size > _MOST_BYTES] == []


def test_folders_are_those_that_the_architecture_names(tracked: list[Path]) -> None:
    assert {name.parts[0] for name in tracked if len(name.parts) > 1} == _FOLDERS


def test_nothing_is_tracked_that_a_run_leaves(tracked: list[Path]) -> None:
    assert [str(name) for name in tracked if name.suffix in _MADE] == []
