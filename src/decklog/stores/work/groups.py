"""Groups: the parts of a run that are worked on, reviewed and merged one by one."""

from datetime import datetime

from decklog.errors import Conflict, Invalid
from decklog.operations import reads, writes
from decklog.records import Page
from decklog.stores.base import Where, enum_of
from decklog.stores.checks import whole
from decklog.stores.numbers import next_number
from decklog.stores.of_run import RunBound, cleared, given_of, missing
from decklog.stores.work.group import (
    CLEARABLE,
    STATUS_WHILE,
    Group,
    GroupStatus,
    MergeStatus,
    ReviewStatus,
    Tier,
    check_merge,
    checked,
)
from decklog.stores.work.group_rules import check_group_id, check_task_group_id, normal_specialization

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Group",
    "GroupStatus",
    "Groups",
    "MergeStatus",
    "ReviewStatus",
    "Tier",
    "check_group_id",
    "check_task_group_id",
    "normal_specialization",
]


class Groups(RunBound):
    """Keeps the task groups of every run: who has them, how their reviews go, and whether they are merged."""

    records = (Group,)

    @writes
    def create(
        self,
        run_id: str,
        group_id: str,
        *,
        name: str | None = None,
        status: GroupStatus | None = None,
        assigned_to: str | None = None,
        revision_count: int | None = None,
        last_review_status: ReviewStatus | None = None,
        feature_branch: str | None = None,
        merge_status: MergeStatus | None = None,
        complexity: int | None = None,
        initial_tier: Tier | None = None,
        context_references: list[str] | None = None,
        specializations: list[str] | None = None,
        item_count: int | None = None,
        security_sensitive: bool | None = None,
        qa_attempts: int | None = None,
        tl_review_attempts: int | None = None,
        component_path: str | None = None,
        review_iteration: int | None = None,
        no_progress_count: int | None = None,
        blocking_issues_count: int | None = None,
        speckit_task_ids: list[str] | None = None,
        created_at: datetime | None = None,
    ) -> Group:
        """Create a group of a run, or change what is given of one that is there; the rest keeps its value."""
        fields = checked(given_of(locals(), "run_id", "group_id", "created_at"))
        check_task_group_id(group_id)
        self.hold(run_id)
        group = self.seek(Group, (run_id, group_id))
        if group is not None:
            return self._apply(group, fields)
        fields.setdefault("name", f"Task Group {group_id}")
        return self._begin(run_id, group_id, created_at or self.now(), fields)

    def _begin(self, run_id: str, group_id: str, created_at: datetime, fields: "dict[str, Any]") -> Group:
        return self.add(
            Group,
            note=fields["name"],
            run_id=run_id,
            group_id=group_id,
            number=next_number(self, Group, run_id),
            created_at=created_at,
            updated_at=self.now(),
            **fields,
        )

    @writes
    def update(
        self,
        run_id: str,
        group_id: str,
        *,
        name: str | None = None,
        status: GroupStatus | None = None,
        assigned_to: str | None = None,
        revision_count: int | None = None,
        last_review_status: ReviewStatus | None = None,
        feature_branch: str | None = None,
        complexity: int | None = None,
        initial_tier: Tier | None = None,
        context_references: list[str] | None = None,
        specializations: list[str] | None = None,
        item_count: int | None = None,
        security_sensitive: bool | None = None,
        qa_attempts: int | None = None,
        tl_review_attempts: int | None = None,
        component_path: str | None = None,
        review_iteration: int | None = None,
        no_progress_count: int | None = None,
        blocking_issues_count: int | None = None,
        speckit_task_ids: list[str] | None = None,
        clear: list[str] | None = None,
    ) -> Group:
        """Change what is given of a group and keep the rest; `clear` names fields to empty.

        A review iteration lower than the present one leaves it as it is: it only grows.
        """
        fields = checked(given_of(locals(), "run_id", "group_id", "clear"))
        fields |= cleared(clear, CLEARABLE, fields)
        if not fields:
            raise Invalid("nothing to change was given", field="group_id")
        return self._apply(self._held(run_id, group_id), fields)

    def _apply(self, group: Group, fields: "dict[str, Any]") -> Group:
        if "review_iteration" in fields:
            fields["review_iteration"] = max(fields["review_iteration"], group.review_iteration)
        if "merge_status" in fields:
            check_merge(group, fields["merge_status"])
        return self.set_fields(group, fields)

    def _held(self, run_id: str, group_id: str) -> Group:
        self.hold(run_id)
        return self._get(run_id, group_id)

    def _get(self, run_id: str, group_id: str) -> Group:
        group = self.seek(Group, (run_id, group_id))
        if group is None:
            raise missing(Group, run_id, group_id)
        return group

    @reads
    def get(self, run_id: str, group_id: str) -> Group:
        """Get a group of a run."""
        return self._get(run_id, group_id)

    def of_run(self, run_id: str) -> list[Group]:
        """List all groups of a run, in the order they were made."""
        return self.select(Group, "select * from groups where run_id = :run_id order by number", run_id=run_id)

    @reads
    def find(
        self,
        run_id: str | None = None,
        *,
        status: GroupStatus | None = None,
        assigned_to: str | None = None,
        merge_status: MergeStatus | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page:
        """List groups in the order in which they were created, of one run or of all."""
        where = Where(Group)
        where.equal(
            run_id=run_id,
            status=None if status is None else enum_of(GroupStatus, status, "status"),
            assigned_to=assigned_to,
            merge_status=None if merge_status is None else enum_of(MergeStatus, merge_status, "merge_status"),
        )
        return self.page(Group, where, order=("run_id", "number"), limit=limit, after=after)

    @writes
    def record_review(
        self,
        run_id: str,
        group_id: str,
        verdict: ReviewStatus,
        *,
        blocking_issues: int = 0,
        no_progress_count: int | None = None,
        iteration: int | None = None,
    ) -> Group:
        """Record a review's verdict and its blocking issues, and move on to the next review iteration.

        The no-progress count grows when changes are requested again and no blocking issue fewer is left; else it is 0.
        `iteration` says which one was reviewed: a call repeated for one that is past changes nothing.
        """
        verdict = enum_of(ReviewStatus, verdict, "verdict")
        whole("blocking_issues", blocking_issues)
        if verdict is ReviewStatus.APPROVED and blocking_issues:
            raise Invalid(f"{blocking_issues} blocking issues are left; a review that approves has none", field="blocking_issues")
        group = self._held(run_id, group_id)
        if iteration is not None and whole("iteration", iteration, low=1) < group.review_iteration:
            return group.marked_already()
        if iteration is not None and iteration > group.review_iteration:
            raise Conflict(f"group {group_id} is at review iteration {group.review_iteration}, not yet at {iteration}")
        if no_progress_count is None:
            stuck = group.last_review_status is verdict and 0 < group.blocking_issues_count <= blocking_issues
            no_progress_count = group.no_progress_count + 1 if stuck else 0
        changes = {
            "last_review_status": verdict,
            "blocking_issues_count": blocking_issues,
            "no_progress_count": whole("no_progress_count", no_progress_count),
            "review_iteration": group.review_iteration + 1,
        }
        return self.set_fields(group, changes, note=f"review {group.review_iteration}: {verdict}")

    @writes
    def record_merge(self, run_id: str, group_id: str, merge_status: MergeStatus) -> Group:
        """Record how far a group's merge is, and move the group's status along with it.

        Lawful are pending, in_progress, then merged, conflict or test_failure; after the last two it may be tried again.
        """
        merge_status = enum_of(MergeStatus, merge_status, "merge_status")
        group = self._held(run_id, group_id)
        if group.merge_status is merge_status:
            return group.marked_already()
        check_merge(group, merge_status)
        changes = {"merge_status": merge_status, "status": STATUS_WHILE[merge_status]}
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
        self.hold(run_id)
        return self.change(
            Group,
            (run_id, group_id),
            f"""
            update groups set {column} = {column} + 1, updated_at = :now
             where run_id = :run_id and group_id = :group_id
            returning *
            """,
            note=f"{column} + 1",
            now=self.now(),
        )
