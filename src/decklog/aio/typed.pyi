# What a type checker sees of an asynchronous log. Written by `make docs` from the operations; a test keeps it true.
# ruff: noqa: E501
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Unpack, overload

from decklog.aio.stores import AsyncClaim
from decklog.journal.entry import ConfidenceLike, Entry, EntryKindLike, NewEntries, ReasoningPhaseLike
from decklog.journal.journal import R
from decklog.journal.rows import StreamChanges, StreamHead
from decklog.journal.verify import Verification
from decklog.journal.writer import WrittenEntries
from decklog.records.record import Page, Record
from decklog.stores.approvals.approval import Answers, Approval, ApprovalStateLike, VerdictLike
from decklog.stores.approvals.feedback import Feedback, FeedbackSeverityLike, FeedbackStateLike, FixClassLike
from decklog.stores.approvals.inbox import Message, MessageChannelLike, MessageSeverityLike, MessageStateLike
from decklog.stores.approvals.notices import Notice, NoticeChannelLike, NoticeEventLike, NoticeStateLike, NotifyRule
from decklog.stores.approvals.self_edits import SelfEdit
from decklog.stores.approvals.trust.proofs import Proof
from decklog.stores.approvals.trust.records import ChangeKindLike, SignedChangeLike, TrustChange, TrustContract, TrustProposal
from decklog.stores.artifacts.artifacts import Artifact
from decklog.stores.artifacts.checkpoints import Checkpoint, TaskSnapshot
from decklog.stores.artifacts.graphs import GraphCheckpoint, GraphItem
from decklog.stores.artifacts.outputs import SkillOutput
from decklog.stores.artifacts.states import InvestigationStatusLike, State, StateVersion
from decklog.stores.effects.effects import Effect, EffectOutcomeLike, EffectStateLike
from decklog.stores.effects.processes import Process, ProcessStateLike
from decklog.stores.memory.learning import Contradiction, ContradictionStateLike
from decklog.stores.memory.learnings import Learning, LearningStateLike
from decklog.stores.memory.lesson import Hits, Lesson, Sighting, Topic
from decklog.stores.memory.patterns import ErrorPattern, PatternOutcomeLike
from decklog.stores.memory.proposals import Proposal, ProposalKindLike, ProposalStateLike
from decklog.stores.memory.strategies import Strategy, StrategyTopicLike
from decklog.stores.money.ledger import SpendByLike
from decklog.stores.money.prices import Price
from decklog.stores.money.records import (
    Budget,
    BudgetActionLike,
    BudgetPeriodLike,
    BudgetScopeLike,
    Charge,
    Reservation,
    ReservationStateLike,
)
from decklog.stores.overview.board import BoardColumn
from decklog.stores.overview.families import Family
from decklog.stores.overview.run_facts import RunOverview
from decklog.stores.overview.run_view import Comparison, RunView
from decklog.stores.overview.search import SearchResult
from decklog.stores.overview.spending import BudgetOverview, SpendingView, SpendKeyLike
from decklog.stores.overview.status import StatusLike
from decklog.stores.overview.summary import Recent, Summary
from decklog.stores.overview.waiting import AttentionGroup, WaitingItem
from decklog.stores.provenance.edits import Edit, EditKindLike, SnapshotMomentLike, WorktreeSnapshot
from decklog.stores.results.approvals import (
    ActionPermission,
    ApprovalDetails,
    ApprovalSubject,
    TierExplanation,
    TrustDetails,
    TrustStatus,
)
from decklog.stores.results.artifacts import ArtifactContent, EvidenceCheck, RecordedIteration, StateDifference
from decklog.stores.results.memory import LearningsImport, MemoryHealth, TopicSummary
from decklog.stores.results.money import BudgetCheck, BudgetRebuild, BudgetUsage, SpendSummary
from decklog.stores.results.overview import DaySpending, EndedRun, FailedTask, StatusWords, TaskSummary, Workload
from decklog.stores.results.runs import RecordDifference, RunActivity, RunLanes
from decklog.stores.results.tasks import ClaimExplanation, ReadyTasks, TaskDetails, TaskExplanation, TaskProgress
from decklog.stores.results.workflow import ExpectedDuration, PromptCheck, RankedPackage, RouteDecision, WorkflowReadiness
from decklog.stores.runs.run import Agent, Run, RunModeLike, RunStatusLike
from decklog.stores.runs.snapshot import RunSnapshot
from decklog.stores.tasks.criteria import Criterion, CriterionStatusLike
from decklog.stores.tasks.groups import Group, GroupFields, GroupStatusLike, MergeStatusLike, ReviewStatusLike
from decklog.stores.tasks.plans import PhaseStatusLike, Plan, PlanPhase
from decklog.stores.tasks.schedules import CatchUpLike, Schedule
from decklog.stores.tasks.task import Attempt, LinkKindLike, NewTasks, Task, TaskComment, TaskFields, TaskStateLike
from decklog.stores.tasks.templates import Template
from decklog.stores.workflow.ci import CiConclusionLike, CiRun
from decklog.stores.workflow.context import (
    ConsumingAgentLike,
    ContextAgentLike,
    ContextConsumer,
    ContextConsumption,
    ContextPackage,
    PackagePriorityLike,
    PackageTypeLike,
)
from decklog.stores.workflow.gates import Gate, GateStateLike
from decklog.stores.workflow.mends import Mend, MendStateLike, MendWaitLike
from decklog.stores.workflow.records import ModelAssignment, PromptMarker, WorkflowRule, WorkflowTransition, WorkflowVersion
from decklog.stores.workflow.reviews import Review, ReviewPass, ReviewVerdictLike
from decklog.stores.workflow.router import TestingModeLike
from decklog.stores.workflow.verdicts import CheckOutcomeLike, CheckVerdict
from decklog.stores.workflow.workflow import WorkflowDrawingLike

class AsyncJournal:
    async def append(
        self,
        stream: str,
        body: str | None = ...,
        *,
        kind: EntryKindLike = ...,
        subtype: str | None = ...,
        agent: str | None = ...,
        agent_id: str | None = ...,
        group_id: str | None = ...,
        task_id: str | None = ...,
        iteration: int | None = ...,
        payload: object = ...,
        phase: ReasoningPhaseLike | None = ...,
        confidence: ConfidenceLike | None = ...,
        refs: list[str] | None = ...,
        key: str | None = ...,
        at: datetime | None = ...,
    ) -> Entry:
        """Append one entry to a run's stream."""
    async def append_many(self, entries: NewEntries) -> WrittenEntries:
        """Append several entries in one transaction, each given as the arguments of `append`."""
    async def get(self, stream: str, seq: int | None = ...) -> Entry:
        """Get one entry by its stream and its number, or by its id, STREAM:NUMBER."""
    async def find(
        self,
        stream: str | None = ...,
        *,
        kind: EntryKindLike | None = ...,
        subtype: str | None = ...,
        agent: str | None = ...,
        agent_id: str | None = ...,
        group_id: str | None = ...,
        task_id: str | None = ...,
        phase: ReasoningPhaseLike | None = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
        text: str | None = ...,
        oldest_first: bool = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Entry]:
        """List entries, newest first; `after` is the cursor of the previous page."""
    async def search(self, words: str, *, stream: str | None = ..., limit: int = ..., after: str | None = ...) -> Page[Entry]:
        """Find entries whose text has all the words, newest first; `word*` matches a prefix."""
    async def index(self) -> dict[str, int]:
        """Index all entries for search, in small steps that barely delay writers."""
    def tail(
        self, stream: str | None = ..., *, after: int | None = ..., follow: bool = ..., timeout_seconds: float | None = ...
    ) -> AsyncIterator[Entry]:
        """Yield entries as they are committed, once and in order, starting after an entry number."""
    async def heads(self) -> list[StreamHead]:
        """List every stream with the number and hash of its last entry."""
    async def now(self, *, going_on: bool = ...) -> str:
        """Return a cursor at the last entry of every stream, for `since`."""
    async def since(self, cursor: str, *, going_on: bool = ...) -> StreamChanges:
        """Return the streams with entries after a cursor, the range of their numbers, and the next cursor."""
    async def history(self, table: str, record_id: str, *, limit: int = ..., after: str | None = ...) -> Page[Entry]:
        """List the changes of a record, oldest first."""
    @overload
    async def at(self, table: str, record_id: str, when: str) -> Record:
        """Return a record as it was at an entry (a number, or STREAM:NUMBER) or at a time."""
    @overload
    async def at(self, table: type[R], record_id: str, when: str) -> R:
        """Return a record as it was at an entry (a number, or STREAM:NUMBER) or at a time."""
    async def undo(self, table: str, record_id: str, *, reason: str, entry: int | None = ...) -> Record:
        """Undo the last change of a record with a new entry; a second undo restores the change."""
    async def verify(
        self, stream: str | None = ..., *, anchor: str | None = ..., since_anchor: bool = ..., full: bool = ...
    ) -> Verification:
        """Check the hash chains, and compare every record with the journal; the result names the first problem."""

