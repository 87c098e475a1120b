"""Groups: tasks of a run that are reviewed and merged together."""

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any, Literal, TypedDict, Unpack

from decklog.core.errors import Conflict, Invalid
from decklog.db.where import Where, parse_enum
from decklog.records.fork_rules import ForkRule, Refer
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.checks import check_boolean, check_filled, check_group_id, check_integer, check_text, check_texts
from decklog.stores.of_run import RunBound, given_fields, lock_run, next_number, not_found, parse_cleared

RESERVED_IDS = frozenset({"global", "session", "all", "default"})
SPECIALIZATIONS = "bazinga/templates/specializations/"

_PATH = re.compile(r"[A-Za-z0-9/_.-]+")
_SHORT_FORMS = (SPECIALIZATIONS, "templates/specializations/", "specializations/")


def check_task_group_id(text: object) -> str:
    """Check the id of a task group. Reserved words that mean several groups are refused."""
    group_id = check_group_id(text)
    if group_id.lower() in RESERVED_IDS:
        raise Invalid(
            f"{group_id!r} is a reserved identifier and can't name a group",
            hint=f"Choose another id; these are reserved in any case: {', '.join(sorted(RESERVED_IDS))}",
            field="group_id",
        )
    return group_id


def normalize_specialization(path: object) -> str:
    """Return the normalized template path of a specialisation. Raise Invalid for a path outside the templates' folder.

    `specializations/…`, `templates/specializations/…` and bare names mean the same file as the full path.
    """
    if not isinstance(path, str) or not path.strip():
        raise Invalid(f"a specialisation is the path of a template; got {path!r}", field="specializations")
    if not _PATH.fullmatch(path):
        raise Invalid(f"specialisation {path!r} may have only letters, digits and / _ . -", field="specializations")
    if ".." in path or path.startswith("/"):
        raise Invalid(f"specialisation {path!r} leads out of {SPECIALIZATIONS}", field="specializations")
    inner = posixpath.normpath(path) + ("/" if path.endswith("/") else "")
    prefix = next((form for form in _SHORT_FORMS if inner.startswith(form)), "")
    inner = inner.removeprefix(prefix).strip("/")
    if inner in ("", "."):
        raise Invalid(f"specialisation {path!r} is a folder, not a template", field="specializations")
    return SPECIALIZATIONS + inner


class GroupStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    APPROVED_PENDING_MERGE = "approved_pending_merge"
    MERGING = "merging"


GroupStatusLike = GroupStatus | Literal["pending", "in_progress", "completed", "failed", "approved_pending_merge", "merging"]


class ReviewStatus(StrEnum):
    APPROVED = "APPROVED"
    CHANGES_REQUESTED = "CHANGES_REQUESTED"


ReviewStatusLike = ReviewStatus | Literal["APPROVED", "CHANGES_REQUESTED"]


class MergeStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    MERGED = "merged"
    CONFLICT = "conflict"
    TEST_FAILURE = "test_failure"


MergeStatusLike = MergeStatus | Literal["pending", "in_progress", "merged", "conflict", "test_failure"]


class GroupTier(StrEnum):
    DEVELOPER = "Developer"
    SENIOR = "Senior Software Engineer"


GroupTierLike = GroupTier | Literal["Developer", "Senior Software Engineer"]


@dataclass(frozen=True, kw_only=True)
class Group(Record):
    """Tasks of a run that are reviewed and merged together."""

    table = "groups"
    identity = ("run_id", "group_id")
    undo_columns = (
        *("name", "assigned_to", "feature_branch", "complexity", "initial_tier", "context_references", "specializations"),
        *("item_count", "security_sensitive", "component_path", "speckit_task_ids"),
    )
    fork = ForkRule(
        "The work of a group goes on.",
        fields={"context_references": Refer("packages")},
        same_ids=("group_id", "speckit_task_ids"),
    )

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
    initial_tier: GroupTier = GroupTier.DEVELOPER
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


# Allowed transitions of a merge; None is a group without a merge status.
_NEXT_MERGE = {
    None: (MergeStatus.PENDING, MergeStatus.IN_PROGRESS),
    MergeStatus.PENDING: (MergeStatus.IN_PROGRESS,),
    MergeStatus.IN_PROGRESS: (MergeStatus.MERGED, MergeStatus.CONFLICT, MergeStatus.TEST_FAILURE),
    MergeStatus.CONFLICT: (MergeStatus.IN_PROGRESS,),
    MergeStatus.TEST_FAILURE: (MergeStatus.IN_PROGRESS,),
    MergeStatus.MERGED: (),
}

