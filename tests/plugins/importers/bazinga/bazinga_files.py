"""Bazinga databases of every schema version, built from what each version had."""

from pathlib import Path

import apsw

# Column, declaration, first version.
SCHEMA: dict[str, tuple[int, list[tuple[str, str, int]]]] = {
    "sessions": (
        1,
        [
            ("session_id", "text primary key", 1),
            ("start_time", "timestamp default CURRENT_TIMESTAMP", 1),
            ("end_time", "timestamp", 1),
            ("mode", "text check (mode in ('simple', 'parallel'))", 1),
            ("original_requirements", "text", 1),
            ("status", "text default 'active'", 1),
            ("initial_branch", "text default 'main'", 5),
            ("metadata", "text", 9),
            ("created_at", "timestamp default CURRENT_TIMESTAMP", 1),
        ],
    ),
    "orchestration_logs": (
        1,
        [
            ("id", "integer primary key autoincrement", 1),
            ("session_id", "text not null", 1),
            ("timestamp", "timestamp default CURRENT_TIMESTAMP", 1),
            ("iteration", "integer", 1),
            ("agent_type", "text", 1),
            ("agent_id", "text", 1),
            ("content", "text not null", 1),
            ("log_type", "text default 'interaction'", 8),
            ("reasoning_phase", "text", 8),
            ("confidence_level", "text", 8),
            ("references_json", "text", 8),
            ("redacted", "integer default 0", 8),
            ("group_id", "text", 8),
            ("event_subtype", "text", 9),
            ("event_payload", "text", 9),
            ("idempotency_key", "text", 17),
        ],
    ),
    "state_snapshots": (
        1,
        [
            ("id", "integer primary key autoincrement", 1),
            ("session_id", "text not null", 1),
            ("group_id", "text not null default 'global'", 18),
            ("timestamp", "timestamp default CURRENT_TIMESTAMP", 1),
            ("state_type", "text", 1),
            ("state_data", "text not null", 1),
        ],
    ),
    "task_groups": (
        1,
        [
            ("id", "text not null", 1),
            ("session_id", "text not null", 1),
            ("name", "text not null", 1),
            ("status", "text default 'pending'", 1),
            ("assigned_to", "text", 1),
            ("revision_count", "integer default 0", 1),
            ("last_review_status", "text", 1),
            ("feature_branch", "text", 5),
            ("merge_status", "text", 5),
            ("complexity", "integer", 5),
            ("initial_tier", "text default 'Developer'", 5),
            ("context_references", "text", 6),
            ("specializations", "text", 7),
            ("item_count", "integer default 1", 9),
            ("security_sensitive", "integer default 0", 14),
            ("qa_attempts", "integer default 0", 14),
            ("tl_review_attempts", "integer default 0", 14),
            ("component_path", "text", 15),
            ("review_iteration", "integer default 1", 16),
            ("no_progress_count", "integer default 0", 16),
            ("blocking_issues_count", "integer default 0", 16),
            ("speckit_task_ids", "text", 19),
            ("created_at", "timestamp default CURRENT_TIMESTAMP", 1),
            ("updated_at", "timestamp default CURRENT_TIMESTAMP", 1),
        ],
    ),
    "token_usage": (
        1,
        [
            ("id", "integer primary key autoincrement", 1),
            ("session_id", "text not null", 1),
            ("timestamp", "timestamp default CURRENT_TIMESTAMP", 1),
            ("agent_type", "text not null", 1),
            ("agent_id", "text", 1),
            ("tokens_estimated", "integer not null", 1),
        ],
    ),
    "skill_outputs": (
        1,
        [
            ("id", "integer primary key autoincrement", 1),
            ("session_id", "text not null", 1),
            ("timestamp", "timestamp default CURRENT_TIMESTAMP", 1),
            ("skill_name", "text not null", 1),
            ("output_data", "text not null", 1),
            ("agent_type", "text", 11),
            ("group_id", "text", 11),
            ("iteration", "integer default 1", 11),
        ],
    ),
    "development_plans": (
        3,
        [
            ("id", "integer primary key autoincrement", 3),
            ("session_id", "text unique not null", 3),
            ("original_prompt", "text not null", 3),
            ("plan_text", "text not null", 3),
            ("phases", "text not null", 3),
            ("current_phase", "integer", 3),
            ("total_phases", "integer not null", 3),
            ("created_at", "timestamp default CURRENT_TIMESTAMP", 3),
            ("updated_at", "timestamp default CURRENT_TIMESTAMP", 3),
            ("metadata", "text", 3),
        ],
    ),
    "success_criteria": (
        4,
        [
            ("id", "integer primary key autoincrement", 4),
            ("session_id", "text not null", 4),
            ("criterion", "text not null", 4),
            ("status", "text default 'pending'", 4),
            ("actual", "text", 4),
            ("evidence", "text", 4),
            ("required_for_completion", "boolean default 1", 4),
            ("created_at", "timestamp default CURRENT_TIMESTAMP", 4),
            ("updated_at", "timestamp default CURRENT_TIMESTAMP", 4),
        ],
    ),
    "context_packages": (
        6,
        [
            ("id", "integer primary key autoincrement", 6),
            ("session_id", "text not null", 6),
            ("group_id", "text", 6),
            ("package_type", "text not null", 6),
            ("file_path", "text not null", 6),
            ("producer_agent", "text not null", 6),
            ("priority", "text default 'medium'", 6),
            ("summary", "text", 6),
            ("size_bytes", "integer", 6),
            ("version", "integer default 1", 6),
            ("supersedes_id", "integer", 6),
            ("scope", "text default 'group'", 6),
            ("created_at", "timestamp default CURRENT_TIMESTAMP", 6),
        ],
    ),
    "context_package_consumers": (
        6,
        [
            ("id", "integer primary key autoincrement", 6),
            ("package_id", "integer not null", 6),
            ("agent_type", "text not null", 6),
            ("consumed_at", "timestamp", 6),
            ("iteration", "integer default 1", 6),
        ],
    ),
    "error_patterns": (
        10,
        [
            ("pattern_hash", "text not null", 10),
            ("project_id", "text not null", 10),
            ("signature_json", "text not null", 10),
            ("solution", "text not null", 10),
            ("confidence", "real default 0.5", 10),
            ("occurrences", "integer default 1", 10),
            ("lang", "text", 10),
            ("last_seen", "text", 10),
            ("created_at", "text", 10),
            ("ttl_days", "integer default 90", 10),
        ],
    ),
    "strategies": (
        10,
        [
            ("strategy_id", "text primary key", 10),
            ("project_id", "text not null", 10),
            ("topic", "text not null", 10),
            ("insight", "text not null", 10),
            ("helpfulness", "integer default 0", 10),
            ("lang", "text", 10),
            ("framework", "text", 10),
            ("last_seen", "text", 10),
            ("created_at", "text", 10),
        ],
    ),
    "consumption_scope": (
        10,
        [
            ("scope_id", "text primary key", 10),
            ("session_id", "text not null", 10),
            ("group_id", "text not null", 10),
            ("agent_type", "text not null", 10),
            ("iteration", "integer not null", 10),
            ("package_id", "integer not null", 10),
            ("consumed_at", "text", 10),
        ],
    ),
    "workflow_transitions": (
        13,
        [
            ("id", "integer primary key autoincrement", 13),
            ("current_agent", "text not null", 13),
            ("response_status", "text not null", 13),
            ("next_agent", "text", 13),
            ("action", "text not null", 13),
            ("include_context", "text", 13),
            ("escalation_check", "integer default 0", 13),
            ("model_override", "text", 13),
            ("fallback_agent", "text", 13),
            ("bypass_qa", "integer default 0", 13),
            ("max_parallel", "integer", 13),
            ("then_action", "text", 13),
        ],
    ),
    "agent_markers": (
        13,
        [
            ("id", "integer primary key autoincrement", 13),
            ("agent_type", "text not null unique", 13),
            ("required_markers", "text not null", 13),
            ("workflow_markers", "text", 13),
        ],
    ),
    "workflow_special_rules": (
        13,
        [
            ("id", "integer primary key autoincrement", 13),
            ("rule_name", "text not null unique", 13),
            ("description", "text", 13),
            ("config", "text not null", 13),
        ],
    ),
}
OLD = {
    "configuration": "key text primary key, value text, updated_at timestamp",
    "decisions": "id integer primary key, session_id text, timestamp timestamp, iteration integer, decision_type text, "
    "decision_data text",
}
T0, T1, T2 = "2025-11-12 08:00:00", "2025-11-12 08:00:01", "2025-11-12 09:30:00"