class AsyncRuns:
    async def start(
        self,
        goal: str,
        *,
        run_id: str | None = ...,
        key: str | None = ...,
        status: RunStatusLike = ...,
        mode: RunModeLike | None = ...,
        repo: str | None = ...,
        branch: str | None = ...,
        worktree: str | None = ...,
        metadata: dict[str, object] | None = ...,
        parent_run_id: str | None = ...,
        started_at: datetime | None = ...,
    ) -> Run:
        """Start a run. A known id or key returns that run unchanged."""
    async def get(self, run_id: str) -> Run:
        """Get a run."""
    async def find(
        self,
        *,
        status: RunStatusLike | None = ...,
        parent_run_id: str | None = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
        oldest_first: bool = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Run]:
        """List runs, newest first."""
    async def update(
        self,
        run_id: str,
        *,
        status: RunStatusLike | None = ...,
        goal: str | None = ...,
        summary: str | None = ...,
        repo: str | None = ...,
        branch: str | None = ...,
        worktree: str | None = ...,
        current_task_id: str | None = ...,
        metadata: dict[str, object] | None = ...,
        clear: list[str] | None = ...,
    ) -> Run:
        """Change what is given of a run and keep the rest; `clear` names fields to empty."""
    async def finish(
        self,
        run_id: str,
        *,
        status: RunStatusLike = ...,
        summary: str | None = ...,
        force: bool = ...,
        reason: str | None = ...,
        ended_at: datetime | None = ...,
    ) -> Run:
        """End a run as completed, failed or cancelled; one that ended so already is returned unchanged."""
    async def count_cycle(self, run_id: str) -> Run:
        """Count one more cycle of a run's loop."""
    async def count_replan(self, run_id: str) -> Run:
        """Count one more replan of a run."""
    async def record_agent(
        self,
        run_id: str,
        role: str,
        *,
        session: str | None = ...,
        turns: int | None = ...,
        rotations: int | None = ...,
        last_prompt_path: str | None = ...,
        last_response_path: str | None = ...,
    ) -> Agent:
        """Record an agent's session and counts; what is not given stays as it was."""
    async def count_turn(self, run_id: str, role: str) -> Agent:
        """Count one more turn of an agent."""
    async def rotate_agent(self, run_id: str, role: str, session: str) -> Agent:
        """Assign a new session to an agent and count the rotation; its turns restart at 0."""
    async def agents(self, run_id: str) -> list[Agent]:
        """List the agents that were registered in a run."""
    async def snapshot(self, run_id: str, *, at: str | None = ...) -> RunSnapshot:
        """Return all records of a run, now or as of an entry or a time."""
    async def totals(self, run_id: str, *, at: str | None = ...) -> dict[str, int]:
        """Count a run's tasks by state, its attempts, its entries, its calls to models and what they cost, now or as of an entry."""
    async def records_at(self, run_id: str, table: str, at: str, *, limit: int = ..., after: str | None = ...) -> Page[Any]:
        """List a run's records of one kind as they were at an entry or a time, in the order in which they came to be."""
    async def activity(self, run_id: str, *, since: str | None = ..., until: str | None = ..., buckets: int = ...) -> RunActivity:
        """Return the times of a run's entries in even steps, with failures, questions, checkpoints and pivots marked."""
    async def lanes(self, run_id: str, *, since: str | None = ..., until: str | None = ..., limit: int = ...) -> RunLanes:
        """List the attempts at a run's tasks that overlap a range of entries or time, as of its end."""
    async def diff(self, before: str, after: str) -> list[RecordDifference]:
        """List what differs between two moments, each given as RUN, RUN:ENTRY or RUN@TIME."""
    async def fork(
        self,
        run_id: str,
        *,
        at: str | None = ...,
        new_run_id: str | None = ...,
        goal: str | None = ...,
        branch: str | None = ...,
        worktree: str | None = ...,
    ) -> Run:
        """Start a new run from a run as it was at an entry or a time; the git branch and worktree are yours to make."""

class AsyncGroups:
    async def add(
        self,
        run_id: str,
        group_id: str,
        *,
        merge_status: MergeStatusLike | None = ...,
        created_at: datetime | None = ...,
        **fields: Unpack[GroupFields],
    ) -> Group:
        """Create a group of a run, or change the given fields of an existing one."""
    async def update(self, run_id: str, group_id: str, *, clear: list[str] | None = ..., **fields: Unpack[GroupFields]) -> Group:
        """Change the given fields of a group and keep the rest; `clear` names fields to empty."""
    async def get(self, run_id: str, group_id: str) -> Group:
        """Get a group of a run."""
    async def find(
        self,
        run_id: str | None = ...,
        *,
        status: GroupStatusLike | None = ...,
        assigned_to: str | None = ...,
        merge_status: MergeStatusLike | None = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Group]:
        """List groups in the order in which they were created, of one run or of all."""
    async def record_review(
        self,
        run_id: str,
        group_id: str,
        verdict: ReviewStatusLike,
        *,
        blocking_issues: int = ...,
        no_progress_count: int | None = ...,
        iteration: int | None = ...,
    ) -> Group:
        """Record a review's verdict and its blocking issues, and move on to the next review iteration."""
    async def record_merge(self, run_id: str, group_id: str, merge_status: MergeStatusLike) -> Group:
        """Record the state of a group's merge, and update the group's status."""
    async def count_revision(self, run_id: str, group_id: str) -> Group:
        """Count one more revision of a group."""
    async def count_qa_attempt(self, run_id: str, group_id: str) -> Group:
        """Count one more attempt to pass a group's tests."""
    async def count_review_attempt(self, run_id: str, group_id: str) -> Group:
        """Count one more attempt to pass a group's review."""

class AsyncTasks:
    async def add(
        self,
        run_id: str,
        title: str,
        *,
        task_id: str | None = ...,
        depends_on: list[str] | None = ...,
        assigned_to: str | None = ...,
        parent_id: str | None = ...,
        key: str | None = ...,
        **fields: Unpack[TaskFields],
    ) -> Task:
        """Add a task to a run. A task with a known id or key is returned unchanged."""
    async def add_many(self, run_id: str, tasks: NewTasks) -> list[Task]:
        """Add several tasks at once, each given as the arguments of `add`; one may depend on another that comes later."""
    async def edit(
        self, task_id: str, *, reason: str, title: str | None = ..., clear: list[str] | None = ..., **fields: Unpack[TaskFields]
    ) -> Task:
        """Change the given fields of a task and keep the rest; `clear` names fields to empty."""
    async def assign(self, task_id: str, worker: str | None = ..., *, reason: str | None = ...) -> Task:
        """Reserve a task for one worker, so that only this worker can claim it; without a worker, for anybody again."""
    async def get(self, task_id: str) -> Task:
        """Get a task."""
    async def details(self, task_id: str) -> TaskDetails:
        """Show a task with its status, links, subtasks, attempts and latest comments."""
    async def find(
        self,
        run_id: str | None = ...,
        *,
        state: TaskStateLike | None = ...,
        group_id: str | None = ...,
        role: str | None = ...,
        tag: str | None = ...,
        worker: str | None = ...,
        assigned_to: str | None = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Task]:
        """List a run's tasks in the order they were added."""
    async def why_none(
        self,
        run_id: str | None = ...,
        *,
        worker: str | None = ...,
        group_id: str | None = ...,
        role: str | None = ...,
        tag: str | None = ...,
    ) -> ClaimExplanation:
        """Explain why a claim returns nothing, with a code, a message and a hint."""
    async def ready(self, run_id: str, *, limit: int = ...) -> ReadyTasks:
        """List the tasks that can be claimed now, most urgent first, and why the others can't."""
    async def pause(
        self, task_id: str, *, reason: str, fence: int | None = ..., snapshot: dict[str, object] | None = ...
    ) -> Task:
        """Pause a task and keep what its worker was doing."""
    async def resume(self, task_id: str) -> Task:
        """Resume a paused, waiting or blocked task; its snapshot is kept for the next worker."""
    async def abandon(self, task_id: str, *, reason: str) -> Task:
        """Abandon a task for good; its worker loses it."""
    async def replan(
        self, run_id: str, tasks: list[dict[str, object]], *, reason: str = ..., include_running: bool = ...
    ) -> list[Task]:
        """Replace the pending tasks by new ones in one transaction; running ones stay unless requested."""
    async def attempts(self, task_id: str) -> list[Attempt]:
        """List the attempts at a task, oldest first, from the journal."""
    async def depend(self, task_id: str, depends_on: str, *, kind: LinkKindLike = ...) -> Task:
        """Link a task with another of its run: as a dependency (`blocks`), as a part of it (`parent`), or as related."""
    async def undepend(self, task_id: str, depends_on: str, *, reason: str | None = ...) -> Task:
        """Remove the link between two tasks, of any kind. A task without other dependencies becomes ready."""
    async def dependencies(self, task_id: str, *, kind: LinkKindLike = ...) -> list[str]:
        """List the tasks that a task waits for, or is linked with in another way."""
    async def subtasks(self, task_id: str) -> TaskProgress:
        """Return the progress of a task's subtasks, recursively: a state, a progress, and each of them."""
    async def why(self, task_id: str) -> TaskExplanation:
        """Explain why nobody works on a task, what it waits for, and who could claim it."""
    async def comment(self, task_id: str, body: str, *, author: str | None = ...) -> TaskComment:
        """Comment on a task in any state; the author is the acting agent unless given."""
    async def comments(self, task_id: str, *, limit: int = ..., after: str | None = ...) -> Page[TaskComment]:
        """List the comments on a task, oldest first."""
    async def claim(
        self,
        run_id: str | None = ...,
        *,
        worker: str,
        task_id: str | None = ...,
        group_id: str | None = ...,
        role: str | None = ...,
        tag: str | None = ...,
        lease_seconds: float = ...,
        wait_seconds: float = ...,
        reserve_microdollars: int | None = ...,
        reserve_tokens: int | None = ...,
        recall: bool = ...,
    ) -> AsyncClaim | None:
        """Claim the most urgent, oldest ready task; nothing if no task is ready."""
    async def finish_and_claim(
        self,
        task_id: str,
        *,
        fence: int,
        summary: str | None = ...,
        result: object = ...,
        group_id: str | None = ...,
        role: str | None = ...,
        tag: str | None = ...,
        lease_seconds: float = ...,
        reserve_microdollars: int | None = ...,
        reserve_tokens: int | None = ...,
    ) -> AsyncClaim | None:
        """Finish a task and claim the next of its run for the same worker, in one transaction."""
    async def extend(
        self, task_id: str, *, fence: int, lease_seconds: float = ..., stage: str | None = ..., state_name: str | None = ...
    ) -> Task:
        """Extend a lease from now; optionally record the stage of the work."""
    async def refence(self, task_id: str, *, fence: int, lease_seconds: float = ...) -> Task:
        """Continue a task under a new fence, as after a restart; the old fence is refused."""
    async def finish(self, task_id: str, *, fence: int, summary: str | None = ..., result: object = ...) -> Task:
        """Finish a task as done; tasks that depend on it may become ready."""
    async def fail(
        self,
        task_id: str,
        *,
        fence: int,
        summary: str | None = ...,
        blocker: str | None = ...,
        result: object = ...,
        retry_after_seconds: float = ...,
    ) -> Task:
        """Fail an attempt: the task becomes ready again, or is blocked when its attempts are used up."""
    async def block(self, task_id: str, *, fence: int, blocker: str, summary: str | None = ...) -> Task:
        """Block a task until something outside changes; `resume` makes it ready again."""
    async def release(self, task_id: str, *, fence: int, reason: str | None = ..., not_before: datetime | None = ...) -> Task:
        """Release a task: it is ready again, or will be at `not_before`, and no attempt is used."""
    async def park(self, task_id: str, *, fence: int, reason: str) -> Task:
        """Set a task aside while it waits for something outside, such as CI or an answer; `resume` makes it ready again."""

