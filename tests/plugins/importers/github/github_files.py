"""GitHub's issues as `gh issue list --json` and as the API write them."""

import json
from pathlib import Path
from typing import Any

T0, T1, T2 = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"
PLACE = "https://github.com/acme/parser"


def by_gh(number: int, **fields: Any) -> dict[str, Any]:
    """Write an issue as `gh` does."""
    return {
        "number": number,
        "id": f"I_{number}",
        "title": f"Issue {number}",
        "body": "",
        "state": "OPEN",
        "stateReason": "",
        "labels": [],
        "assignees": [],
        "author": {"login": "ana", "is_bot": False},
        "comments": [],
        "createdAt": T0,
        "updatedAt": T0,
        "closedAt": None,
        "milestone": None,
        "url": f"{PLACE}/issues/{number}",
        **fields,
    }


def by_api(number: int, **fields: Any) -> dict[str, Any]:
    """Write an issue as the API does."""
    return {
        "url": f"https://api.github.com/repos/acme/parser/issues/{number}",
        "html_url": f"{PLACE}/issues/{number}",
        "id": number * 1000,
        "node_id": f"I_{number}",
        "number": number,
        "title": f"Issue {number}",
        "body": None,
        "state": "open",
        "state_reason": None,
        "labels": [],
        "assignee": None,
        "assignees": [],
        "user": {"login": "ana", "id": 1},
        "comments": 0,
        "created_at": T0,
        "updated_at": T0,
        "closed_at": None,
        "milestone": None,
        "locked": False,
        "author_association": "NONE",
        **fields,
    }


def comment(number: int, text: str) -> dict[str, Any]:
    return {"id": f"IC_{number}", "author": {"login": "ben"}, "body": text, "createdAt": T1, "url": "x", "isMinimized": False}


FULL: dict[str, Any] = {
    "title": "Parse commas",
    "body": "Lists end in commas.\n\nDepends on #2, #3\n- Blocked by: #4\nsee #5",
    "labels": [{"name": "bug", "color": "red"}, {"name": "priority: high"}],
    "assignees": [{"login": "ana"}, {"login": "ben"}],
    "milestone": {"title": "1.0", "number": 1},
    "comments": [comment(1, "Me too"), comment(2, " ")],
}


def issues() -> list[Any]:
    """Give issues with every field, both ways of being closed, links to nowhere and in a circle, and what is no issue."""
    return [
        by_gh(1, **FULL),
        by_gh(2, state="CLOSED", stateReason="COMPLETED", closedAt=T1, body="Depends on #3"),
        by_gh(3, state="CLOSED", stateReason="NOT_PLANNED", closedAt=T1),
        by_gh(5, body="Depends on #6"),
        by_gh(6, body="blocked by #5 and #6"),
        by_api(7, state="closed", parent={"number": 1}, blocked_by={"nodes": [{"number": 5}]}, from_the_future=1),
        by_api(8, pull_request={"url": "x"}),
        by_gh(5, title="An older copy", updatedAt="2025-01-01T00:00:00Z"),
        {"issue_url": f"{PLACE}/issues/7", "id": 70, "user": {"login": "cy"}, "body": "By the API", "created_at": T1},
        {"title": "no number"},
        17,
    ]


def counts() -> dict[str, int]:
    return {"issues": 8, "dependencies": 3 + 1 + 1 + 2 + 2, "comments": 3, "lines": 2}


def write(path: Path, found: object = None) -> Path:
    path.write_text(found if isinstance(found, str) else json.dumps(issues() if found is None else found))
    return path
