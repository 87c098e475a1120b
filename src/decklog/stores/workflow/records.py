"""The workflow as records, all of them together as one definition, and as one JSON document, validated before use."""

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from typing import Any

from decklog.core.errors import Invalid
from decklog.records.record import Record
from decklog.records.values import to_json
from decklog.stores.workflow import bazinga_workflow

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


_FILE = os.path.join(os.path.dirname(__file__), "workflow.json")
_AGENT = re.compile(r"[a-z][a-z0-9_]{0,63}")
_STATUS = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_SECTIONS = ("transitions", "aliases", "rules", "markers", "models")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(_is_text(one) for one in value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


_TRANSITION: dict[str, Callable[[Any], bool]] = {
    "next_agent": lambda value: (
        value is None or value == RETURN_TO_BLOCKED or (_is_text(value) and bool(_AGENT.fullmatch(value)))
    ),
    "action": lambda value: value in list(RouteAction),
    "include_context": _is_texts,
    "escalation_check": _is_flag,
    "model_override": _is_text,
    "fallback_agent": _is_text,
    "bypass_qa": _is_flag,
    "mandatory_review": _is_flag,
    "max_parallel": _is_count,
    "then_action": lambda value: value in list(RouteThen),
    "iteration_budget": _is_count,
    "exhausted_status": _is_text,
}
_TESTING: dict[str, Callable[[Any], bool]] = {"affected_statuses": _is_texts, "override_next_agent": _is_text}
_RULES: dict[str, dict[str, Callable[[Any], bool]]] = {
    WorkflowRuleName.TESTING_MODE_DISABLED: _TESTING,
    WorkflowRuleName.TESTING_MODE_MINIMAL: _TESTING,
    WorkflowRuleName.ESCALATION_AFTER_FAILURES: {"threshold": _is_count, "escalation_agent": _is_text},
    WorkflowRuleName.SECURITY_SENSITIVE: {"force_agent": _is_text, "mandatory_review": _is_flag, "words": _is_texts},
    WorkflowRuleName.RESEARCH_TASKS: {"agent": _is_text, "max_parallel": _is_count, "words": _is_texts},
}
_AGENTS_IN_RULES = ("override_next_agent", "escalation_agent", "force_agent", "agent")
_OPTIONAL_IN_RULES = ("words", "mandatory_review")


@lru_cache
def shipped() -> dict[str, Any]:
    """Load the workflow that is shipped with the package."""
    with open(_FILE, encoding="utf-8") as file:
        document: dict[str, Any] = json.load(file)
    return document


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """Return a complete workflow. A transitions.json of bazinga is converted, and missing sections are the shipped ones."""
    default = shipped()
    if bazinga_workflow.is_transitions_file(document):
        document = bazinga_workflow.completed(bazinga_workflow.from_transitions_file(document), default)
    # An empty document is not completed; the check refuses it.
    return bazinga_workflow.fill(document, default) if document else document


def digest_of(document: dict[str, Any]) -> str:
    """Return the digest of a document, independent of its layout. Keys that start with an underscore are comments."""
    return sha256(to_json(_public_part(document)).encode()).hexdigest()


def _public_part(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _public_part(inner) for key, inner in value.items() if not str(key).startswith("_")}
    return [_public_part(inner) for inner in value] if isinstance(value, list) else value


def records_of(document: dict[str, Any]) -> list[Record]:
    """Check a document and build its records. Raise Invalid with all problems."""
    to_json(document)  # refuses a document that is nested too deeply
    document = _public_part(document)
    problems = list(_problems(document))
    if problems:
        raise Invalid(f"this workflow can't be used: {problems[0]}", problems=problems)
    records: list[Record] = []
    for agent, statuses in document["transitions"].items():
        for status, step in statuses.items():
            records.append(WorkflowTransition(agent=agent, status=status, **{**step, "action": RouteAction(step["action"])}))
    for agent, words in document.get("aliases", {}).items():
        records += [WorkflowAlias(agent=agent, status=word, means=means) for word, means in words.items()]
    for name, rule in document.get("rules", {}).items():
        records.append(WorkflowRule(name=WorkflowRuleName(name), description=rule.get("description", ""), config=rule["config"]))
    for agent, marker in document.get("markers", {}).items():
        records.append(PromptMarker(agent=agent, required=marker["required"], workflow=marker.get("workflow", [])))
    records += [ModelAssignment(agent=agent, model=model) for agent, model in document["models"].items()]
    return records


# Checks. Each runs only if the earlier ones found nothing, so that it can rely on the form.


def _problems(document: dict[str, Any]) -> Iterator[str]:
    for check in (_wrong_sections, _wrong_shapes, _wrong_references):
        found = list(check(document))
        if found:
            yield from found
            return


def _wrong_sections(document: dict[str, Any]) -> Iterator[str]:
    for name in sorted(document.keys() - {*_SECTIONS, "name"}):
        yield f"it has no section {name}; there are name, {', '.join(_SECTIONS)}"
    if not _is_text(document.get("name", "x")):
        yield "its name is not a text"
    for name in _SECTIONS:
        if not isinstance(document.get(name, {}), dict):
            yield f"{name} is not an object"
    if not document.get("transitions"):
        yield "it has no transitions"
    if not document.get("models"):
        yield "it assigns no models"


def _wrong_shapes(document: dict[str, Any]) -> Iterator[str]:
    for section in ("transitions", "aliases"):
        for agent, statuses in document.get(section, {}).items():
            if not _AGENT.fullmatch(agent) or not isinstance(statuses, dict) or not statuses:
                yield f"{section} of {agent!r} are not an object of statuses of an agent such as tech_lead"
                continue
            for status, value in statuses.items():
                if not _STATUS.fullmatch(status):
                    yield f"{agent} has a status {status!r}; a status looks like READY_FOR_QA"
                elif section == "transitions":
                    yield from _wrong_fields(f"{agent} {status}", value, _TRANSITION, ("action",))
                elif not _is_text(value):
                    yield f"the alias {agent} {status} names no status"
    for name, rule in document.get("rules", {}).items():
        if name not in _RULES:
            yield f"nothing obeys a rule {name!r}; there are {', '.join(_RULES)}"
            continue
        yield from _wrong_fields(
            f"rule {name}", rule, {"config": lambda v: isinstance(v, dict), "description": _is_text}, ("config",)
        )
        if isinstance(rule, dict) and isinstance(rule.get("config"), dict):
            required = [key for key in _RULES[name] if key not in _OPTIONAL_IN_RULES]
            yield from _wrong_fields(f"rule {name}", rule["config"], _RULES[name], required)
    for agent, marker in document.get("markers", {}).items():
        yield from _wrong_fields(f"markers of {agent}", marker, {"required": _is_texts, "workflow": _is_texts}, ("required",))
    for agent, model in document.get("models", {}).items():
        if not _AGENT.fullmatch(agent) or not _is_text(model):
            yield f"the model of {agent!r} is not a text"


def _wrong_fields(
    where: str, value: Any, known: dict[str, Callable[[Any], bool]], required: tuple[str, ...] | list[str]
) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where} is not an object"
        return
    for name in required:
        if name not in value:
            yield f"{where} has no {name}"
    for name, inner in value.items():
        if name not in known:
            yield f"{where} has an unknown field {name}; it takes {', '.join(known)}"
        elif not known[name](inner):
            yield f"{where} has {name} {inner!r}, which it can't be"


def _wrong_references(document: dict[str, Any]) -> Iterator[str]:
    models, transitions = document["models"], document["transitions"]
    for agent, statuses in transitions.items():
        for status, step in statuses.items():
            where, to = f"{agent} {status}", step.get("next_agent")
            if (to is None) != (step["action"] in ENDINGS):
                yield f"{where} has action {step['action']} and next agent {to}, which do not go together"
            for name in (to, step.get("fallback_agent")):
                if name is not None and name != RETURN_TO_BLOCKED and name not in models:
                    yield f"{where} sends for {name}, which has no model"
            exhausted = step.get("exhausted_status")
            if ("iteration_budget" in step) != (exhausted is not None) or (exhausted and exhausted not in statuses):
                yield f"{where} needs an iteration_budget together with an exhausted_status that {agent} has"
    for agent, words in document.get("aliases", {}).items():
        for word, means in words.items():
            if means not in transitions.get(agent, {}) or word in transitions[agent]:
                yield f"the alias {agent} {word} means {means}, which is not another status of {agent}"
    for name, rule in document.get("rules", {}).items():
        for key in _AGENTS_IN_RULES:
            if key in rule["config"] and rule["config"][key] not in models:
                yield f"rule {name} sends for {rule['config'][key]}, which has no model"