ROWS: dict[str, list[dict[str, object]]] = {
    "sessions": [
        {
            "session_id": "bazinga_1",
            "start_time": T0,
            "end_time": "2025-11-12T10:00:00.123456",
            "mode": "parallel",
            "original_requirements": "Make the parser faster",
            "status": "completed",
            "initial_branch": "develop",
            "metadata": '{"project_id": "parser"}',
            "created_at": T0,
        },
        {"session_id": "bazinga_2", "start_time": T1, "mode": "simple", "status": "active", "created_at": T1},
    ],
    "orchestration_logs": [
        {"session_id": "bazinga_1", "timestamp": T0, "agent_type": "pm", "content": "first", "iteration": 1},
        {"session_id": "bazinga_1", "timestamp": T0, "agent_type": "developer", "agent_id": "dev_1", "content": "second"},
        {"session_id": "bazinga_2", "timestamp": T1, "agent_type": "pm", "content": "elsewhere"},
        {
            "session_id": "bazinga_1",
            "timestamp": T1,
            "agent_type": "tech_lead",
            "content": "the cache is stale",
            "log_type": "reasoning",
            "reasoning_phase": "understanding",
            "confidence_level": "high",
            "references_json": '["src/a.py"]',
            "redacted": 1,
            "group_id": "G1",
        },
        {
            "session_id": "bazinga_1",
            "timestamp": T2,
            "agent_type": "system",
            "content": "Event: scope_change",
            "log_type": "event",
            "group_id": "global",
            "event_subtype": "scope_change",
            "event_payload": '{"a": [1, 2]}',
            "idempotency_key": "bazinga_1|global|scope_change|1",
        },
    ],
    "state_snapshots": [
        {"session_id": "bazinga_1", "timestamp": T0, "state_type": "pm", "state_data": '{"step": 1}'},
        {"session_id": "bazinga_1", "timestamp": T2, "state_type": "orchestrator", "state_data": '{"phase": "work"}'},
    ],
    "task_groups": [
        {
            "id": "G1",
            "session_id": "bazinga_1",
            "name": "Parser",
            "status": "completed",
            "assigned_to": "dev_1",
            "revision_count": 2,
            "last_review_status": "APPROVED",
            "feature_branch": "feature/parser",
            "merge_status": "merged",
            "complexity": 7,
            "initial_tier": "Senior Software Engineer",
            "context_references": '["1"]',
            "specializations": '["bazinga/templates/specializations/python.md"]',
            "item_count": 3,
            "security_sensitive": 1,
            "qa_attempts": 1,
            "tl_review_attempts": 2,
            "component_path": "src/parser",
            "review_iteration": 3,
            "no_progress_count": 1,
            "blocking_issues_count": 2,
            "speckit_task_ids": '["T001"]',
            "created_at": T0,
            "updated_at": T2,
        },
        {"id": "G1", "session_id": "bazinga_2", "name": "Other", "created_at": T1, "updated_at": T1},
    ],
    "token_usage": [
        {"session_id": "bazinga_1", "timestamp": T0, "agent_type": "pm", "agent_id": "pm_1", "tokens_estimated": 1500},
        {"session_id": "bazinga_1", "timestamp": T1, "agent_type": "developer", "tokens_estimated": 0},
    ],
    "skill_outputs": [
        {"session_id": "bazinga_1", "timestamp": T0, "skill_name": "lint", "output_data": '{"errors": 2}'},
        {"session_id": "bazinga_1", "timestamp": T1, "skill_name": "lint", "output_data": '{"errors": 0}', "iteration": 1},
        {
            "session_id": "bazinga_1",
            "timestamp": T2,
            "skill_name": "scan",
            "output_data": "[1]",
            "agent_type": "developer",
            "group_id": "G1",
            "iteration": 1,
        },
    ],
    "development_plans": [
        {
            "session_id": "bazinga_1",
            "original_prompt": "faster",
            "plan_text": "measure, then cut",
            "phases": '[{"phase": 1, "name": "Measure", "status": "completed"}, {"phase": 2, "name": "Cut", "notes": "x"}]',
            "current_phase": 2,
            "total_phases": 2,
            "created_at": T0,
            "updated_at": T2,
            "metadata": '{"by": "pm"}',
        }
    ],
    "success_criteria": [
        {
            "session_id": "bazinga_1",
            "criterion": "twice as fast",
            "status": "met",
            "actual": "2.3",
            "evidence": "bench",
            "required_for_completion": 1,
            "created_at": T0,
            "updated_at": T2,
        },
        {
            "session_id": "bazinga_1",
            "criterion": "tests pass",
            "required_for_completion": 0,
            "created_at": T0,
            "updated_at": T0,
        },
    ],
    "context_packages": [
        {
            "session_id": "bazinga_1",
            "group_id": "G1",
            "package_type": "research",
            "file_path": "bazinga/artifacts/bazinga_1/a.md",
            "producer_agent": "requirements_engineer",
            "priority": "high",
            "summary": "what the parser does",
            "size_bytes": 12,
            "scope": "group",
            "created_at": T0,
        },
        {
            "session_id": "bazinga_1",
            "package_type": "decisions",
            "file_path": "bazinga/artifacts/bazinga_1/b.md",
            "producer_agent": "tech_lead",
            "priority": "medium",
            "summary": "use a table",
            "scope": "global",
            "created_at": T1,
        },
    ],
    "context_package_consumers": [
        {"package_id": 1, "agent_type": "developer", "consumed_at": T2, "iteration": 2},
        {"package_id": 1, "agent_type": "qa_expert"},
        {"package_id": 2, "agent_type": "developer"},
    ],
    "error_patterns": [
        {
            "pattern_hash": "ab" * 32,
            "project_id": "parser",
            "signature_json": '{"error_type": "KeyError", "message_pattern": "\'...\'"}',
            "solution": "use get",
            "confidence": 0.7,
            "occurrences": 4,
            "lang": "python",
            "last_seen": T2,
            "created_at": T0,
            "ttl_days": 30,
        }
    ],
    "strategies": [
        {
            "strategy_id": "parser_architecture_0011223344556677",
            "project_id": "parser",
            "topic": "architecture",
            "insight": "tables beat branches",
            "helpfulness": 3,
            "lang": "python",
            "framework": "none",
            "last_seen": T2,
            "created_at": T0,
        }
    ],
    "consumption_scope": [
        {
            "scope_id": "0123456789abcdef0123456789abcdef",
            "session_id": "bazinga_1",
            "group_id": "G1",
            "agent_type": "developer",
            "iteration": 1,
            "package_id": 1,
            "consumed_at": T2,
        }
    ],
    "workflow_transitions": [
        {"current_agent": "developer", "response_status": "READY_FOR_QA", "next_agent": "qa_expert", "action": "spawn"}
    ],
    "agent_markers": [{"agent_type": "developer", "required_markers": '["READY"]', "workflow_markers": "[]"}],
    "workflow_special_rules": [{"rule_name": "security_sensitive", "description": "d", "config": "{}"}],
}
HISTORY = [
    {"session_id": "bazinga_1", "timestamp": T1, "state_type": "pm", "state_data": '{"step": 2}'},
    {"session_id": "bazinga_1", "timestamp": T1, "state_type": "pm", "state_data": '{"step": 3}'},
]