class AsyncTemplates:
    async def save(self, name: str, tasks: list[dict[str, object]], *, description: str = ...) -> Template:
        """Save a set of tasks under a name. A known name gets a new version if anything differs."""
    async def get(self, name: str, *, version: int | None = ...) -> Template:
        """Get a template, in its newest or a given version."""
    async def find(self, *, limit: int = ..., after: str | None = ...) -> Page[Template]:
        """List all versions of templates, by name."""
    async def use(
        self, name: str, run_id: str, *, values: dict[str, object] | None = ..., version: int | None = ..., key: str | None = ...
    ) -> list[Task]:
        """Add the tasks of a template to a run, all or none, with its placeholders filled in."""

class AsyncSchedules:
    async def add(
        self,
        run_id: str,
        name: str,
        when: str,
        *,
        zone: str = ...,
        title: str | None = ...,
        task: dict[str, object] | None = ...,
        template: str | None = ...,
        values: dict[str, object] | None = ...,
        catch_up: CatchUpLike = ...,
        catch_up_limit: int = ...,
        late_seconds: int = ...,
    ) -> Schedule:
        """Create a task, or those of a template, repeatedly: `every day 06:00`, `every monday 09:00`, `30 6 * * 1-5`."""
    async def get(self, schedule_id: str) -> Schedule:
        """Get a schedule."""
    async def find(self, run_id: str, *, limit: int = ..., after: str | None = ...) -> Page[Schedule]:
        """List a run's schedules by their names."""
    async def preview(self, when: str, *, zone: str = ..., count: int = ...) -> list[str]:
        """Show the next times of a rule, in its time zone."""
    async def edit(
        self,
        schedule_id: str,
        *,
        reason: str,
        when: str | None = ...,
        zone: str | None = ...,
        title: str | None = ...,
        task: dict[str, object] | None = ...,
        template: str | None = ...,
        values: dict[str, object] | None = ...,
        catch_up: CatchUpLike | None = ...,
        catch_up_limit: int | None = ...,
        late_seconds: int | None = ...,
    ) -> Schedule:
        """Change the given fields of a schedule and keep the rest; another rule or zone sets its next time."""
    async def pause(self, schedule_id: str, *, reason: str) -> Schedule:
        """Pause a schedule; occurrences in the meantime are skipped."""
    async def resume(self, schedule_id: str) -> Schedule:
        """Resume a paused schedule from now on."""
    async def remove(self, schedule_id: str, *, reason: str) -> Schedule:
        """Remove a schedule; its tasks stay."""
    async def run_due(self, run_id: str | None = ...) -> list[Task]:
        """Add the tasks of due schedules, of one run or of all active ones; a claim does it too."""

class AsyncPlans:
    async def record(
        self,
        run_id: str,
        original_prompt: str,
        plan_text: str,
        phases: object,
        *,
        current_phase: int | None = ...,
        total_phases: int | None = ...,
        metadata: dict[str, object] | None = ...,
        created_at: datetime | None = ...,
    ) -> Plan:
        """Record the plan of a run, or replace it; phases are a list of names or of objects."""
    async def update(
        self,
        run_id: str,
        *,
        original_prompt: str | None = ...,
        plan_text: str | None = ...,
        current_phase: int | None = ...,
        total_phases: int | None = ...,
        metadata: dict[str, object] | None = ...,
        clear: list[str] | None = ...,
    ) -> Plan:
        """Change the given fields of a plan and keep the rest; `clear` names fields to empty."""
    async def mark(self, run_id: str, phase: str, status: PhaseStatusLike, *, progress_percent: int | None = ...) -> PlanPhase:
        """Mark a phase, named by its number or its name, as pending, in_progress, completed or blocked."""
    async def get(self, run_id: str) -> Plan:
        """Get the plan of a run."""
    async def phases(self, run_id: str, *, status: PhaseStatusLike | None = ...) -> list[PlanPhase]:
        """List the phases of a run's plan by their numbers."""
    async def phase(self, run_id: str, phase: str) -> PlanPhase:
        """Get one phase of a run's plan by its number or its name."""

class AsyncCriteria:
    async def record(self, run_id: str, criteria: object) -> list[Criterion]:
        """Record success criteria of a run, all or none; criteria are a list of texts or of objects."""
    async def update(
        self,
        run_id: str,
        criterion: str,
        *,
        status: CriterionStatusLike | None = ...,
        actual: str | None = ...,
        evidence: str | None = ...,
        required: bool | None = ...,
        clear: list[str] | None = ...,
    ) -> Criterion:
        """Change the given fields of a criterion and keep the rest; `clear` names fields to empty."""
    async def meet(
        self,
        run_id: str,
        criterion: str,
        *,
        evidence: str | None = ...,
        actual: str | None = ...,
        evidence_commit: str | None = ...,
        evidence_files: dict[str, object] | None = ...,
    ) -> Criterion:
        """Mark a criterion as met, with evidence that may refer to a commit and to files by SHA-256 digest."""
    async def observe(self, run_id: str, *, commit: str | None = ..., files: dict[str, object] | None = ...) -> list[Criterion]:
        """Compare evidence with the current commit and files, mark outdated criteria as stale, and list them."""
    async def check(self, run_id: str, *, commit: str | None = ..., files: dict[str, object] | None = ...) -> list[Criterion]:
        """List a run's criteria as `observe` would mark them, without writing anything."""
    async def get(self, run_id: str, criterion: str) -> Criterion:
        """Get a criterion of a run by its text or its number."""
    async def find(
        self,
        run_id: str | None = ...,
        *,
        status: CriterionStatusLike | None = ...,
        required: bool | None = ...,
        is_stale: bool | None = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Criterion]:
        """List criteria in the order in which they were recorded, of one run or of all."""
    async def open_required(self, run_id: str) -> list[Criterion]:
        """List the required criteria of a run that are not met or stale."""

class AsyncApprovals:
    async def ask(
        self,
        run_id: str,
        question: str,
        *,
        by: str,
        about: bytes | object = ...,
        subject_digest: str | None = ...,
        subject: str | None = ...,
        asked_of: str | None = ...,
        source: str | None = ...,
        task_id: str | None = ...,
        expires_at: datetime | None = ...,
        expires_in_seconds: float | None = ...,
        default_verdict: VerdictLike | None = ...,
        payload: object = ...,
        key: str | None = ...,
        approval_id: str | None = ...,
    ) -> Approval:
        """Ask for approval of one exact thing, given as its content (`about`) or its SHA-256 (`subject_digest`)."""
    async def record(
        self,
        run_id: str,
        source: str,
        verdict: str,
        *,
        rationale: str | None = ...,
        payload: object = ...,
        by: str | None = ...,
        counts_as: VerdictLike | None = ...,
        task_id: str | None = ...,
        key: str | None = ...,
        approval_id: str | None = ...,
        at: datetime | None = ...,
    ) -> Approval:
        """Record a verdict that was given without a question."""
    async def decide(
        self,
        approval_id: str,
        verdict: VerdictLike,
        *,
        by: str,
        rationale: str | None = ...,
        subject_digest: str | None = ...,
        uses: int | None = ...,
        valid_seconds: float | None = ...,
    ) -> Approval:
        """Grant or deny an open approval. The one who asked can't decide it."""
    async def withdraw(self, approval_id: str, *, reason: str | None = ...) -> Approval:
        """Withdraw an open question; a withdrawn one is returned unchanged."""
    async def expire(self, run_id: str | None = ...) -> list[Approval]:
        """Record the default answers of all expired open questions, of one run or of all."""
    async def wait(self, approval_id: str, timeout_seconds: float) -> Approval:
        """Wait until an approval is answered, withdrawn or expired; raise `StillPending` when the time is over first."""
    async def get(self, approval_id: str) -> Approval:
        """Get an approval as it counts now."""
    async def show(self, approval_id: str) -> ApprovalDetails:
        """Show an approval with the exact thing it is about, whose digest is computed anew and compared with the one asked about."""
    async def abouts(self, approval_ids: list[str]) -> dict[str, ApprovalSubject]:
        """Show the exact things that some approvals are about, up to 50 at once, each compared with the digest asked about."""
    async def find(
        self,
        run_id: str | None = ...,
        *,
        state: ApprovalStateLike | None = ...,
        asked_of: str | None = ...,
        source: str | None = ...,
        task_id: str | None = ...,
        subject_digest: str | None = ...,
        oldest_first: bool = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Approval]:
        """List approvals as they count now, newest first."""
    async def answers(
        self, *, subject_digest: str | None = ..., rule: str | None = ..., run_id: str | None = ..., limit: int = ...
    ) -> Answers:
        """List what was answered, newest question first: lately, and to exactly this thing or to what this rule held."""
    async def latest(self, run_id: str, source: str) -> Approval | None:
        """Get a run's newest approval from one source, or null."""
    async def grants(self, approval_id: str, action: str) -> bool:
        """Check whether an approval was granted for exactly this action as its subject, and is not used up."""
    async def granted_for(self, run_id: str, subject_digest: str, *, or_by_default: bool = ...) -> Approval | None:
        """Get the approval that lets exactly this digest pass, or null. Reading it does not use it up: `use` does."""
    async def use(self, run_id: str, subject_digest: str) -> Approval | None:
        """Use the approval of exactly this digest once; null if there is none, or if it is used up or over."""

