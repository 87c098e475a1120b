"""The router: pure functions that determine the next agent after a report, from the workflow and given facts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Unpack

from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.stores.results.workflow import GroupSpawn, RouteExtras
from decklog.stores.workflow.records import (
    RETURN_TO_BLOCKED,
    RouteAction,
    WorkflowDefinition,
    WorkflowRuleName,
    WorkflowTransition,
)

_BATCH = 4
_PLAIN, _MANAGER, _TESTER, _REVIEWER = "developer", "project_manager", "qa_expert", "tech_lead"
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_UNFINISHED = ("in_progress", "approved_pending_merge", "merging")


class TestingMode(StrEnum):
    __test__ = False  # pytest would collect a class with this name

    FULL = "full"
    MINIMAL = "minimal"
    DISABLED = "disabled"


TestingModeLike = TestingMode | Literal["full", "minimal", "disabled"]


@dataclass(frozen=True, kw_only=True)
class GroupFacts:
    """What the router needs to know of a group of tasks."""

    id: str
    name: str = ""
    status: str = "pending"
    security_sensitive: bool = False
    qa_attempts: int = 0
    tl_review_attempts: int = 0
    revision_count: int = 0
    merge_status: str | None = None
    assigned_to: str | None = None
    task_type: str | None = None
    created_at: str = ""

    @classmethod
    def of(cls, facts: Any) -> "GroupFacts":
        """Build the facts from an object with these attributes or from a mapping; missing ones get their defaults."""
        if isinstance(facts, cls):
            return facts
        if not isinstance(facts, dict) and not hasattr(facts, "id"):
            raise Invalid(f"a group is an object with an id, not {facts!r}", field="groups")
        named = facts if isinstance(facts, dict) else {name: getattr(facts, name, None) for name in cls.__dataclass_fields__}
        given = {name: named.get(name) for name in cls.__dataclass_fields__}
        if not isinstance(given["id"], str) or not given["id"]:
            raise Invalid("a group needs an id", field="groups")
        given["created_at"] = str(given["created_at"] or "")
        return cls(**{name: value for name, value in given.items() if value is not None})


@dataclass(kw_only=True)
class RouteQuestion:
    """A request to the router, with the facts that it may use."""

    definition: WorkflowDefinition
    agent: str
    status: str
    group_id: str | None = None
    groups: list[GroupFacts] = field(default_factory=list)
    testing_mode: TestingMode = TestingMode.FULL
    blocked_agent: str | None = None
    iteration: int | None = None
    unavailable: frozenset[str] = frozenset()

    @property
    def group(self) -> GroupFacts | None:
        return next((group for group in self.groups if group.id == self.group_id), None)

    def rule(self, name: WorkflowRuleName) -> Mapping[str, Any] | None:
        found = self.definition.rules.get(name)
        return found.config if found else None


@dataclass(kw_only=True)
class RoutingDecision:
    """The routing result under construction. Every rule that changes it adds its reason."""

    applied_status: str
    next_agent: str | None
    action: str
    include_context: list[str]
    more: RouteExtras
    reasons: list[str] = field(default_factory=list)

    def to(self, agent: str, why: str, action: str | None = None, **more: Unpack[RouteExtras]) -> None:
        self.next_agent, self.action = agent, action or self.action
        self.reasons.append(why)
        self.more.update(more)


def decide(question: RouteQuestion) -> RoutingDecision:
    """Decide the next step: the transition first, then the rules in a fixed order, then the model."""
    step = _transition(question)
    decision = RoutingDecision(
        applied_status=step.status,
        next_agent=step.next_agent,
        action=step.action.value,
        include_context=list(step.include_context),
        more={},
        reasons=[f"{question.agent} reports {step.status}"],
    )
    step = _spend_iterations(question, step, decision)
    _return_to_blocked(question, decision)
    _skip_tests(question, decision)
    _escalate(question, step, decision)
    _protect(question, decision)
    if decision.action == RouteAction.SPAWN_BATCH:
        _hand_out(question, step, decision)
    if step.then_action is not None:
        _check_phase(question, step, decision)
    _flag(question, step, decision)
    _assign_model(question, step, decision)
    return decision


def _transition(question: RouteQuestion) -> WorkflowTransition:
    """Find the transition of a report, by its status or its alias."""
    definition, agent, status = question.definition, question.agent, question.status
    found = definition.transitions.get((agent, status))
    if found is None and (agent, status) in definition.aliases:
        found = definition.transitions[agent, definition.aliases[agent, status]]
    if found is not None:
        return found
    known = definition.statuses_of(agent)
    raise NotFound(
        f"nothing is said about {agent} reporting {status}",
        hint=f"{agent} reports {', '.join(known)}." if known else f"Agents that report: {', '.join(definition.agents())}.",
        known=known,
        fallback_action={"next_agent": _REVIEWER, "action": "spawn", "reason": "an unknown report goes to review"},
    )


def _spend_iterations(question: RouteQuestion, step: WorkflowTransition, decision: RoutingDecision) -> WorkflowTransition:
    """Apply the exhausted status if an agent has used up its iterations."""
    budget, exhausted = step.iteration_budget, step.exhausted_status
    if budget is None or exhausted is None or question.iteration is None or question.iteration < budget:
        return step
    step = question.definition.transitions[question.agent, exhausted]
    decision.applied_status, decision.include_context = step.status, list(step.include_context)
    why = f"iteration {question.iteration} of {budget} is the last, so it counts as {step.status}"
    decision.next_agent, decision.action = step.next_agent, step.action.value
    decision.more["budget_exhausted"] = True
    decision.reasons.append(why)
    return step


def _return_to_blocked(question: RouteQuestion, decision: RoutingDecision) -> None:
    """Return guidance to the blocked agent: the one named, or the one that the group is assigned to."""
    if decision.next_agent != RETURN_TO_BLOCKED:
        return
    agents, named = question.definition.agents(), question.blocked_agent
    assigned = (question.group.assigned_to or "") if question.group else ""
    holder = next((name for name in agents if re.fullmatch(rf"{name}([_-]?\d+)?", assigned)), None)
    if named is not None and named not in agents:
        raise Invalid(f"{named!r} is no agent of this workflow", field="blocked_agent", agents=agents)
    if named is not None:
        decision.to(named, f"{named} was blocked, and goes on")
    elif holder is not None:
        decision.to(holder, f"the group is with {assigned}, who goes on")
    else:
        decision.to(_PLAIN, f"nobody said who was blocked, so a {_PLAIN} goes on")


def _skip_tests(question: RouteQuestion, decision: RoutingDecision) -> None:
    if question.testing_mode is TestingMode.FULL:
        return
    rule = question.rule(WorkflowRuleName(f"testing_mode_{question.testing_mode}"))
    if rule and decision.applied_status in rule["affected_statuses"] and decision.next_agent == _TESTER:
        why = f"testing mode is {question.testing_mode}, so {_TESTER} is skipped"
        decision.to(rule["override_next_agent"], why, RouteAction.SPAWN, skip_reason=why)


def _escalate(question: RouteQuestion, step: WorkflowTransition, decision: RoutingDecision) -> None:
    """Route work with too many failures to a more senior agent."""
    rule, group = question.rule(WorkflowRuleName.ESCALATION_AFTER_FAILURES), question.group
    if not step.escalation_check or rule is None or group is None:
        return
    counters = {_TESTER: ("qa_attempts", group.qa_attempts), _REVIEWER: ("tl_review_attempts", group.tl_review_attempts)}
    name, count = counters.get(question.agent, ("revision_count", group.revision_count))
    if count >= rule["threshold"]:
        why = f"{name} is {count}, and {rule['threshold']} failures are enough"
        decision.to(rule["escalation_agent"], why, RouteAction.SPAWN, escalation_applied=True, escalation_reason=why)


def _protect(question: RouteQuestion, decision: RoutingDecision) -> None:
    """Never route security work to a plain developer."""
    rule, group = question.rule(WorkflowRuleName.SECURITY_SENSITIVE), question.group
    if (
        rule
        and group
        and decision.next_agent == _PLAIN
        and decision.action != RouteAction.SPAWN_BATCH
        and is_security(group, rule)
    ):
        decision.to(rule["force_agent"], f"group {group.id} is about security", security_override=True)


def _hand_out(question: RouteQuestion, step: WorkflowTransition, decision: RoutingDecision, but: str | None = None) -> None:
    """Select the groups to start, oldest first. Nothing is claimed here: the starter marks a group as in progress."""
    pending = [group for group in in_order(question.groups) if group.status == "pending" and group.id != but]
    rule, most = question.rule(WorkflowRuleName.RESEARCH_TASKS), step.max_parallel or _BATCH
    spawns: list[GroupSpawn] = []
    research = 0
    for group in pending:
        is_studied = rule is not None and is_research(group, rule)
        if len(spawns) == most or (is_studied and rule and research >= rule["max_parallel"]):
            continue
        research += is_studied
        spawns.append(_spawn(question, group, rule["agent"] if is_studied and rule else step.next_agent or _PLAIN))
    left = len(pending) - len(spawns)
    decision.more |= {"groups_to_spawn": [one["group_id"] for one in spawns], "spawns": spawns, "claims_groups": False}
    decision.reasons.append(f"{len(spawns)} of {len(pending)} pending groups start now" + (f", {left} wait" if left else ""))
    if any(one["security_override"] for one in spawns):
        decision.more["security_override"] = True
    agents = {one["agent"] for one in spawns}
    if decision.action == RouteAction.SPAWN_BATCH and len(agents) == 1:
        decision.next_agent = agents.pop()


def _spawn(question: RouteQuestion, group: GroupFacts, agent: str) -> GroupSpawn:
    rule = question.rule(WorkflowRuleName.SECURITY_SENSITIVE)
    forced = rule is not None and agent == _PLAIN and is_security(group, rule)
    agent = rule["force_agent"] if forced and rule else agent
    return {"group_id": group.id, "agent": agent, "model": question.definition.models[agent], "security_override": forced}


def _check_phase(question: RouteQuestion, step: WorkflowTransition, decision: RoutingDecision) -> None:
    """After an approval: merge first, start pending groups, and call the project manager when all are merged."""
    others = [group for group in question.groups if group.id != question.group_id]
    goes_on = any(group.status == "pending" or group.status in _UNFINISHED for group in others)
    decision.more["phase_check"] = "continue" if goes_on else "complete"
    pending = any(group.status == "pending" for group in others)
    group = question.group
    is_merged = group is not None and (group.merge_status == "merged" or group.status == "completed")
    if is_merged and not goes_on:
        decision.to(_MANAGER, f"group {question.group_id} is merged, and every other one is done", RouteAction.SPAWN)
    elif is_merged:
        decision.next_agent, decision.action = (step.next_agent, RouteAction.SPAWN_BATCH) if pending else (None, "wait")
        decision.reasons.append(f"group {question.group_id} is merged, and others are not")
    elif not goes_on:
        model = question.definition.models.get(_MANAGER)
        decision.more["after_merge"] = {"next_agent": _MANAGER, "action": RouteAction.SPAWN.value, "model": model}
        decision.reasons.append(f"the merge comes first, and then the {_MANAGER}: no other group is left")
    if pending:
        _hand_out(question, step, decision, but=question.group_id)


def _flag(question: RouteQuestion, step: WorkflowTransition, decision: RoutingDecision) -> None:
    rule, group = question.rule(WorkflowRuleName.SECURITY_SENSITIVE), question.group
    is_guarded = rule is not None and group is not None and rule.get("mandatory_review", False) and is_security(group, rule)
    if step.mandatory_review or is_guarded:
        decision.more["mandatory_review"] = True
    if step.bypass_qa:
        decision.more["bypass_qa"] = True


def _assign_model(question: RouteQuestion, step: WorkflowTransition, decision: RoutingDecision) -> None:
    """Set the model of the next agent, or route to its fallback if it has none or is unavailable."""
    models = question.definition.models
    wanted = decision.next_agent
    if wanted is not None and (wanted in question.unavailable or wanted not in models):
        stand_in = step.fallback_agent
        if stand_in is None or stand_in in question.unavailable or stand_in not in models:
            raise Conflict(f"{wanted} comes next but is not available, and nobody can replace it", next_agent=wanted)
        decision.to(stand_in, f"{wanted} is not available, so {stand_in} replaces it", RouteAction.SPAWN, fallback_applied=True)
    if decision.next_agent is not None and decision.action in (RouteAction.SPAWN, RouteAction.RESPAWN, RouteAction.SPAWN_BATCH):
        override = step.model_override if decision.next_agent == step.next_agent else None
        decision.more["model"] = override or models[decision.next_agent]


# Facts about groups


def in_order(groups: list[GroupFacts]) -> list[GroupFacts]:
    """Sort groups by age and id, the same for every caller."""
    return sorted(groups, key=lambda group: (group.created_at, group.id))


def is_security(group: GroupFacts, rule: Mapping[str, Any]) -> bool:
    """Return whether a group is about security: it is marked, or its name contains such a word."""
    return group.security_sensitive or _has_word(group.name, rule.get("words", ()))


def is_research(group: GroupFacts, rule: Mapping[str, Any]) -> bool:
    return group.task_type == "research" or (group.task_type is None and _has_word(group.name, rule.get("words", ())))


def _has_word(name: str, words: Any) -> bool:
    """Return whether a name has one of the words, also as part of user_auth and UserAuth; `author` does not match `auth`."""
    return not {part.lower() for part in _WORD.findall(name)}.isdisjoint(words)
