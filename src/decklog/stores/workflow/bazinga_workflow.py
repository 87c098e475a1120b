"""Read bazinga's configuration as a workflow document: its files, its tables and its selection of models."""

from typing import Any

from decklog.core.errors import Invalid

SPECIAL_RULES = "_special_rules"
_SECTIONS = frozenset({"name", "transitions", "aliases", "rules", "markers", "models"})
# Fields of a transition that bazinga's file has and its router never reads.
_UNREAD = frozenset({"description", "iteration_budget_check"})
# Fields of a transition that bazinga's tables do not store.
_NOT_STORED = ("mandatory_review", "iteration_budget", "exhausted_status")
_MARKERS = {"required": ("required", "required_markers"), "workflow": ("workflow", "workflow_markers")}

Document = dict[str, Any]


def is_transitions_file(document: Document) -> bool:
    """Return whether a document is bazinga's transitions.json, which has agents where a workflow has sections."""
    names = {name for name in document if not name.startswith("_")}
    return bool(names) and not names & _SECTIONS


def from_transitions_file(document: Document) -> Document:
    """Build the sections that a transitions.json has; its special rules are one of its comments."""
    transitions = {
        agent: {status: _step(f"{agent} {status}", step) for status, step in without_remarks(_object(agent, statuses)).items()}
        for agent, statuses in without_remarks(document).items()
    }
    rules = {name: _rule(name, rule) for name, rule in _object(SPECIAL_RULES, document.get(SPECIAL_RULES, {})).items()}
    return {"name": "bazinga", "transitions": transitions, **({"rules": rules} if rules else {})}


def from_markers_file(document: Document) -> Document:
    """Build the markers of every agent that an agent-markers.json names."""
    return {agent: _markers(agent, words) for agent, words in without_remarks(document).items()}


def from_models_file(document: Document) -> Document:
    """Build the model of every agent that a model_selection.json names."""
    agents = without_remarks(_object("agents", document.get("agents", {})))
    return {agent: _object(agent, choice).get("model") for agent, choice in agents.items()}


def fill(document: Document, default: Document) -> Document:
    """Fill the sections that a document lacks with the default's parts that fit it."""
    found = {**document}
    for section in ("transitions", "markers", "models"):
        found.setdefault(section, default[section])
    if "aliases" not in found:
        found["aliases"] = _fitting_aliases(default["aliases"], found["transitions"])
    if "rules" not in found:
        found["rules"] = {
            name: rule for name, rule in default["rules"].items() if _agents_of(rule["config"]) <= {*_keys(found["models"])}
        }
    return found


def completed(document: Document, default: Document) -> Document:
    """Fill in what bazinga's router has built in: settings of rules, and fields that no table stores."""
    found = {**document}
    if "transitions" in document:
        found["transitions"] = {
            agent: {
                status: _with_not_stored(step, statuses, default["transitions"].get(agent, {}).get(status, {}))
                for status, step in statuses.items()
            }
            for agent, statuses in document["transitions"].items()
        }
    if "rules" in document:
        found["rules"] = {**document["rules"]}
        for name, rule in default["rules"].items():
            own = document["rules"].get(name, {})
            config = rule["config"] | own.get("config", {})
            found["rules"][name] = {"description": own.get("description") or rule["description"], "config": config}
    if "models" in document:
        found["models"] = default["models"] | document["models"]
    return found


def without_remarks(document: Document) -> Document:
    """Remove keys that start with an underscore, and the description."""
    return {name: value for name, value in document.items() if not name.startswith("_") and name != "description"}


def _step(where: str, step: object) -> Document:
    fields = {name: value for name, value in without_remarks(_object(where, step)).items() if name not in _UNREAD}
    if not fields.get("action"):
        raise Invalid(f"{where} has no action")
    if "then" in fields:
        fields["then_action"] = fields.pop("then")
    return fields


def _rule(name: str, rule: object) -> Document:
    given = _object(name, rule)
    return {"description": given.get("description") or name, "config": without_remarks(given)}


def _markers(agent: str, words: object) -> Document:
    given = _object(agent, words)
    return {ours: given[theirs] for ours, spelled in _MARKERS.items() for theirs in spelled if theirs in given}


def _with_not_stored(step: Document, statuses: Document, known: Document) -> Document:
    if any(known.get(name) != step.get(name) for name in ("next_agent", "action")):
        return step
    extra = {name: known[name] for name in _NOT_STORED if name in known}
    if "exhausted_status" in extra and extra["exhausted_status"] not in statuses:
        extra = {name: value for name, value in extra.items() if name == "mandatory_review"}
    return {**extra, **step}


def _fitting_aliases(aliases: Document, transitions: object) -> Document:
    """Return the default aliases of statuses that the transitions do not define differently."""
    known = transitions if isinstance(transitions, dict) else {}
    found = {}
    for agent, words in aliases.items():
        statuses = _keys(known.get(agent))
        fitting = {word: means for word, means in words.items() if means in statuses and word not in statuses}
        if fitting:
            found[agent] = fitting
    return found


def _agents_of(config: Document) -> set[str]:
    names = ("override_next_agent", "escalation_agent", "force_agent", "agent")
    return {config[name] for name in names if name in config}


def _keys(value: object) -> list[str]:
    return list(value) if isinstance(value, dict) else []


def _object(name: str, value: object) -> Document:
    if not isinstance(value, dict):
        raise Invalid(f"{name} is not a JSON object")
    return value
