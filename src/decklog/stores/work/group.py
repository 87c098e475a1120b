"""What a group is: its fields, the values they may have, and how its merge may go on."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial

from decklog.db.where import enum_of
from decklog.errors import Conflict
from decklog.records import Record
from decklog.stores.checks import filled, flag, text, texts, whole
from decklog.stores.work.group_rules import normal_specialization

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class GroupStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    APPROVED_PENDING_MERGE = "approved_pending_merge"
    MERGING = "merging"


class ReviewStatus(StrEnum):
    APPROVED = "APPROVED"
    CHANGES_REQUESTED = "CHANGES_REQUESTED"


class MergeStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    MERGED = "merged"
    CONFLICT = "conflict"
    TEST_FAILURE = "test_failure"


class Tier(StrEnum):
    DEVELOPER = "Developer"
    SENIOR = "Senior Software Engineer"


@dataclass(frozen=True, kw_only=True)
class Group(Record):
    table = "groups"
    identity = ("run_id", "group_id")

    run_id: str
    group_id: str
    number: int
    name: str
    created_at: datetime
    updated_at: datetime
    status: GroupStatus = GroupStatus.PENDING
    assigned_to: str | None = None
    revision_count: int = 0
    last_review_status: ReviewStatus | None = None
    feature_branch: str | None = None
    merge_status: MergeStatus | None = None
    complexity: int | None = None
    initial_tier: Tier = Tier.DEVELOPER
    context_references: list[str] | None = None
    specializations: list[str] | None = None
    item_count: int = 1
    security_sensitive: bool = False
    qa_attempts: int = 0
    tl_review_attempts: int = 0
    component_path: str | None = None
    review_iteration: int = 1
    no_progress_count: int = 0
    blocking_issues_count: int = 0
    speckit_task_ids: list[str] | None = None


# What a merge may become; None is a group whose merge nobody has thought of yet.
_NEXT_MERGE = {
    None: (MergeStatus.PENDING, MergeStatus.IN_PROGRESS),
    MergeStatus.PENDING: (MergeStatus.IN_PROGRESS,),
    MergeStatus.IN_PROGRESS: (MergeStatus.MERGED, MergeStatus.CONFLICT, MergeStatus.TEST_FAILURE),
    MergeStatus.CONFLICT: (MergeStatus.IN_PROGRESS,),
    MergeStatus.TEST_FAILURE: (MergeStatus.IN_PROGRESS,),
    MergeStatus.MERGED: (),
}

# A conflict or a failing test sends the group back to whoever works on it.
STATUS_WHILE = {
    MergeStatus.PENDING: GroupStatus.APPROVED_PENDING_MERGE,
    MergeStatus.IN_PROGRESS: GroupStatus.MERGING,
    MergeStatus.MERGED: GroupStatus.COMPLETED,
    MergeStatus.CONFLICT: GroupStatus.IN_PROGRESS,
    MergeStatus.TEST_FAILURE: GroupStatus.IN_PROGRESS,
}


def check_merge(group: Group, merge_status: MergeStatus) -> None:
    """Refuse a step that a merge can't take from where it is."""
    lawful = _NEXT_MERGE[group.merge_status]
    if merge_status is group.merge_status or merge_status in lawful:
        return
    raise Conflict(
        f"the merge of group {group.group_id} is {group.merge_status or 'not begun'} and can't become {merge_status}",
        hint=f"Next can be {' or '.join(lawful)}." if lawful else "A merged group stays merged.",
        group_id=group.group_id,
        merge_status=group.merge_status,
    )


def _templates(name: str, value: object) -> list[str]:
    return [normal_specialization(path) for path in texts(name, value)]


def _one_of(enumeration: type[StrEnum]) -> "Callable[[str, Any], StrEnum]":
    return lambda name, value: enum_of(enumeration, value, name)


CLEARABLE = (
    *("assigned_to", "last_review_status", "feature_branch", "complexity", "component_path"),
    *("context_references", "specializations", "speckit_task_ids"),
)
_CHECKS: "dict[str, Callable[[str, Any], Any]]" = {
    "name": filled,
    "status": _one_of(GroupStatus),
    "assigned_to": filled,
    "revision_count": whole,
    "last_review_status": _one_of(ReviewStatus),
    "feature_branch": filled,
    "merge_status": _one_of(MergeStatus),
    "complexity": partial(whole, low=1, high=10),
    "initial_tier": _one_of(Tier),
    "context_references": texts,
    "specializations": _templates,
    "item_count": partial(whole, low=1),
    "security_sensitive": flag,
    "qa_attempts": whole,
    "tl_review_attempts": whole,
    "component_path": text,
    "review_iteration": partial(whole, low=1),
    "no_progress_count": whole,
    "blocking_issues_count": whole,
    "speckit_task_ids": texts,
}


def checked(given: "dict[str, Any]") -> "dict[str, Any]":
    """Check the fields that were given, and give them in their one form."""
    return {name: _CHECKS[name](name, value) for name, value in given.items()}