# A conflict or a failing test returns the group to its worker.
STATUS_DURING_MERGE = {
    MergeStatus.PENDING: GroupStatus.APPROVED_PENDING_MERGE,
    MergeStatus.IN_PROGRESS: GroupStatus.MERGING,
    MergeStatus.MERGED: GroupStatus.COMPLETED,
    MergeStatus.CONFLICT: GroupStatus.IN_PROGRESS,
    MergeStatus.TEST_FAILURE: GroupStatus.IN_PROGRESS,
}


def check_merge_transition(group: Group, merge_status: MergeStatus) -> None:
    """Raise Conflict for a merge transition that is not allowed."""
    allowed = _NEXT_MERGE[group.merge_status]
    if merge_status is group.merge_status or merge_status in allowed:
        return
    raise Conflict(
        f"the merge of group {group.group_id} is {group.merge_status or 'not begun'} and can't become {merge_status}",
        hint=f"Next can be {' or '.join(allowed)}." if allowed else "A merged group stays merged.",
        group_id=group.group_id,
        merge_status=group.merge_status,
    )


def _check_specializations(name: str, value: object) -> list[str]:
    return [normalize_specialization(path) for path in check_texts(name, value)]


def _check_choice(enumeration: type[StrEnum]) -> Callable[[str, Any], StrEnum]:
    return lambda name, value: parse_enum(enumeration, value, name)


class GroupFields(TypedDict, total=False):
    """The fields of a group that `groups.add` and `groups.update` take."""

    name: str | None
    status: GroupStatusLike | None
    assigned_to: str | None
    revision_count: int | None
    last_review_status: ReviewStatusLike | None
    feature_branch: str | None
    complexity: int | None
    initial_tier: GroupTierLike | None
    context_references: list[str] | None
    specializations: list[str] | None
    item_count: int | None
    security_sensitive: bool | None
    qa_attempts: int | None
    tl_review_attempts: int | None
    component_path: str | None
    review_iteration: int | None
    no_progress_count: int | None
    blocking_issues_count: int | None
    speckit_task_ids: list[str] | None


CLEARABLE = (
    *("assigned_to", "last_review_status", "feature_branch", "complexity", "component_path"),
    *("context_references", "specializations", "speckit_task_ids"),
)
_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "name": check_filled,
    "status": _check_choice(GroupStatus),
    "assigned_to": check_filled,
    "revision_count": check_integer,
    "last_review_status": _check_choice(ReviewStatus),
    "feature_branch": check_filled,
    "merge_status": _check_choice(MergeStatus),
    "complexity": partial(check_integer, low=1, high=10),
    "initial_tier": _check_choice(GroupTier),
    "context_references": check_texts,
    "specializations": _check_specializations,
    "item_count": partial(check_integer, low=1),
    "security_sensitive": check_boolean,
    "qa_attempts": check_integer,
    "tl_review_attempts": check_integer,
    "component_path": check_text,
    "review_iteration": partial(check_integer, low=1),
    "no_progress_count": check_integer,
    "blocking_issues_count": check_integer,
    "speckit_task_ids": check_texts,
}


def check_group_fields(given: dict[str, Any]) -> dict[str, Any]:
    """Check the given fields and return them normalized."""
    return {name: _CHECKS[name](name, value) for name, value in given.items()}


