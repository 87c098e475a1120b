"""Decklog: the system of record for autonomous coding agents.

Everything a program needs is a name of this module: `Decklog`, every record, enumeration and error. Modules below may move.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from decklog.aio.log import AsyncDecklog
    from decklog.aio.stores import AsyncClaim
    from decklog.core.clock import Clock, ManualClock
    from decklog.core.errors import (
        BudgetExceeded,
        Busy,
        Closed,
        Conflict,
        Damaged,
        DecklogError,
        Denied,
        DiskFull,
        EngineTooOld,
        FileReplaced,
        Invalid,
        LeaseLost,
        LostWrites,
        NetworkFilesystem,
        NotAccepted,
        NotADatabase,
        NotFound,
        OutcomeUnknown,
        ReadOnly,
        Refused,
        SchemaDiffers,
        SchemaTooNew,
        SchemaTooOld,
        StillPending,
        TimedOut,
        TooLarge,
        Unavailable,
        Unproven,
        Unreachable,
    )
    from decklog.core.ids import Ids
    from decklog.guard.calls.guard import Unrestricted
    from decklog.guard.calls.tool import Tool
    from decklog.guard.policy.policy import Policy
    from decklog.guard.policy.verdict import Decision
    from decklog.guard.sandbox.sandbox import Sandbox
    from decklog.guard.toolbox.toolbox import Toolbox
    from decklog.journal.entry import Confidence, Entry, EntryKind, ReasoningPhase
    from decklog.journal.rows import StreamChanges, StreamHead
    from decklog.journal.verify import Problem, Verification
    from decklog.log import Decklog
    from decklog.records.record import Page, Record
    from decklog.stores.approvals.approval import Answers, Approval, ApprovalState, Verdict
    from decklog.stores.approvals.feedback import Feedback, FeedbackSeverity, FeedbackState, FixClass
    from decklog.stores.approvals.inbox import Message, MessageChannel, MessageSeverity, MessageState
    from decklog.stores.approvals.notices import Notice, NoticeChannel, NoticeEvent, NoticeState, NotifyRule
    from decklog.stores.approvals.self_edits import SelfEdit
    from decklog.stores.approvals.trust.proofs import Proof
    from decklog.stores.approvals.trust.records import ChangeKind, SignedChange, TrustChange, TrustContract, TrustProposal
    from decklog.stores.artifacts.artifacts import Artifact
    from decklog.stores.artifacts.checkpoints import Checkpoint, TaskSnapshot
    from decklog.stores.artifacts.graphs import GraphCheckpoint, GraphItem, GraphWrite
    from decklog.stores.artifacts.outputs import SkillOutput
    from decklog.stores.artifacts.states import InvestigationStatus, State, StateVersion
    from decklog.stores.effects.effects import Effect, EffectOutcome, EffectState
    from decklog.stores.effects.processes import Process, ProcessState
    from decklog.stores.memory.learning import Contradiction, ContradictionState
    from decklog.stores.memory.learnings import Learning, LearningState
    from decklog.stores.memory.lesson import Hit, Hits, Lesson, Sighting, Topic
    from decklog.stores.memory.patterns import ErrorPattern, PatternOutcome
    from decklog.stores.memory.proposals import Proposal, ProposalKind, ProposalState
    from decklog.stores.memory.strategies import Strategy, StrategyTopic
    from decklog.stores.memory.vectors import Embedder
    from decklog.stores.money.ledger import SpendBy
    from decklog.stores.money.prices import Price
    from decklog.stores.money.records import (
        Budget,
        BudgetAction,
        BudgetPeriod,
        BudgetScope,
        BudgetUnit,
        Charge,
        Reservation,
        ReservationState,
    )
    from decklog.stores.overview.board import BoardCard, BoardColumn
    from decklog.stores.overview.families import Family
    from decklog.stores.overview.run_facts import RunOverview
    from decklog.stores.overview.run_list import RunSort
    from decklog.stores.overview.run_view import Comparison, RunView
    from decklog.stores.overview.search import SearchHit, SearchResult
    from decklog.stores.overview.spending import BudgetOverview, SpendingView, SpendKey
    from decklog.stores.overview.status import Status
    from decklog.stores.overview.summary import Recent, Summary
    from decklog.stores.overview.waiting import AttentionGroup, AttentionKind, WaitingGroup, WaitingItem, WaitingKind
    from decklog.stores.provenance.edits import Edit, EditKind, SnapshotMoment, WorktreeSnapshot
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
    from decklog.stores.runs.run import Agent, Run, RunMode, RunStatus
    from decklog.stores.runs.snapshot import RunSnapshot
    from decklog.stores.tasks.claim import Claim
    from decklog.stores.tasks.criteria import Criterion, CriterionStatus
    from decklog.stores.tasks.groups import Group, GroupStatus, GroupTier, MergeStatus, ReviewStatus
    from decklog.stores.tasks.new_task import NewTask, TaskFields
    from decklog.stores.tasks.plans import PhaseStatus, Plan, PlanPhase
    from decklog.stores.tasks.schedules import CatchUp, Schedule
    from decklog.stores.tasks.task import Attempt, AttemptOutcome, Dependency, LinkKind, Task, TaskComment, TaskState
    from decklog.stores.tasks.templates import Template
    from decklog.stores.workflow.ci import CiConclusion, CiRun
    from decklog.stores.workflow.context import (
        ConsumingAgent,
        ContextAgent,
        ContextConsumer,
        ContextConsumption,
        ContextPackage,
        ContextScope,
        PackagePriority,
        PackageType,
    )
    from decklog.stores.workflow.gates import Gate, GateState
    from decklog.stores.workflow.mends import Mend, MendState, MendWait
    from decklog.stores.workflow.records import (
        ModelAssignment,
        PromptMarker,
        RouteAction,
        RouteThen,
        WorkflowAlias,
        WorkflowRule,
        WorkflowRuleName,
        WorkflowTransition,
        WorkflowVersion,
    )
    from decklog.stores.workflow.reviews import Review, ReviewPass, ReviewVerdict
    from decklog.stores.workflow.router import TestingMode
    from decklog.stores.workflow.verdicts import CheckOutcome, CheckVerdict
    from decklog.stores.workflow.workflow import WorkflowDrawing

__version__ = "0.1.0"

# Names are imported when they are used: a command-line call pays only for what it needs.
_NAMES = {
    "aio.stores": "AsyncClaim",
    "aio.log": "AsyncDecklog",
    "log": "Decklog",
    "core.clock": "Clock ManualClock",
    "core.errors": (
        "BudgetExceeded Busy Closed Conflict Damaged DecklogError Denied DiskFull EngineTooOld FileReplaced Invalid "
        "LeaseLost LostWrites NetworkFilesystem NotADatabase NotAccepted NotFound OutcomeUnknown ReadOnly Refused SchemaDiffers "
        "SchemaTooNew SchemaTooOld StillPending TimedOut TooLarge Unavailable Unproven Unreachable"
    ),
    "core.ids": "Ids",
    "records.record": "Page Record",
    "stores.artifacts.artifacts": "Artifact",
    "stores.artifacts.checkpoints": "Checkpoint TaskSnapshot",
    "stores.artifacts.graphs": "GraphCheckpoint GraphItem GraphWrite",
    "stores.artifacts.outputs": "SkillOutput",
    "stores.artifacts.states": "InvestigationStatus State StateVersion",
    "stores.approvals.approval": "Answers Approval ApprovalState Verdict",
    "stores.approvals.feedback": "Feedback FeedbackSeverity FeedbackState FixClass",
    "stores.approvals.inbox": "Message MessageChannel MessageSeverity MessageState",
    "stores.approvals.notices": "Notice NoticeChannel NoticeEvent NoticeState NotifyRule",
    "stores.approvals.self_edits": "SelfEdit",
    "stores.approvals.trust.proofs": "Proof",
    "stores.approvals.trust.records": "ChangeKind SignedChange TrustChange TrustContract TrustProposal",
    "stores.effects.effects": "Effect EffectOutcome EffectState",
    "stores.effects.processes": "Process ProcessState",
    "stores.workflow.ci": "CiConclusion CiRun",
    "stores.workflow.context": (
        "ConsumingAgent ContextAgent ContextConsumer ContextConsumption ContextPackage ContextScope PackagePriority PackageType"
    ),
    "stores.workflow.records": (
        "ModelAssignment PromptMarker RouteAction RouteThen WorkflowAlias WorkflowRule WorkflowRuleName "
        "WorkflowTransition WorkflowVersion"
    ),
    "stores.workflow.router": "TestingMode",
    "stores.workflow.gates": "Gate GateState",
    "stores.workflow.mends": "Mend MendState MendWait",
    "stores.workflow.reviews": "Review ReviewPass ReviewVerdict",
    "stores.workflow.verdicts": "CheckOutcome CheckVerdict",
    "stores.workflow.workflow": "WorkflowDrawing",
    "journal.entry": "Confidence Entry EntryKind ReasoningPhase",
    "journal.verify": "Problem Verification",
    "stores.memory.learnings": "Learning LearningState",
    "stores.memory.lesson": "Hit Hits Lesson Sighting Topic",
    "stores.memory.vectors": "Embedder",
    "stores.memory.patterns": "ErrorPattern PatternOutcome",
    "stores.memory.proposals": "Proposal ProposalKind ProposalState",
    "stores.memory.learning": "Contradiction ContradictionState",
    "stores.memory.strategies": "Strategy StrategyTopic",
    "stores.money.ledger": "SpendBy",
    "stores.money.prices": "Price",
    "stores.money.records": "Budget BudgetAction BudgetPeriod BudgetScope BudgetUnit Charge Reservation ReservationState",
    "stores.overview.waiting": "AttentionGroup AttentionKind WaitingGroup WaitingItem WaitingKind",
    "stores.overview.board": "BoardCard BoardColumn",
    "stores.overview.spending": "BudgetOverview SpendKey SpendingView",
    "stores.overview.run_view": "Comparison RunView",
    "stores.overview.families": "Family",
    "stores.overview.summary": "Recent Summary",
    "stores.overview.run_facts": "RunOverview",
    "stores.overview.run_list": "RunSort",
    "stores.overview.search": "SearchHit SearchResult",
    "stores.overview.status": "Status",
    "stores.results.artifacts": "ArtifactContent EvidenceCheck RecordedIteration StateDifference",
    "stores.provenance.edits": "Edit EditKind SnapshotMoment WorktreeSnapshot",
    "stores.results.approvals": "ActionPermission ApprovalDetails ApprovalSubject TierExplanation TrustDetails TrustStatus",
    "stores.results.workflow": "ExpectedDuration PromptCheck RankedPackage RouteDecision WorkflowReadiness",
    "journal.rows": "StreamChanges StreamHead",
    "stores.results.memory": "LearningsImport MemoryHealth TopicSummary",
    "stores.results.money": "BudgetCheck BudgetRebuild BudgetUsage SpendSummary",
    "stores.results.overview": "DaySpending EndedRun FailedTask StatusWords TaskSummary Workload",
    "stores.results.runs": "RecordDifference RunLanes RunActivity",
    "stores.results.tasks": "ClaimExplanation ReadyTasks TaskDetails TaskExplanation TaskProgress",
    "stores.runs.run": "Agent Run RunMode RunStatus",
    "stores.runs.snapshot": "RunSnapshot",
    "stores.tasks.claim": "Claim",
    "stores.tasks.criteria": "Criterion CriterionStatus",
    "stores.tasks.groups": "Group GroupStatus GroupTier MergeStatus ReviewStatus",
    "stores.tasks.new_task": "NewTask TaskFields",
    "stores.tasks.plans": "PhaseStatus Plan PlanPhase",
    "stores.tasks.schedules": "CatchUp Schedule",
    "stores.tasks.task": "Attempt AttemptOutcome Dependency LinkKind Task TaskComment TaskState",
    "stores.tasks.templates": "Template",
    "guard.calls.guard": "Unrestricted",
    "guard.calls.tool": "Tool",
    "guard.policy.policy": "Policy",
    "guard.policy.verdict": "Decision",
    "guard.sandbox.sandbox": "Sandbox",
    "guard.toolbox.toolbox": "Toolbox",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "ActionPermission",
    "Agent",
    "Answers",
    "Approval",
    "ApprovalDetails",
    "ApprovalState",
    "ApprovalSubject",
    "Artifact",
    "ArtifactContent",
    "AsyncClaim",
    "AsyncDecklog",
    "Attempt",
    "AttemptOutcome",
    "AttentionGroup",
    "AttentionKind",
    "BoardCard",
    "BoardColumn",
    "Budget",
    "BudgetAction",
    "BudgetCheck",
    "BudgetExceeded",
    "BudgetOverview",
    "BudgetPeriod",
    "BudgetRebuild",
    "BudgetScope",
    "BudgetUnit",
    "BudgetUsage",
    "Busy",
    "CatchUp",
    "ChangeKind",
    "Charge",
    "CheckOutcome",
    "CheckVerdict",
    "Checkpoint",
    "CiConclusion",
    "CiRun",
    "Claim",
    "ClaimExplanation",
    "Clock",
    "Closed",
    "Comparison",
    "Confidence",
    "Conflict",
    "ConsumingAgent",
    "ContextAgent",
    "ContextConsumer",
    "ContextConsumption",
    "ContextPackage",
    "ContextScope",
    "Contradiction",
    "ContradictionState",
    "Criterion",
    "CriterionStatus",
    "Damaged",
    "DaySpending",
    "Decision",
    "Decklog",
    "DecklogError",
    "Denied",
    "Dependency",
    "DiskFull",
    "Edit",
    "EditKind",
    "Effect",
    "EffectOutcome",
    "EffectState",
    "Embedder",
    "EndedRun",
    "EngineTooOld",
    "Entry",
    "EntryKind",
    "ErrorPattern",
    "EvidenceCheck",
    "ExpectedDuration",
    "FailedTask",
    "Family",
    "Feedback",
    "FeedbackSeverity",
    "FeedbackState",
    "FileReplaced",
    "FixClass",
    "Gate",
    "GateState",
    "GraphCheckpoint",
    "GraphItem",
    "GraphWrite",
    "Group",
    "GroupStatus",
    "GroupTier",
    "Hit",
    "Hits",
    "Ids",
    "Invalid",
    "InvestigationStatus",
    "Learning",
    "LearningState",
    "LearningsImport",
    "LeaseLost",
    "Lesson",
    "LinkKind",
    "LostWrites",
    "ManualClock",
    "MemoryHealth",
    "Mend",
    "MendState",
    "MendWait",
    "MergeStatus",
    "Message",
    "MessageChannel",
    "MessageSeverity",
    "MessageState",
    "ModelAssignment",
    "NetworkFilesystem",
    "NewTask",
    "NotADatabase",
    "NotAccepted",
    "NotFound",
    "Notice",
    "NoticeChannel",
    "NoticeEvent",
    "NoticeState",
    "NotifyRule",
    "OutcomeUnknown",
    "PackagePriority",
    "PackageType",
    "Page",
    "PatternOutcome",
    "PhaseStatus",
    "Plan",
    "PlanPhase",
    "Policy",
    "Price",
    "Problem",
    "Process",
    "ProcessState",
    "PromptCheck",
    "PromptMarker",
    "Proof",
    "Proposal",
    "ProposalKind",
    "ProposalState",
    "RankedPackage",
    "ReadOnly",
    "ReadyTasks",
    "ReasoningPhase",
    "Recent",
    "Record",
    "RecordDifference",
    "RecordedIteration",
    "Refused",
    "Reservation",
    "ReservationState",
    "Review",
    "ReviewPass",
    "ReviewStatus",
    "ReviewVerdict",
    "RouteAction",
    "RouteDecision",
    "RouteThen",
    "Run",
    "RunActivity",
    "RunLanes",
    "RunMode",
    "RunOverview",
    "RunSnapshot",
    "RunSort",
    "RunStatus",
    "RunView",
    "Sandbox",
    "Schedule",
    "SchemaDiffers",
    "SchemaTooNew",
    "SchemaTooOld",
    "SearchHit",
    "SearchResult",
    "SelfEdit",
    "Sighting",
    "SignedChange",
    "SkillOutput",
    "SnapshotMoment",
    "SpendBy",
    "SpendKey",
    "SpendSummary",
    "SpendingView",
    "State",
    "StateDifference",
    "StateVersion",
    "Status",
    "StatusWords",
    "StillPending",
    "Strategy",
    "StrategyTopic",
    "StreamChanges",
    "StreamHead",
    "Summary",
    "Task",
    "TaskComment",
    "TaskDetails",
    "TaskExplanation",
    "TaskFields",
    "TaskProgress",
    "TaskSnapshot",
    "TaskState",
    "TaskSummary",
    "Template",
    "TestingMode",
    "TierExplanation",
    "TimedOut",
    "TooLarge",
    "Tool",
    "Toolbox",
    "Topic",
    "TopicSummary",
    "TrustChange",
    "TrustContract",
    "TrustDetails",
    "TrustProposal",
    "TrustStatus",
    "Unavailable",
    "Unproven",
    "Unreachable",
    "Unrestricted",
    "Verdict",
    "Verification",
    "WaitingGroup",
    "WaitingItem",
    "WaitingKind",
    "WorkflowAlias",
    "WorkflowDrawing",
    "WorkflowReadiness",
    "WorkflowRule",
    "WorkflowRuleName",
    "WorkflowTransition",
    "WorkflowVersion",
    "Workload",
    "WorktreeSnapshot",
    "open",
]


def open(target: Any, **settings: Any) -> "Decklog":
    """Open a log: `Decklog.open` under its short name."""
    from decklog.log import Decklog

    return Decklog.open(target, **settings)


# Type checkers know every name from the imports above; with this one in sight they would let any misspelt name pass.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'decklog' has no attribute {name!r}")
        # Not importlib, which a short call has no other use for.
        return getattr(__import__(f"decklog.{_HOMES[name]}", fromlist=[name]), name)


def __dir__() -> list[str]:
    return __all__
