"""Lines of JSON as programs leave them, each read as Python's own reader reads it, or not at all."""

import json
from pathlib import Path

import pytest

from decklog.agents.texts import storable
from decklog.agents.transcripts import lines_of

_LINES = [
    b'{"a": 1}',
    b'{"a": "\xc3\xa9", "b": [1, {"c": null}]}',
    b'{"a": "\\ud83d\\ude00"}  ',
    b'  {"a": 1}',
    b"{ }",
    b'{"a": 1}\r',
]
_UNREAD = [b'{"a":}', b'{"a": 1} {"b": 2}', b'{"a": "\xff"}', b'{"', b'{"a": 1', b'["a"]', b'"text"', b"\xff\xfe{"]


@pytest.mark.parametrize("line", _LINES)
def test_a_line_is_read_as_python_reads_it(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(line + b"\n")
    assert list(lines_of(str(path))) == [(json.loads(line), len(line) + 1)]


@pytest.mark.parametrize("line", _UNREAD)
def test_what_is_no_object_is_counted_and_costs_no_other_line(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(line + b'\n{"b": 2}\n')
    unread: list[bytes] = []
    found = [one for one, _ in lines_of(str(path), 0, lambda: unread.append(line))]
    assert (found, unread) == ([{"b": 2}], [line])


def test_texts_that_a_database_takes_stay_as_they_are() -> None:
    value = {"a": ["é", {"b": "c"}], "n": 1, "none": None}
    assert storable(value) is value


def test_texts_that_no_database_takes_are_spelled_anew_wherever_they_are() -> None:
    assert storable({"a\0": [{"b": "\ud83d\ude00"}, "\ud800", 1]}) == {"a\ufffd": [{"b": "😀"}, "\ufffd", 1]}
