"""How beads' words stand for ours, and ours for theirs."""

from decklog.stores.tasks.task import LinkKind, TaskState

PLACES = (".beads/issues.jsonl", "issues.jsonl")

STATES = {
    "open": TaskState.PENDING,
    "in_progress": TaskState.PAUSED,
    "blocked": TaskState.BLOCKED,
    "deferred": TaskState.PAUSED,
    "closed": TaskState.DONE,
    "pinned": TaskState.PAUSED,
    "hooked": TaskState.PAUSED,
}
# A task that waits or is worked on must not be given to anybody there.
WORDS = {
    TaskState.PENDING: "open",
    TaskState.RUNNING: "in_progress",
    TaskState.WAITING: "in_progress",
    TaskState.BLOCKED: "blocked",
    TaskState.PAUSED: "deferred",
    TaskState.DONE: "closed",
    TaskState.ABANDONED: "closed",
}
DELETED = "tombstone"
# What stands for something else than work, and is not to be claimed.
NO_WORK = frozenset(["message", "molecule", "gate", "event"])

USUAL_TYPE = "task"

# Theirs goes from 0, the highest, to 4.
PRIORITIES = {0: 90, 1: 70, 2: 50, 3: 30, 4: 10}

KINDS = {
    "blocks": LinkKind.BLOCKS,
    "conditional-blocks": LinkKind.BLOCKS,
    "waits-for": LinkKind.BLOCKS,
    "parent-child": LinkKind.PARENT,
    "discovered-from": LinkKind.DISCOVERED_FROM,
    "related": LinkKind.RELATED,
}
KIND_WORDS = {
    LinkKind.BLOCKS: "blocks",
    LinkKind.PARENT: "parent-child",
    LinkKind.DISCOVERED_FROM: "discovered-from",
    LinkKind.RELATED: "related",
}

# What a worker should see, and has no field of its own, stands among the task's inputs under the name of the system.
SHOWN = (
    *("issue_type", "design", "notes", "spec_id", "owner", "estimated_minutes", "created_by", "started_at", "closed_at"),
    *("closed_by_session", "due_at", "external_ref", "source_system", "metadata", "compaction_level", "compacted_at", "pinned"),
    *("is_template", "ephemeral", "await_type", "await_id", "timeout", "waiters", "mol_type", "work_type", "event_kind", "actor"),
    *("target", "payload", "sender"),
)
# Beads works these out itself.
DERIVED = ("_type", "dependency_count", "dependent_count", "comment_count")


def priority_word(priority: int) -> int:
    """Return the nearest of beads' priorities."""
    return min(PRIORITIES, key=lambda word: (abs(PRIORITIES[word] - priority), word))
