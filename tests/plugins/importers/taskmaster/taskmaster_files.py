"""Task Master's document with every field, the three spellings of a dependency, and the defects that users reported."""

import json
from pathlib import Path
from typing import Any

T0, T1 = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"
EVERY_FIELD: dict[str, Any] = {
    "id": 1,
    "title": "Parse commas",
    "description": "Lists end in commas.",
    "status": "in-progress",
    "priority": "critical",
    "dependencies": [],
    "details": "Begin with the lexer.",
    "testStrategy": "Run the parser's tests",
    "complexity": 7,
    "recommendedSubtasks": 3,
    "expansionPrompt": "Split by token",
    "previousStatus": "pending",
    "updatedAt": T1,
    "effort": 4,
    "assignee": "ana",
    "tags": ["parser"],
    "metadata": {"team": "core"},
    "acceptanceCriteria": ["All tests pass", "No warning"],
    "from_the_future": [1],
}


def task(name: object, **fields: Any) -> dict[str, Any]:
    return {"id": name, "title": f"Task {name}", "status": "pending", "dependencies": [], "subtasks": [], **fields}


def document() -> dict[str, Any]:
    words = ("pending", "in-progress", "done", "review", "deferred", "cancelled", "blocked", "completed", "waiting for Godot")
    parts = [
        {"id": 1, "title": "First", "status": "done", "dependencies": [], "parentTaskId": 2},
        {"id": 2, "title": "Second", "status": "pending", "dependencies": [1, "2.3"], "parentId": 2},
        {"id": 3, "title": "Third", "status": "pending", "dependencies": ["1", 11], "parentTask": {"id": 2}},
    ]
    odd = {"description": None, "priority": None, "details": None, "dependencies": None, "subtasks": None, "testStrategy": None}
    return {
        "master": {
            "tasks": [
                EVERY_FIELD,
                task(2, subtasks=parts, dependencies=[1, "3"]),
                task("3", acceptanceCriteria="One text"),
                task(4, **odd),
                task(5, priority="soon", dependencies=[99, 5, "2.1", {"id": 1}]),
                task(6, dependencies=[7]),
                task(7, dependencies=[6]),
                *(task(10 + number, status=word) for number, word in enumerate(words)),
                {"title": "no id"},
                "no task",
            ],
            "metadata": {"created": T0, "updated": T1, "description": "The main list"},
        },
        "feature: lists": {"tasks": [task(1, title="The same id"), task(2, dependencies=["1"])], "metadata": {"created": T1}},
        "empty": {"tasks": []},
        "odd": ["no tag"],
    }


def counts() -> dict[str, int]:
    """Count the rows of `document`, by the report's tables."""
    return {"tasks": 7 + 9 + 3 + 2, "dependencies": 3 + 4 + 2 + 4 + 2 + 1, "lines": 3}


def conflicted() -> str:
    """Write a document in which git left a conflict, one side newer than the other."""
    ours = json.dumps({"master": {"tasks": [task(1, title="Ours", updatedAt=T0), task(2)]}}, indent=2).splitlines()
    theirs = json.dumps({"master": {"tasks": [task(1, title="Theirs", updatedAt=T1), task(2)]}}, indent=2).splitlines()
    found = ["<<<<<<< HEAD", *ours[3:-4], "=======", *theirs[3:-4], ">>>>>>> other"]
    return "\n".join([*ours[:3], *found, *ours[-4:]])


def write(path: Path, found: object = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(found if isinstance(found, str) else json.dumps(document() if found is None else found, indent=2))
    return path
