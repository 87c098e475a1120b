"""The workflow as records, and all of them together as one definition."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from decklog.records.record import Record

RETURN_TO_BLOCKED = "_return_to_blocked"


class RouteAction(StrEnum):
    SPAWN = "spawn"
    RESPAWN = "respawn"
    SPAWN_BATCH = "spawn_batch"
    SPAWN_MERGE = "spawn_merge"
    VALIDATE_THEN_END = "validate_then_end"
    PAUSE_FOR_USER = "pause_for_user"
    END_SESSION = "end_session"


ENDINGS = (RouteAction.VALIDATE_THEN_END, RouteAction.PAUSE_FOR_USER, RouteAction.END_SESSION)


class RouteThen(StrEnum):
    CHECK_PHASE = "check_phase"


class WorkflowRuleName(StrEnum):
    TESTING_MODE_DISABLED = "testing_mode_disabled"
    TESTING_MODE_MINIMAL = "testing_mode_minimal"
    ESCALATION_AFTER_FAILURES = "escalation_after_failures"
    SECURITY_SENSITIVE = "security_sensitive"
    RESEARCH_TASKS = "research_tasks"


@dataclass(frozen=True, kw_only=True)
class WorkflowVersion(Record):
    """One time a workflow was loaded; the highest number is the present one, and `digest` is of its content."""

    table = "workflow_versions"
    home = "@workflow"
    is_managed = True

    id: str
    number: int
    name: str
    digest: str
    transitions: int
    aliases: int
    rules: int
    markers: int
    models: int
    loaded_at: datetime
    loaded_by: str | None = None


@dataclass(frozen=True, kw_only=True)
class WorkflowTransition(Record):
    """What an agent does next once a role has answered with a status."""

    table = "workflow_transitions"
    identity = ("agent", "status")
    home = "@workflow"
    is_managed = True

    agent: str
    status: str
    action: RouteAction
    next_agent: str | None = None
    include_context: list[str] = field(default_factory=list)
    escalation_check: bool = False
    model_override: str | None = None
    fallback_agent: str | None = None
    bypass_qa: bool = False
    mandatory_review: bool = False
    max_parallel: int | None = None
    then_action: RouteThen | None = None
    iteration_budget: int | None = None
    exhausted_status: str | None = None


@dataclass(frozen=True, kw_only=True)
class WorkflowAlias(Record):
    """Another word that an agent uses for a status."""

    table = "workflow_aliases"
    identity = ("agent", "status")
    home = "@workflow"
    is_managed = True

    agent: str
    status: str
    means: str


@dataclass(frozen=True, kw_only=True)
class WorkflowRule(Record):
    """A rule of the workflow that is no transition, by its name."""

    table = "workflow_rules"
    identity = ("name",)
    home = "@workflow"
    is_managed = True

    name: WorkflowRuleName
    description: str
    config: dict[str, object]


@dataclass(frozen=True, kw_only=True)
class PromptMarker(Record):
    """The markers that an agent's prompt must contain: words of its reports, and of the workflow."""

    table = "workflow_markers"
    identity = ("agent",)
    home = "@workflow"
    is_managed = True

    agent: str
    required: list[str]
    workflow: list[str]


@dataclass(frozen=True, kw_only=True)
class ModelAssignment(Record):
    """The model that a role works with."""

    table = "workflow_models"
    identity = ("agent",)
    home = "@workflow"
    is_managed = True

    agent: str
    model: str


# In the order of insertion: an alias refers to a transition.
PARTS = (WorkflowTransition, WorkflowAlias, WorkflowRule, PromptMarker, ModelAssignment)


@dataclass(frozen=True, kw_only=True)
class WorkflowDefinition:
    """A whole workflow."""

    transitions: dict[tuple[str, str], WorkflowTransition]
    aliases: dict[tuple[str, str], str]
    rules: dict[str, WorkflowRule]
    markers: dict[str, PromptMarker]
    models: dict[str, str]

    @classmethod
    def of(cls, records: list[Record]) -> "WorkflowDefinition":
        """Build a workflow from records of all kinds."""
        return cls(
            transitions={(one.agent, one.status): one for one in records if isinstance(one, WorkflowTransition)},
            aliases={(one.agent, one.status): one.means for one in records if isinstance(one, WorkflowAlias)},
            rules={one.name: one for one in records if isinstance(one, WorkflowRule)},
            markers={one.agent: one for one in records if isinstance(one, PromptMarker)},
            models={one.agent: one.model for one in records if isinstance(one, ModelAssignment)},
        )

    def agents(self) -> list[str]:
        """Return all agents of the transitions, in the order of their first appearance."""
        named = [name for one in self.transitions.values() for name in (one.agent, one.next_agent, one.fallback_agent)]
        return list(dict.fromkeys(name for name in named if name and name != RETURN_TO_BLOCKED))

    def statuses_of(self, agent: str) -> list[str]:
        return [status for name, status in self.transitions if name == agent]
