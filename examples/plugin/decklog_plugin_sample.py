"""A plug-in for Decklog: an importer of todo.txt lists, and an agent program that reads its hooks from a JSON file."""

import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from decklog.plugins import ImportContext, Imported, ImportedLink, ImportedTask, TaskState

# x (A) 2026-11-15 Write the parser +project id:12 needs:11
_LINE = re.compile(r"(?P<done>x )?(?:\((?P<rank>[A-E])\) )?(?P<day>\d{4}-\d\d-\d\d )?(?P<text>.+)")
_FACT = re.compile(r"\b(id|needs):(\S+)")
_EVENTS = ("SessionStart", "PreToolUse", "PostToolUse", "SessionEnd")
_PRIORITIES = {"A": 90, "B": 70, "C": 50, "D": 30, "E": 10}


class TodoImporter:
    """Reads lists in the format of todo.txt; every item needs an id."""

    summary = "Import a todo.txt list."

    def detect(self, path: Path) -> bool:
        """Return whether path is a text file."""
        return path.is_file() and path.suffix == ".txt"

    def read(self, path: Path, context: ImportContext) -> Iterator[Imported]:
        """Yield a task for each line with an id, and a link for each `needs:ID`."""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = _LINE.fullmatch(line.strip())
            facts = _FACT.findall(line)
            names = [value for name, value in facts if name == "id"]
            if found is None or not names:
                if line.strip():
                    context.notes.append(f"line {number} has no id and was left out")
                continue
            day = (found["day"] or "2000-01-01").strip()
            yield ImportedTask(
                id=f"todo-{names[0]}",
                title=_FACT.sub("", found["text"]).strip(),
                state=TaskState.DONE if found["done"] else TaskState.PENDING,
                priority=_PRIORITIES.get(found["rank"] or "C", 50),
                tags=re.findall(r"\+(\S+)", line),
                created_at=datetime.fromisoformat(day).replace(tzinfo=UTC),
            )
            for other in (value for name, value in facts if name == "needs"):
                yield ImportedLink(task_id=f"todo-{names[0]}", other_id=f"todo-{other}")


class SampleAgent:
    """An agent that calls what `.sample-agent/hooks.json` names before and after each tool."""

    title = "Sample Agent"
    scopes = ("project", "user")
    executable = "sample-agent"
    guard = "A denied call does not run, but a hook that fails lets the call through: it is only advice."

    def files(self, setting: Any) -> dict[str, str]:
        """Return the file with our hooks."""
        folder = setting.project if setting.scope == "project" else setting.home
        hooks = {event: [*setting.call, "hook", "claude"] for event in _EVENTS}
        text = json.dumps({"written by": "decklog setup sample-agent", "hooks": hooks}, indent=2)
        return {os.path.join(folder, ".sample-agent", "hooks.json"): text + "\n"}
