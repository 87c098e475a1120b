"""A review as others read it: Markdown for people and pull requests, SARIF for forges and editors."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from decklog import __version__
from decklog.review.result import NAMES

if TYPE_CHECKING:
    from decklog.stores.workflow.reviews import Review

_LEVELS = {"blocking": "error", "significant": "error", "question": "warning", "minor": "note", "info": "none"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_MOST_REMEDY = 600


def markdown(review: "Review") -> str:
    """Write a review out for a person."""
    return "\n".join(_lines(review)) + "\n"


def _lines(review: "Review") -> Iterator[str]:
    sure = "" if review.confidence is None else f", confidence {review.confidence} of 100"
    yield f"# Review: {review.verdict}{sure}"
    yield ""
    yield f"Tree `{review.tree[:12]}`, patch `{review.patch[:12]}`, from `{review.base[:12]}` to `{review.head[:12]}`."
    yield ""
    yield "| pass | | outcome | by |"
    yield "| --: | --- | --- | --- |"
    passes: list[Any] = review.passes
    for one in passes:
        why = f": {_cell(one['why'])}" if one["why"] else ""
        yield f"| {one['pass']} | {one['name']} | {one['status']}{why} | {_cell(', '.join(one['by']))} |"
    findings: list[Any] = review.findings
    if findings:
        yield "\n## Findings\n"
    for one in findings:
        yield from _finding(one)
    yield "\n## How the confidence comes about\n"
    yield from (f"- {_line(str(reason))}" for reason in review.reasons[len(passes) :])


def _finding(one: dict[str, Any]) -> Iterator[str]:
    where = ":".join(str(part) for part in (one["file"], one["line"]) if part)
    named = f"{_line(one['kind'])}{f', `{_line(where)}`' if where else ''}"
    yield f"- **{one['severity']}**, pass {one['pass']}, {named}: {_line(one['text'])}"
    if one["remedy"]:
        # Of several lines it is what a check printed.
        text = one["remedy"][-_MOST_REMEDY:]
        yield f"  {_line(text)}" if "\n" not in text else "\n" + "\n".join(f"      {line}" for line in text.splitlines()) + "\n"


def _line(text: str) -> str:
    """Give a text as one line, in which nothing is markup that others wrote."""
    plain = " ".join(text.split())
    return plain.replace("\\", "\\\\").replace("`", "'").replace("<", "&lt;").replace("[", "\\[").replace("*", "\\*")


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")


def sarif(review: "Review") -> dict[str, Any]:
    """Give a review in the form that forges and editors take findings in."""
    findings: list[Any] = review.findings
    told = [one for one in findings if one["severity"] != "info"]
    rules = sorted({_rule(one) for one in told})
    driver = {"name": "decklog review", "version": __version__, "rules": [{"id": rule} for rule in rules]}
    properties = {"verdict": review.verdict.value, "confidence": review.confidence, "tree": review.tree, "patch": review.patch}
    run = {"tool": {"driver": driver}, "results": [_result(one) for one in told], "properties": properties}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(one: dict[str, Any]) -> str:
    return f"{NAMES[one['pass'] - 1]}/{one['kind']}"


def _result(one: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": _rule(one),
        "level": _LEVELS[one["severity"]],
        "message": {"text": "\n".join(part for part in (one["text"], one["remedy"]) if part)},
    }
    if one["file"]:
        place: dict[str, Any] = {"artifactLocation": {"uri": _uri(one["file"])}}
        if one["line"]:
            place["region"] = {"startLine": one["line"]}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path)
