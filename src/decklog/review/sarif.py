"""Reads the reports of linters: SARIF, and JSON by a mapping of fields."""

import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

LARGEST_REPORT = 64 * 1024 * 1024


class UnreadableReport(ValueError):
    """A report that is missing, too large or not of its format."""


@dataclass(frozen=True)
class Result:
    """One result of a linter. `file` is relative to the root; `first` and `last` are lines."""

    rule: str
    level: str
    message: str
    file: str | None = None
    first: int | None = None
    last: int | None = None


def read_report(
    content: bytes, form: str, root: str, *, results: str = "", fields: Mapping[str, str] | None = None
) -> list[Result]:
    """Return the results of a report; raise Unreadable for one that can't be read completely."""
    try:
        text = content.decode()
        if form == "json-lines":
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
            return [_mapped(row, fields or {}, root) for row in rows]
        document = json.loads(text)
        if form == "json":
            return [_mapped(row, fields or {}, root) for row in _walk(document, results.split("."), {})]
        return [result for run in document["runs"] for result in _read_run(run, root)]
    except UnreadableReport:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
        raise UnreadableReport(f"its report can't be read: {problem!r}"[:200]) from problem


# SARIF


def _read_run(run: Mapping[str, Any], root: str) -> Iterator[Result]:
    for invocation in run.get("invocations") or ():
        notes = [*(invocation.get("toolExecutionNotifications") or ()), *(invocation.get("toolConfigurationNotifications") or ())]
        failed = [_message(note["message"]) for note in notes if note.get("level") == "error"]
        if failed or invocation.get("executionSuccessful") is False:
            raise UnreadableReport(f"it reports a failed run: {'; '.join(failed)}"[:300])
    driver = run["tool"]["driver"]
    levels = {rule["id"]: rule.get("defaultConfiguration", {}).get("level") for rule in driver.get("rules") or ()}
    for one in run["results"]:
        if one.get("kind", "fail") not in ("fail", "review", "open"):
            continue
        # Results about a whole file, and syntax errors, may have no rule.
        rule = one.get("ruleId") or one.get("rule", {}).get("id") or "error"
        level = one.get("level") or levels.get(rule) or "warning"
        yield Result(rule, level, _message(one["message"]), *_location(one, root))


def _message(message: Mapping[str, Any]) -> str:
    return str(message.get("text") or message.get("markdown") or message.get("id") or "")


def _location(one: Mapping[str, Any], root: str) -> tuple[str | None, int | None, int | None]:
    locations: Sequence[Mapping[str, Any]] = one.get("locations") or ()
    place = locations[0].get("physicalLocation") if locations else None
    if not place:
        return None, None, None
    region = place.get("region") or {}
    first = region.get("startLine")
    uri = str(place["artifactLocation"]["uri"])
    path = unquote(urlsplit(uri).path if uri.startswith("file:") else uri)
    return _relative(path, root), first, region.get("endLine") or first


def _relative(path: str, root: str) -> str:
    """Return a path from the root."""
    return posixpath.normpath(path.removeprefix(root.rstrip("/") + "/"))


# JSON


def _walk(value: Any, steps: Sequence[str], above: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects at a path such as `*.messages.*`, each with the plain fields of those above it."""
    if isinstance(value, Mapping):
        above = {**above, **{name: one for name, one in value.items() if not isinstance(one, (list, dict))}}
    if not steps:
        if not isinstance(value, Mapping):
            raise TypeError("a result is not an object")
        yield {**above, **value}
    elif steps[0] == "*":
        if not isinstance(value, list):
            raise TypeError("the results are not a list")
        for one in value:
            yield from _walk(one, steps[1:], above)
    else:
        yield from _walk(value[steps[0]], steps[1:], above)


def _mapped(row: Mapping[str, Any], fields: Mapping[str, str], root: str) -> Result:
    line = row.get(fields["line"])
    number = line if isinstance(line, int) and line > 0 else None
    rule = str(row.get(fields["rule"]) or "error")
    return Result(
        rule, str(row[fields["level"]]), str(row[fields["message"]]), _relative(str(row[fields["file"]]), root), number, number
    )
