"""Topics: the eight built-in kinds of lessons, and the payload of each."""

import re
from collections.abc import Callable
from typing import Any

from decklog.core.errors import Invalid

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


class TopicShape:
    """The allowed payload keys of a topic, with a check for each; `needs` has the required ones."""

    def __init__(self, about: str, *needs: str, **keys: Callable[[Any], bool]) -> None:
        self.about = about
        self.needs = needs
        self.keys = keys


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _words(value: Any) -> bool:
    """Return whether the value is a text or a list of texts."""
    return _text(value) or _texts(value)


def _share(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def _percent(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 100


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _anything(_: Any) -> bool:
    return True


def _one_of(*words: str) -> Callable[[Any], bool]:
    return lambda value: value in words


# The payload of the fix loop after a verified fix (feedback_body, regression_test_path, merged_sha, outcome) is part of
# its topics.
TOPICS = {
    "review_patterns": TopicShape(
        "what reviewers approve and reject",
        diff_signature=_text,
        verdict=_one_of("approved", "rejected", "request-changes"),
        citation_urls=_texts,
        em_comment=_text,
        created_at=_text,
        fix_class=_text,
        outcome=_text,
        merged_sha=_text,
    ),
    "failure_patterns": TopicShape(
        "errors, their causes and their fixes",
        "error_signature",
        error_signature=_text,
        stack_hash=_text,
        root_cause=_text,
        fix_pr_url=_text,
        affected_files=_texts,
        fix_class=_text,
        feedback_body=_text,
        regression_test_path=_text,
        merged_sha=_text,
    ),
    "flaky_tests": TopicShape(
        "tests that pass and fail by chance",
        "test_fqn",
        test_fqn=_text,
        flake_rate=_share,
        last_N_outcomes=_texts,
        last_green_sha=_text,
        environment_factors=_anything,
    ),
    "em_preferences": TopicShape(
        "what the engineering manager wants",
        "preference",
        topic=_text,
        preference=_text,
        evidence_feedback_ids=_texts,
        confidence=_percent,
        last_reinforced=_text,
    ),
    "adr_decisions": TopicShape(
        "architecture decisions and their reasons",
        "decision",
        topic=_text,
        decision=_text,
        rationale=_text,
        source_url=_text,
        supersedes=_text,
        superseded_by=_text,
    ),
    "tool_usage_heuristics": TopicShape(
        "which tool helps in which situation",
        "tool_name",
        tool_name=_text,
        context_class=_text,
        outcome=_one_of("helpful", "neutral", "harmful"),
        frequency=_count,
        last_useful=_text,
    ),
    "task_outcomes": TopicShape(
        "how tasks ended and what they taught",
        "task_id",
        task_id=_text,
        summary=_text,
        verdict=_text,
        artifacts=_anything,
        confidence_score=_percent,
        lessons=_words,
    ),
    "mutation_seeds": TopicShape(
        "mutations that no test noticed",
        "test_fqn",
        "surviving_mutation",
        test_fqn=_text,
        surviving_mutation=_text,
        mutation_category=_text,
        added_test_url=_text,
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
    if wrong := [key for key, value in payload.items() if value is not None and not shape.keys[key](value)]:
        raise Invalid(f"in a payload of {topic}, {', '.join(wrong)} is not what it should be", field="payload", wrong=wrong)
