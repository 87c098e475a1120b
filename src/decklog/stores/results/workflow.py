"""What the verbs of workflow, CI and context packages return."""

from typing import TypedDict

from decklog.records.record import RecordJson


class GroupSpawn(TypedDict):
    """A group to start, with its agent and model."""

    group_id: str
    agent: str
    model: str
    security_override: bool


class AfterMerge(TypedDict):
    """What comes after the merge of a group."""

    next_agent: str
    action: str
    model: str | None


class RouteExtras(TypedDict, total=False):
    """Facts that some routes add."""

    budget_exhausted: bool
    skip_reason: str
    escalation_applied: bool
    escalation_reason: str
    security_override: bool
    groups_to_spawn: list[str]
    spawns: list[GroupSpawn]
    claims_groups: bool
    phase_check: str
    after_merge: AfterMerge
    mandatory_review: bool
    bypass_qa: bool
    fallback_applied: bool
    model: str


class RouteDecision(RouteExtras):
    """Who comes next after an agent's report, and why."""

    run_id: str | None
    agent: str
    status: str
    group_id: str | None
    applied_status: str
    next_agent: str | None
    action: str
    include_context: list[str]
    reason: str


class PromptCheck(TypedDict):
    """The required words that a prompt lacks."""

    agent: str
    ok: bool
    missing_required: list[str]
    missing_workflow: list[str]


class WorkflowReadiness(TypedDict):
    """Whether there is a workflow to route by, and what it defines."""

    ready: bool
    source: str
    name: str
    digest: str
    transitions_count: int
    markers_count: int
    rules_count: int
    models_count: int
    agents_without_markers: list[str]


class ExpectedDuration(TypedDict):
    """How long a CI run probably takes, in seconds."""

    workflow_name: str
    branch: str
    median_s: float | None
    p90_s: float | None
    runs: int
    source: str


class RankedPackage(TypedDict):
    """A context package and its score."""

    score: float
    package: RecordJson
