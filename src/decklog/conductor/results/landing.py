"""Land a run on a branch of the user, by a person's command, as exactly one examined commit."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decklog.conductor.checks.examination import Examiner
from decklog.conductor.context import RunContext
from decklog.conductor.git.changes import changes
from decklog.conductor.git.refs import Branches
from decklog.core.errors import Conflict, DecklogError, Denied
from decklog.core.figures import counted
from decklog.guard.calls.tool import EffectCheck
from decklog.stores.runs.run import ENDED

_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class LandingPlan:
    """The move of a branch from one commit to another. `worktree` is where it is checked out, if it is."""

    branch: str
    old: str
    new: str
    tree: str
    files: int
    is_merge: bool
    worktree: Path | None

    @property
    def is_done(self) -> bool:
        return self.old == self.new

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "worktree": None if self.worktree is None else str(self.worktree)}


def prepare(context: RunContext, branch: str | None, *, cwd: Path) -> LandingPlan:
    """Return what would land on a branch, by default the checked-out one. Raise Conflict if nothing can."""
    repository = context.repository
    refuse_unstarted(context)
    branches = Branches(repository)
    name = branch or branches.current(cwd)
    old, target = branches.commit(name), context.target_commit()
    worktree = branches.worktree(name)
    if worktree is not None:
        branches.refuse_dirty(worktree, name)
    new = old if repository.is_ancestor(target, old) else target
    is_merge = new == target and not repository.is_ancestor(old, target)
    if is_merge:
        new = _merged(context, name, old, target)
    files = len(changes(repository, old, new))
    return LandingPlan(
        branch=name, old=old, new=new, tree=repository.tree(new), files=files, is_merge=is_merge, worktree=worktree
    )


def refuse_unstarted(context: RunContext) -> None:
    """Raise Conflict for a run that ended before it had a target, as after a failing first commit."""
    run = context.log.runs.get(context.run_id)
    if run.status in ENDED and context.repository.ref(context.target) is None:
        raise Conflict(
            f"run {run.id} has nothing to land, since it did not start: {run.summary or run.status.value}",
            hint="Make its first commit green, or allow its red tests by --from-red TEST; then start the run again.",
            run_id=run.id,
        )


def _merged(context: RunContext, branch: str, old: str, target: str) -> str:
    """Create the merge of the target with a branch that has moved on since."""
    repository = context.repository
    merged = repository.merge(old, target)
    if merged.conflicts:
        raise Conflict(
            f"{branch} has gone on since, and does not merge with the run: {', '.join(merged.conflicts[:_SHOWN])}",
            hint=f"Merge it yourself: git merge {context.target}",
            paths=list(merged.conflicts),
        )
    message = f"Merge {context.log.runs.get(context.run_id).goal.splitlines()[0][:60]}\n\nDecklog-Run: {context.run_id}\n"
    return repository.commit(merged.tree, [old, target], message, context.person, repository.time_of(target))


def examine(context: RunContext, landing: LandingPlan) -> None:
    """Raise Conflict if the landing commit does not pass its checks; earlier verdicts count."""
    runner = context.runner(lambda: None)
    examiner = Examiner(context.log, context.run_id, context.configuration, runner, task_id=None)
    findings = examiner.base_findings(landing.new)
    if findings:
        raise Conflict(
            f"what would land on {landing.branch} does not pass: {', '.join(str(one['check']) for one in findings)}",
            hint="Merge it yourself, or start a run from the branch as it is.",
            findings=findings,
        )


def approve(
    context: RunContext, question: str, about: dict[str, object], *, by: str, proof: AbstractContextManager[object], source: str
) -> str:
    """Record a person's approval of exactly one act, and use it up; return its id. A registered owner has to sign it."""
    log = context.log
    asked = log.approvals.ask(context.run_id, question, by="conductor", about=about, source=source)
    digest = str(asked.subject_digest)
    try:
        with proof:
            log.approvals.decide(asked.id, "granted", by=by, subject_digest=digest, rationale="decklog run land")
    except DecklogError:
        # Nobody else may answer it: a later landing asks again.
        log.approvals.withdraw(asked.id, reason="it was not landed")
        raise
    if log.approvals.use(context.run_id, digest) is None:
        raise Denied(
            f"{question.partition('?')[0].lower()} needs the owner's signature",
            hint="Give the key: decklog run land RUN --key FILE, or run it in a terminal to be asked for the password.",
        )
    return asked.id


def land(context: RunContext, landing: LandingPlan, *, by: str, proof: AbstractContextManager[object]) -> None:
    """Move the branch by a person's command, which records and uses an approval of exactly this move."""
    about: dict[str, object] = {"branch": landing.branch, "from": landing.old, "to": landing.new, "tree": landing.tree}
    question = f"Land on {landing.branch}? {counted(landing.files, 'file')}."
    approval = approve(context, question, about, by=by, proof=proof, source="conductor.land")
    branches = Branches(context.repository)

    def move() -> bool:
        branches.move(landing.branch, landing.new, landing.old, landing.worktree)
        return True

    def look(_effect: object) -> EffectCheck:
        return EffectCheck(context.repository.is_ancestor(landing.new, branches.commit(landing.branch)), True)

    step = f"land:{landing.branch}:{landing.new}:{landing.old}"
    context.effects.perform(step, move, look, task_id=None, facts={**about, "approval": approval})
