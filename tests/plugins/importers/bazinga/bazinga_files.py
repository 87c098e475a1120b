"""Bazinga databases of every schema version, built from what each version had."""

from pathlib import Path

import apsw

from decklog.plugins.importers.bazinga.importer import SCHEMA

# Since which version a table exists, and those of its columns that came later.
TABLES_SINCE = {
    "development_plans": 3,
    "success_criteria": 4,
    "context_packages": 6,
    "context_package_consumers": 6,
    **dict.fromkeys(("error_patterns", "strategies", "consumption_scope"), 10),
    **dict.fromkeys(("workflow_transitions", "agent_markers", "workflow_special_rules"), 13),
}
COLUMNS_SINCE = {
    "sessions": {"initial_branch": 5, "metadata": 9},
    "orchestration_logs": {
        **dict.fromkeys(("log_type", "reasoning_phase", "confidence_level", "references_json", "redacted", "group_id"), 8),
        "event_subtype": 9,
        "event_payload": 9,
        "idempotency_key": 17,
    },
    "state_snapshots": {"group_id": 18},
    "task_groups": {
        **dict.fromkeys(("feature_branch", "merge_status", "complexity", "initial_tier"), 5),
        "context_references": 6,
        "specializations": 7,
        "item_count": 9,
        "component_path": 15,
        "speckit_task_ids": 19,
        **dict.fromkeys(("security_sensitive", "qa_attempts", "tl_review_attempts"), 14),
        **dict.fromkeys(("review_iteration", "no_progress_count", "blocking_issues_count"), 16),
    },
    "skill_outputs": {"agent_type": 11, "group_id": 11, "iteration": 11},
}


def _declared() -> dict[str, dict[str, str]]:
    """Return the columns of the newest version with their declarations, without constraints over several columns."""
    db = apsw.Connection(":memory:")
    SCHEMA.create(db)
    found: dict[str, dict[str, str]] = {table: {} for table in ROWS}
    for table, columns in found.items():
        for name, kind, default, key in db.execute("select name, type, dflt_value, pk from pragma_table_info(?)", (table,)):
            is_number = key and kind.upper() == "INTEGER"
            columns[name] = (
                f"{kind} primary key autoincrement" if is_number else f"{kind} default ({default})" if default else kind
            )
    db.close()
    return found


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
    for table, columns in _declared().items():
        if TABLES_SINCE.get(table, 1) <= version:
            since = COLUMNS_SINCE.get(table, {})
            names = [name for name in columns if since.get(name, 1) <= version]
            db.execute(f"create table {table} ({', '.join(f'{name} {columns[name]}' for name in names)})")
            rows = [*ROWS[table], *with_history.get(table, []), *(more or {}).get(table, [])]
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
