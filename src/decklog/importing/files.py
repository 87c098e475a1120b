"""Read untrusted text files of other programs: with size limits, git conflicts and truncated ends."""

import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from decklog.core.errors import Invalid, NotFound, TooLarge

MOST_BYTES = 8 * 1024**3
_MOST_DOCUMENT_BYTES = 512 * 1024**2
_LONGEST_LINE = 64 * 1024**2
_MARKER_LENGTH = 7
OURS_MARKER, _BASE, _MIDDLE, _THEIRS = "<" * _MARKER_LENGTH, "|" * _MARKER_LENGTH, "=" * _MARKER_LENGTH, ">" * _MARKER_LENGTH
_MARKERS = (OURS_MARKER, _BASE, _MIDDLE, _THEIRS)
_raw_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of a file with its JSON value, or the reason why it has none."""

    number: int
    text: str
    found: Any = None
    trouble: str | None = None


def find_file(path: str, places: Sequence[str], hint: str) -> str:
    """Return a named file, or the first existing place below a named folder."""
    if not os.path.isdir(path):
        return path
    for place in places:
        if os.path.exists(candidate := os.path.join(path, place)):
            return candidate
    raise NotFound(f"there is no {places[0]} in {path}", hint=hint, path=path)


def json_lines(path: str) -> Iterator[TextLine]:
    """Yield the JSON objects of a file line by line; skip blank lines and conflict markers."""
    with open_plain_file(path, MOST_BYTES) as file:
        for number, raw in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
            text = raw.decode("utf-8", "replace").strip().lstrip("\ufeff")
            if not text or _is_marker(text):
                continue
            found, trouble = parse_lenient_json(text), None
            if found is NotImplemented:
                trouble = "the line is no JSON" if raw.endswith(b"\n") else "the line was not written to its end"
            elif not isinstance(found, dict):
                trouble = "the line is no JSON object"
            yield TextLine(number, text, None if trouble else found, trouble)


def parse_lenient_json(text: str) -> object:
    """Parse JSON that may contain `NaN`; return `NotImplemented` for anything else."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return NotImplemented
    return found


def has_markers(path: str) -> bool:
    """Return whether a file has git's conflict markers."""
    with open_plain_file(path, MOST_BYTES) as file:
        return any(raw.startswith(b"<" * _MARKER_LENGTH) for raw in iter(lambda: file.readline(_LONGEST_LINE), b""))


def _is_marker(text: str) -> bool:
    return text.startswith(_MARKERS) and (len(text) == _MARKER_LENGTH or text[_MARKER_LENGTH] == " ")


def read_text(path: str) -> str:
    """Read a file that is one document."""
    with open_plain_file(path, _MOST_DOCUMENT_BYTES) as file:
        return file.read().decode("utf-8", "replace").lstrip("\ufeff")


def json_values(path: str) -> tuple[list[Any], list[str]]:
    """Read consecutive JSON values, on each side of git's conflicts; return also the incomplete texts.

    A truncated list yields its complete objects.
    """
    found: list[Any] = []
    broken: list[str] = []
    for text in _split_conflict_sides(read_text(path)):
        place = _skip_blanks(text, 0)
        while place < len(text):
            try:
                value, end = _raw_decode(text, place)
            except (ValueError, RecursionError):
                found += read_complete_objects(text, place + 1) if text[place] == "[" else ()
                broken.append(text[place:])
                break
            found.append(value)
            place = _skip_blanks(text, end)
    return found, broken


def _split_conflict_sides(text: str) -> list[str]:
    """Return both sides of a text with git's conflicts; the text itself if it has none."""
    if OURS_MARKER not in text:
        return [text]
    sides: tuple[list[str], list[str]] = ([], [])
    place = ""
    for line in text.splitlines(keepends=True):
        if _is_marker(line.strip()):
            place = line[:_MARKER_LENGTH]
            continue
        if place in ("", OURS_MARKER, _THEIRS):
            sides[0].append(line)
        if place in ("", _MIDDLE, _THEIRS):
            sides[1].append(line)
    return list(dict.fromkeys("".join(side) for side in sides))


def read_complete_objects(text: str, start: int) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a list from a position, up to the first incomplete one."""
    place = _skip_blanks(text, start)
    with suppress(ValueError, RecursionError):
        while text.startswith("{", place):
            found, place = _raw_decode(text, place)
            yield found
            place = _skip_blanks(text, place)


def _skip_blanks(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n,":
        place += 1
    return place


def open_plain_file(path: str, most_bytes: int, *, follow_links: bool = True) -> IO[bytes]:
    """Open a plain file; raise Invalid for a pipe or anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow_links else os.O_NOFOLLOW))
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}", path=path) from None
    except OSError as problem:
        raise Invalid(f"{path} can't be read: {problem.strerror}", path=path) from None
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_size <= most_bytes:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISREG(found.st_mode):
        raise TooLarge(f"{path} is larger than {most_bytes} bytes", path=path)
    raise Invalid(f"{path} is not a plain file", path=path)
