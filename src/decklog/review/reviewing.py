"""Reviews a change: returns the stored review, or runs the gate in a new run."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decklog.conductor.checks.running import Runner
from decklog.conductor.git.repository import Repository, ref_part
from decklog.conductor.git.workspaces import remove_folder
from decklog.conductor.settings import NAME, require_consent
from decklog.models.client import Models
from decklog.models.composer import Composer
from decklog.models.provider import Provider
from decklog.models.providers.making import maker
from decklog.records.values import to_json
from decklog.review import settings as review_settings
from decklog.review.change import Change, between, usual_base
from decklog.review.gate import ReviewGate
from decklog.review.model_stages import build_ask
from decklog.review.result import StageResult
from decklog.stores.workflow.reviews import Review, ReviewVerdict

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.models.settings import ModelChoice
    from decklog.review.proof.judging import FixProof
    from decklog.review.settings import ReviewSettings

# The goal of a review's run: this, and the title of the change.
GOAL = "Review: "
_LONGEST_TITLE = 100


def settings_of(change: Change) -> "ReviewSettings":
    """Return the settings of a change: those of the commit that it starts from."""
    return review_settings.read(change.repository.read(change.base, NAME))


def find_change(repository: Repository, words: str | None, *, base: str = "", cwd: Path) -> Change:
    """Return the change named by words; without a base, against the branch that the settings name."""
    change = between(repository, words, base=base, cwd=cwd)
    named = settings_of(change).rules.base
    if base or not named or ".." in (words or ""):
        return change
    return between(repository, words, base=_published(repository, named, cwd), cwd=cwd)


def _published(repository: Repository, branch: str, cwd: Path) -> str:
    """Return the remote's branch where it is known; a local one may have moved on."""
    remote = f"refs/remotes/origin/{branch}"
    return remote if repository.resolve(remote, cwd=cwd) is not None else branch


def base_of(repository: Repository, cwd: Path) -> str | None:
    """Return the commit that changes are published against by its own settings; None without one."""
    usual = usual_base(repository, cwd)
    content = None if usual is None else repository.read(usual, NAME)
    named = review_settings.read(content).rules.base if content is not None else ""
    return repository.resolve(_published(repository, named, cwd), cwd=cwd) if named else usual


def has_gate(repository: Repository, cwd: Path) -> bool:
    """Return whether the published branch has a gate, even in settings that can't be parsed."""
    base = usual_base(repository, cwd)
    content = repository.read(base, NAME) if base is not None else None
    return content is not None and b"[review" in content


def build_gate(
    log: "Decklog",
    change: Change,
    settings: "ReviewSettings",
    folder: Path,
    *,
    run_id: str,
    make: "Callable[[ModelChoice], Provider] | None" = None,
    wanted_end: Callable[[], str | None] = lambda: None,
    **given: Any,
) -> ReviewGate:
    """Build a gate: checks and models run in `folder`; prompts come from the commit that the change starts from."""
    repository, models = change.repository, settings.models

    def read(path: str) -> bytes | None:
        return repository.read(change.base, path)

    runner = Runner.beneath(folder / "checks", log, repository, settings.sandbox, wanted_end=wanted_end)
    build_provider = make or maker(log, models, folder / "calls", read=read, sandbox=settings.sandbox, wanted_end=wanted_end)
    client = Models(log, models, build_provider, run_id=run_id, task_id=given.get("task_id"))
    ask = build_ask(client, Composer(settings.prompt, read))
    return ReviewGate(log=log, change=change, settings=settings, runner=runner, ask=ask, run_id=run_id, **given)


def last_review(log: "Decklog", change: Change, settings: "ReviewSettings", feedback_id: str | None) -> Review | None:
    """Return the last review of exactly this commit by these settings."""
    found = log.reviews.latest(change.tree, change.patch)
    is_same = found is not None and (found.head, found.settings, found.feedback_id) == (change.head, settings.digest, feedback_id)
    return found if is_same else None


def _is_final(log: "Decklog", review: Review) -> bool:
    """Return whether another review would change nothing.

    An unproven one may be proven now. A verdict that lets the change pass counts only if the gate signed it.
    """
    return review.verdict is ReviewVerdict.BLOCK or log.reviews.lets_pass(review.id)


def review(
    log: "Decklog",
    change: Change,
    *,
    again: bool = False,
    make: "Callable[[ModelChoice], Provider] | None" = None,
    on_stage: Callable[[StageResult], object] = lambda _: None,
    feedback_id: str | None = None,
    is_mending: bool = False,
    proof: "Callable[[Change], FixProof] | None" = None,
) -> Review:
    """Review a change in a separate run; a review that was killed continues where it was."""
    settings = settings_of(change)
    last = None if again else last_review(log, change, settings, feedback_id)
    if last is not None and _is_final(log, last):
        return last.marked_already()
    require_consent(change.repository, change.base)
    run_id = _run_of(log, change, settings, feedback_id)
    folder = change.repository.state / "reviews" / ref_part(run_id)
    _clear(folder)
    given = {
        "make": make,
        "on_stage": on_stage,
        "feedback_id": feedback_id,
        "is_mending": is_mending,
        "proof": proof,
        "last": last,
    }
    try:
        found = build_gate(log, change, settings, folder, run_id=run_id, **given).review()  # type: ignore[arg-type]
    finally:
        _clear(folder)
    log.runs.finish(run_id, status="completed", summary=f"{found.verdict} on tree {found.tree[:12]}")
    return found


def run_stage(log: "Decklog", change: Change, number: int, **given: Any) -> StageResult:
    """Run one stage of the gate alone, in the run of the change; it makes no verdict."""
    settings = settings_of(change)
    require_consent(change.repository, change.base)
    run_id = _run_of(log, change, settings, given.get("feedback_id"))
    folder = change.repository.state / "reviews" / ref_part(run_id)
    _clear(folder)
    try:
        return build_gate(log, change, settings, folder, run_id=run_id, **given).run_stage(number)
    finally:
        _clear(folder)


def _run_of(log: "Decklog", change: Change, settings: "ReviewSettings", feedback_id: str | None) -> str:
    """Start the run of a review, or return the one that was started and has not ended."""
    facts = [str(change.repository.common), change.base, change.head, settings.digest, feedback_id]
    identity = hashlib.sha256(to_json(facts).encode()).hexdigest()
    ended = len(log.reviews.find(tree=change.tree, patch=change.patch, limit=200))
    title = (change.messages[-1].partition("\n")[0] if change.messages else "the files as they are")[:_LONGEST_TITLE]
    return log.runs.start(f"{GOAL}{title}", key=f"review:{identity}:{ended}", repo=str(change.repository.folder)).id


def _clear(folder: Path) -> None:
    if folder.exists():
        remove_folder(folder)
