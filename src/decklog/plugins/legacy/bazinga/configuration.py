"""A project's own configuration files: the transitions, rules and markers that bazinga's seeder read."""

import json
import os
from typing import TYPE_CHECKING

from decklog.plugins.legacy.bazinga.base import CallRefused
from decklog.stores.workflow.bazinga_workflow import from_markers_file, from_transitions_file

if TYPE_CHECKING:
    from typing import Any

    from decklog.records.record import Record
    from decklog.stores.workflow.workflow import Workflow

SECTIONS = ("transitions", "markers", "rules")
TRANSITIONS_FILE = "transitions.json"
MARKERS_FILE = "agent-markers.json"


def document_of(root: str, sections: tuple[str, ...]) -> "dict[str, dict[str, Any]]":
    """Read the sections that a project's files have, in the shape of a workflow; a project without files has none."""
    folder = os.path.join(root, "bazinga", "config")
    steps = _read(os.path.join(folder, TRANSITIONS_FILE)) if {"transitions", "rules"} & {*sections} else None
    marks = _read(os.path.join(folder, MARKERS_FILE)) if "markers" in sections else None
    found: dict[str, dict[str, Any]] = {}
    if steps is not None:
        document = from_transitions_file(steps)
        if "transitions" in sections:
            found["transitions"] = {
                f"{agent} {status}": step for agent, words in document["transitions"].items() for status, step in words.items()
            }
        if "rules" in sections:
            found["rules"] = {name: rule["config"] for name, rule in document.get("rules", {}).items()}
    if marks is not None:
        found["markers"] = from_markers_file(marks)
    return found


def differences(workflow: "Workflow", document: "dict[str, dict[str, Any]]") -> list[str]:
    """Name what a document has that the workflow in use says otherwise; what only that one has is no difference."""
    used: dict[str, dict[str, dict[str, Any]]] = {
        "transitions": {f"{step.agent} {step.status}": _fields(step) for step in workflow.transitions()},
        "rules": {str(rule.name): rule.config for rule in workflow.rules()},
        "markers": {marker.agent: _fields(marker) for marker in workflow.markers()},
    }
    return [
        f"{section} {name}"
        for section, parts in document.items()
        for name, part in parts.items()
        if not _says(used[section].get(name), part)
    ]


def _fields(record: "Record") -> "dict[str, Any]":
    return {name: getattr(record, name) for name in record.columns()}


def _says(used: "dict[str, Any] | None", part: "dict[str, Any]") -> bool:
    return used is not None and all(used.get(name) == value for name, value in part.items())


def _object(name: str, value: object) -> "dict[str, Any]":
    if not isinstance(value, dict):
        raise CallRefused(f"{name} is not a JSON object")
    return value


def _read(path: str) -> "dict[str, Any] | None":
    try:
        with open(path, encoding="utf-8") as file:
            return _object(os.path.basename(path), json.load(file))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        if isinstance(problem, CallRefused):
            raise
        raise CallRefused(f"{path} can't be read: {problem}") from None
