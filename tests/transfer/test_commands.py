import json
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, ManualClock
from decklog.cli import run
from tests.transfer.conftest import fill


@pytest.fixture
def path(tmp_path: Path, clock: ManualClock) -> Path:
    with Decklog.open(tmp_path / "log.db", clock=clock) as log:
        fill(log, clock)
    return tmp_path / "log.db"


class Shell:
    """Runs command lines as a person would, and reads what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: object, code: int = 0) -> dict[str, Any]:
        assert run([*map(str, words), "--json"]) == code
        answer: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        assert answer["ok"] is (code == 0)
        return answer["data" if code == 0 else "error"]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


def test_a_log_goes_through_files_into_another(path: Path, tmp_path: Path, shell: Shell) -> None:
    assert shell("--db", path, "export", "jsonl", tmp_path / "out")["entries"] == 300
    assert shell("--db", tmp_path / "other.db", "import", "jsonl", tmp_path / "out")["entries"] == 300
    assert shell("--db", tmp_path / "other.db", "import", "jsonl", tmp_path / "nowhere", code=3)["code"] == "not_found"


def test_a_log_is_moved_backed_up_and_restored(path: Path, tmp_path: Path, shell: Shell) -> None:
    assert shell("move", tmp_path / "moved.db", "--from", path)["verified"] == 300
    assert shell("--db", path, "backup", tmp_path / "copy.db")["entries"] == 300
    assert shell("--db", path, "backup", tmp_path / "copy.db", code=5)["code"] == "conflict"
    kept = shell("restore", tmp_path / "copy.db", "--to", path)["kept"]
    assert Path(kept).exists()
    assert shell("--db", path, "restore", tmp_path / "nowhere.db", code=3)["code"] == "not_found"
    assert shell("restore", tmp_path / "copy.db", "--to", "postgresql://nowhere/x", code=2)["code"] == "usage"


def test_a_whole_file_needs_no_recovery_and_nothing_is_pruned_unasked(path: Path, tmp_path: Path, shell: Shell) -> None:
    assert shell("recover", path, "--to", tmp_path / "new.db")["whole"] is True
    before = shell("--db", path, "verify")["entries"]
    said = shell("--db", path, "prune", "--older-than", "1h")
    assert (said["applied"], said["entries"] > 100) == (False, True)
    assert shell("--db", path, "verify")["entries"] == before
    done = shell("--db", path, "prune", "--older-than", "1h", "--apply", "--shrink")
    assert done["entries"] == said["entries"]
    assert shell("--db", path, "verify")["entries"] == before + 1


def test_a_page_is_written_for_one_run(path: Path, tmp_path: Path, shell: Shell) -> None:
    written = shell("--db", path, "export", "html", "run_1", "--out", tmp_path / "page.html")
    assert Path(written["path"]).read_text().startswith("<!doctype html>")


def test_an_unknown_form_is_a_usage_error_and_help_lists_the_known_ones(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell("export", "parchment", code=2)["code"] == "usage"
    assert run(["export", "--help"]) == 0
    assert "jsonl" in capsys.readouterr().out