def build(path: Path, version: int, *, more: "dict[str, list[dict[str, object]]] | None" = None) -> dict[str, int]:
    """Write a database of a version; give the number of rows of each table."""
    counts = {}
    with_history = {"state_snapshots": HISTORY} if version < 18 else {}
    db = apsw.Connection(str(path))
    for table, (first, columns) in SCHEMA.items():
        if first <= version:
            present = [(name, kind) for name, kind, since in columns if since <= version]
            db.execute(f"create table {table} ({', '.join(f'{name} {kind}' for name, kind in present)})")
            rows = [*ROWS[table], *with_history.get(table, []), *(more or {}).get(table, [])]
            names = {name for name, _ in present}
            counts[table] = _insert(db, table, [{n: v for n, v in row.items() if n in names} for row in rows])
    if version < 3:
        counts |= _old_tables(db)
    if version >= 2:
        db.execute("create table schema_version (version integer primary key, applied_at timestamp, description text)")
        db.execute("insert into schema_version (version) values (?)", (version,))
    db.close()
    return counts


def _insert(db: apsw.Connection, table: str, rows: list[dict[str, object]]) -> int:
    for row in rows:
        marks = ", ".join("?" for _ in row)
        db.execute(f"insert into {table} ({', '.join(row)}) values ({marks})", tuple(row.values()))
    return len(rows)


def _old_tables(db: apsw.Connection) -> dict[str, int]:
    for table, columns in OLD.items():
        db.execute(f"create table {table} ({columns})")
    _insert(db, "configuration", [{"key": "testing", "value": '{"mode": "full"}', "updated_at": T0}])
    decision = {"id": 1, "session_id": "bazinga_1", "timestamp": T1, "decision_type": "scope", "decision_data": '{"go": true}'}
    _insert(db, "decisions", [decision])
    return {"configuration": 1, "decisions": 1}