class AsyncStates:
    async def save(
        self,
        run_id: str,
        name: str,
        document: object,
        *,
        group_id: str = ...,
        expected_version: int | None = ...,
        agent: str | None = ...,
        saved_at: datetime | None = ...,
    ) -> StateVersion:
        """Save a state document as its next version; the same content again changes nothing."""
    async def get(self, run_id: str, name: str, *, group_id: str = ..., version: int | None = ...) -> StateVersion:
        """Get a state document: the newest version, or the one you name."""
    async def find(
        self, run_id: str, *, name: str | None = ..., group_id: str | None = ..., limit: int = ..., after: str | None = ...
    ) -> Page[State]:
        """List a run's states by group and name, without the documents."""
    async def versions(
        self, run_id: str, name: str, *, group_id: str = ..., limit: int = ..., after: str | None = ...
    ) -> Page[StateVersion]:
        """List a state's versions, newest first, without the documents."""
    async def diff(
        self, run_id: str, name: str, from_version: int, to_version: int, *, group_id: str = ...
    ) -> list[StateDifference]:
        """List what differs between two versions of a state, by JSON pointer: added, removed or changed."""
    async def record_investigation(
        self, run_id: str, group_id: str, iteration: int, status: InvestigationStatusLike, state: object, event: dict[str, object]
    ) -> RecordedIteration:
        """Record one iteration of an investigation: its event and the group's investigation state, both or neither."""
    async def checkpoint(
        self,
        run_id: str,
        *,
        name: str | None = ...,
        status: str | None = ...,
        payload: object = ...,
        key: str | None = ...,
        checkpoint_id: str | None = ...,
        created_at: datetime | None = ...,
    ) -> Checkpoint:
        """Save a checkpoint: the number of the run's newest entry, and what it needs to continue."""
    async def get_checkpoint(self, checkpoint_id: str) -> Checkpoint:
        """Get a checkpoint with its payload."""
    async def checkpoints(
        self, run_id: str, *, name: str | None = ..., status: str | None = ..., limit: int = ..., after: str | None = ...
    ) -> Page[Checkpoint]:
        """List a run's checkpoints, newest first; a payload too long for a list is left to `get_checkpoint`."""
    async def save_snapshot(self, run_id: str, task_id: str, document: dict[str, object]) -> TaskSnapshot:
        """Save what a paused task needs to resume; only the newest snapshot of a task counts."""
    async def get_snapshot(self, run_id: str, task_id: str) -> TaskSnapshot:
        """Get the newest snapshot of a paused task, with its document."""
    async def snapshots(
        self, run_id: str | None = ..., *, task_id: str | None = ..., limit: int = ..., after: str | None = ...
    ) -> Page[TaskSnapshot]:
        """List the tasks that have a snapshot, by task, without the documents."""
    async def graph_checkpoints(
        self, run_id: str, *, namespace: str | None = ..., limit: int = ..., after: str | None = ...
    ) -> Page[GraphCheckpoint]:
        """List the checkpoints of a graph's thread, newest first."""
    async def graph_items(self, *, namespace: str | None = ..., limit: int = ..., after: str | None = ...) -> Page[GraphItem]:
        """List the items that graphs share in one namespace, or in all."""

class AsyncArtifacts:
    async def add(
        self,
        run_id: str,
        kind: str,
        path: str,
        *,
        content: str | None = ...,
        content_base64: str | None = ...,
        digest: str | None = ...,
        size: int | None = ...,
        role: str | None = ...,
        task_id: str | None = ...,
        media_type: str | None = ...,
        metadata: dict[str, object] | None = ...,
        artifact_id: str | None = ...,
        created_at: datetime | None = ...,
    ) -> Artifact:
        """Record a file, with its bytes if given as text or as base64."""
    async def get(self, artifact_id: str) -> Artifact:
        """Get an artifact, without its bytes."""
    async def find(
        self,
        run_id: str | None = ...,
        *,
        role: str | None = ...,
        kind: str | None = ...,
        path: str | None = ...,
        task_id: str | None = ...,
        digest: str | None = ...,
        oldest_first: bool = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Artifact]:
        """List artifacts, newest first, without their bytes."""
    async def content(self, artifact_id: str) -> ArtifactContent:
        """Get an artifact's content: as text when it is text, and as base64 otherwise."""

