"""A log that tests copy instead of making it is the one that the steps make."""

from pathlib import Path
from typing import Any

import apsw
import pytest

from decklog import Decklog, ManualClock
from decklog.db.sqlite import migrate
from tests.new_logs import Copying

SETTINGS = ("user_version", "application_id", "page_size", "journal_mode", "encoding", "freelist_count", "integrity_check")


def content(path: Path) -> dict[str, Any]:
    """Return all that is in a file: settings, schema and rows."""
    connection = apsw.Connection(str(path))
    found: dict[str, Any] = {name: connection.execute(f"pragma {name}").fetchall() for name in SETTINGS}
    found["schema"] = connection.execute("select type, name, sql from sqlite_schema order by type, name").fetchall()
    for kind, name, sql in found["schema"]:
        if kind == "table" and sql:
            found[name] = connection.execute(f'select * from "{name}"').fetchall()
    connection.close()
    return found


def test_a_copied_log_is_the_one_that_the_steps_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    Decklog.open(tmp_path / "by_steps.db", clock=clock).close()
    copying = Copying()
    copying.is_on = True
    monkeypatch.setattr(migrate, "_apply", copying.apply_or_copy)
    for name in ("first", "second"):
        Decklog.open(tmp_path / f"{name}.db", clock=clock).close()
    by_steps = content(tmp_path / "by_steps.db")
    assert by_steps["schema_steps"]
    assert content(tmp_path / "first.db") == by_steps
    assert content(tmp_path / "second.db") == by_steps
