"""Boards of Hermes Kanban, one of them with fewer columns, as they were when the table was younger."""

from pathlib import Path
from typing import Any

import apsw

from decklog.plugins.importers.hermes import STATES, HermesImport
from tests.plugins.importers.comparing import execute

T0 = 1_767_225_600
FULL: dict[str, Any] = {
    "id": "t_00000001",
    "title": "Parse commas",
    "body": "Lists end in commas.",
    "assignee": "coder",
    "status": "running",
    "priority": 3,
    "created_by": "ana",
    "created_at": T0,
    "started_at": T0 + 60,
    "completed_at": None,
    "workspace_kind": "worktree",
    "workspace_path": "/srv/parser",
    "branch_name": "commas",
    "project_id": "p1",
    "claim_lock": "host:1",
    "claim_expires": T0 + 900,
    "tenant": "core",
    "result": "half done",
    "idempotency_key": "k1",
    "consecutive_failures": 2,
    "worker_pid": 4041,
    "last_failure_error": "boom",
    "max_runtime_seconds": 600,
    "last_heartbeat_at": T0 + 100,
    "current_run_id": 2,
    "skills": '["python"]',
    "model_override": "m-1",
    "reasoning_effort": "high",
    "max_retries": 2,
    "goal_mode": 1,
    "session_id": "0199-session",
    "block_kind": "needs-input",
    "block_recurrences": 1,
    "from_the_future": "kept",
}


def tasks() -> list[dict[str, Any]]:
    words = [*STATES, "dreaming"]
    more = [
        {"id": f"t_a{number:07x}", "title": f"Task {word}", "status": word, "priority": 0, "created_at": T0}
        for number, word in enumerate(words)
    ]
    done = {
        "id": "t_b0000001",
        "title": "Was done",
        "status": "archived",
        "created_at": T0,
        "completed_at": T0 + 5,
        "priority": -20,
    }
    return [FULL, *more, done]


ROWS: dict[str, list[dict[str, Any]]] = {
    "task_links": [
        {"parent_id": "t_a0000001", "child_id": "t_00000001"},
        {"parent_id": "t_a0000007", "child_id": "t_00000001"},
        {"parent_id": "t_00000001", "child_id": "t_a0000001"},
        {"parent_id": "t_gone", "child_id": "t_a0000003"},
        {"parent_id": "t_a0000003", "child_id": "t_gone"},
    ],
    "task_comments": [
        {"id": 1, "task_id": "t_00000001", "author": "ana", "body": "Begin with the lexer", "created_at": T0 + 1},
        {"id": 2, "task_id": "t_00000001", "author": "ben", "body": "", "created_at": T0 + 2},
    ],
    "task_runs": [
        {
            "id": 1,
            "task_id": "t_00000001",
            "profile": "coder",
            "status": "failed",
            "outcome": "crashed",
            "started_at": T0 + 10,
            "ended_at": T0 + 20,
            "error": "boom",
            "metadata": '{"session": "0199"}',
            "summary": None,
        },
        {
            "id": 2,
            "task_id": "t_00000001",
            "profile": "coder",
            "status": "running",
            "outcome": None,
            "started_at": T0 + 60,
            "ended_at": None,
            "error": None,
            "metadata": None,
            "summary": None,
        },
    ],
    "task_events": [
        {"id": 1, "task_id": "t_00000001", "run_id": 1, "kind": "claimed", "payload": '{"by": "coder"}', "created_at": T0 + 10},
        {"id": 2, "task_id": "t_00000001", "run_id": None, "kind": "note", "payload": "{broken", "created_at": T0 + 11},
        {"id": 3, "task_id": "t_gone", "run_id": None, "kind": "orphan", "payload": None, "created_at": T0 + 12},
    ],
    "task_attachments": [
        {"id": 1, "task_id": "t_00000001", "filename": "a.png", "path": "/x/a.png", "size": 3, "created_at": T0}
    ],
}


def build(path: Path, *, reverse: bool = False, found: list[dict[str, Any]] | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    db = apsw.Connection(str(path))
    for table, rows in {"tasks": tasks() if found is None else found, **ROWS}.items():
        names = [*dict.fromkeys([*HermesImport.tables[table], *(name for row in rows for name in row)])]
        db.execute(f"create table {table} ({', '.join(names)})")
        for row in reversed(rows) if reverse else rows:
            db.execute(f"insert into {table} ({', '.join(row)}) values ({', '.join('?' for _ in row)})", tuple(row.values()))
    db.execute("create table kanban_meta (k, v)")
    db.close()
    return path


def build_home(home: Path) -> Path:
    """Build two boards; the second one is of an early version."""
    build(home / "kanban.db")
    side = home / "kanban/boards/side/kanban.db"
    side.parent.mkdir(parents=True)
    tables = "create table tasks (id, title, status, created_at); create table task_events (id, task_id, kind, created_at)"
    execute(side, tables, f"insert into tasks values ('t_5', 'Early', 'ready', {T0})")
    return home


def counts() -> dict[str, int]:
    named = {"task_links": "dependencies", "task_comments": "comments"}
    return {"tasks": len(tasks()) + 1} | {named.get(table, table): len(rows) for table, rows in ROWS.items()}
