"""The gate as a tool for agents: the whole review, or one stage."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from decklog.conductor.git.repository import Repository
from decklog.core.errors import Invalid
from decklog.guard.calls.call import ToolCall
from decklog.guard.calls.tool import Tool
from decklog.guard.toolbox.toolbox import state_home
from decklog.review.change import Change, of_worktree
from decklog.review.result import STAGES
from decklog.review.reviewing import find_change, review, run_stage

if TYPE_CHECKING:
    from decklog.log import Decklog

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
    log: "Decklog", folder: Path, *, change: str = "", only: str = "", worktree: bool = False, feedback: str = ""
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
    repository = Repository.find(folder, state_home())
    return of_worktree(repository, cwd=folder) if worktree else find_change(repository, words or None, cwd=folder)


def _shorten(found: list[Any]) -> list[dict[str, Any]]:
    """Return the first findings that need an action, with short texts."""
    names = ("severity", "kind", "file", "line", "text", "remedy")
    shown = [one for one in found if one["severity"] != "info"][:_MOST_FINDINGS]
    return [{name: one[name][:_LONGEST_TEXT] if isinstance(one[name], str) else one[name] for name in names} for one in shown]
