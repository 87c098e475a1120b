"""The tables of Vibe Kanban's database that say something of tasks, those that others lead to first."""

from decklog.importing.table_tracker import Table

_TIMES = ("created_at", "updated_at")
_OF_PROCESS = ("execution_process_id", "execution_processes")
_OF_WORKSPACE = ("workspace_id", "workspaces")

LAYOUT = {
    "tasks": Table(
        (
            *("id", "project_id", "title", "description", "status", "parent_workspace_id", "parent_task_attempt", *_TIMES),
            *("image_ids", "shared_task_id"),
        ),
        at="created_at",
        clock="updated_at",
    ),
    "workspaces": Table(
        (
            *("id", "task_id", "branch", "container_ref", "archived", "pinned", "name", "worktree_deleted", *_TIMES),
            *("agent_working_dir", "setup_completed_at"),
        ),
        at="created_at",
        of=("task_id", "tasks"),
    ),
    # Before December 2025 an attempt was one table, and so was a session.
    "task_attempts": Table(
        (
            *("id", "task_id", "branch", "target_branch", "base_branch", "executor", "container_ref", "worktree_deleted"),
            *("setup_completed_at", "merge_commit", "pr_url", "pr_number", "pr_status", "pr_merged_at", *_TIMES),
        ),
        at="created_at",
        of=("task_id", "tasks"),
    ),
    "sessions": Table(
        ("id", "workspace_id", "executor", "name", "agent_working_dir", *_TIMES), at="created_at", of=_OF_WORKSPACE
    ),
    "execution_processes": Table(
        (
            *("id", "session_id", "task_attempt_id", "run_reason", "executor_action", "status", "exit_code", "started_at"),
            *("completed_at", "dropped", "after_head_commit", "before_head_commit", *_TIMES),
        ),
        at="started_at",
        of=("session_id", "sessions"),
    ),
    "coding_agent_turns": Table(
        ("id", "execution_process_id", "agent_session_id", "agent_message_id", "prompt", "summary", "seen", *_TIMES),
        at="created_at",
        of=_OF_PROCESS,
    ),
    "executor_sessions": Table(
        ("id", "task_attempt_id", "execution_process_id", "session_id", "prompt", "summary", *_TIMES),
        at="created_at",
        of=_OF_PROCESS,
    ),
    "execution_process_repo_states": Table(
        ("id", "execution_process_id", "repo_id", "before_head_commit", "after_head_commit", "merge_commit", *_TIMES),
        at="created_at",
        of=_OF_PROCESS,
    ),
    "execution_process_logs": Table(
        ("execution_id", "execution_process_id", "logs", "byte_size", "inserted_at"),
        ("execution_id", "execution_process_id", "inserted_at"),
        at="inserted_at",
        of=("execution_id", "execution_processes"),
    ),
    "merges": Table(
        (
            *("id", "workspace_id", "task_attempt_id", "repo_id", "merge_type", "merge_commit", "target_branch_name"),
            *("pr_number", "pr_url", "pr_status", "pr_merged_at", "pr_merge_commit_sha", "created_at"),
        ),
        at="created_at",
        of=_OF_WORKSPACE,
    ),
    "pull_requests": Table(
        (
            *("id", "workspace_id", "repo_id", "pr_url", "pr_number", "pr_status", "target_branch_name", "merged_at"),
            *("merge_commit_sha", "synced_at", *_TIMES),
        ),
        at="created_at",
        of=_OF_WORKSPACE,
    ),
}
# What else leads to the same, in files of other versions.
ELSEWHERE = {
    "execution_processes": ("task_attempt_id", "task_attempts"),
    "execution_process_logs": ("execution_process_id", "execution_processes"),
    "merges": ("task_attempt_id", "task_attempts"),
    "executor_sessions": ("task_attempt_id", "task_attempts"),
}
# They say nothing of a task, or nothing that is not in these.
IGNORED = (
    *("_sqlx_migrations", "projects", "repos", "project_repos", "workspace_repos", "tags", "images", "task_images"),
    *("scratch", "drafts", "follow_up_drafts", "task_templates", "shared_tasks", "shared_activity_cursors", "migration_state"),
)
