"""What a gaia-coder home holds: seven databases of one table each, in the order in which rows refer to each other."""

DATABASES = {
    "feedback": "feedback.db",
    "em_inbox": "em_inbox.db",
    "tasks": "tasks.db",
    "audit": "audit.log.db",
    "spend": "spend.db",
    "ci_history": "ci_history.db",
    "memory": "memory.db",
}

TABLES: dict[str, tuple[str, ...]] = {
    "feedback": (
        *("id", "received_at", "from_handle", "channel", "severity", "body", "context_url", "fix_class", "state", "fix_pr_url"),
        *("regression_test_path", "root_cause", "success_criterion", "notes_json"),
    ),
    "em_inbox": (
        *("id", "received_at", "from_handle", "channel", "severity", "body", "state", "answer", "escalated_to", "ack_sent_at"),
        *("answered_at", "closed_at"),
    ),
    "tasks": (
        *("id", "priority", "state", "created_at", "last_heartbeat_at", "stage", "current_state_name", "inputs_json"),
        *("result_json", "trace_file", "cost_usd", "loop_version"),
    ),
    "audit": (
        *("id", "occurred_at", "task_id", "stage", "state_name", "tool_name", "args_json", "result_json", "duration_ms"),
        *("error", "loop_version"),
    ),
    "spend": (
        *("id", "occurred_at", "task_id", "call_site", "model", "input_tokens", "cache_read_tokens", "cache_create_tokens"),
        *("output_tokens", "usd"),
    ),
    "ci_history": ("workflow_name", "branch", "run_id", "started_at", "completed_at", "duration_s", "conclusion"),
    "memory": (
        *("id", "topic", "created_at", "source_kind", "source_id", "payload_json", "embedding_key", "confidence"),
        *("last_recalled_at", "recall_count", "superseded_by"),
    ),
}
KEYS: dict[str, tuple[str, ...]] = {"ci_history": ("workflow_name", "branch", "run_id")}
