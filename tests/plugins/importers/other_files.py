"""A RunStore database and a gaia-coder home."""

import json
from pathlib import Path

import apsw

from decklog.plugins.importers.gaia.importer import DATABASES, TABLES
from decklog.plugins.importers.runstore.importer import TABLES as RUNSTORE

T0, T1, T2 = "2026-02-01T08:00:00.000Z", "2026-02-01T08:00:00.500Z", "2026-02-01T09:00:00.250Z"

RUNSTORE_ROWS: dict[str, list[tuple[object, ...]]] = {
    "runs": [
        ("r-1", "Ship it", "/srv/app", "planning", "going well", 3, 1, "t-2", T0, T2),
        ("r-2", "Old one", "/srv/app", "completed", None, 1, 0, None, T0, T1),
        ("r-3", "Own word", "/srv/app", "reviewing", None, 0, 0, None, T0, T1),
    ],
    "agents": [("r-1", "strategy", "s-1", 4, 1, "p.md", "r.md", T1), ("r-1", "checker", None, 0, 0, None, None, T1)],
    "tasks": [
        ("t-1", "r-1", "Parser", "make it", '["works"]', '["run tests"]', '["src"]', "completed", 2, "did it", None, T0, T2),
        ("t-2", "r-1", "Cache", "build", "[]", "[]", "[]", "in_progress", 1, None, None, T0, T1),
        ("t-3", "r-1", "Docs", "write", "[]", "[]", "[]", "blocked", 1, None, "no-network", T0, T1),
        ("t-4", "r-1", "Later", "wait", "[]", "[]", "[]", "pending", 0, None, None, T0, T0),
    ],
    "task_attempts": [
        ("a-1", "r-1", "t-1", 1, "failed", "tests fail", "E1", '{"exit": 1}', T1),
        ("a-2", "r-1", "t-1", 2, "completed", "fixed", None, '{"exit": 0}', T2),
        ("a-3", "r-1", "t-3", 1, "blocked", "offline", "no-network", "{}", T1),
        ("a-4", "r-1", "gone", 1, "failed", "orphan", None, "{}", T1),
    ],
    "events": [
        (1, "r-1", T0, "system", "run_created", "Run created.", '{"goal": "Ship it"}'),
        (2, "r-1", T0, "checker", "note", "second at the same time", "{}"),
        (3, "nowhere", T0, "system", "lost", "of no run", "{}"),
    ],
    "artifacts": [("f-1", "r-1", "checker", "report", "out/report.md", T1, '{"lines": 3}')],
    "checkpoints": [("c-1", "r-1", "planning", '{"step": 2}', T1)],
    "approvals": [("p-1", "r-1", "strategy", "approve", "looks right", '{"score": 9}', T1)],
}


def build_runstore(path: Path) -> dict[str, int]:
    db = apsw.Connection(str(path))
    for table, rows in RUNSTORE_ROWS.items():
        columns = ["id integer primary key" if table == "events" and name == "id" else name for name in RUNSTORE[table]]
        db.execute(f"create table {table} ({', '.join(columns)})")
        db.executemany(f"insert into {table} values ({', '.join('?' for _ in columns)})", rows)
    db.close()
    return {table: len(rows) for table, rows in RUNSTORE_ROWS.items()}


GAIA_ROWS: dict[str, list[tuple[object, ...]]] = {
    "feedback": [
        (
            "fb-1",
            T0,
            "em",
            "cli",
            "high",
            "tests first",
            None,
            "test",
            "triaged",
            None,
            None,
            "habit",
            "a test",
            '[{"to": 1}]',
        ),
        ("fb-2", T1, "em", "email", "low", "typo", "https://x/1", None, "pending", None, None, None, None, "[]"),
        ("fb-3", T1, "em", "email", "low", "verified without a test", None, "doc", "verified", None, None, None, None, "[]"),
    ],
    "em_inbox": [
        ("m-1", T0, "em", "cli", "critical", "stop", "escalated", None, "fb-1", T0, None, None),
        ("m-2", T1, "em", "tui", "question", "why?", "closed", "because", None, T1, T1, T2),
        ("m-3", T2, "em", "email", "info", "hi", "pending", None, None, None, None, None),
    ],
    "tasks": [
        ("gt-1", 80, "done", T0, T1, "build", "idle", '{"prompt": "Fix the parser\\nnow"}', '{"ok": true}', "t.jsonl", 1.25, 3),
        ("gt-2", 50, "running", T0, T2, None, None, '{"prompt": "More"}', None, None, 0.0, 3),
        ("gt-3", 50, "paused", T0, None, None, None, "{}", None, None, 0.0, 3),
    ],
    "audit": [
        (1, T0, "gt-1", "build", "edit", "file_edit", '{"path": "a"}', '{"ok": 1}', 12, None, 3),
        (2, T0, None, None, None, "search", "{}", None, None, "ValueError", 3),
    ],
    "spend": [
        ("sp-1", T0, "gt-1", "plan", "opus", 1000, 10, 20, 300, 0.1),
        ("sp-2", T1, None, "triage", "haiku", 5, 0, 0, 1, 0.00000125),
    ],
    "ci_history": [("build", "main", 7, T0, T2, 3600, "success"), ("build", "main", 8, T2, None, None, None)],
    "memory": [
        ("me-1", "em_preferences", T0, "feedback", "fb-1", '{"preference": "tests first"}', "v1", 70, T1, 2, "me-2"),
        ("me-2", "em_preferences", T1, "feedback", None, '{"preference": "tests before code"}', "v2", 90, None, 0, None),
    ],
}
PASSES = dict.fromkeys(("static", "functional", "arch", "security", "prose", "adversarial", "feedback_binding"), "pass")
SELF_EDIT = {
    "ts": T1,
    "pr": "https://x/pr/1",
    "fix_class": "test",
    "files": ["a.py"],
    "before_sha": "aaa",
    "after_sha": "bbb",
    "review_passes": PASSES,
    "confidence": 88,
    "em_review": "approved",
    "auto_merged": False,
    "feedback_id": "fb-1",
}
LEARNINGS = [
    '2026-02-01T08:00:00Z [task=gt-1] Observed: "the linter runs twice" → skill:checks',
    '2026-02-02 [task=gt-2] Observed: "a bare date" → dismissed',
    "this is no learning",
]


def build_gaia(home: Path) -> dict[str, int]:
    home.mkdir()
    for table, rows in GAIA_ROWS.items():
        db = apsw.Connection(str(home / DATABASES[table]))
        columns = ["id integer primary key" if table == "audit" and name == "id" else name for name in TABLES[table]]
        db.execute(f"create table {table} ({', '.join(columns)})")
        db.executemany(f"insert into {table} values ({', '.join('?' for _ in columns)})", rows)
        db.close()
    (home / "paused-tasks").mkdir()
    snapshot = {"task_id": "gt-3", "paused_at": T1, "reason": "lunch", "tool_call_history": [{"tool": "x"}]}
    (home / "paused-tasks" / "gt-3.json").write_text(json.dumps(snapshot))
    (home / "paused-tasks" / "link.json").symlink_to("/etc/hostname")
    (home / "self-edits.log").write_text(json.dumps(SELF_EDIT) + "\n\n{broken\n")
    (home / "learnings.log").write_text("\n".join(LEARNINGS) + "\n")
    counts = {table: len(rows) for table, rows in GAIA_ROWS.items()}
    return counts | {"paused_tasks": 1, "self_edits_log": 2, "learnings_log": 3}