class AsyncOutputs:
    async def save(
        self,
        run_id: str,
        skill: str,
        document: object,
        *,
        agent: str | None = ...,
        group_id: str | None = ...,
        key: str | None = ...,
        saved_at: datetime | None = ...,
    ) -> SkillOutput:
        """Save the result of a skill, as the next iteration of this skill, agent and group."""
    async def get(self, output_id: str) -> SkillOutput:
        """Get one output with its document."""
    async def latest(self, run_id: str, skill: str, *, agent: str | None = ..., group_id: str | None = ...) -> SkillOutput | None:
        """Get the newest output of a skill, of any agent and group unless given, or null."""
    async def find(
        self,
        run_id: str,
        *,
        skill: str | None = ...,
        agent: str | None = ...,
        group_id: str | None = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[SkillOutput]:
        """List outputs with their documents, newest first."""
    async def check_evidence(
        self, run_id: str, skills: list[str], *, agent: str | None = ..., since_minutes: int = ...
    ) -> EvidenceCheck:
        """Check that every skill named gave an output in the last minutes; an empty list is complete."""

class AsyncPrices:
    async def set(
        self,
        model: str,
        input_price: int,
        output_price: int,
        *,
        cache_read_price: int | None = ...,
        cache_create_price: int | None = ...,
        over_tokens: int = ...,
        valid_from: datetime | None = ...,
        source: str | None = ...,
        sourced_on: str | None = ...,
    ) -> Price:
        """Set a model's price per million tokens, valid from today or from `valid_from`."""
    async def load(self, prices: object) -> list[Price]:
        """Set many prices, all or none: a list of objects with a price's fields, as in the file that comes with Decklog."""
    async def withdraw(self, model: str, valid_from: datetime, *, over_tokens: int = ...) -> Price:
        """Remove one of the log's own prices; the previous price applies again."""
    async def get(self, model: str, *, at: datetime | None = ..., prompt_tokens: int = ...) -> Price:
        """Get the price of a model, now or at a time, for a prompt of a given length."""
    async def find(self, *, model: str | None = ...) -> list[Price]:
        """List all prices, the log's own and the shipped ones, by model, newest first."""
    async def quote(
        self,
        model: str,
        *,
        input_tokens: int = ...,
        cache_read_tokens: int = ...,
        cache_create_tokens: int = ...,
        output_tokens: int = ...,
        at: datetime | None = ...,
    ) -> int:
        """Return the cost of a planned call in microdollars, for a reservation."""

class AsyncBudgets:
    async def set(
        self,
        scope: BudgetScopeLike,
        *,
        scope_id: str | None = ...,
        period: BudgetPeriodLike = ...,
        limit_microdollars: int | None = ...,
        limit_tokens: int | None = ...,
        action: BudgetActionLike = ...,
        warn_percent: int = ...,
    ) -> Budget:
        """Set the limit of a run, group, task, agent or `all` per period, in money or tokens. Periods are UTC, weeks from Monday."""
    async def lift(self, budget_id: str) -> Budget:
        """Remove a budget."""
    async def get(self, budget_id: str) -> Budget:
        """Get a budget."""
    async def find(self, *, scope: BudgetScopeLike | None = ..., scope_id: str | None = ...) -> list[Budget]:
        """List the budgets, those for everything first."""
    async def burn(self, *, scope: BudgetScopeLike | None = ..., scope_id: str | None = ...) -> list[BudgetUsage]:
        """Show the usage of each budget in its current period, and its spending on each of the last 14 days."""
    async def check(self) -> BudgetCheck:
        """Compare the sums of every budget with its charges, and list the days that differ."""
    async def rebuild(self) -> BudgetRebuild:
        """Rebuild the sums of every budget from its charges, as after an import; return the corrections."""

class AsyncReservations:
    async def reserve(
        self,
        expires_at: datetime | None = ...,
        *,
        amount_microdollars: int = ...,
        tokens: int = ...,
        run_id: str | None = ...,
        group_id: str | None = ...,
        task_id: str | None = ...,
        agent: str | None = ...,
        holder: str | None = ...,
        key: str | None = ...,
    ) -> Reservation:
        """Reserve money and tokens for future calls in all budgets that apply, until a time."""
    async def extend(self, reservation_id: str, expires_at: datetime) -> Reservation:
        """Extend an open reservation to a later time; an expired one can't be extended."""
    async def settle(self, reservation_id: str) -> Reservation:
        """Finalize a reservation after its calls: charges stay, and the unused rest is released."""
    async def release(self, reservation_id: str) -> Reservation:
        """Release a reservation without further calls; its charges stay."""
    async def get(self, reservation_id: str) -> Reservation:
        """Get a reservation."""
    async def find(
        self,
        run_id: str | None = ...,
        *,
        state: ReservationStateLike | None = ...,
        group_id: str | None = ...,
        task_id: str | None = ...,
        agent: str | None = ...,
        holder: str | None = ...,
        oldest_first: bool = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Reservation]:
        """List reservations, newest first. An open but expired one reserves nothing."""

class AsyncLedger:
    async def charge(
        self,
        model: str,
        *,
        input_tokens: int = ...,
        cache_read_tokens: int = ...,
        cache_create_tokens: int = ...,
        output_tokens: int = ...,
        cost_microdollars: int | None = ...,
        run_id: str | None = ...,
        group_id: str | None = ...,
        task_id: str | None = ...,
        agent: str | None = ...,
        agent_id: str | None = ...,
        call_site: str | None = ...,
        occurred_at: datetime | None = ...,
        reservation_id: str | None = ...,
        enforce: bool = ...,
        key: str | None = ...,
        answer_id: str | None = ...,
    ) -> Charge:
        """Record a charge for one model call: its tokens, and its cost, given or by the current prices."""
    async def get(self, charge_id: str) -> Charge:
        """Get a charge."""
    async def find(
        self,
        run_id: str | None = ...,
        *,
        group_id: str | None = ...,
        task_id: str | None = ...,
        agent: str | None = ...,
        agent_id: str | None = ...,
        call_site: str | None = ...,
        model: str | None = ...,
        reservation_id: str | None = ...,
        answer_id: str | None = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
        oldest_first: bool = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Charge]:
        """List charges, newest first."""
    async def summary(
        self,
        run_id: str | None = ...,
        *,
        by: SpendByLike = ...,
        group_id: str | None = ...,
        task_id: str | None = ...,
        agent: str | None = ...,
        agent_id: str | None = ...,
        call_site: str | None = ...,
        model: str | None = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
    ) -> SpendSummary:
        """Sum charges by day (UTC), model, agent, agent_id, task, group, call_site, run, session or worktree."""

class AsyncMemory:
    async def recall(
        self,
        query: str,
        *,
        topic: str | None = ...,
        project: str | None = ...,
        paths: list[str] | None = ...,
        versions: list[str] | None = ...,
        limit: int = ...,
        budget_tokens: int | None = ...,
        min_match: float | None = ...,
    ) -> Hits:
        """Recall the lessons that fit a question best, each with the reasons, and count the recall."""
    async def peek(
        self,
        query: str,
        *,
        topic: str | None = ...,
        project: str | None = ...,
        paths: list[str] | None = ...,
        versions: list[str] | None = ...,
        limit: int = ...,
        budget_tokens: int | None = ...,
        min_match: float | None = ...,
    ) -> Hits:
        """Return what `recall` would return, without counting it."""
    async def mark(self, lesson_id: str, useful: bool) -> Lesson:
        """Record whether a lesson helped; helpful lessons rank higher."""
    async def get(self, lesson_id: str) -> Lesson:
        """Get a lesson."""
    async def find(
        self,
        run_id: str | None = ...,
        *,
        topic: str | None = ...,
        project: str | None = ...,
        source_kind: str | None = ...,
        source_id: str | None = ...,
        task_id: str | None = ...,
        min_confidence: int | None = ...,
        include_hidden: bool = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
        oldest_first: bool = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Lesson]:
        """List lessons that hold, newest first."""
    async def evidence(self, lesson_id: str, *, limit: int = ..., after: str | None = ...) -> Page[Sighting]:
        """List when and from what a lesson was learned, newest first."""
    async def propose(self, run_id: str | None = ...) -> list[Proposal]:
        """Search new entries of one run or all for lessons; return proposals that are new or more certain."""
    async def proposals(
        self, *, state: ProposalStateLike = ..., kind: ProposalKindLike | None = ..., limit: int = ..., after: str | None = ...
    ) -> Page[Proposal]:
        """List lessons that are proposed, each with the entries that show it; the surest first."""
    async def accept(
        self, proposal_id: str, *, body: str | None = ..., topic: str | None = ..., by: str | None = ..., reason: str | None = ...
    ) -> Lesson:
        """Accept a proposed lesson, with its text or with BODY; its entries become the evidence."""
    async def dismiss(self, proposal_id: str, *, by: str | None = ..., reason: str | None = ...) -> Proposal:
        """Dismiss a proposed lesson; it is not proposed again."""
    async def add_topic(self, name: str, description: str) -> Topic:
        """Add a topic to the eight that every log knows; a known one comes back as it is."""
    async def topics(self) -> list[TopicSummary]:
        """List the topics with what each is about and how many lessons of it hold."""
    async def health(self, *, limit: int = ...) -> MemoryHealth:
        """Report how the memory is used, and which lessons need attention and why, up to LIMIT of each."""
    async def reindex(self) -> int:
        """Rebuild the full-text index from the active lessons; return their number."""
    async def adopt(
        self,
        lesson_id: str,
        topic: str,
        body: str,
        *,
        created_at: datetime,
        payload: dict[str, object] | None = ...,
        project: str | None = ...,
        confidence: int = ...,
        source_kind: str = ...,
        source_id: str | None = ...,
        recall_count: int = ...,
        last_recalled_at: datetime | None = ...,
        key: str | None = ...,
    ) -> Lesson:
        """Import a lesson from another system unchanged, with its id and counts; a known id is returned as it is."""
    async def embed(self, *, limit: int | None = ...) -> int:
        """Embed lessons that have no vector of the current embedder, newest first; return how many."""
    async def index_vectors(self) -> bool:
        """Create a pgvector index for more than 30,000 lessons on PostgreSQL; return False if it exists."""
    async def remember(
        self,
        topic: str,
        body: str,
        *,
        payload: dict[str, object] | None = ...,
        project: str | None = ...,
        confidence: int = ...,
        source_kind: str = ...,
        source_id: str | None = ...,
        run_id: str | None = ...,
        task_id: str | None = ...,
        refs: list[str] | None = ...,
        scope: dict[str, object] | None = ...,
        key: str | None = ...,
    ) -> Lesson:
        """Add a lesson; an equal one in this topic and project is counted as seen again."""
    async def supersede(self, lesson_id: str, by: str, *, reason: str | None = ...) -> Lesson:
        """Replace a lesson by another one: it stays on record, and is no longer recalled."""
    async def retire(self, lesson_id: str, *, reason: str | None = ...) -> Lesson:
        """Retire a lesson without a replacement: it stays in the log and is no longer recalled."""
    async def reinstate(self, lesson_id: str) -> Lesson:
        """Reinstate a superseded or retired lesson."""
    async def outdate(
        self,
        *,
        paths: list[str] | None = ...,
        versions: list[str] | None = ...,
        undone_commit: str | None = ...,
        project: str | None = ...,
    ) -> list[Lesson]:
        """Mark lessons about changed paths, versions or commits as outdated, until they are learned again."""
    async def contradictions(
        self, lesson_id: str | None = ..., *, state: ContradictionStateLike = ..., limit: int = ..., after: str | None = ...
    ) -> Page[Contradiction]:
        """List contradictions between lessons, the newest first: those to settle, or those that were."""
    async def settle(self, contradiction_id: str, keep: str, *, by: str | None = ..., reason: str | None = ...) -> Contradiction:
        """Settle a contradiction: KEEP is the lesson that holds, which supersedes the other one, or `both`."""

class AsyncPatterns:
    async def record(
        self,
        project: str,
        error_type: str,
        message: str,
        solution: str,
        *,
        lang: str | None = ...,
        context_hints: list[str] | None = ...,
        stack_pattern: list[str] | None = ...,
        ttl_days: int = ...,
        classic: bool = ...,
    ) -> ErrorPattern:
        """Record an error and its solution. A repeated error is counted, and a longer solution replaces a shorter one."""
    async def judge(self, pattern_hash: str, project: str, outcome: PatternOutcomeLike) -> ErrorPattern:
        """Record whether a solution worked: success adds 0.1 to its confidence (at most 1.0), failure takes 0.2 (least 0.1)."""
    async def get(self, pattern_hash: str, project: str) -> ErrorPattern:
        """Get one pattern of a project."""
    async def find(
        self, project: str, *, lang: str | None = ..., min_confidence: float = ..., include_expired: bool = ..., limit: int = ...
    ) -> list[ErrorPattern]:
        """List a project's patterns, the surest first, then the most frequent."""
    async def cleanup(self, *, project: str | None = ...) -> int:
        """Remove the patterns that expired, of one project or of all; say how many there were."""
    async def adopt(
        self,
        pattern_hash: str,
        project: str,
        signature: dict[str, object],
        solution: str,
        *,
        created_at: datetime,
        last_seen_at: datetime,
        confidence: float = ...,
        occurrences: int = ...,
        lang: str | None = ...,
        ttl_days: int = ...,
    ) -> ErrorPattern:
        """Take over a pattern from another system as it is; a known one comes back as it is."""

class AsyncStrategies:
    async def record(
        self,
        project: str,
        topic: StrategyTopicLike,
        insight: str,
        *,
        lang: str | None = ...,
        framework: str | None = ...,
        strategy_id: str | None = ...,
    ) -> Strategy:
        """Record an insight; said again in the same words, it counts as more helpful. At most 500 characters are kept."""
    async def get(self, strategy_id: str) -> Strategy:
        """Get a strategy."""
    async def find(
        self,
        project: str,
        *,
        lang: str | None = ...,
        framework: str | None = ...,
        topic: StrategyTopicLike | None = ...,
        limit: int = ...,
    ) -> list[Strategy]:
        """List a project's strategies, the most helpful first; those of no language or framework suit every one."""
    async def credit(self, strategy_id: str, *, by: int = ...) -> Strategy:
        """Record that a strategy helped, once or several times."""
    async def extract(
        self, run_id: str, group_id: str, project: str, *, lang: str | None = ..., framework: str | None = ...
    ) -> list[Strategy]:
        """Create strategies from the five newest completions, decisions and approaches of a group's agents."""
    async def adopt(
        self,
        strategy_id: str,
        project: str,
        topic: StrategyTopicLike,
        insight: str,
        *,
        created_at: datetime,
        last_seen_at: datetime,
        helpfulness: int = ...,
        lang: str | None = ...,
        framework: str | None = ...,
    ) -> Strategy:
        """Take over a strategy from another system as it is; a known one comes back as it is."""

class AsyncLearnings:
    async def note(
        self,
        task_id: str,
        observation: str,
        *,
        candidate: str = ...,
        noted_at: datetime | None = ...,
        run_id: str | None = ...,
        key: str | None = ...,
    ) -> Learning:
        """Note an observation, and where it might go: GAIA.md, skill:NAME, or dismissed at once."""
    async def promote(self, learning_id: str, *, to: str | None = ..., by: str | None = ...) -> Learning:
        """Promote a learning to its candidate, or to `to`: GAIA.md or skill:NAME."""
    async def dismiss(self, learning_id: str, *, by: str | None = ..., reason: str | None = ...) -> Learning:
        """Dismiss a learning."""
    async def get(self, learning_id: str) -> Learning:
        """Get a learning."""
    async def find(
        self,
        run_id: str | None = ...,
        *,
        state: LearningStateLike | None = ...,
        task_id: str | None = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
        oldest_first: bool = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Learning]:
        """List learnings, newest first."""
    async def lines(self) -> str:
        """Write all learnings as a plain-text log, one line each, oldest first."""
    async def take_over(self, text: str, *, tolerant: bool = ...) -> LearningsImport:
        """Import a plain-text log; return how many learnings are new, known, or in unreadable lines."""

class AsyncContext:
    async def save(
        self,
        run_id: str,
        package_type: PackageTypeLike,
        file_path: str,
        producer: ContextAgentLike,
        summary: str,
        *,
        consumers: list[str] | None = ...,
        group_id: str | None = ...,
        priority: PackagePriorityLike = ...,
        size_bytes: int | None = ...,
        supersedes: str | None = ...,
        number: int | None = ...,
        key: str | None = ...,
    ) -> ContextPackage:
        """Leave a package for other agents; it is about one group, or about the whole run."""
    async def get(self, package_id: str) -> ContextPackage:
        """Get a package by its id or its number."""
    async def find(
        self,
        run_id: str,
        *,
        group_id: str | None = ...,
        package_type: PackageTypeLike | None = ...,
        producer: ContextAgentLike | None = ...,
        include_superseded: bool = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[ContextPackage]:
        """List a run's packages, newest first; superseded ones only when asked for."""
    async def offer(
        self, run_id: str, agent: ContextAgentLike, *, group_id: str | None = ..., limit: int = ..., include_consumed: bool = ...
    ) -> list[ContextPackage]:
        """Offer an agent the packages left for it and not read yet: of its group and of the whole run, most urgent first."""
    async def rank(
        self, run_id: str, agent: ContextAgentLike, *, group_id: str | None = ..., limit: int = ...
    ) -> list[RankedPackage]:
        """Rank all of a run's packages for an agent, read or not, with each one's score."""
    async def consumers(self, package_id: str) -> list[ContextConsumer]:
        """List the agents a package is for, and when each read it."""
    async def consume(self, package_id: str, agent: ContextAgentLike, *, iteration: int = ...) -> ContextConsumer:
        """Mark a package as read by one of its consumers; a repeated call reports it."""
    async def record_consumption(
        self, run_id: str, group_id: str, agent: ConsumingAgentLike, iteration: int, package_id: str
    ) -> ContextConsumption:
        """Record that an agent used a package in one iteration of a group's work; recording it again changes nothing."""
    async def consumptions(
        self,
        run_id: str,
        *,
        group_id: str | None = ...,
        agent: ConsumingAgentLike | None = ...,
        iteration: int | None = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[ContextConsumption]:
        """List what was used in which iteration, newest first."""

class AsyncInbox:
    async def post(
        self,
        from_handle: str,
        body: str,
        *,
        severity: MessageSeverityLike = ...,
        channel: MessageChannelLike = ...,
        agent: str | None = ...,
        run_id: str | None = ...,
        task_id: str | None = ...,
        context_url: str | None = ...,
        eta_seconds: int | None = ...,
        message_id: str | None = ...,
        received_at: datetime | None = ...,
        key: str | None = ...,
    ) -> Message:
        """Receive a message and acknowledge it at once; `ack` is the reply to the sender."""
    async def get(self, message_id: str) -> Message:
        """Get a message."""
    async def pending_for(
        self, agent: str, *, run_id: str | None = ..., task_id: str | None = ..., limit: int = ..., after: str | None = ...
    ) -> Page[Message]:
        """List what an agent should read at a break in its work, oldest first."""
    async def find(
        self,
        run_id: str | None = ...,
        *,
        state: MessageStateLike | None = ...,
        severity: MessageSeverityLike | None = ...,
        from_handle: str | None = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Message]:
        """List messages, newest first."""
    async def mark_seen(self, message_id: str, *, by: str | None = ...) -> Message:
        """Mark a pending message as read; one in a later state is returned unchanged."""
    async def answer(self, message_id: str, answer: str, *, by: str | None = ...) -> Message:
        """Answer a message that is pending or seen; the same answer again changes nothing."""
    async def escalate(
        self, message_id: str, *, fix_class: FixClassLike | None = ..., context_url: str | None = ..., by: str | None = ...
    ) -> Feedback:
        """Turn a message into feedback, in its sender's words; a repeated call returns the same feedback."""
    async def close(self, message_id: str) -> Message:
        """Close a message that was seen, answered or escalated."""

class AsyncFeedbackStore:
    async def file(
        self,
        from_handle: str,
        body: str,
        *,
        severity: FeedbackSeverityLike = ...,
        channel: str = ...,
        context_url: str | None = ...,
        feedback_id: str | None = ...,
        received_at: datetime | None = ...,
        key: str | None = ...,
    ) -> Feedback:
        """Record feedback in the reporter's words. A known id or key returns that feedback unchanged."""
    async def get(self, feedback_id: str) -> Feedback:
        """Get one piece of feedback."""
    async def find(
        self,
        *,
        state: FeedbackStateLike | None = ...,
        fix_class: FixClassLike | None = ...,
        severity: FeedbackSeverityLike | None = ...,
        oldest_first: bool = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Feedback]:
        """List feedback, newest first."""
    async def triage(
        self,
        feedback_id: str,
        fix_class: FixClassLike,
        *,
        root_cause: str | None = ...,
        success_criterion: str | None = ...,
        severity: FeedbackSeverityLike | None = ...,
        by: str | None = ...,
        note: str | None = ...,
    ) -> Feedback:
        """Record what kind of fix pending feedback needs, and its cause."""
    async def start_fix(self, feedback_id: str, *, by: str | None = ..., note: str | None = ...) -> Feedback:
        """Start the fix of triaged feedback; what is out of scope can only be rejected."""
    async def open_pr(
        self,
        feedback_id: str,
        fix_pr_url: str,
        *,
        regression_test_path: str | None = ...,
        by: str | None = ...,
        note: str | None = ...,
    ) -> Feedback:
        """Name the pull request that carries the fix; refused while the gate holds the change that answers this feedback."""
    async def verify(
        self, feedback_id: str, *, regression_test_path: str | None = ..., by: str | None = ..., note: str | None = ...
    ) -> Feedback:
        """Accept a merged fix. It needs a regression test: named here, or already when its pull request was opened."""
    async def reject(self, feedback_id: str, reason: str, *, by: str | None = ...) -> Feedback:
        """Reject feedback or its fix, with the reason."""
    async def give_back(self, feedback_id: str, reason: str, *, by: str | None = ...) -> Feedback:
        """Undo a step of a fix that did not work: from its pull request to the fix, from the fix to triage."""
    async def close(self, feedback_id: str, *, by: str | None = ..., note: str | None = ...) -> Feedback:
        """Close feedback that was verified or rejected."""
    async def add_note(self, feedback_id: str, text: str, *, by: str | None = ...) -> Feedback:
        """Add a note without a change of state. Notes are never changed or removed."""

class AsyncTrust:
    async def show(self) -> TrustDetails:
        """Show the owner, the tier and what it permits; without an owner, the question to ask."""
    async def status(self) -> TrustStatus:
        """Return the owner, how the owner signs, and the tier of agents; `show` has more."""
    async def history(self, *, kind: ChangeKindLike | None = ..., limit: int = ..., after: str | None = ...) -> Page[TrustChange]:
        """List every change of trust, oldest first."""
    async def proposals(self, *, limit: int = ..., after: str | None = ...) -> Page[TrustProposal]:
        """List the proposed changes that wait for the owner's signature and still hold, oldest first."""
    async def explain(self, tier: int) -> TierExplanation:
        """Explain what a tier permits, what it adds, and what it does not permit yet."""
    async def may(self, action: str, *, fix_class: str | None = ...) -> ActionPermission:
        """Answer whether an action is permitted now, and why or why not; an unknown action is not."""
    async def permit(self, action: str, *, fix_class: str | None = ..., approval_id: str | None = ...) -> ActionPermission:
        """Permit an action that is about to be done, or refuse it (`Refused`); the approval it needs is used up by that."""
    async def recognises(self, handle: str) -> bool:
        """Check whether a handle is the owner's or a reviewer's."""
    async def bind(
        self,
        handle: str,
        channel: str,
        public_key: str | None = ...,
        *,
        password: str | None = ...,
        persona_name: str | None = ...,
    ) -> TrustContract:
        """Bind the log to its owner, once; from then on only the owner's signature hands it over."""
    async def propose(
        self,
        change: SignedChangeLike,
        reason: str,
        *,
        to_tier: int | None = ...,
        handle: str | None = ...,
        channel: str | None = ...,
        public_key: str | None = ...,
        fix_classes: list[str] | None = ...,
        is_on: bool | None = ...,
        reviewers: list[str] | None = ...,
        expires_in_seconds: int = ...,
        by: str | None = ...,
    ) -> TrustProposal:
        """Propose a change for the owner to sign: `statement` is the text, which works once and until it expires."""
    async def apply(self, statement: str, signature: str | None = ...) -> TrustContract:
        """Apply a proposed change, given its exact statement and the owner's signature."""
    async def demote(self, *, to_tier: int | None = ..., reason: str = ..., by: str | None = ...) -> TrustContract:
        """Lower the tier at once: by one, or to a lower one that is named. No signature is needed."""
    async def stop_dev_mode(self, *, reason: str = ..., by: str | None = ...) -> TrustContract:
        """Switch dev mode off at once, without a signature."""

class AsyncProofs:
    async def get(self, nonce: str) -> Proof:
        """Get a proof."""
    async def find(self, *, operation: str | None = ..., limit: int = ..., after: str | None = ...) -> Page[Proof]:
        """List what the owner proved, newest first; an operation is named like budgets.set."""

class AsyncSelfEdits:
    async def record(
        self,
        pr: str,
        fix_class: FixClassLike,
        files: list[str],
        before_sha: str,
        after_sha: str,
        review_passes: dict[str, object],
        confidence: int,
        em_review: str,
        *,
        auto_merged: bool = ...,
        feedback_id: str | None = ...,
        edited_at: datetime | None = ...,
    ) -> SelfEdit:
        """Record a self-edit, with the verdict of each of the seven review passes."""
    async def record_document(self, document: dict[str, object]) -> SelfEdit:
        """Record a self-edit from one JSON object, as a line of a self-edit log holds it; unknown keys are refused."""
    async def get(self, edit_id: str) -> SelfEdit:
        """Get one self-edit."""
    async def find(
        self,
        *,
        fix_class: FixClassLike | None = ...,
        feedback_id: str | None = ...,
        pr: str | None = ...,
        oldest_first: bool = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[SelfEdit]:
        """List self-edits, newest first."""

class AsyncWorkflow:
    async def load(self, document: dict[str, object] | None = ..., *, by: str | None = ...) -> WorkflowVersion:
        """Replace the workflow by a document, all of it or nothing; without one, by the one that comes with the package."""
    async def versions(self, *, limit: int = ..., after: str | None = ...) -> Page[WorkflowVersion]:
        """List the workflows that were loaded, newest first."""
    async def transitions(self, *, agent: str | None = ...) -> list[WorkflowTransition]:
        """List the next agent after each report, of one agent or of all."""
    async def rules(self) -> list[WorkflowRule]:
        """List the rules that change routes."""
    async def markers(self) -> list[PromptMarker]:
        """List the markers that each agent's prompt must contain."""
    async def models(self) -> list[ModelAssignment]:
        """List the model of each agent."""
    async def route(
        self,
        agent: str,
        status: str,
        *,
        run_id: str | None = ...,
        group_id: str | None = ...,
        testing_mode: TestingModeLike = ...,
        groups: object = ...,
        blocked_agent: str | None = ...,
        iteration: int | None = ...,
        unavailable: list[str] | None = ...,
    ) -> RouteDecision:
        """Decide who comes next after an agent's report, with the reason; the same facts give the same answer."""
    async def check_prompt(self, agent: str, text: str) -> PromptCheck:
        """Return the required words that are missing from an agent's prompt."""
    async def ready(self) -> WorkflowReadiness:
        """Return whether there is a workflow to route by, its source and its contents."""
    async def draw(self, *, format: WorkflowDrawingLike = ..., notes: dict[str, str] | None = ...) -> str:
        """Draw the workflow as Mermaid text or as an SVG picture, with `notes` of a few signs beneath its agents."""

class AsyncCi:
    async def record(
        self,
        workflow_name: str,
        branch: str,
        ci_run_id: int,
        *,
        started_at: datetime | None = ...,
        completed_at: datetime | None = ...,
        duration_seconds: int | None = ...,
        conclusion: CiConclusionLike | None = ...,
    ) -> CiRun:
        """Record a CI run, or complete a known one; known values may be repeated, but not changed."""
    async def get(self, workflow_name: str, branch: str, ci_run_id: int) -> CiRun:
        """Get one CI run by the three parts of its key."""
    async def find(
        self,
        *,
        workflow_name: str | None = ...,
        branch: str | None = ...,
        conclusion: CiConclusionLike | None = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[CiRun]:
        """List CI runs, the newest start first."""
    async def expected(self, workflow_name: str, branch: str, *, last: int = ...) -> ExpectedDuration:
        """Estimate how long a run will take: median and 90th percentile of the last successful ones, in seconds."""

class AsyncVerdicts:
    async def known(self, run_id: str, tree: str, *, definition: str, environment: str) -> CheckVerdict | None:
        """Get the verdict that counts for a tree, a definition and an environment, or null."""
    async def missing(self, run_id: str, tree: str, *, definitions: list[str], environment: str) -> list[str]:
        """List the definitions that a tree has not passed; an empty list means that it has passed all."""
    async def get(self, verdict_id: str) -> CheckVerdict:
        """Get a verdict."""
    async def find(
        self,
        run_id: str,
        *,
        tree: str | None = ...,
        name: str | None = ...,
        outcome: CheckOutcomeLike | None = ...,
        task_id: str | None = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[CheckVerdict]:
        """List a run's verdicts, newest first."""

class AsyncReviews:
    async def passes(self, run_id: str, counts_for: str) -> list[ReviewPass]:
        """List what the passes of a review came to, newest first; with an owner bound, those that this process recorded."""
    async def latest(self, tree: str, patch: str) -> Review | None:
        """Get the newest review of exactly this tree and this patch, in any run, or null."""
    async def is_overridden(self, review_id: str) -> bool:
        """Check whether a person approved exactly this change and verdict, with a reason."""
    async def lets_pass(self, review_id: str) -> bool:
        """Check whether a review lets its change be published: the gate passed it, or a person approved exactly it."""
    async def holding(self, feedback_id: str) -> Review | None:
        """Get the review that prevents publishing the answer to a piece of feedback, or null."""
    async def get(self, review_id: str) -> Review:
        """Get a review."""
    async def find(
        self,
        run_id: str | None = ...,
        *,
        tree: str | None = ...,
        patch: str | None = ...,
        verdict: ReviewVerdictLike | None = ...,
        task_id: str | None = ...,
        feedback_id: str | None = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Review]:
        """List reviews, newest first."""

class AsyncMends:
    async def get(self, mend_id: str) -> Mend:
        """Get a mend: how far it is proven, and what it waits for."""
    async def find(
        self,
        *,
        feedback_id: str | None = ...,
        state: MendStateLike | None = ...,
        waits_for: MendWaitLike | None = ...,
        repo: str | None = ...,
        open_only: bool = ...,
        oldest_first: bool = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Mend]:
        """List mends, newest first; `open_only` leaves out those that are closed or dropped."""

class AsyncGates:
    async def close(
        self,
        name: str,
        reason: str,
        *,
        until: datetime | None = ...,
        retry_seconds: float | None = ...,
        began_at: datetime | None = ...,
    ) -> Gate:
        """Close a gate until a stated time; without one, or with one that is past, until `retry_seconds` from now."""
    async def enter(self, name: str, *, hold_seconds: float = ...) -> Gate | None:
        """Pass a gate; nothing while it is closed. When its time has come, one caller may try."""
    async def retry(self, name: str) -> Gate:
        """Let a closed gate be tried at once; an open one stays as it is."""
    async def open(self, name: str, *, reason: str = ...) -> Gate:
        """Open a gate for everybody; one that is open stays as it is."""
    async def get(self, name: str) -> Gate:
        """Get a gate."""
    async def find(self, *, state: GateStateLike | None = ..., limit: int = ..., after: str | None = ...) -> Page[Gate]:
        """List gates by their names."""

class AsyncEffects:
    async def intend(
        self,
        run_id: str,
        step: str,
        tool: str,
        *,
        key: str,
        actor: str,
        arguments: dict[str, object] | None = ...,
        facts: dict[str, object] | None = ...,
        task_id: str | None = ...,
    ) -> Effect:
        """Record that an effect is about to be made. A key that the run knows returns that effect unchanged."""
    async def known(self, run_id: str, key: str) -> Effect | None:
        """Get the effect that a run knows under a key, or null."""
    async def take_up(
        self, effect_id: str, *, actor: str, attempts: int, facts: dict[str, object] | None = ..., abandoned_by: str | None = ...
    ) -> Effect:
        """Try an effect again that is known not to have happened."""
    async def settle(self, effect_id: str, *, actor: str, result: object = ..., error: dict[str, object] | None = ...) -> Effect:
        """Record the outcome of an effect by its own actor: a result or an error."""
    async def doubt(self, effect_id: str, *, actor: str, note: str | None = ...) -> Effect:
        """Record that nobody knows whether an effect happened, because its actor is gone or can't say."""
    async def confirm(
        self, effect_id: str, *, attempts: int, result: object = ..., by: str = ..., abandoned_by: str | None = ...
    ) -> Effect:
        """Record that a check found the effect done; `attempts` is the number that the checker saw."""
    async def reconcile(
        self, effect_id: str, happened: EffectOutcomeLike, *, by: str, result: object = ..., reason: str | None = ...
    ) -> Effect:
        """Record whether an effect of unknown outcome happened: `yes` finalizes it, `no` lets the next call act."""
    async def get(self, effect_id: str) -> Effect:
        """Get an effect, with its result."""
    async def open(self, run_id: str | None = ..., *, limit: int = ..., after: str | None = ...) -> Page[Effect]:
        """List the effects that are intended or of unknown outcome, oldest first."""
    async def find(
        self,
        run_id: str | None = ...,
        *,
        state: EffectStateLike | None = ...,
        tool: str | None = ...,
        step: str | None = ...,
        task_id: str | None = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Effect]:
        """List effects, newest first."""

class AsyncProcesses:
    async def started(
        self,
        run_id: str,
        process_id: str,
        *,
        command: dict[str, object],
        cwd: str,
        root: str,
        folder: str,
        sandbox: str,
        keeper: str,
        pid: int,
        task_id: str | None = ...,
    ) -> Process:
        """Record a process that was started; a known one is returned unchanged."""
    async def ended(
        self,
        process_id: str,
        state: ProcessStateLike,
        *,
        exit_code: int | None = ...,
        signal: str | None = ...,
        signals_sent: list[str] | None = ...,
    ) -> Process:
        """Record how a process ended; a known end is kept."""
    async def get(self, process_id: str) -> Process:
        """Get a process as it was last seen."""
    async def find(
        self,
        run_id: str | None = ...,
        *,
        state: ProcessStateLike | None = ...,
        task_id: str | None = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Process]:
        """List processes as they were last seen, newest first."""

class AsyncEdits:
    async def record(
        self,
        repository: str,
        path: str,
        *,
        old_blob: str | None = ...,
        new_blob: str | None = ...,
        old_path: str | None = ...,
        kind: EditKindLike = ...,
        session: str | None = ...,
        person: str | None = ...,
        run_id: str | None = ...,
        task_id: str | None = ...,
        call_id: str | None = ...,
        mixed_with: list[str] | None = ...,
        head: str | None = ...,
        edited_at: datetime | None = ...,
    ) -> Edit:
        """Record that a session, or a person, changed a file. The same edit of the same call is recorded once."""
    async def record_snapshot(
        self,
        repository: str,
        worktree: str,
        session: str,
        moment: SnapshotMomentLike,
        commit_id: str,
        *,
        head: str | None = ...,
        run_id: str | None = ...,
        turn: str | None = ...,
        skipped: dict[str, str] | None = ...,
        taken_at: datetime | None = ...,
    ) -> WorktreeSnapshot:
        """Record a snapshot of a worktree. The same commit of the same session is recorded once."""
    async def get(self, edit_id: str) -> Edit:
        """Get one edit."""
    async def find(
        self,
        *,
        path: str | None = ...,
        run_id: str | None = ...,
        task_id: str | None = ...,
        session: str | None = ...,
        blob: str | None = ...,
        oldest_first: bool = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Edit]:
        """List edits, newest first; `blob` finds the edits that wrote that content."""
    async def snapshots(
        self, *, session: str | None = ..., worktree: str | None = ..., limit: int = ..., after: str | None = ...
    ) -> Page[WorktreeSnapshot]:
        """List snapshots of worktrees, newest first."""

class AsyncNotices:
    async def add_rule(
        self, event: NoticeEventLike, channel: NoticeChannelLike, *, target: list[str] | None = ..., secret_env: str | None = ...
    ) -> NotifyRule:
        """Add a rule that reports when something needs a person, a budget warns or stops, work fails, or a run is done."""
    async def remove_rule(self, rule_id: str) -> NotifyRule:
        """Remove a rule."""
    async def rules(self) -> list[NotifyRule]:
        """List the rules, oldest first."""
    async def rule(self, rule_id: str) -> NotifyRule:
        """Get a rule."""
    async def counting_rules(self) -> list[NotifyRule]:
        """List the rules that count: where an owner is bound, those that the owner proved."""
    async def get(self, notice_id: str) -> Notice:
        """Get a notice."""
    async def find(
        self, *, state: NoticeStateLike | None = ..., rule_id: str | None = ..., limit: int = ..., after: str | None = ...
    ) -> Page[Notice]:
        """List notices, newest first."""
    async def unknown_to(self, rule_id: str, keys: list[str]) -> list[str]:
        """Pick the keys of which a rule has no notice yet."""
    async def note(self, rule_id: str, key: str, what: str, *, run_id: str | None = ...) -> Notice:
        """Create the notice of an event by a rule; an existing one is returned unchanged."""
    async def take(self, sender: str) -> Notice | None:
        """Take the next due notice to send it, or null. A notice that was taken long ago gets an unknown outcome."""
    async def settle(
        self, notice_id: str, *, attempts: int, state: NoticeStateLike, error: str | None = ..., may_retry: bool = ...
    ) -> Notice:
        """Record the outcome of sending a notice: sent, failed, or unknown; a failed one is retried, five times in all."""
    async def retry(self, notice_id: str) -> Notice:
        """Send a notice again that failed or has an unknown outcome; it may arrive twice, under the same id."""

class AsyncOverview:
    async def now(self, *, limit: int = ...) -> Summary:
        """Summarize what needs a person, what runs, what stalled and what it costs."""
    async def runs(
        self,
        *,
        status: StatusLike | None = ...,
        repo: str | None = ...,
        branch: str | None = ...,
        text: str | None = ...,
        parent_run_id: str | None = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[RunOverview]:
        """List runs, newest first, each with its status, tasks, last entry, workers, waiting items and spending."""
    async def run(self, run_id: str) -> RunOverview:
        """Show the status of one run."""
    async def task(self, task_id: str) -> TaskSummary:
        """Return the status of a task: its state, or needs attention, stalled or failed."""
    async def words(self, *, run_ids: list[str] | None = ..., task_ids: list[str] | None = ...) -> StatusWords:
        """Return the status of runs and tasks by their ids, up to 200 of each."""
    async def names(self, *, run_ids: list[str] | None = ..., task_ids: list[str] | None = ...) -> dict[str, str]:
        """Return the goals of runs and the titles of tasks by their ids, up to 200 of each."""
    async def waiting(self, *, limit: int = ..., after: str | None = ...) -> Page[WaitingItem]:
        """List what waits for a person: decisions first, then blocked tasks, then stalled runs."""
    async def run_view(
        self,
        run_id: str,
        *,
        at: str | None = ...,
        since: str | None = ...,
        before: int | None = ...,
        kind: EntryKindLike | None = ...,
        buckets: int = ...,
        lanes: int = ...,
        entries: int = ...,
        tasks: int = ...,
        after: str | None = ...,
        board: int = ...,
        records: list[str] | None = ...,
        roles: list[str] | None = ...,
        first_tasks: int = ...,
        spent: int = ...,
        milestones: int = ...,
    ) -> RunView:
        """Show one run, now or as of an entry or a time: its head, counts, activity strip, timeline, tasks and latest entries."""
    async def compare(self, before: str, after: str) -> Comparison:
        """Show two moments side by side, each given as RUN, RUN:ENTRY or RUN@TIME: their status, and which records differ."""
    async def money(
        self,
        *,
        days: int = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
        by: SpendKeyLike = ...,
        limit: int = ...,
    ) -> SpendingView:
        """Show spending: each UTC day by model, the most expensive models, agents or runs, and the budgets."""
    async def board(self, run_id: str, *, per_column: int = ...) -> list[BoardColumn]:
        """Show a run's tasks in columns (to do, doing, blocked or paused, finished), each with its count and first tasks."""
    async def search(
        self,
        words: str,
        *,
        kind: str | None = ...,
        run_id: str | None = ...,
        agent: str | None = ...,
        since: datetime | None = ...,
        going_on: bool = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> SearchResult:
        """Search runs, tasks, lessons, questions, files and entries by words, newest first; `word*` matches a prefix."""
    async def days(
        self, *, since: datetime | None = ..., until: datetime | None = ..., by: SpendKeyLike = ...
    ) -> list[DaySpending]:
        """Sum up the spending of each UTC day, optionally by model, agent or run; by default of the last 30 days."""
    async def stations(self) -> list[Workload]:
        """Count the work of the newest 200 active runs by role: tasks to do, running, blocked or paused, and failed, and groups."""
    async def decisions(self) -> int:
        """Count the decisions that wait for a person; stalled runs are not counted."""
    async def budgets(self) -> list[BudgetOverview]:
        """List the status of the budgets in their present periods, without those of runs that are over."""
    async def attention(self) -> list[AttentionGroup]:
        """List open problems by kind: the count, the newest case and its cause."""
    async def ended(self, since: datetime, *, limit: int = ...) -> list[EndedRun]:
        """List the runs that ended since a time, the latest first, each with its word."""
    async def failed_tasks(self, since: datetime, *, limit: int = ...) -> list[FailedTask]:
        """List the tasks of all runs that used up their attempts since a time, the latest first."""
    async def activity(self, run_ids: list[str], *, span_seconds: int = ..., buckets: int = ...) -> dict[str, list[int]]:
        """Count the newest 120 entries of each run over the last `span_seconds`, in even steps."""
    async def recent(self, run_ids: list[str], *, limit: int = ...) -> Recent:
        """Show what happened lately: the last hour of some runs, tasks that failed today, runs that ended since yesterday."""
    async def families(
        self,
        *,
        status: StatusLike | None = ...,
        repo: str | None = ...,
        branch: str | None = ...,
        text: str | None = ...,
        parent_run_id: str | None = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
        limit: int = ...,
        after: str | None = ...,
    ) -> Page[Family]:
        """List root runs, newest first, each with its forks, sub-agent runs and sums."""

class Stores:
    journal: AsyncJournal
    runs: AsyncRuns
    groups: AsyncGroups
    tasks: AsyncTasks
    templates: AsyncTemplates
    schedules: AsyncSchedules
    plans: AsyncPlans
    criteria: AsyncCriteria
    approvals: AsyncApprovals
    states: AsyncStates
    artifacts: AsyncArtifacts
    outputs: AsyncOutputs
    prices: AsyncPrices
    budgets: AsyncBudgets
    reservations: AsyncReservations
    ledger: AsyncLedger
    memory: AsyncMemory
    patterns: AsyncPatterns
    strategies: AsyncStrategies
    learnings: AsyncLearnings
    context: AsyncContext
    inbox: AsyncInbox
    feedback: AsyncFeedbackStore
    trust: AsyncTrust
    proofs: AsyncProofs
    self_edits: AsyncSelfEdits
    workflow: AsyncWorkflow
    ci: AsyncCi
    verdicts: AsyncVerdicts
    reviews: AsyncReviews
    mends: AsyncMends
    gates: AsyncGates
    effects: AsyncEffects
    processes: AsyncProcesses
    edits: AsyncEdits
    notices: AsyncNotices
    overview: AsyncOverview
