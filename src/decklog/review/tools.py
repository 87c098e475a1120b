"""The gate as a tool for agents: all of it, or one pass alone. What it says binds no one less for being asked by an agent."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from decklog.conductor.git.repository import Repository
from decklog.core.errors import Invalid
from decklog.guard.calls.call import Call
from decklog.guard.calls.tool import Tool
from decklog.review.change import Change, of_worktree
from decklog.review.result import NAMES
from decklog.review.reviewing import meant, one_pass, review

if TYPE_CHECKING:
    from decklog.log import Decklog

_MOST = 20
_LONGEST = 400


def review_change(call: Call, change: str = "", only: str = "", worktree: bool = False, feedback: str = "") -> dict[str, Any]:
    """Review a change before it is published: verdict and findings, the same as `decklog review`.

    change: BASE..HEAD, or nothing for what HEAD has beyond the published branch. worktree: the files as they are instead.
    only: one pass alone, which makes no verdict: static, functional, architectural, security, prose, adversarial or
    feedback-binding. feedback: the id of the feedback that it answers.
    """
    return examined(call.log, Path(call.root.path), change=change, only=only, worktree=worktree, feedback=feedback)


# Whoever may read and run tests may have a change looked at; it is published by other verbs.
REVIEW = Tool.of(review_change, action="run_tests")


def examined(
    log: "Decklog", folder: Path, *, change: str = "", only: str = "", worktree: bool = False, feedback: str = ""
) -> dict[str, Any]:
    """Take the change that is meant in a folder through the gate, or through one pass; give what an agent needs of it."""
    if only and only not in NAMES:
        raise Invalid(f"there is no pass {only[:40]!r}", hint=f"There are {', '.join(NAMES)}.", field="only")
    found = _change(folder, change, worktree=worktree)
    if only:
        result = one_pass(log, found, NAMES.index(only) + 1, feedback_id=feedback or None)
        told = result.as_dict()
        return {"pass": only, "status": result.status.value, "why": result.why, "findings": _findings(told["findings"])}
    said = review(log, found, feedback_id=feedback or None)
    passes: list[Any] = said.passes
    return {
        "review": said.id,
        "verdict": said.verdict.value,
        "confidence": said.confidence,
        "passes": {one["name"]: one["status"] + (f": {one['why'][:_LONGEST]}" if one["why"] else "") for one in passes},
        "findings": _findings(said.findings),
    }


def _change(folder: Path, words: str, *, worktree: bool) -> Change:
    from decklog.guard.toolbox.toolbox import state_home

    if worktree and words:
        raise Invalid("worktree is a change of its own; leave `change` away", field="worktree")
    repository = Repository.find(folder, state_home())
    return of_worktree(repository, cwd=folder) if worktree else meant(repository, words or None, cwd=folder)


def _findings(found: list[Any]) -> list[dict[str, Any]]:
    """Give the findings that somebody has to do something about, the first of them; what is only told is left out."""
    names = ("severity", "kind", "file", "line", "text", "remedy")
    told = [one for one in found if one["severity"] != "info"][:_MOST]
    return [{name: one[name][:_LONGEST] if isinstance(one[name], str) else one[name] for name in names} for one in told]