class Groups(RunBound):
    """Stores the task groups of runs, with their reviews and merges."""

    records = (Group,)

    @writes
    def add(
        self,
        run_id: str,
        group_id: str,
        *,
        merge_status: MergeStatusLike | None = None,
        created_at: datetime | None = None,
        **fields: Unpack[GroupFields],
    ) -> Group:
        """Create a group of a run, or change the given fields of an existing one."""
        given = check_group_fields(given_fields({**fields, "merge_status": merge_status}))
        check_task_group_id(group_id)
        lock_run(self._db, run_id)
        group = self._seek(Group, (run_id, group_id))
        if group is not None:
            return self._apply(group, given)
        given.setdefault("name", f"Task Group {group_id}")
        return self._add(
            Group,
            note=given["name"],
            run_id=run_id,
            group_id=group_id,
            number=next_number(self._db, Group, run_id),
            created_at=created_at or self._now(),
            updated_at=self._now(),
            **given,
        )

    @writes
    def update(
        self,
        run_id: str,
        group_id: str,
        *,
        clear: list[str] | None = None,
        **fields: Unpack[GroupFields],
    ) -> Group:
        """Change the given fields of a group and keep the rest; `clear` names fields to empty.

        A lower review iteration is ignored, because it only grows.
        """
        given = check_group_fields(given_fields(dict(fields)))
        given |= parse_cleared(clear, CLEARABLE, given)
        if not given:
            raise Invalid("no changes given", field="group_id")
        return self._apply(self._lock_and_get(run_id, group_id), given)

    def _apply(self, group: Group, fields: dict[str, Any]) -> Group:
        if "review_iteration" in fields:
            fields["review_iteration"] = max(fields["review_iteration"], group.review_iteration)
        if "merge_status" in fields:
            check_merge_transition(group, fields["merge_status"])
        return self.set_fields(group, fields)

    def _lock_and_get(self, run_id: str, group_id: str) -> Group:
        lock_run(self._db, run_id)
        return self.get(run_id, group_id)

    @reads
    def get(self, run_id: str, group_id: str) -> Group:
        """Get a group of a run."""
        group = self._seek(Group, (run_id, group_id))
        if group is None:
            raise not_found(Group, run_id, group_id)
        return group

    def of_run(self, run_id: str) -> list[Group]:
        """List all groups of a run by creation."""
        return self._select_by(Group, order="number", run_id=run_id)

    @reads
    def find(
        self,
        run_id: str | None = None,
        *,
        status: GroupStatusLike | None = None,
        assigned_to: str | None = None,
        merge_status: MergeStatusLike | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Group]:
        """List groups in the order in which they were created, of one run or of all."""
        where = Where(Group, run_id=run_id, status=status, assigned_to=assigned_to, merge_status=merge_status)
        return self._page(Group, where, order=("run_id", "number"), limit=limit, after=after)

    @writes
    def record_review(
        self,
        run_id: str,
        group_id: str,
        verdict: ReviewStatusLike,
        *,
        blocking_issues: int = 0,
        no_progress_count: int | None = None,
        iteration: int | None = None,
    ) -> Group:
        """Record a review's verdict and its blocking issues, and move on to the next review iteration.

        The no-progress count grows if changes are requested again and the number of blocking issues did not fall; otherwise it is
        0. `iteration` is the reviewed iteration: a repeated call for an earlier one changes nothing.
        """
        verdict = parse_enum(ReviewStatus, verdict, "verdict")
        check_integer("blocking_issues", blocking_issues)
        if verdict is ReviewStatus.APPROVED and blocking_issues:
            raise Invalid(f"{blocking_issues} blocking issues are left; an approving review has none", field="blocking_issues")
        group = self._lock_and_get(run_id, group_id)
        if iteration is not None and check_integer("iteration", iteration, low=1) < group.review_iteration:
            return group.mark_already()
        if iteration is not None and iteration > group.review_iteration:
            raise Conflict(f"group {group_id} is at review iteration {group.review_iteration}, not yet at {iteration}")
        if no_progress_count is None:
            stuck = group.last_review_status is verdict and 0 < group.blocking_issues_count <= blocking_issues
            no_progress_count = group.no_progress_count + 1 if stuck else 0
        changes = {
            "last_review_status": verdict,
            "blocking_issues_count": blocking_issues,
            "no_progress_count": check_integer("no_progress_count", no_progress_count),
            "review_iteration": group.review_iteration + 1,
        }
        return self.set_fields(group, changes, note=f"review {group.review_iteration}: {verdict}")

    @writes
    def record_merge(self, run_id: str, group_id: str, merge_status: MergeStatusLike) -> Group:
        """Record the state of a group's merge, and update the group's status.

        The order is pending, in_progress, then merged, conflict or test_failure; after the last two it may be tried again.
        """
        merge_status = parse_enum(MergeStatus, merge_status, "merge_status")
        group = self._lock_and_get(run_id, group_id)
        if group.merge_status is merge_status:
            return group.mark_already()
        check_merge_transition(group, merge_status)
        changes = {"merge_status": merge_status, "status": STATUS_DURING_MERGE[merge_status]}
        return self.set_fields(group, changes, note=f"merge: {merge_status}")

    @writes
    def count_revision(self, run_id: str, group_id: str) -> Group:
        """Count one more revision of a group."""
        return self._count(run_id, group_id, "revision_count")

    @writes
    def count_qa_attempt(self, run_id: str, group_id: str) -> Group:
        """Count one more attempt to pass a group's tests."""
        return self._count(run_id, group_id, "qa_attempts")

    @writes
    def count_review_attempt(self, run_id: str, group_id: str) -> Group:
        """Count one more attempt to pass a group's review."""
        return self._count(run_id, group_id, "tl_review_attempts")

    def _count(self, run_id: str, group_id: str, column: str) -> Group:
        lock_run(self._db, run_id)
        return self._update(Group, (run_id, group_id), {}, adding={column: 1}, note=f"{column} + 1")
