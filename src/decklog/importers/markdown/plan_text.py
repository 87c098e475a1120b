"""A plan as text: a section a task, its facts a line each, so that people can edit it and git can merge two of them."""

import re

from decklog.dataclass import dataclass
from decklog.errors import Conflict, Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FACTS = ("state", "priority", "role", "assigned to", "tags", "needs", "part of")
LISTS = ("acceptance", "verification")
_SETS = ("tags", "needs")
_RUN = re.compile(r"<!-- plan of run (\S+) -->")
_TASK = re.compile(r"<!-- task (\S+) as of entry (\d+) -->")
_FACT = re.compile(r"- ([a-z ]+):(?: (.*))?\Z")
# A line of a text that would be read as the start of something else.
_MEANS_MORE = re.compile(r"(?m)^(\\*)(#{1,3} |<!-- |- (?:" + "|".join(FACTS) + "):)")
_ESCAPED = re.compile(r"(?m)^\\(\\*)(#{1,3} |<!-- |- (?:" + "|".join(FACTS) + "):)")
_MARKER = re.compile(r"(?m)^(<{7} |>{7} )")


@dataclass(frozen=True, slots=True)
class Section:
    """What a section says of a task; without an id, it is one that somebody added."""

    task_id: str | None
    entry: int
    item: "dict[str, Any]"


def head(goal: str, run_id: str) -> str:
    """Begin a plan."""
    return f"# {_one_line(goal)}\n\n<!-- plan of run {run_id} -->\n"


def section(task_id: str, entry: int, item: "dict[str, Any]") -> str:
    """Write a task."""
    facts = [f"- {name}: {_spelled(item[name])}" for name in FACTS if item.get(name) not in (None, "", [])]
    text = f"\n## {_one_line(item['title'])}\n\n<!-- task {task_id} as of entry {entry} -->\n\n" + "\n".join(facts) + "\n"
    if item.get("objective"):
        text += f"\n{_MEANS_MORE.sub(_escape, item['objective'].strip())}\n"
    for name in LISTS:
        if item.get(name):
            text += f"\n### {name.capitalize()}\n\n" + "".join(f"- {_one_line(one)}\n" for one in item[name])
    return text


def read(text: str, path: str) -> "tuple[str, list[Section]]":
    """Read a plan: the run that it is of, and its sections."""
    if _MARKER.search(text):
        raise Conflict(f"{path} has conflicts of git's in it; settle them first", hint="Edit the file.", path=path)
    found = _RUN.search(text)
    if found is None:
        raise Invalid(f"{path} is no plan: it does not say of which run", hint="Write one: decklog export markdown", path=path)
    parts = re.split(r"(?m)^## ", text)[1:]
    return found[1], [_section(part, path) for part in parts]


def _section(part: str, path: str) -> Section:
    title, _, rest = part.partition("\n")
    named = _TASK.search(rest)
    if named is not None:
        rest = rest[: named.start()] + rest[named.end() :]
    body, *lists = re.split(r"(?m)^### ", rest)
    item: dict[str, Any] = {"title": title.strip(), **_body(body)}
    for one in lists:
        name, _, lines = one.partition("\n")
        if (known := name.strip().lower()) not in LISTS:
            raise Invalid(f"{path}: {title.strip()} has a part {name.strip()!r}; there are {', '.join(LISTS)}", path=path)
        item[known] = [line.strip()[2:].strip() for line in lines.splitlines() if line.strip().startswith(("- ", "* "))]
    return Section(named[1] if named else None, int(named[2]) if named else 0, item)


def _body(body: str) -> "dict[str, Any]":
    """Read the facts, which come first, and the text behind them."""
    facts: dict[str, Any] = {}
    lines = body.strip().splitlines()
    while lines and (found := _FACT.match(lines[0].rstrip())) is not None and found[1] in FACTS:
        facts[found[1]] = _read_fact(found[1], (found[2] or "").strip())
        lines.pop(0)
    text = _ESCAPED.sub(r"\1\2", "\n".join(lines).strip())
    return {**facts, "objective": text}


def _read_fact(name: str, text: str) -> "Any":
    if name in _SETS:
        return [word.strip() for word in text.split(",") if word.strip()]
    return int(text) if name == "priority" and text.isdecimal() else text or None


def _spelled(value: "Any") -> str:
    return ", ".join(value) if isinstance(value, list) else _one_line(str(value))


def _escape(found: "re.Match[str]") -> str:
    return f"\\{found[0]}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
