"""Topics: the eight built-in kinds of lessons, and the payload of each."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from decklog.core.errors import Invalid

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


_NUMBER = (int, float)
# What a payload key may hold, by the name that the topics use for it; anything else lists the allowed values.
_CHECKS: dict[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "texts": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "text or texts": lambda value: _CHECKS["text"](value) or _CHECKS["texts"](value),
    "share": lambda value: isinstance(value, _NUMBER) and not isinstance(value, bool) and 0 <= value <= 1,
    "percent": lambda value: isinstance(value, _NUMBER) and not isinstance(value, bool) and 0 <= value <= 100,
    "count": lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0,
    "anything": lambda _: True,
}


@dataclass(frozen=True)
class TopicShape:
    """What a topic is about, and its payload keys as KEY:KIND. `needs` has the required keys; a key without a kind is a text."""

    about: str
    payload: str
    needs: tuple[str, ...] = ()

    @property
    def keys(self) -> dict[str, str]:
        """The kind of each payload key."""
        return {name: kind or "text" for name, _, kind in (key.partition(":") for key in self.payload.split(", "))}


# The payload of the fix loop after a verified fix (feedback_body, regression_test_path, merged_sha, outcome) is part of
# its topics.
TOPICS = {
    "review_patterns": TopicShape(
        "what reviewers approve and reject",
        "diff_signature, verdict:approved|rejected|request-changes, citation_urls:texts, em_comment, created_at, fix_class, "
        "outcome, merged_sha",
    ),
    "failure_patterns": TopicShape(
        "errors, their causes and their fixes",
        "error_signature, stack_hash, root_cause, fix_pr_url, affected_files:texts, fix_class, feedback_body, "
        "regression_test_path, merged_sha",
        needs=("error_signature",),
    ),
    "flaky_tests": TopicShape(
        "tests that pass and fail by chance",
        "test_fqn, flake_rate:share, last_N_outcomes:texts, last_green_sha, environment_factors:anything",
        needs=("test_fqn",),
    ),
    "em_preferences": TopicShape(
        "what the owner wants",
        "topic, preference, evidence_feedback_ids:texts, confidence:percent, last_reinforced",
        needs=("preference",),
    ),
    "adr_decisions": TopicShape(
        "architecture decisions and their reasons",
        "topic, decision, rationale, source_url, supersedes, superseded_by",
        needs=("decision",),
    ),
    "tool_usage_heuristics": TopicShape(
        "which tool helps in which situation",
        "tool_name, context_class, outcome:helpful|neutral|harmful, frequency:count, last_useful",
        needs=("tool_name",),
    ),
    "task_outcomes": TopicShape(
        "how tasks ended and what they taught",
        "task_id, summary, verdict, artifacts:anything, confidence_score:percent, lessons:text or texts",
        needs=("task_id",),
    ),
    "mutation_seeds": TopicShape(
        "mutations that no test noticed",
        "test_fqn, surviving_mutation, mutation_category, added_test_url",
        needs=("test_fqn", "surviving_mutation"),
    ),
}


def check_name(name: str) -> None:
    """Raise Invalid for an invalid topic name."""
    if not _NAME.fullmatch(name):
        raise Invalid(
            f"{name!r} can't be a topic: up to 63 lower-case letters, digits and underscores, a letter first",
            field="topic",
        )


def check_payload(topic: str, payload: dict[str, Any]) -> None:
    """Raise Invalid for a payload that does not fit its topic. An empty payload and payloads of added topics always fit."""
    if not isinstance(payload, dict):
        raise Invalid("a lesson's payload is a JSON object", field="payload")
    shape = TOPICS.get(topic)
    if shape is None or not payload:
        return
    if unknown := sorted(payload.keys() - shape.keys.keys()):
        raise Invalid(
            f"{topic} has no {', '.join(unknown)}; its payload takes {', '.join(shape.keys)}",
            field="payload",
            unknown=unknown,
        )
    if missing := [key for key in shape.needs if not payload.get(key)]:
        raise Invalid(f"a payload of {topic} needs {', '.join(missing)}", field="payload", missing=missing)
    if wrong := [key for key, value in payload.items() if value is not None and not _is_valid(shape.keys[key], value)]:
        raise Invalid(f"in a payload of {topic}, {', '.join(wrong)} is not what it should be", field="payload", wrong=wrong)


def _is_valid(kind: str, value: Any) -> bool:
    return _CHECKS[kind](value) if kind in _CHECKS else value in kind.split("|")
