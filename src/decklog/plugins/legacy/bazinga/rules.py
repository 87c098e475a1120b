"""What ids, statuses and numbers may look like, in bazinga's words; each check gives None or what is wrong."""

import re

from decklog.journal.entry import Confidence, ReasoningPhase
from decklog.stores.artifacts.states import InvestigationStatus
from decklog.stores.memory.strategies import StrategyTopic
from decklog.stores.tasks.criteria import CriterionStatus
from decklog.stores.tasks.groups import GroupTier
from decklog.stores.workflow.context import ConsumingAgent, ContextAgent

GROUP_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]+\Z")
RESERVED_GROUP_IDS = frozenset({"global", "session", "all", "default"})
VALID_SESSION_STATUSES = ("active", "completed", "failed", "paused", "cancelled")
VALID_INVESTIGATION_STATUSES = tuple(map(str, InvestigationStatus))
MAX_INVESTIGATION_ITERATION = 20
EXPECTED_SCHEMA_VERSION = 19
LONGEST_GROUP_ID = 64

STATE_TYPES = ("pm", "orchestrator", "group_status", "investigation")
PHASES = tuple(ReasoningPhase)
MANDATORY_PHASES = ("completion", "understanding")
CONFIDENCES = tuple(Confidence)
TIERS = tuple(GroupTier)
CRITERION_STATUSES = tuple(CriterionStatus)
TOPICS = tuple(StrategyTopic)
AGENTS = tuple(ContextAgent)
CONSUMING_AGENTS = tuple(ConsumingAgent)


def validate_scope_global_or_group(group_id: object) -> str | None:
    """Check a group's id, or the word global."""
    if group_id is None:
        return "group_id cannot be None"
    if not isinstance(group_id, str):
        return f"group_id must be a string, got {type(group_id).__name__}"
    if not group_id.strip():
        return "group_id cannot be empty"
    if len(group_id) > LONGEST_GROUP_ID:
        return f"group_id too long (max {LONGEST_GROUP_ID} chars, got {len(group_id)})"
    if not GROUP_ID_PATTERN.match(group_id):
        return f"group_id must be alphanumeric with underscores/hyphens only, got {group_id!r}"
    return None


def validate_scope_group_only(group_id: object) -> str | None:
    """Check a group's id where the whole session can't be meant."""
    problem = validate_scope_global_or_group(group_id)
    if problem is None and str(group_id).lower() == "global":
        return "group_id cannot be 'global' here; name one task group"
    return problem


def validate_task_group_id(group_id: object) -> str | None:
    """Check the id of a task group, which may not be a word that means several."""
    problem = validate_scope_global_or_group(group_id)
    if problem is None and str(group_id).lower() in RESERVED_GROUP_IDS:
        reserved = ", ".join(sorted(RESERVED_GROUP_IDS))
        return f"'{group_id}' is a reserved identifier and cannot name a task group (reserved: {reserved})"
    return problem


# The older name of the same check.
validate_group_id = validate_scope_global_or_group


def validate_investigation_inputs(group_id: object, iteration: object, status: object) -> str | None:
    """Check what names one iteration of an investigation."""
    problem = validate_scope_group_only(group_id)
    if problem is not None:
        return problem
    if type(iteration) is not int or not 1 <= iteration <= MAX_INVESTIGATION_ITERATION:
        return f"iteration must be an integer from 1 to {MAX_INVESTIGATION_ITERATION}, got {iteration!r}"
    if status not in VALID_INVESTIGATION_STATUSES:
        return f"status must be one of {', '.join(VALID_INVESTIGATION_STATUSES)}, got {status!r}"
    return None


def validate_complexity(complexity: object) -> str | None:
    """Check how hard a group is; not given is fine, and True is not a number."""
    if complexity is None:
        return None
    if type(complexity) is not int or not 1 <= complexity <= 10:
        return f"complexity must be an integer from 1 to 10, got {complexity!r}"
    return None
