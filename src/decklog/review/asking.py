"""What the passes by a model share: the form of an answer, who is asked, and what the answer comes to as findings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from decklog.models.asking import ask_about
from decklog.models.composer import Composer
from decklog.models.seam import Models
from decklog.review.result import Finding, Severity

_SEVERITIES = ["blocking", "significant", "minor"]
_FINDING = {
    "type": "object",
    "properties": {
        "severity": {"type": "string", "enum": _SEVERITIES},
        "class": {"type": "string"},
        "file": {"type": ["string", "null"]},
        "line": {"type": ["integer", "null"], "minimum": 1},
        "text": {"type": "string"},
        "remedy": {"type": "string"},
    },
    "required": ["severity", "class", "text", "remedy"],
    "additionalProperties": False,
}
_FINDINGS = {"type": "array", "items": _FINDING, "maxItems": 20}
_VERDICT = {"type": "string", "enum": ["pass", "request-changes"]}
_CHECK = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "enum": ["cause", "test", "words", "scope"]},
        "verdict": {"type": "string", "enum": ["pass", "fail"]},
        "evidence": {"type": "string"},
    },
    "required": ["name", "verdict", "evidence"],
    "additionalProperties": False,
}


def _form(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


FORMS: Mapping[int, Mapping[str, Any]] = {
    3: _form(verdict=_VERDICT, findings=_FINDINGS),
    5: _form(verdict=_VERDICT, findings=_FINDINGS),
    6: _form(
        findings={**_FINDINGS, "maxItems": 3},
        score={"type": "integer", "minimum": 0, "maximum": 100},
        reasoning={"type": "string"},
    ),
    7: _form(checks={"type": "array", "items": _CHECK, "maxItems": 8}),
}


@dataclass(frozen=True)
class Said:
    """What a model said to a pass; without data, `why` says what is missing."""

    data: Mapping[str, Any] | None
    why: str = ""
    by: tuple[str, ...] = ()
    is_weather: bool = False


Asked = Callable[[int, Sequence[tuple[str, str]]], Said]


def asker(models: Models, composer: Composer) -> Asked:
    """Give what asks the model of a pass about data that others wrote."""

    def ask(number: int, data: Sequence[tuple[str, str]]) -> Said:
        answer = ask_about(models, composer, f"review.{number}", FORMS[number], data)
        return Said(answer.data, answer.why, (answer.model,) if answer.model else (), answer.is_weather)

    return ask


def asked(data: Mapping[str, Any]) -> list[Finding]:
    """Read the findings of an answer. A verdict that its own findings do not bear out is a finding too."""
    found = [_finding(one) for one in data["findings"]]
    is_bad = any(one.severity is not Severity.MINOR for one in found)
    if data.get("verdict") == "request-changes" and not is_bad:
        text = "the reviewer asks for changes and names none that are needed"
        found.append(Finding(severity=Severity.SIGNIFICANT, kind="verdict", text=text))
    return found


def _finding(one: Mapping[str, Any]) -> Finding:
    return Finding(
        severity=Severity(one["severity"]),
        kind=one["class"][:60],
        text=one["text"][:2000],
        file=one.get("file"),
        line=one.get("line"),
        remedy=one["remedy"][:2000],
    )
