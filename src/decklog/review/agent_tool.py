"""The gate as a tool for agents: the whole review, or one stage."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from decklog import __version__
from decklog.conductor.checks.examination import Examination
from decklog.conductor.context import RunContext
from decklog.conductor.git.repository import Repository, ref_part
from decklog.conductor.git.workspaces import remove_folder
from decklog.conductor.settings import NAME
from decklog.conductor.starting import first_commit
from decklog.core.display import one_line
from decklog.core.errors import Invalid, Unavailable
from decklog.core.folders import state_home
from decklog.guard.calls.tool import Tool, ToolCall
from decklog.log import Decklog
from decklog.records.values import to_json
from decklog.review import settings as review_settings
from decklog.review.change import Change, worktree_change
from decklog.review.gate import build_gate, find_change, review, run_stage
from decklog.review.result import ACTIONABLE, STAGES, had_outage
from decklog.review.settings import ReviewSettings
from decklog.stores.tasks.task import Task
from decklog.stores.workflow.reviews import Review, ReviewVerdict

_MOST_FINDINGS = 20
_LONGEST_TEXT = 400


def review_change(call: ToolCall, change: str = "", only: str = "", worktree: bool = False, feedback: str = "") -> dict[str, Any]:
    """Review a change before it is published: verdict and findings, the same as `decklog review`.

    change: BASE..HEAD, or nothing for what HEAD has beyond the published branch. worktree: the files as they are instead.
    only: one stage alone, which makes no verdict: static, functional, architectural, security, prose, adversarial or
    feedback-binding. feedback: the id of the feedback that it answers.
    """
    return review_for_agent(call.log, Path(call.root.path), change=change, only=only, worktree=worktree, feedback=feedback)


# An agent that may read files and run tests may review; publishing is another action.
REVIEW = Tool.of(review_change, action="run_tests")


def review_for_agent(
    log: Decklog, folder: Path, *, change: str = "", only: str = "", worktree: bool = False, feedback: str = ""
) -> dict[str, Any]:
    """Review the change of a folder, or run one stage on it; return what an agent needs."""
    if only and only not in STAGES:
        raise Invalid(f"there is no stage {only[:40]!r}", hint=f"There are {', '.join(STAGES)}.", field="only")
    found = _find_change(folder, change, worktree=worktree)
    if only:
        result = run_stage(log, found, STAGES.index(only) + 1, feedback_id=feedback or None)
        findings = _shorten(result.as_dict()["findings"])
        return {"pass": only, "status": result.status.value, "why": result.why, "findings": findings}
    reviewed = review(log, found, feedback_id=feedback or None)
    stages: list[Any] = reviewed.passes
    return {
        "review": reviewed.id,
        "verdict": reviewed.verdict.value,
        "confidence": reviewed.confidence,
        "passes": {one["name"]: one["status"] + (f": {one['why'][:_LONGEST_TEXT]}" if one["why"] else "") for one in stages},
        "findings": _shorten(reviewed.findings),
    }


def _find_change(folder: Path, words: str, *, worktree: bool) -> Change:
    if worktree and words:
        raise Invalid("give either `change` or `worktree`, not both", field="worktree")
    repository = Repository.find(folder, Path(state_home()))
    return worktree_change(repository) if worktree else find_change(repository, words or None)


def _shorten(found: list[Any]) -> list[dict[str, Any]]:
    """Return the first findings that need an action, with short texts."""
    names = ("severity", "kind", "file", "line", "text", "remedy")
    shown = [one for one in found if one["severity"] != "info"][:_MOST_FINDINGS]
    return [{name: one[name][:_LONGEST_TEXT] if isinstance(one[name], str) else one[name] for name in names} for one in shown]


def review_attempt(
    context: RunContext, task: Task, base: str, tip: str, end_reason: Callable[[], str | None], **given: Any
) -> Examination:
    """Review a change of a run. With findings it returns to its worker; an unproven change waits for a person."""
    change = Change(context.repository, base, tip, (task.title.partition(": ")[2] or task.title,))
    # Use the settings of the run's first commit.
    settings = review_settings.read(context.repository.read(first_commit(context.log.runs.get(context.run_id)), NAME))
    known = _find_known_review(context, change, settings)
    if known is None:
        known = _review(context, task, change, settings, end_reason, **given)
    findings = _findings(known)
    if known.verdict is ReviewVerdict.UNPROVEN and had_outage(known):
        # Unavailable uses no attempt.
        raise Unavailable(f"a model of the review is unavailable: {findings[0]['text']}", hint="It will be retried.")
    if not known.verdict.holds:
        is_pass = known.verdict is ReviewVerdict.PASS
        return Examination("green" if is_pass else "red", [] if is_pass else findings)
    if known.verdict is ReviewVerdict.BLOCK:
        return Examination("red", findings)
    about = to_json({"base": change.base, "tree": change.tree, "patch": change.patch, "review": known.id}).encode()
    is_granted = context.log.approvals.granted_for(context.run_id, hashlib.sha256(about).hexdigest()) is not None
    return Examination("green" if is_granted else "held", findings, about)


def _find_known_review(context: RunContext, change: Change, settings: ReviewSettings) -> Review | None:
    """Return an earlier review of the same patch in this run; None if there is none that counts."""
    found = context.log.reviews.find(context.run_id, patch=change.patch, limit=1)
    if not found or found[0].settings != settings.digest or had_outage(found[0]):
        return None
    if not found[0].verdict.holds and not context.log.reviews.lets_pass(found[0].id):
        return None
    if found[0].tree == change.tree and found[0].base == change.base:
        return found[0]
    # For another tree only a pass counts, and only for the same lines: git's patch id ignores white space.
    is_same = not found[0].verdict.holds and _changed_lines(context, found[0]) == change.lines
    return found[0] if is_same else None


def _changed_lines(context: RunContext, review: Review) -> str | None:
    try:
        return Change(context.repository, review.base, review.head).lines
    except Unavailable:
        return None  # git has removed its objects


def _review(
    context: RunContext, task: Task, change: Change, settings: ReviewSettings, end_reason: Callable[[], str | None], **given: Any
) -> Review:
    folder = context.checks_folder / context.holder / f"review-{ref_part(task.id)}-{task.fence}"
    try:
        gate = build_gate(
            context.log,
            change,
            settings,
            folder,
            run_id=context.run_id,
            task_id=task.id,
            fence=task.fence,
            end_reason=end_reason,
            **given,
        )
        return gate.review()
    finally:
        if folder.exists():
            remove_folder(folder)


def _findings(review: Review) -> list[dict[str, Any]]:
    """Return the findings in the form of an examination."""
    actionable: list[Any] = [one for one in review.findings if one["severity"] in ACTIONABLE]  # type: ignore[index]
    found = [
        {
            "check": f"review.{one['pass']}",
            "kind": one["kind"],
            "text": one["text"],
            "paths": [":".join(str(part) for part in (one["file"], one["line"]) if part)] if one["file"] else [],
            "output": one["remedy"],
        }
        for one in actionable
    ]
    if found:
        return found
    stages: list[Any] = review.passes
    unproven = [one for one in stages if one["status"] == "unproven"]
    return [{"check": f"review.{one['pass']}", "kind": "unproven", "text": one["why"]} for one in unproven] or [
        {"check": "review.6", "kind": "score", "text": f"the review's verdict is {review.verdict}"}
    ]


_LEVELS = {"blocking": "error", "significant": "error", "question": "warning", "minor": "note", "info": "none"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_MOST_REMEDY = 600


def markdown(review: Review) -> str:
    """Return a review as Markdown."""
    return "\n".join(_markdown_lines(review)) + "\n"


def _markdown_lines(review: Review) -> Iterator[str]:
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
    return one_line(text).replace("\\", "\\\\").replace("`", "'").replace("<", "&lt;").replace("[", "\\[").replace("*", "\\*")


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")


def sarif(review: Review) -> dict[str, Any]:
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
