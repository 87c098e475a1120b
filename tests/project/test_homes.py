"""No test writes to the user's home."""

import os
import pwd
import tempfile
from pathlib import Path

import pytest

from decklog.location import locate
from tests.homes import Homes
from tests.programs import call


def test_programs_of_tests_have_a_home_that_is_gone_with_them(tmp_path: Path) -> None:
    home = Path(os.path.expanduser("~"))
    assert home.is_relative_to(tempfile.gettempdir())
    assert home != Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert call(["init", "."], cwd=tmp_path, variables={}).code == 0
    assert str(tmp_path) in (home / ".config/decklog/accepted").read_text(encoding="utf-8")


def test_consent_written_to_the_original_home_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    homes = Homes()
    assert Path(os.environ["HOME"]) != tmp_path
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    locate.accept(str(tmp_path / "project"), None, "now")
    (line,) = homes.accepted_below(tmp_path)
    assert line.startswith(f"{tmp_path}/project\t")
    assert homes.accepted_below(tmp_path / "other") == []
    homes.close()
