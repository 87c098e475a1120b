"""A second reader of Git AI notes, written from the standard's text alone. It shares no code with Decklog."""

import json
import re
from typing import Any

_RANGES = re.compile(r"[1-9][0-9]*(-[1-9][0-9]*)?(,[1-9][0-9]*(-[1-9][0-9]*)?)*")
_KEY = re.compile(r"s_[0-9a-f]{14}::t_[0-9a-f]{14}|h_[0-9a-f]{14}|[0-9a-f]{16}|[0-9a-f]{7}")
_OPTIONAL = {"human_author": str, "custom_attributes": dict}


def read(note: str) -> tuple[dict[str, dict[int, str]], dict[str, Any]]:
    """Read a note into the key of each line of each file, and its metadata. Assert every rule on the way."""
    head, divider, tail = ("\n" + note).partition("\n---\n")
    assert divider, "no divider"
    metadata = json.loads(tail)
    _check_metadata(metadata)
    files: dict[str, dict[int, str]] = {}
    lines: dict[int, str] | None = None
    for line in head.split("\n")[1:]:
        if line[0] != " ":
            assert lines is None or lines, "a file without attestations"
            lines = files.setdefault(_path(line), {})
            assert not lines, "a file is named twice"
            continue
        assert lines is not None
        _take(line, lines, metadata)
    assert lines is None or lines
    return files, metadata


def _path(line: str) -> str:
    if line[0] == '"':
        assert line[-1] == '"'
        return line[1:-1]
    assert not any(character.isspace() for character in line)
    return line


def _take(line: str, lines: dict[int, str], metadata: dict[str, Any]) -> None:
    indent, key, ranges = line[:2], *line[2:].split(" ")
    assert indent == "  "
    assert line[2] != " "
    assert _KEY.fullmatch(key), key
    assert _RANGES.fullmatch(ranges), ranges
    last = 0
    for part in ranges.split(","):
        first, _, end = part.partition("-")
        start, stop = int(first), int(end or first)
        assert last < start <= stop, ranges
        assert not end or start < stop
        last = stop
        for number in range(start, stop + 1):
            lines[number] = key
    if key.startswith("s_"):
        assert key.split("::")[0] in metadata["sessions"]
    elif key.startswith("h_"):
        assert key in metadata["humans"]
    else:
        assert key in metadata["prompts"]


def _check_metadata(metadata: dict[str, Any]) -> None:
    assert metadata["schema_version"] == "authorship/3.0.0"
    assert re.fullmatch(r"[0-9a-f]{40}", metadata["base_commit_sha"])
    for record in (*metadata["sessions"].values(), *metadata["prompts"].values()):
        assert set(record["agent_id"]) == {"tool", "id", "model"}
        assert all(isinstance(value, str) for value in record["agent_id"].values())
        assert all(isinstance(record[name], kind) for name, kind in _OPTIONAL.items() if name in record)
    for record in metadata["prompts"].values():
        counts = ("total_additions", "total_deletions", "accepted_lines", "overriden_lines")
        assert all(isinstance(record[name], int) for name in counts)
    assert all(isinstance(record["author"], str) for record in metadata["humans"].values())
