"""Databases of Vibe Kanban, as of April 2026 and from before December 2025."""

from pathlib import Path
from typing import Any
from uuid import UUID

import apsw

T0, T1, T2 = "2026-01-01 00:00:00.123", "2026-01-02 00:00:00", "2026-01-03T00:00:00Z"


def name(number: int) -> bytes:
    return UUID(int=(number << 96) + number).bytes


def text(number: int) -> str:
    return str(UUID(int=(number << 96) + number))


def task(number: int, status: str, **fields: Any) -> dict[str, Any]:
    times = {"created_at": T0, "updated_at": T1}
    return {"id": name(number), "project_id": name(1), "title": f"Task {status}", "status": status, **times, **fields}


PROJECT = {"id": name(1), "name": "Parser", "default_agent_working_dir": "/srv/parser"}
ROWS: dict[str, list[dict[str, Any]]] = {
    "projects": [PROJECT, {"id": name(2), "name": "Other", "default_agent_working_dir": None}],
    "tasks": [
        task(11, "todo", description="Lists end in commas.", parent_workspace_id=name(22), from_the_future="kept"),
        task(12, "inprogress", description=None, parent_workspace_id=None, from_the_future=None),
        task(13, "inreview", parent_workspace_id=name(99)),
        task(14, "done"),
        task(15, "cancelled"),
        task(16, "dreaming"),
        task(17, "todo", project_id=name(2), title="Of another project"),
    ],
    "workspaces": [
        {
            "id": name(22),
            "task_id": name(12),
            "branch": "vk/commas",
            "container_ref": "/w/22",
            "archived": 0,
            "pinned": 1,
            "name": "First",
            "worktree_deleted": 0,
            "created_at": T1,
        },
        {"id": name(23), "task_id": name(98), "branch": "vk/gone", "created_at": T1},
    ],
    "sessions": [{"id": name(31), "workspace_id": name(22), "executor": "CLAUDE_CODE", "name": "s", "created_at": T1}],
    "execution_processes": [
        {
            "id": name(41),
            "session_id": name(31),
            "run_reason": "codingagent",
            "executor_action": '{"typ": {"type": "CodingAgentInitialRequest"}}',
            "status": "completed",
            "exit_code": 0,
            "started_at": T1,
            "completed_at": T2,
            "dropped": 0,
        },
        {
            "id": name(42),
            "session_id": name(31),
            "run_reason": "devserver",
            "executor_action": "{broken",
            "status": "killed",
            "exit_code": 137,
            "started_at": T1,
            "completed_at": T2,
            "dropped": 1,
        },
    ],
    "coding_agent_turns": [
        {
            "id": name(51),
            "execution_process_id": name(41),
            "agent_session_id": "0199-session",
            "prompt": "Fix it",
            "summary": "Fixed",
            "created_at": T2,
        }
    ],
    "execution_process_repo_states": [
        {
            "id": name(61),
            "execution_process_id": name(41),
            "before_head_commit": "aaa",
            "after_head_commit": "bbb",
            "created_at": T2,
        }
    ],
    "execution_process_logs": [
        {"execution_id": name(41), "logs": '{"Stdout":"one"}\n', "byte_size": 17, "inserted_at": T1},
        {"execution_id": name(41), "logs": '{"Stdout":"two"}\n', "byte_size": 17, "inserted_at": T2},
    ],
    "merges": [{"id": name(71), "workspace_id": name(22), "merge_type": "direct", "merge_commit": "ccc", "created_at": T2}],
    "pull_requests": [
        {
            "id": name(81),
            "workspace_id": name(22),
            "pr_url": "https://github.com/acme/parser/pull/1",
            "pr_status": "open",
            "created_at": T2,
        }
    ],
    "repos": [{"id": name(91), "path": "/srv/parser"}],
}
EARLIER: dict[str, list[dict[str, Any]]] = {
    "projects": [PROJECT],
    "tasks": [task(11, "done", parent_task_attempt=None)],
    "task_attempts": [{"id": name(22), "task_id": name(11), "branch": "vk/x", "executor": "CLAUDE_CODE", "created_at": T1}],
    "execution_processes": [
        {"id": name(41), "task_attempt_id": name(22), "run_reason": "codingagent", "status": "completed", "started_at": T1}
    ],
    "executor_sessions": [
        {
            "id": name(51),
            "task_attempt_id": name(22),
            "execution_process_id": name(41),
            "session_id": "0199",
            "prompt": "Fix it",
            "summary": None,
            "created_at": T1,
        }
    ],
}


def build(path: Path, rows: dict[str, list[dict[str, Any]]] = ROWS, *, reverse: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    db = apsw.Connection(str(path))
    for table, found in rows.items():
        names = dict.fromkeys(column for row in found for column in row)
        db.execute(f"create table {table} ({', '.join(names)})")
        for row in reversed(found) if reverse else found:
            db.execute(f"insert into {table} ({', '.join(row)}) values ({', '.join('?' for _ in row)})", tuple(row.values()))
    db.close()
    return path


def counts(rows: dict[str, list[dict[str, Any]]] = ROWS) -> dict[str, int]:
    links = sum(1 for row in rows["tasks"] if row.get("parent_workspace_id"))
    found = {table: len(held) for table, held in rows.items() if table not in ("projects", "repos")}
    return found | ({"dependencies": links} if links else {})
