"""Reviews a change for whoever asks: finds what is on record of it already, or takes it through the gate in a run of its own."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decklog.conductor.checks.running import Runner
from decklog.conductor.git.places import remove_folder
from decklog.conductor.git.repository import Repository, ref_part
from decklog.conductor.settings import consent
from decklog.conductor.settings.document import NAME
from decklog.models.composer import Composer
from decklog.models.provider import Provider
from decklog.models.providers.making import maker
from decklog.models.seam import Models
from decklog.records.values import to_json
from decklog.review import settings as review_settings
from decklog.review.asking import asker
from decklog.review.change import Change, between, usual_base
from decklog.review.gate import Gate
from decklog.review.result import PassResult
from decklog.stores.workflow.reviews import Review, ReviewVerdict

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.models.settings import ModelChoice
    from decklog.review.proof.judging import Proof
    from decklog.review.settings import ReviewSettings

# How the goal of a review's own run begins; the first line of what is reviewed comes next.
GOAL = "Review: "
_LONGEST_TITLE = 100


def settings_of(change: Change) -> "ReviewSettings":
    """Read the rules of a change: those of the commit that it starts from, whatever it makes of them itself."""
    return review_settings.read(change.repository.read(change.base, NAME))


def meant(repository: Repository, words: str | None, *, base: str = "", cwd: Path) -> Change:
    """Find the change that somebody means; where no base is named, it is what the repository's rules publish against."""
    change = between(repository, words, base=base, cwd=cwd)
    named = settings_of(change).rules.base
    if base or not named or ".." in (words or ""):
        return change
    return between(repository, words, base=_published(repository, named, cwd), cwd=cwd)


def _published(repository: Repository, branch: str, cwd: Path) -> str:
    """Return a branch as others have it, where that is known here: a local one may have moved on."""
    remote = f"refs/remotes/origin/{branch}"
    return remote if repository.resolve(remote, cwd=cwd) is not None else branch


def base_of(repository: Repository, cwd: Path) -> str | None:
    """Return the commit that changes are published against, by the settings that it holds; None if there is none."""
    usual = usual_base(repository, cwd)
    content = None if usual is None else repository.read(usual, NAME)
    named = review_settings.read(content).rules.base if content is not None else ""
    return repository.resolve(_published(repository, named, cwd), cwd=cwd) if named else usual


def is_gate_meant(repository: Repository, cwd: Path) -> bool:
    """Say whether the branch that changes are published against speaks of a gate, be it in settings that can't be read."""
    base = usual_base(repository, cwd)
    content = repository.read(base, NAME) if base is not None else None
    return content is not None and b"[review" in content


def gate_of(
    log: "Decklog",
    change: Change,
    settings: "ReviewSettings",
    folder: Path,
    *,
    run_id: str,
    make: "Callable[[ModelChoice], Provider] | None" = None,
    wanted_end: Callable[[], str | None] = lambda: None,
    **given: Any,
) -> Gate:
    """Set a gate up: checks and models run beneath `folder`, prompts are those of the commit that the change starts from."""
    repository, models = change.repository, settings.models

    def read(path: str) -> bytes | None:
        return repository.read(change.base, path)

    runner = Runner.beneath(folder / "checks", log, repository, settings.sandbox, wanted_end=wanted_end)
    made = make or maker(log, models, folder / "calls", read=read, sandbox=settings.sandbox, wanted_end=wanted_end)
    seam = Models(log, models, made, run_id=run_id, task_id=given.get("task_id"))
    ask = asker(seam, Composer(settings.prompt, read))
    return Gate(log=log, change=change, settings=settings, runner=runner, ask=ask, run_id=run_id, **given)


def last_review(log: "Decklog", change: Change, settings: "ReviewSettings", feedback_id: str | None) -> Review | None:
    """Find what the gate said last of exactly this commit by these rules."""
    found = log.reviews.latest(change.tree, change.patch)
    is_same = found is not None and (found.head, found.settings, found.feedback_id) == (change.head, settings.digest, feedback_id)
    return found if is_same else None


def _is_settled(log: "Decklog", review: Review) -> bool:
    """Return whether asking again would change nothing.

    What was unproven may be proven now. A verdict that lets the change pass counts only if it is certainly the gate's.
    """
    return review.verdict is ReviewVerdict.BLOCK or log.reviews.lets_pass(review.id)


def review(
    log: "Decklog",
    change: Change,
    *,
    again: bool = False,
    make: "Callable[[ModelChoice], Provider] | None" = None,
    say: Callable[[PassResult], object] = lambda _: None,
    feedback_id: str | None = None,
    is_mending: bool = False,
    proof: "Callable[[Change], Proof] | None" = None,
) -> Review:
    """Review a change in a run of its own; one that was killed in the middle goes on where it was."""
    settings = settings_of(change)
    last = None if again else last_review(log, change, settings, feedback_id)
    if last is not None and _is_settled(log, last):
        return last.marked_already()
    consent.require(change.repository, change.base)
    run_id = _run_of(log, change, settings, feedback_id)
    folder = change.repository.state / "reviews" / ref_part(run_id)
    _clear(folder)
    given = {"make": make, "say": say, "feedback_id": feedback_id, "is_mending": is_mending, "proof": proof, "last": last}
    try:
        found = gate_of(log, change, settings, folder, run_id=run_id, **given).review()  # type: ignore[arg-type]
    finally:
        _clear(folder)
    log.runs.finish(run_id, status="completed", summary=f"{found.verdict} on tree {found.tree[:12]}")
    return found


def one_pass(log: "Decklog", change: Change, number: int, **given: Any) -> PassResult:
    """Run one pass of the gate alone, in the run of the change; it makes no verdict."""
    settings = settings_of(change)
    consent.require(change.repository, change.base)
    run_id = _run_of(log, change, settings, given.get("feedback_id"))
    folder = change.repository.state / "reviews" / ref_part(run_id)
    _clear(folder)
    try:
        return gate_of(log, change, settings, folder, run_id=run_id, **given).one(number)
    finally:
        _clear(folder)


def _run_of(log: "Decklog", change: Change, settings: "ReviewSettings", feedback_id: str | None) -> str:
    """Start the run of a review, or find the one that was started and did not come to its end."""
    facts = [str(change.repository.common), change.base, change.head, settings.digest, feedback_id]
    identity = hashlib.sha256(to_json(facts).encode()).hexdigest()
    ended = len(log.reviews.find(tree=change.tree, patch=change.patch, limit=200))
    title = (change.messages[-1].partition("\n")[0] if change.messages else "the files as they are")[:_LONGEST_TITLE]
    return log.runs.start(f"{GOAL}{title}", key=f"review:{identity}:{ended}", repo=str(change.repository.folder)).id


def _clear(folder: Path) -> None:
    if folder.exists():
        remove_folder(folder)
