"""What killed imports left behind is removed by the next, and nothing else is."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from decklog.importing.source import PrivateFolder

HOLDS = """
import sys, time
from decklog.importing.source import PrivateFolder
print(PrivateFolder().path, flush=True)
time.sleep(60)
"""


def test_only_what_nobody_holds_any_more_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    other = subprocess.Popen([sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, text=True, env=environment)
    assert other.stdout is not None
    held = Path(other.stdout.readline().strip())
    elsewhere = tmp_path / "precious"
    elsewhere.mkdir()
    (elsewhere / "in-use").touch()
    (tmp_path / "decklog-import-link").symlink_to(elsewhere)
    (tmp_path / "decklog-import-unmarked").mkdir()
    try:
        with PrivateFolder() as mine:
            assert held.is_dir()
            assert Path(mine).stat().st_mode & 0o777 == 0o700
    finally:
        other.send_signal(signal.SIGKILL)
        other.wait()
        other.stdout.close()
    assert not Path(mine).exists()
    with PrivateFolder() as next_one:
        assert not held.exists()
        assert {path.name for path in tmp_path.iterdir()} == {
            *(Path(next_one).name, "precious", "decklog-import-link", "decklog-import-unmarked"),
        }
    assert (elsewhere / "in-use").exists()
