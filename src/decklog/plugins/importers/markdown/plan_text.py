"""A plan as text: a section a task, its facts a line each, so that people can edit it and git can merge two of them."""

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decklog.core.errors import Conflict, Invalid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

FACTS = ("state", "priority", "role", "assigned to", "tags", "needs", "part of")
LISTS = ("acceptance", "verification")
_SETS = ("tags", "needs")
_IDS = ("needs", "part of")
_LINE_END = re.compile("\r\n?")
# Whole lines: a goal or a text may quote one.
_RUN = re.compile(r"(?m)^<!-- plan of run (\S+) -->[ \t]*$")
_TASK = re.compile(r"(?m)^<!-- task (.+) as of entry (\d+) -->[ \t]*$")
_HEADING = re.compile(r"##[ \t]+(.*)")
_PART = re.compile(r"###[ \t]+(.*)")
_FACT = re.compile(r"[-*+] ([A-Za-z ]+):(?:[ \t]+(.*))?\Z")
_LISTED = re.compile(r"(?:[-*+]|\d+[.)])(?:[ \t]+|\Z)(.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
# A line of a text that would be read as the start of something else.
_STARTS = r"(#{1,3}[ \t]|<!-- |<{7} |>{7} |[-*+] (?:" + "|".join(FACTS) + "):)"
_MEANS_MORE = re.compile(rf"(?mi)^(\\*){_STARTS}")
_ESCAPED = re.compile(rf"(?mi)^\\(\\*){_STARTS}")
_MARKER = re.compile(r"(?m)^(<{7} |>{7} )")
# Of a set, members are parted by commas: one that is part of a name has a backslash before it.
_MEMBER = re.compile(r"(?:\\[\\,]|[^,])+")
_SPECIAL = re.compile(r"[\\,]")
_UNDONE = re.compile(r"\\([\\,])")
# Code that is longer is taken for none, so that a plan is read in one go.
_LONGEST_CODE = 2000
_PLAIN_ID = re.compile(r'[^"\s]\S*')


@dataclass(frozen=True, slots=True)
class Section:
    """What a section says of a task; without an id, it is one that somebody added."""

    task_id: str | None
    entry: int
    item: "dict[str, Any]"


def head(goal: str, run_id: str) -> str:
    """Begin a plan."""
    return f"# {one_line(goal)}\n\n<!-- plan of run {run_id} -->\n"


def section(task_id: str, entry: int, item: "dict[str, Any]") -> str:
    """Write a task."""
    facts = [f"- {name}: {_spelled(name, item[name])}" for name in FACTS if item.get(name) not in (None, "", [])]
    named = f"<!-- task {_spelled_id(task_id)} as of entry {entry} -->"
    text = f"\n## {one_line(item['title'])}\n\n{named}\n\n" + "\n".join(facts) + "\n"
    if item.get("objective"):
        text += f"\n{_MEANS_MORE.sub(_escape, item['objective'])}\n"
    for name in LISTS:
        if item.get(name):
            text += f"\n### {name.capitalize()}\n\n" + "".join(f"- {one_line(one)}\n" for one in item[name])
    return text


def read(text: str, path: str) -> "tuple[str, list[Section]]":
    """Read a plan: the run that it is of, and its sections."""
    text = unix_lines(text)
    if _MARKER.search(text):
        raise Conflict(f"{path} has conflicts of git's in it; settle them first", hint="Edit the file.", path=path)
    found = _RUN.search(text)
    if found is None:
        raise Invalid(f"{path} is no plan: it does not say of which run", hint="Write one: decklog export markdown", path=path)
    return found[1], [_section(title, lines, path) for title, lines in _parted(text.split("\n"), _HEADING) if title is not None]


def _parted(lines: list[str], heading: "re.Pattern[str]") -> "Iterator[tuple[str | None, list[str]]]":
    """Part lines at their headings, but for those in code; what stands before the first one has none."""
    title: str | None = None
    held: list[str] = []
    behind_code = 0
    for place, line in enumerate(lines):
        if place >= behind_code:
            behind_code = _end_of_code(lines, place)
        if place >= behind_code and (found := heading.match(line)) is not None:
            yield title, held
            title, held = found[1].strip(), []
        else:
            held.append(line)
    yield title, held


def _end_of_code(lines: list[str], place: int) -> int:
    """Return the line after a code block that starts here; the same line if none does, or if it does not end within its task."""
    opening = _FENCE.match(lines[place])
    if opening is None:
        return place
    for later in range(place + 1, min(len(lines), place + _LONGEST_CODE)):
        if _TASK.match(lines[later]):
            return place
        closing = _FENCE.match(lines[later])
        if closing and closing[1].startswith(opening[1]) and lines[later].strip() == closing[1]:
            return later + 1
    return place


def _section(title: str, lines: list[str], path: str) -> Section:
    if not title:
        raise Invalid(f"{path} has a section without a title", hint="Write it behind the ##.", path=path)
    (_, body), *lists = _parted(lines, _PART)
    rest = "\n".join(body)
    named = _TASK.search(rest)
    if named is not None:
        rest = rest[: named.start()] + rest[named.end() :]
    item: dict[str, Any] = {"title": one_line(title), **_body(rest, f"{path}: {title}")}
    for name, listed in lists:
        if (known := str(name).lower()) not in LISTS:
            raise Invalid(f"{path}: {title} has a part {name!r}; there are {', '.join(LISTS)}", path=path)
        item[known] = _items(listed)
    return Section(_read_id(named[1]) if named else None, int(named[2]) if named else 0, item)


def _items(lines: list[str]) -> list[str]:
    """Read a list. A line that begins no item goes on with the one before."""
    items: list[str] = []
    for line in filter(None, map(str.strip, lines)):
        found = _LISTED.match(line)
        if found is not None or not items:
            items.append(found[1] if found else line)
        else:
            items[-1] += f" {line}"
    return [one_line(item) for item in items if item.strip()]


def _body(body: str, where: str) -> "dict[str, Any]":
    """Read the facts, which come first, and the text behind them."""
    facts: dict[str, Any] = {}
    lines = body.strip().split("\n")
    is_within = False
    while lines:
        found = _FACT.match(lines[0].rstrip())
        name = found[1].lower() if found else ""
        if found is not None and name in FACTS:
            facts[name] = _read_fact(name, (found[2] or "").strip())
        elif found is not None and is_within:
            hint = "Put an empty line before it where the text begins."
            raise Invalid(f"{where} has a fact {name!r}; there are {', '.join(FACTS)}", hint=hint)
        elif lines[0].strip():
            break
        is_within = found is not None
        lines.pop(0)
    return {**facts, "objective": _ESCAPED.sub(r"\1\2", "\n".join(lines).strip())}


def _read_fact(name: str, text: str) -> "Any":
    if name in _SETS:
        members = [one_line(_UNDONE.sub(r"\1", word)) for word in _MEMBER.findall(text)]
        return [_read_id(word) if name in _IDS else word for word in members if word]
    if name == "priority" and text.isdecimal():
        return int(text)
    if name == "state":
        return text.lower()
    return _read_id(text) if name in _IDS and text else one_line(text) or None


def _spelled(name: str, value: "Any") -> str:
    if isinstance(value, list):
        members = (_spelled_id(one) if name in _IDS else one_line(one) for one in value)
        return ", ".join(_SPECIAL.sub(r"\\\g<0>", one) for one in members)
    return _spelled_id(value) if name in _IDS else one_line(str(value))


def _spelled_id(task_id: str) -> str:
    """Spell an id; another tracker's may have blanks and line breaks in it."""
    return task_id if _PLAIN_ID.fullmatch(task_id) else json.dumps(task_id)


def _read_id(text: str) -> str:
    try:
        found = json.loads(text) if text.startswith('"') else text
    except ValueError:
        return text
    return str(found)


def _escape(found: "re.Match[str]") -> str:
    return f"\\{found[0]}"


def one_line(text: str) -> str:
    """Return a text as a line holds it."""
    return " ".join(text.split())


def unix_lines(text: str) -> str:
    """Return a text with the line breaks that a plan is written with; editors write others."""
    return _LINE_END.sub("\n", text)
