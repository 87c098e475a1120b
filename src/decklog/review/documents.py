"""Writes a review as Markdown for people and pull requests, and as SARIF for forges and editors."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from decklog import __version__
from decklog.review.result import STAGES

if TYPE_CHECKING:
    from decklog.stores.workflow.reviews import Review

_LEVELS = {"blocking": "error", "significant": "error", "question": "warning", "minor": "note", "info": "none"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_MOST_REMEDY = 600


def markdown(review: "Review") -> str:
    """Return a review as Markdown."""
    return "\n".join(_lines(review)) + "\n"


def _lines(review: "Review") -> Iterator[str]:
    confidence = "" if review.confidence is None else f", confidence {review.confidence} of 100"
    yield f"# Review: {review.verdict}{confidence}"
    yield ""
    yield f"Tree `{review.tree[:12]}`, patch `{review.patch[:12]}`, from `{review.base[:12]}` to `{review.head[:12]}`."
    yield ""
    yield "| stage | | outcome | by |"
    yield "| --: | --- | --- | --- |"
    stages: list[Any] = review.passes
    for one in stages:
        why = f": {_cell(one['why'])}" if one["why"] else ""
        yield f"| {one['pass']} | {one['name']} | {one['status']}{why} | {_cell(', '.join(one['by']))} |"
    findings: list[Any] = review.findings
    if findings:
        yield "\n## Findings\n"
    for one in findings:
        yield from _finding(one)
    yield "\n## How the confidence is computed\n"
    yield from (f"- {_line(str(reason))}" for reason in review.reasons[len(stages) :])


def _finding(one: dict[str, Any]) -> Iterator[str]:
    where = ":".join(str(part) for part in (one["file"], one["line"]) if part)
    named = f"{_line(one['kind'])}{f', `{_line(where)}`' if where else ''}"
    yield f"- **{one['severity']}**, stage {one['pass']}, {named}: {_line(one['text'])}"
    if one["remedy"]:
        # Several lines are the output of a check.
        text = one["remedy"][-_MOST_REMEDY:]
        yield f"  {_line(text)}" if "\n" not in text else "\n" + "\n".join(f"      {line}" for line in text.splitlines()) + "\n"


def _line(text: str) -> str:
    """Return a text as one line with its markup escaped."""
    plain = " ".join(text.split())
    return plain.replace("\\", "\\\\").replace("`", "'").replace("<", "&lt;").replace("[", "\\[").replace("*", "\\*")


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")


def sarif(review: "Review") -> dict[str, Any]:
    """Return a review as SARIF."""
    findings: list[Any] = review.findings
    shown = [one for one in findings if one["severity"] != "info"]
    rules = sorted({_rule(one) for one in shown})
    driver = {"name": "decklog review", "version": __version__, "rules": [{"id": rule} for rule in rules]}
    properties = {"verdict": review.verdict.value, "confidence": review.confidence, "tree": review.tree, "patch": review.patch}
    run = {"tool": {"driver": driver}, "results": [_result(one) for one in shown], "properties": properties}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(one: dict[str, Any]) -> str:
    return f"{STAGES[one['pass'] - 1]}/{one['kind']}"


def _result(one: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": _rule(one),
        "level": _LEVELS[one["severity"]],
        "message": {"text": "\n".join(part for part in (one["text"], one["remedy"]) if part)},
    }
    if one["file"]:
        place: dict[str, Any] = {"artifactLocation": {"uri": quote(one["file"])}}
        if one["line"]:
            place["region"] = {"startLine": one["line"]}
        result["locations"] = [{"physicalLocation": place}]
    return result
