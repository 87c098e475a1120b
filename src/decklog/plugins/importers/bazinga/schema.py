"""What a bazinga database holds: its tables and columns in the newest version, and which tables older ones had."""

from typing import TYPE_CHECKING

from decklog.core.errors import Invalid, SchemaTooNew

if TYPE_CHECKING:
    from decklog.importing.source import SqliteSource

NEWEST = 19

TABLES: dict[str, tuple[str, ...]] = {
    "sessions": (
        *("session_id", "start_time", "end_time", "mode", "original_requirements", "status", "initial_branch", "metadata"),
        "created_at",
    ),
    "task_groups": (
        *("id", "session_id", "name", "status", "assigned_to", "revision_count", "last_review_status", "feature_branch"),
        *("merge_status", "complexity", "initial_tier", "context_references", "specializations", "item_count"),
        *("security_sensitive", "qa_attempts", "tl_review_attempts", "component_path", "review_iteration"),
        *("no_progress_count", "blocking_issues_count", "speckit_task_ids", "created_at", "updated_at"),
    ),
    "orchestration_logs": (
        *("id", "session_id", "timestamp", "iteration", "agent_type", "agent_id", "content", "log_type", "reasoning_phase"),
        *("confidence_level", "references_json", "redacted", "group_id", "event_subtype", "event_payload", "idempotency_key"),
    ),
    "state_snapshots": ("id", "session_id", "group_id", "timestamp", "state_type", "state_data"),
    "token_usage": ("id", "session_id", "timestamp", "agent_type", "agent_id", "tokens_estimated"),
    "skill_outputs": (*("id", "session_id", "timestamp", "skill_name", "output_data", "agent_type", "group_id", "iteration"),),
    "development_plans": (
        *("id", "session_id", "original_prompt", "plan_text", "phases", "current_phase", "total_phases", "created_at"),
        *("updated_at", "metadata"),
    ),
    "success_criteria": (
        *("id", "session_id", "criterion", "status", "actual", "evidence", "required_for_completion", "created_at"),
        "updated_at",
    ),
    "context_packages": (
        *("id", "session_id", "group_id", "package_type", "file_path", "producer_agent", "priority", "summary"),
        *("size_bytes", "version", "supersedes_id", "scope", "created_at"),
    ),
    "context_package_consumers": ("id", "package_id", "agent_type", "consumed_at", "iteration"),
    "consumption_scope": ("scope_id", "session_id", "group_id", "agent_type", "iteration", "package_id", "consumed_at"),
    "error_patterns": (
        *("pattern_hash", "project_id", "signature_json", "solution", "confidence", "occurrences", "lang", "last_seen"),
        *("created_at", "ttl_days"),
    ),
    "strategies": (
        *("strategy_id", "project_id", "topic", "insight", "helpfulness", "lang", "framework", "last_seen", "created_at"),
    ),
    "workflow_transitions": (
        *("id", "current_agent", "response_status", "next_agent", "action", "include_context", "escalation_check"),
        *("model_override", "fallback_agent", "bypass_qa", "max_parallel", "then_action"),
    ),
    "agent_markers": ("id", "agent_type", "required_markers", "workflow_markers"),
    "workflow_special_rules": ("id", "rule_name", "description", "config"),
    # Only in old files.
    "configuration": ("key", "value", "updated_at"),
    "decisions": ("id", "session_id", "timestamp", "iteration", "decision_type", "decision_data"),
}

KEYS = {
    "sessions": ("session_id",),
    "task_groups": ("session_id", "id"),
    "consumption_scope": ("scope_id",),
    "error_patterns": ("pattern_hash", "project_id"),
    "strategies": ("strategy_id",),
    "configuration": ("key",),
}


def version_of(source: "SqliteSource") -> int:
    """Find a file's schema version; refuse what is no bazinga database, and what is newer than we know."""
    if "sessions" not in source or "orchestration_logs" not in source:
        raise Invalid(
            f"{source.path} is no bazinga database: it has no sessions or no orchestration_logs",
            hint=f"It has {', '.join(source.columns) or 'no tables'}.",
        )
    versions = [row.get("version") for row in source.rows("schema_version")]
    newest = max((version for version in versions if type(version) is int), default=1)
    if newest > NEWEST:
        raise SchemaTooNew(
            f"{source.path} has schema version {newest}, and {NEWEST} is the newest known", version=newest, newest=NEWEST
        )
    return newest
