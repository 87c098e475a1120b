"""A file of beads' as it may be: what an import takes a sync takes too, and what neither can read stays in the file."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, Invalid
from decklog.importing.sync import SyncReport
from decklog.plugins.importers.beads import BeadsExport, BeadsImport, BeadsSync
from tests.conftest import on_both
from tests.plugins.importers.beads.beads_files import issue

ODD = [
    '"description": "one\u2028two\u0085three"',
    '"estimated_minutes": NaN, "metadata": {"share": NaN}',
    '"estimated_minutes": -1e999, "metadata": [1e999]',
    '"description": "half \\ud800 of one"',
    '"description": "git leaves <<<<<<< and >>>>>>> in files"',
    '"dependencies": 5, "comments": true, "labels": "one"',
    '"labels": ["x", "x", " ", 5, null], "priority": "3", "title": 5',
    '"defer_until": "2026-05-01 10:00:00"',
    '"defer_until": "2026-05-01T10:00:00.123456789+02:00"',
    '"defer_until": "1970-01-01T00:00:00Z"',
    '"blob": {"base64": "no!"}, "number": {"float": "no"}, "text": {"base64_text": "no!"}, "bytes": {"base64": "aGk="}',
    '"status": null, "title": null',
]


def _sync(log: Decklog, path: Path) -> SyncReport:
    return BeadsSync(log, str(path), run_id="beads").run()


def _written(path: Path, odd: str) -> Path:
    path.write_bytes(f'{{"id": "bd-1", {odd}}}\n{json.dumps(issue("bd-2"))}\n'.encode())
    return path


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def _did(done: SyncReport) -> tuple[Any, ...]:
    return done.taken, done.given, done.disputed


@pytest.mark.slow
@pytest.mark.parametrize("odd", ODD)
@on_both
def test_odd_values_are_in_step_after_one_sync(log: Decklog, tmp_path: Path, odd: str) -> None:
    path = _written(tmp_path / "issues.jsonl", odd)
    before = path.read_bytes()

    assert _did(_sync(log, path)) == (["bd-1", "bd-2"], [], [])
    assert _did(_sync(log, path)) == ([], [], [])
    assert path.read_bytes() == before

    log.tasks.edit("bd-1", reason="clearer", title="Renamed here")
    assert _did(_sync(log, path)) == ([], ["bd-1"], [])
    assert _did(_sync(log, path)) == ([], [], [])
    found, was = (json.loads(text.splitlines()[0]) for text in (path.read_bytes(), before))
    assert found.pop("title") == "Renamed here"
    was.pop("title", None)
    assert {name: repr(found[name]) for name in was} == {name: repr(value) for name, value in was.items()}


def test_a_number_beyond_all_bounds_is_written_as_json_has_it(log: Decklog, tmp_path: Path) -> None:
    path = _written(tmp_path / "issues.jsonl", '"estimated_minutes": 1e999, "notes": "@ Infinity"')
    _sync(log, path)
    log.tasks.edit("bd-1", reason="clearer", title="Renamed here")
    _sync(log, path)

    assert b'"estimated_minutes":1e999,' in path.read_bytes()
    BeadsExport(log, str(tmp_path / "back.jsonl"), run_id="beads").run()
    assert '"estimated_minutes":1e999,' in (tmp_path / "back.jsonl").read_text()


def test_every_other_line_stays_byte_for_byte(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    others = [b'\xef\xbb\xbf{"id": "bd-0", "title": "caf\xe9"}\r\n', b'{"id": "bd-9"\r\n', b"\n", b"[1]\n", b"[" * 9999 + b"\n"]
    path.write_bytes(b"".join([*others, json.dumps(issue("bd-2")).encode()]))

    assert [note for note in _sync(log, path).notes if "no issues" in note] == [
        f"3 lines of {path} are no issues, and stay there as they are"
    ]
    log.tasks.edit("bd-2", reason="clearer", title="Renamed here")
    assert _did(_sync(log, path)) == ([], ["bd-2"], [])

    assert _lines(path)[:-1] == others
    assert {task.id for task in log.tasks.find("beads")} == {"bd-0", "bd-2"}


def test_of_two_versions_the_newer_is_taken_whatever_their_zones(log: Decklog, tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    older = issue("bd-1", title="Older", updated_at="2026-01-01T12:00:00+09:00")
    path.write_text(json.dumps(issue("bd-1", title="Newer", updated_at="2026-01-01T10:00:00Z")) + "\n" + json.dumps(older) + "\n")

    _sync(log, path)

    assert log.tasks.get("bd-1").title == "Newer"


def test_members_that_are_none_stay_in_a_set_that_changes(log: Decklog, tmp_path: Path) -> None:
    path = _written(tmp_path / "issues.jsonl", '"labels": ["x", 5, null]')
    _sync(log, path)
    log.tasks.edit("bd-1", reason="found", tags=["x", "5", "new"])
    _sync(log, path)

    labels = json.loads(path.read_text().splitlines()[0])["labels"]
    assert [label for label in labels if label not in ("5",)] == ["x", "new", 5, None]


def test_a_pipe_in_the_place_of_a_file_is_refused(log: Decklog, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "issues.jsonl")

    with pytest.raises(Invalid, match="is not a plain file"):
        _sync(log, tmp_path / "issues.jsonl")


def test_what_another_run_kept_is_not_written_with_this_one(log: Decklog, tmp_path: Path) -> None:
    mine, other = tmp_path / "mine.jsonl", tmp_path / "other.jsonl"
    mine.write_text(json.dumps(issue("bd-1")) + "\n")
    other.write_text(json.dumps(issue("xx-1", status="tombstone")) + "\n")
    BeadsImport(log, str(mine), run_id="mine").run()
    BeadsImport(log, str(other), run_id="other").run()

    BeadsExport(log, str(tmp_path / "back.jsonl"), run_id="mine").run()

    assert [json.loads(line)["id"] for line in (tmp_path / "back.jsonl").read_text().splitlines()] == ["bd-1"]
