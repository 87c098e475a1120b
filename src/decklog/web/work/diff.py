"""A change as a page shows it: files with numbered lines, unified or side by side, with comments below their lines."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import zip_longest
from urllib.parse import quote

from markupsafe import Markup

from decklog.conductor.git.patches import ChangedFile, NumberedLine, files_of
from decklog.core.characters import revealed
from decklog.web.rendering import name_of

# A longer change is cut; the terminal shows all of it.
MOST_CHARACTERS, MOST_LINES = 600_000, 3000
UNIFIED, SPLIT = "unified", "split"
_PLAIN = re.compile("[ !#-%(-;=?-~]*")
_CLASSES = {"+": "d-add", "-": "d-del", " ": "d-same"}
Place = tuple[str, int]


@dataclass(frozen=True)
class DiffOptions:
    """How a change is shown. `comment` is the address to which `path:line` is added; None if comments are not possible.

    `below` has the HTML below each line: its comments, and the form for a new one.
    """

    is_split: bool = False
    comment: str | None = None
    below: Mapping[Place, Markup] | None = None


@dataclass(frozen=True)
class FileView:
    """One file: `rows` is the body of its table."""

    number: int
    path: str
    notes: tuple[str, ...]
    added: int
    removed: int
    rows: Markup

    def as_dict(self) -> dict[str, object]:
        return {"path": self.path, "notes": list(self.notes), "added": self.added, "removed": self.removed}


@dataclass(frozen=True)
class DiffView:
    """A whole change. `left_out` counts the files that are not shown; `is_cut` is whether the last file is cut."""

    files: list[FileView]
    left_out: int = 0
    is_cut: bool = False

    @property
    def added(self) -> int:
        return sum(one.added for one in self.files)

    @property
    def removed(self) -> int:
        return sum(one.removed for one in self.files)


def view_of(patch: str, options: DiffOptions) -> DiffView:
    """Build the view of a patch."""
    is_cut = len(patch) > MOST_CHARACTERS
    found = files_of(patch[: patch.rfind("\n", 0, MOST_CHARACTERS)] if is_cut else patch)
    shown: list[FileView] = []
    left = MOST_LINES
    for number, one in enumerate(found):
        size = sum(len(block.lines) for block in one.blocks)
        if left <= 0:
            break
        is_cut |= size > left
        shown.append(_file(number, one if size <= left else _shortened(one, left), options))
        left -= size
    return DiffView(shown, len(found) - len(shown), is_cut)


def _shortened(file: ChangedFile, most: int) -> ChangedFile:
    blocks = []
    for block in file.blocks:
        blocks.append(replace(block, lines=block.lines[: max(0, most)]))
        most -= len(block.lines)
    return replace(file, blocks=tuple(block for block in blocks if block.lines))


def _file(number: int, file: ChangedFile, options: DiffOptions) -> FileView:
    rows: list[str] = []
    write = _split_rows if options.is_split else _unified_rows
    for block in file.blocks:
        start = next((line.new for line in block.lines if line.new is not None), 0)
        said = f"line {start}" + (f" · {block.heading}" if block.heading else "")
        rows.append(f'<tr class="d-head"><td colspan="4">{_code(said)}</td></tr>\n')
        rows += write(number, file.path, block.lines, options)
    return FileView(number, file.path, file.notes, file.count("+"), file.count("-"), Markup("".join(rows)))


def _unified_rows(number: int, path: str, lines: Sequence[NumberedLine], options: DiffOptions) -> Iterable[str]:
    for line in lines:
        yield (
            f'<tr class="{_CLASSES[line.sign]}"{_id(number, line)}><td class="no">{"" if line.old is None else line.old}</td>'
            f'<td class="no">{_number(path, line, options)}</td><td class="sg">{line.sign.strip()}</td>'
            f'<td class="code">{_code(line.text)}</td></tr>\n'
        )
        yield from _below(path, line, options)


def _split_rows(number: int, path: str, lines: Sequence[NumberedLine], options: DiffOptions) -> Iterable[str]:
    for old, new in _pairs(lines):
        left = '<td class="no"></td><td class="code d-none"></td>'
        if old is not None:
            left = f'<td class="no">{old.old}</td><td class="code {_CLASSES[old.sign]}">{_signed(old)}</td>'
        right = '<td class="no"></td><td class="code d-none"></td>'
        if new is not None:
            shown = f'<td class="code {_CLASSES[new.sign]}">{_signed(new)}</td>'
            right = f'<td class="no">{_number(path, new, options)}</td>{shown}'
        yield f"<tr{_id(number, new) if new is not None else ''}>{left}{right}</tr>\n"
        if new is not None:
            yield from _below(path, new, options)


def _pairs(lines: Sequence[NumberedLine]) -> Iterable[tuple[NumberedLine | None, NumberedLine | None]]:
    """Pair removed lines with the added lines that replace them."""
    gone: list[NumberedLine] = []
    come: list[NumberedLine] = []
    for line in lines:
        if line.sign == " " or (line.sign == "-" and come):
            yield from zip_longest(gone, come)
            gone, come = [], []
        if line.sign == " ":
            yield line, line
        else:
            (gone if line.sign == "-" else come).append(line)
    yield from zip_longest(gone, come)


def _id(number: int, line: NumberedLine) -> str:
    return "" if line.new is None else f' id="l-{number}-{line.new}" data-row'


def _number(path: str, line: NumberedLine, options: DiffOptions) -> str:
    if line.new is None or options.comment is None:
        return "" if line.new is None else str(line.new)
    place = quote(f"{path}:{line.new}", safe="/:")
    said = f"Comment on line {line.new} of {name_of(revealed(path))}"
    href = name_of(f"{options.comment}on={place}#comment")
    return f'<a class="on" href="{href}" aria-label="{said}">{line.new}</a>'


def _below(path: str, line: NumberedLine, options: DiffOptions) -> Iterable[str]:
    found = (options.below or {}).get((path, line.new or 0))
    if found and line.new is not None:
        yield f'<tr class="d-note"><td colspan="4">{found}</td></tr>\n'


def _signed(line: NumberedLine) -> str:
    """Write a line with a hidden word for its sign, for readers who don't see colours."""
    sign = {"+": "added: ", "-": "removed: "}.get(line.sign)
    return (f'<span class="unseen">{sign}</span>' if sign else "") + _code(line.text)


def _code(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else escape(revealed(text, tabs=True))
