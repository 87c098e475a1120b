"""Files of beads with every field, every kind of link, and every defect that users reported."""

import json
from pathlib import Path
from typing import Any

T0, T1, T2 = "2026-01-01T00:00:00Z", "2026-01-02T08:30:00.123456789+01:00", "2026-01-03T09:00:00Z"
KINDS = (
    *("blocks", "parent-child", "conditional-blocks", "waits-for", "related", "discovered-from", "replies-to", "relates-to"),
    *("duplicates", "supersedes", "authored-by", "assigned-to", "approved-by", "attests", "tracks", "until", "caused-by"),
    *("validates", "delegated-from", "made-up"),
)
EVERY_FIELD: dict[str, Any] = {
    "_type": "issue",
    "id": "bd-full",
    "title": "Parse commas",
    "description": "Lists end in commas.",
    "design": "A state machine.",
    "acceptance_criteria": "All tests pass",
    "notes": "See the old parser.",
    "spec_id": "S-1",
    "status": "closed",
    "priority": 0,
    "issue_type": "bug",
    "assignee": "ana",
    "owner": "ben",
    "estimated_minutes": 90,
    "created_at": T0,
    "created_by": "ben",
    "updated_at": T2,
    "started_at": T1,
    "closed_at": T2,
    "close_reason": "Fixed in the lexer",
    "closed_by_session": "0199-session",
    "due_at": T2,
    "external_ref": "gh-12",
    "source_system": "github",
    "metadata": {"team": "core"},
    "labels": ["parser", "lists"],
    "compaction_level": 1,
    "compacted_at": T2,
    "pinned": True,
    "ephemeral": True,
    "await_type": "timer",
    "await_id": "t-1",
    "timeout": 3_600_000_000_000,
    "waiters": ["bd-2"],
    "mol_type": "swarm",
    "work_type": "mutex",
    "event_kind": "patrol",
    "actor": "ana",
    "target": "ben",
    "payload": '{"x": 1}',
    "sender": "ana",
    "dependency_count": 0,
    "dependent_count": 1,
    "comment_count": 2,
    "comments": [
        {"id": 7, "issue_id": "bd-full", "author": "ana", "text": "Number seven", "created_at": T1},
        {"id": "0199-c", "issue_id": "bd-full", "author": "ben", "text": "By its own id", "created_at": T2},
    ],
    "from_the_future": {"kept": True},
}


def issue(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "title": f"Issue {name}", "status": "open", "priority": 2, "created_at": T0, "updated_at": T0, **fields}


def needs(name: str, other: str, kind: str = "blocks", **more: Any) -> dict[str, Any]:
    return {"issue_id": name, "depends_on_id": other, "type": kind, "created_at": T0, "created_by": "ana", **more}


def issues() -> list[dict[str, Any]]:
    """Give issues in an order in which children come before parents."""
    words = ("open", "in_progress", "blocked", "deferred", "pinned", "hooked", "tombstone", "reviewing")
    return [
        issue("bd-1.1", dependencies=[needs("bd-1.1", "bd-1", "parent-child"), needs("bd-1.1", "bd-1.2", metadata="{}")]),
        issue("bd-1.2", dependencies=[needs("bd-1.2", "bd-1", "parent-child"), needs("bd-1.2", "bd-full")]),
        issue("bd-1", issue_type="epic"),
        EVERY_FIELD,
        *(issue(f"bd-s{number}", status=word) for number, word in enumerate(words)),
        issue("bd-later", status="deferred", defer_until="2027-01-01T00:00:00Z"),
        issue("bd-template", is_template=True),
        issue("bd-old", type="feature", closed_at="1970-01-01T00:00:00Z", due_at="0001-01-01T00:00:00Z"),
        issue("bd-odd", priority=9, labels=["a", 1, "a"], dependencies="none", comments=[{"id": 1, "text": " "}]),
        issue("other-1"),
        *(
            issue(f"bd-k{number}", dependencies=[needs(f"bd-k{number}", "bd-1", kind, thread_id="t")])
            for number, kind in enumerate(KINDS)
        ),
        # A circle, a link to nowhere, to itself, a second parent, and two kinds between the same two.
        issue("bd-c1", dependencies=[needs("bd-c1", "bd-c2"), needs("bd-c1", "external:x:y")]),
        issue("bd-c2", dependencies=[needs("bd-c2", "bd-c3"), needs("bd-c2", "bd-c2")]),
        issue("bd-c3", dependencies=[needs("bd-c3", "bd-c1"), needs("bd-c3", "bd-c2", "related")]),
        issue("bd-p", dependencies=[needs("bd-p", "bd-1", "parent-child"), needs("bd-p", "bd-c1", "parent-child")]),
        issue("bd-t", dependencies=[needs("bd-t", "bd-1", "related"), needs("bd-t", "bd-1")]),
    ]


MEMORIES = [
    {"_type": "memory", "key": "build", "value": "Run make before the tests"},
    {"_type": "memory", "key": "style", "value": "Names explain themselves"},
]
BROKEN = ['{"id": "bd-half", "title": "not to its e', "[1, 2]", '{"title": "no id"}']


def lines() -> list[str]:
    """Give the lines of a file with a conflict of git's, an older version, and one issue twice at one time."""
    stale = issue("bd-1", title="Stale", updated_at="2025-12-01T00:00:00Z")
    twin = {**issue("other-1"), "title": "A wisp with the same id"}
    found = [json.dumps(one) for one in [*issues(), stale, twin, *MEMORIES]]
    return ["<<<<<<< HEAD", *found[:3], "=======", *found[3:5], ">>>>>>> theirs", *found[5:], "", *BROKEN[1:], BROKEN[0]]


def counts() -> dict[str, int]:
    """Count the rows of `lines`, by the report's tables."""
    found = issues()
    links = sum(len(one["dependencies"]) for one in found if isinstance(one.get("dependencies"), list))
    comments = sum(len(one.get("comments", [])) for one in found)
    return {
        "issues": len(found) + 2,
        "dependencies": links,
        "comments": comments,
        "lines": len(BROKEN),
        "memories": len(MEMORIES),
    }


def write(path: Path, found: list[str] | None = None) -> Path:
    """Write a file whose last line was not written to its end."""
    path.write_text("\n".join(lines() if found is None else found))
    return path
