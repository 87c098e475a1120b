"""What of a tree is for its owner alone, as it is now and not as it was once."""

import time
from pathlib import Path

import pytest

from decklog.guard.sandbox.sandbox import CommandContext, _program_directories, sort_by_privacy


def test_what_came_to_be_private_is_seen_by_a_program_that_looked_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o755)
    shared, own = tmp_path / "hosts", tmp_path / "tokens"
    shared.write_text("a")
    shared.chmod(0o644)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    assert sort_by_privacy(str(tmp_path)).public == [str(tmp_path)]
    own.write_text("b")
    own.chmod(0o600)
    now += 10
    found = sort_by_privacy(str(tmp_path))
    assert (found.mixed, found.public, found.private) == ([str(tmp_path)], [str(shared)], [str(own)])


def test_a_folder_whose_name_begins_as_the_systems_is_none_of_them(tmp_path: Path) -> None:
    context = CommandContext(
        str(tmp_path), tmp_path, {"PATH": "/usr/bin:/optional/tools/bin:/opt/one/bin:/opt", "HOME": str(tmp_path)}
    )
    assert _program_directories(context) == ["/optional/tools"]
