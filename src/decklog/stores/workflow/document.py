"""A workflow as one JSON document, validated as a whole before use."""

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import sha256
from typing import Any

from decklog.core.errors import Invalid
from decklog.records.record import Record
from decklog.records.values import to_json
from decklog.stores.workflow import bazinga_workflow
from decklog.stores.workflow.records import (
    ENDINGS,
    RETURN_TO_BLOCKED,
    ModelAssignment,
    PromptMarker,
    RouteAction,
    RouteThen,
    WorkflowAlias,
    WorkflowRule,
    WorkflowRuleName,
    WorkflowTransition,
)

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
