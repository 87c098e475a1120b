"""A release is refused unless its tag, the changelog and the version agree."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from decklog import __version__
from tests.db.processes import ROOT, unmeasured

NEWEST = "## 1.2.0 - 2026-11-15\n\n- Tasks can be dropped.\n"
OLDER = "\n## 1.1.0 - 2026-10-01\n\n- Something else.\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / ".ci").mkdir()
    (tmp_path / "src/decklog").mkdir(parents=True)
    shutil.copy(ROOT / ".ci/check_release.py", tmp_path / ".ci")
    return tmp_path


def check(repository: Path, *, tag: str = "v1.2.0", version: str = "1.2.0", changelog: str) -> "subprocess.CompletedProcess[str]":
    (repository / "src/decklog/__init__.py").write_text(f'"""Decklog."""\n\n__version__ = "{version}"\n')
    (repository / "CHANGELOG.md").write_text(f"# Changelog\n\n{changelog}")
    words = [sys.executable, str(repository / ".ci/check_release.py"), tag]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("head", ["", "## Unreleased\n\n"])
def test_a_release_whose_parts_agree_gives_its_notes(repository: Path, head: str) -> None:
    done = check(repository, changelog=head + NEWEST + OLDER)
    assert (done.returncode, done.stdout, done.stderr) == (0, "- Tasks can be dropped.\n", "")


def test_a_candidate_is_a_version_too(repository: Path) -> None:
    assert check(repository, tag="v1.2.0rc1", version="1.2.0rc1", changelog=NEWEST.replace("1.2.0", "1.2.0rc1")).returncode == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tag": "v1.2.1"}, "the tag must be v1.2.0"),
        ({"tag": "1.2.0"}, "the tag must be v1.2.0"),
        ({"version": "1.3.0", "tag": "v1.3.0"}, "The newest version in CHANGELOG.md is 1.2.0"),
        ({"version": "1.2", "tag": "v1.2"}, "is no version like 1.2.0"),
        ({"changelog": ""}, "The newest version in CHANGELOG.md is missing"),
        ({"changelog": OLDER + NEWEST}, "The newest version in CHANGELOG.md is 1.1.0"),
        ({"changelog": "## Unreleased\n\n- More.\n\n" + NEWEST}, "still has lines under Unreleased"),
        ({"changelog": NEWEST.replace(" - 2026-11-15", "")}, "does not say on which day"),
        ({"changelog": NEWEST.replace("11-15", "13-45")}, "does not say on which day"),
        ({"changelog": "## 1.2.0 - 2026-11-15\n" + OLDER}, "has no entry for 1.2.0"),
    ],
)
def test_a_release_whose_parts_do_not_agree_is_refused(repository: Path, changes: dict[str, str], message: str) -> None:
    done = check(repository, **{"changelog": NEWEST + OLDER, **changes})
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stdout == ""


def test_version_is_printed_without_reading_metadata() -> None:
    words = [sys.executable, "-X", "importtime", "-m", "decklog", "--version"]
    done = subprocess.run(words, env=unmeasured(), capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.split()[-1] == __version__
    assert "importlib.metadata" not in done.stderr
