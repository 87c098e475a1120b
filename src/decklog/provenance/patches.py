"""Patches in the form of the tool `apply_patch`, applied to texts. Only exact matches count."""

from dataclasses import dataclass, field

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_ADD, _UPDATE, _DELETE, _MOVE = "*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "
_END_OF_FILE = "*** End of File"


@dataclass
class _Hunk:
    """Lines that replace others. `headings` are lines that come before it in the file."""

    headings: list[str] = field(default_factory=list)
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


@dataclass
class PatchSection:
    """What a patch does to one file. `former` is the path that the file was moved from."""

    path: str
    is_new: bool = False
    former: str | None = None
    hunks: list[_Hunk] = field(default_factory=list)

    def applied(self, before: str) -> str | None:
        """Return the text after the patch; None if the patch does not fit."""
        if self.is_new:
            return "".join(f"{line}\n" for hunk in self.hunks for line in hunk.new)
        lines, place = before.removesuffix("\n").split("\n") if before else [], 0
        for hunk in self.hunks:
            found = _place_of(hunk, lines, place)
            if found is None:
                return None
            lines[found : found + len(hunk.old)] = hunk.new
            place = found + len(hunk.new)
        return "".join(f"{line}\n" for line in lines)


def parse_patch(text: str) -> list[PatchSection]:
    """Return the files that a patch adds or changes; none if the text has no whole patch."""
    _, begin, rest = text.partition(_BEGIN)
    body, end, _ = rest.partition(_END)
    files: list[PatchSection] = []
    current: PatchSection | None = None
    for line in body.splitlines() if begin and end else []:
        if line.startswith((_ADD, _UPDATE, _DELETE)):
            kind, _, path = line.partition(": ")
            current = None if line.startswith(_DELETE) else PatchSection(path.strip(), is_new=f"{kind}: " == _ADD)
            files += [current] if current is not None else []
        elif current is not None and line.startswith(_MOVE):
            current.former, current.path = current.path, line.removeprefix(_MOVE).strip()
        elif current is not None and line != _END_OF_FILE:
            _take_line(current, line)
    return files


def _take_line(file: PatchSection, line: str) -> None:
    if line.startswith("@@"):
        heading = line.removeprefix("@@").strip()
        last = file.hunks[-1] if file.hunks else None
        if last is None or last.old or last.new:
            file.hunks.append(last := _Hunk())
        last.headings += [heading] if heading else []
        return
    if not file.hunks:
        file.hunks.append(_Hunk())
    hunk, sign, text = file.hunks[-1], line[:1], line[1:]
    if sign in ("", " ", "-"):
        hunk.old.append(text)
    if sign in ("", " ", "+"):
        hunk.new.append(text)


def _place_of(hunk: _Hunk, lines: list[str], start: int) -> int | None:
    """Return where the old lines of a hunk are; a hunk without old lines adds to the end."""
    place = start
    for heading in hunk.headings:
        place = next((number + 1 for number in range(place, len(lines)) if lines[number].strip() == heading), -1)
        if place < 0:
            return None
    if not hunk.old:
        return place if hunk.headings else len(lines)
    last = len(lines) - len(hunk.old)
    return next((number for number in range(place, last + 1) if lines[number : number + len(hunk.old)] == hunk.old), None)
