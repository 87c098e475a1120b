"""Read the workflow that a bazinga project routes by: the tables of its database, and its selection of models."""

import json
import os
from typing import TYPE_CHECKING, Any

from decklog.core.errors import Invalid
from decklog.importing.source import SqliteSource
from decklog.stores.workflow import bazinga_workflow
from decklog.stores.workflow.document import completed, records_of, shipped

if TYPE_CHECKING:
    from collections.abc import Iterable

MODELS = os.path.join("bazinga", "model_selection.json")
_NAME = "bazinga"
_FLAGS = ("escalation_check", "bypass_qa")
_COLUMNS = (
    *("next_agent", "action", "include_context", "escalation_check", "model_override", "fallback_agent", "bypass_qa"),
    *("max_parallel", "then_action"),
)


def workflow_of(database: str, root: str) -> dict[str, Any] | None:
    """Return a project's workflow, checked, or None where it routes by the default."""
    found: dict[str, Any] = {}
    with SqliteSource(database) as source:
        readers = {"transitions": _transitions, "markers": _markers, "rules": _rules}
        tables = {"transitions": "workflow_transitions", "markers": "agent_markers", "rules": "workflow_special_rules"}
        for section, table in tables.items():
            rows = list(source.rows(table)) if table in source else []
            if rows:
                found[section] = readers[section](rows)
    models = _models(os.path.join(root, MODELS))
    if models:
        found["models"] = models
    if not found:
        return None
    document = completed(bazinga_workflow.completed({"name": _NAME, **found}, shipped()))
    ours, default = records_of(document), records_of(shipped())
    return None if all(record in default for record in ours) and len(ours) == len(default) else document


def _transitions(rows: "Iterable[dict[str, Any]]") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for row in rows:
        step = {name: row[name] for name in _COLUMNS if row.get(name) is not None}
        step |= {name: bool(step[name]) for name in _FLAGS if name in step}
        if "include_context" in step:
            step["include_context"] = _json(step["include_context"], row)
        found.setdefault(str(row["current_agent"]), {})[str(row["response_status"])] = {"next_agent": None, **step}
    return found


def _markers(rows: "Iterable[dict[str, Any]]") -> dict[str, Any]:
    return {
        str(row["agent_type"]): {
            "required": _json(row["required_markers"], row),
            "workflow": _json(row.get("workflow_markers") or "[]", row),
        }
        for row in rows
    }


def _rules(rows: "Iterable[dict[str, Any]]") -> dict[str, Any]:
    """Read the rules that the router obeys; the rows of others stay in the journal."""
    known, found = shipped()["rules"], {}
    for row in rows:
        name, config = str(row["rule_name"]), _json(row["config"], row)
        if name in known and isinstance(config, dict):
            settings = {key: value for key, value in config.items() if key in known[name]["config"]}
            found[name] = {"description": row.get("description"), "config": settings}
    return found


def _models(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise Invalid(f"{path} can't be read: {problem}") from None
    if not isinstance(document, dict):
        raise Invalid(f"{path} is not a JSON object")
    return bazinga_workflow.from_models_file(document)


def _json(text: object, row: dict[str, Any]) -> Any:
    try:
        return json.loads(str(text))
    except ValueError:
        named = row.get("current_agent") or row.get("agent_type") or row.get("rule_name")
        raise Invalid(f"the configuration of {named} holds {text!r}, which is not JSON") from None
