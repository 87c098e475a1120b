"""The file tools of a coding agent: read, write and edit, beneath one root."""

from dataclasses import dataclass

from decklog.core.errors import Invalid
from decklog.guard.files.root import LARGEST_FILE, Root
from decklog.guard.files.text import TextFormat, decode, lines_of, replace


@dataclass(frozen=True)
class FileText:
    """Text of a file, with the encoding that decoded it. Line numbers start at 1."""

    path: str
    text: str
    start_line: int
    end_line: int
    total_lines: int
    encoding: str


@dataclass(frozen=True)
class WrittenFile:
    """A file that was written."""

    path: str
    written_bytes: int


@dataclass(frozen=True)
class EditedFile:
    """An edited file, with the number of replacements."""

    path: str
    replacements: int


def read_file(
    root: Root, path: str, start_line: int | None = None, end_line: int | None = None, *, limit: int = LARGEST_FILE
) -> FileText:
    """Read a file, or its lines from `start_line` to `end_line`, both inclusive and starting at 1.

    Bytes that are not UTF-8 are read as Latin-1, so nothing is lost; see `encoding`.
    Lines after the end are omitted.
    """
    if (start_line is not None and start_line < 1) or (end_line is not None and end_line < (start_line or 1)):
        raise Invalid(
            f"Lines {start_line} to {end_line} are not a range",
            hint="Lines are counted from 1 and the end is not before the start.",
            start_line=start_line,
            end_line=end_line,
        )
    content = root.read(path, limit=limit)
    text, form = decode(content.data)
    lines = lines_of(text)
    start, end = (start_line or 1), min(end_line or len(lines), len(lines))
    if start_line is not None or end_line is not None:
        text = "".join(lines[start - 1 : end])
    return FileText(content.path, text, start, end, len(lines), form.encoding)


def write_file(root: Root, path: str, content: str) -> WrittenFile:
    """Write a whole file in UTF-8, creating its directories and keeping its mode.

    The new content appears at once or not at all: readers never see half of it.
    """
    data = TextFormat().encode(content)
    return WrittenFile(root.write(path, data), len(data))


def edit_file(root: Root, path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditedFile:
    """Replace a passage of a file. It must occur once, unless `replace_all` is set.

    Everything else stays unchanged: line endings, byte-order mark and encoding. Raises Conflict if another process has changed
    the file.
    """
    content = root.read(path)
    text, form = decode(content.data)
    try:
        text, count = replace(text, old_string, new_string, replace_all=replace_all)
    except Invalid as error:
        raise Invalid(f"{path}: {error.message}", hint=error.hint, path=content.path, **error.details) from None
    return EditedFile(root.write(path, form.encode(text), over=content), count)
