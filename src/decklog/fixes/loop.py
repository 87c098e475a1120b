"""The loop that takes a fix from feedback to a verified change, its states, and the commands that continue it."""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from decklog.conductor import kill_points
from decklog.conductor.git.changes import list_changes
from decklog.conductor.git.repository import Repository, ref_part, starting_commit
from decklog.conductor.settings import NAME
from decklog.core.errors import Busy, Conflict, DecklogError, NotFound, TimedOut, Unavailable
from decklog.fixes.context import FixContext, answer_merge_question, newest_base
from decklog.fixes.fixing import end_fix_run, fix, prove, review, verify
from decklog.fixes.publication import learn, publish
from decklog.fixes.triage import approve, drop, locate, plan, set_class, triage
from decklog.guard.files.gitignore import IgnoreFile
from decklog.log import Decklog
from decklog.models.asking import BuildProvider
from decklog.stores.approvals.feedback import FeedbackState, FixClass
from decklog.stores.workflow.mends import Mend, MendState, MendWait

_STEPS: dict[MendState, Callable[[FixContext], Mend]] = {
    MendState.FILED: triage,
    MendState.TRIAGED: locate,
    MendState.LOCATED: plan,
    MendState.PLANNED: approve,
    MendState.FIXING: fix,
    MendState.FIXED: prove,
    MendState.CLEARED: publish,
    MendState.VERIFIED: learn,
}
_PAGE = 200


@dataclass(frozen=True)
class Stage:
    """One state of a fix: the facts proven in it, its next step, what remains if that is killed, and its possible waits."""

    proven: str
    step: str
    after_kill: str
    waits: tuple[MendWait, ...] = ()


STAGES: Mapping[MendState, Stage] = {
    MendState.FILED: Stage(
        "feedback was filed, with this text",
        "triage",
        "a recorded answer of the model, or none: the call is repeated",
        (MendWait.MODEL, MendWait.WEATHER),
    ),
    MendState.TRIAGED: Stage("its class, one of eight", "locate", "nothing"),
    MendState.LOCATED: Stage("the place in the base commit", "plan", "nothing"),
    MendState.PLANNED: Stage(
        "what to change, how much, and how to prove it",
        "approve",
        "nothing; at most one question",
        (MendWait.APPROVAL,),
    ),
    MendState.FIXING: Stage(
        "a person's approval, if the plan is large",
        "fix",
        "a run of the conductor, which continues with its agent and its work",
        (MendWait.FIX, MendWait.APPROVAL, MendWait.WEATHER),
    ),
    MendState.FIXED: Stage("one commit beyond the base", "prove", "trials, which are repeated", (MendWait.FIX,)),
    MendState.PROVEN: Stage(
        "a test that fails without it for the stated reason, and passes with it, three times each",
        "review",
        "recorded review stages, which are not repeated",
        (MendWait.GATE, MendWait.WEATHER),
    ),
    MendState.CLEARED: Stage(
        "the gate or a person approved exactly this commit", "publish", "an effect, which is looked up before it is repeated"
    ),
    MendState.PUBLISHED: Stage("branch or pull request published", "verify", "nothing; merges are looked up", (MendWait.MERGE,)),
    MendState.VERIFIED: Stage("its test passes on the merged commit", "learn", "lessons with keys, which are recorded once"),
    MendState.CLOSED: Stage("lessons recorded", "", "nothing"),
    MendState.DROPPED: Stage("dropped, with the reason", "", "nothing"),
}
# Every state may also wait for a person after an unexpected error.
NEXT_COMMANDS: Mapping[MendWait, tuple[str, ...]] = {
    MendWait.MODEL: ("decklog mend {id} --class tool", "decklog mend {id} --branch NAME", "decklog mend {id}"),
    MendWait.APPROVAL: ("decklog approvals decide {approval} granted --by NAME", "decklog mend {id} --branch NAME"),
    MendWait.FIX: ("decklog mend {id}", "decklog mend {id} --branch NAME"),
    MendWait.GATE: ("decklog review ask {id}", "decklog mend {id} --branch NAME", "decklog mend {id}"),
    MendWait.MERGE: ("{merge}decklog mend {id}", "decklog mend {id} --merged COMMIT"),
    MendWait.WEATHER: ("decklog mend {id}",),
    MendWait.PERSON: ("decklog mend {id}", "decklog mend {id} --branch NAME"),
}
# An open question about a blocked fix must be answered first.
_OVERRIDE_COMMANDS = ("decklog approvals decide {approval} granted --by NAME --rationale WHY", "decklog mend {id} --branch NAME")
# Waits that may end without input: `--all` and `--watch` retry these.
RETRIED_WAITS = (None, MendWait.APPROVAL, MendWait.GATE, MendWait.MERGE, MendWait.WEATHER)


def next_commands(mend: Mend, asked: str | None = None) -> list[str]:
    """List the commands that continue or drop a fix from its state.

    `asked` is the open approval for a fix that the gate blocks.
    """
    if mend.state.is_end:
        return []
    known = mend.plan.get("approval") if mend.state is MendState.PLANNED else mend.triage.get("approval")
    # People know the id of the feedback, not that of the fix.
    merge = f"git merge {mend.published['branch']} && " if mend.published.get("way") == "branch" else ""
    named = {"id": mend.feedback_id, "approval": asked or known or "ID", "merge": merge}
    ways = NEXT_COMMANDS[mend.waits_for] if mend.waits_for is not None else ("decklog mend {id}",)
    ways = _OVERRIDE_COMMANDS if asked is not None else ways
    return [*(way.format(**named) for way in ways), f"decklog mend drop {mend.feedback_id} --reason WHY"]


@dataclass(frozen=True, kw_only=True)
class FixInput:
    """The input of a person: the class of the fix, a branch that contains it, or the commit of its merge."""

    fix_class: FixClass | None = None
    branch: str | None = None
    merged: str | None = None
    by: str = "a person"


@dataclass(frozen=True, kw_only=True)
class FixLoop:
    """Fixes feedback in one repository, one step at a time."""

    log: Decklog
    cwd: Path
    state: Path
    make: BuildProvider | None = None
    say: Callable[[str], object] = lambda _: None

    @cached_property
    def repository(self) -> Repository:
        return Repository.find(self.cwd, self.state)

    # Finding fixes

    def begin(self, feedback_id: str, *, for_run_id: str | None = None) -> Mend:
        """Begin a fix of feedback in this repository, or return its open one."""
        log = self.log
        feedback = log.feedback.get(feedback_id)
        earlier = log.mends.find(feedback_id=feedback.id, repo=self._repo, limit=_PAGE)
        known = next((one for one in earlier if not one.state.is_end), None)
        if known is not None:
            return known
        base = newest_base(self.repository)
        identity = hashlib.sha256(os.fsencode(self.repository.common)).hexdigest()[:16]
        title = " ".join(feedback.body.split())[:100]
        with log.transaction():
            key = f"mend:{identity}:{feedback.id}:{len(earlier)}"
            run = log.runs.start(f"Mend: {title}", key=key, repo=str(self.repository.folder))
            return log.mends.begin(run.id, feedback.id, repo=self._repo, base=base, for_run_id=for_run_id)

    def find_or_begin(self, name: str) -> Mend:
        """Find a fix by its id or the id of its feedback. Begin one for feedback without an open fix."""
        try:
            found = self.log.mends.get(name)
            if found.repo != self._repo:
                raise Conflict(f"mend {name} belongs to another repository", hint=f"Go to {os.path.dirname(found.repo)}", id=name)
            return found
        except NotFound:
            try:
                return self.begin(name)
            except NotFound:
                raise NotFound(f"there is no mend and no feedback {name}", hint="List them: decklog mend", id=name) from None

    def find_ready(self) -> Iterator[Mend]:
        """Yield the fixes that may continue without a person; begin fixes for pending feedback."""
        for feedback in self.log.feedback.find(state=FeedbackState.PENDING, oldest_first=True, limit=_PAGE):
            self.begin(feedback.id)
        for mend in self.log.mends.find(repo=self._repo, open_only=True, oldest_first=True, limit=_PAGE):
            if mend.waits_for in RETRIED_WAITS or self._has_new_base(mend):
                yield mend

    def _has_new_base(self, mend: Mend) -> bool:
        """Return whether a fix waits for a model and the base has moved, so that its settings may now name one."""
        is_stuck = mend.waits_for is MendWait.MODEL and mend.state is MendState.FILED
        return is_stuck and newest_base(self.repository) != mend.base

    @property
    def _repo(self) -> str:
        """The git directory that all worktrees of the repository share."""
        return str(self.repository.common)

    # Steps

    def advance(self, mend_id: str, given: FixInput | None = None) -> Mend:
        """Run the steps of a fix until it ends or waits. After a kill, the same call continues from the last state.

        Refused steps are retried only with `given`, the input of a person.
        """
        with self._locked(mend_id):
            mend = self.log.mends.get(mend_id)
            if mend.state.is_end:
                return mend
            self._context(mend).clear()
            try:
                mend = self._update_base(mend)
                mend = mend if given is None else self._apply_input(mend, given)
                while not mend.state.is_end:
                    before = mend
                    mend = self._run_step(before, given)
                    kill_points.reached(f"mend:{mend.state}")
                    if mend.waits_for is not None or mend.moves == before.moves:
                        return mend
                    self.say(f"{mend.feedback_id} is {mend.state}")
                return mend
            finally:
                self._context(mend).clear()

    def drop(self, mend_id: str, reason: str, *, by: str) -> Mend:
        """Drop a fix in any state and record the reason in its feedback."""
        with self._locked(mend_id):
            mend = self.log.mends.get(mend_id)
            return mend if mend.state.is_end else drop(self._context(mend), reason, by=by)

    def _run_step(self, mend: Mend, given: FixInput | None) -> Mend:
        """Run the next step. An error is recorded in the fix, which keeps its state."""
        context = self._context(mend)
        try:
            if mend.state is MendState.PUBLISHED:
                return verify(context, None if given is None else given.merged)
            if mend.state is MendState.PROVEN:
                return review(context, again=given is not None)
            return _STEPS[mend.state](context)
        except (Busy, TimedOut, Unavailable) as problem:
            return self._record_wait(mend, MendWait.WEATHER, problem)
        except DecklogError as problem:
            if problem.code == "pending":
                raise
            return self._record_wait(mend, MendWait.PERSON, problem)

    def _record_wait(self, mend: Mend, waits: MendWait, problem: DecklogError) -> Mend:
        now = self.log.mends.get(mend.id)
        reason = " ".join(part for part in (f"{problem.message}.", problem.hint) if part)
        if (now.waits_for, now.reason) == (waits, reason[:1000]):
            return now
        return self.log.mends.move(now, waits_for=waits, reason=reason[:1000])

    def _update_base(self, mend: Mend) -> Mend:
        """Update the base of a filed fix, on which nothing depends yet."""
        if mend.state is not MendState.FILED or (base := newest_base(self.repository)) == mend.base:
            return mend
        return self.log.mends.move(mend, base=base)

    def _apply_input(self, mend: Mend, given: FixInput) -> Mend:
        """Apply the input of a person. A fix of their own restarts the loop, even after a refusal."""
        context = self._context(mend)
        if given.branch is not None and mend.state is not MendState.VERIFIED:
            mend = self._with_branch(context, given)
            context = self._context(mend)
        if given.fix_class is not None and mend.state is MendState.FILED:
            return set_class(context, given.fix_class, by=given.by)
        if mend.waits_for is MendWait.FIX and mend.branch is None and mend.state in (MendState.FIXING, MendState.FIXED):
            # A person named the fix again: begin another round in another run.
            again: dict[str, Any] = {"rounds": mend.rounds + 1, "fix_run_id": None, "head": None}
            with self.log.transaction():
                end_fix_run(context, "another round is begun")
                return self.log.mends.move(mend, MendState.FIXING, **again)
        return mend

    def _with_branch(self, context: FixContext, given: FixInput) -> Mend:
        log, mend = context.log, context.mend
        if mend.state is MendState.FILED and context.feedback.state is FeedbackState.PENDING:
            fix_class = given.fix_class or self._classify_branch(context, str(given.branch))
            mend = set_class(context, fix_class, by=given.by)
        back = mend.state in (MendState.FIXED, MendState.PROVEN, MendState.CLEARED, MendState.PUBLISHED)
        changes: dict[str, Any] = {"branch": given.branch, "head": None, "findings": [], "rounds": mend.rounds + 1}
        changes["fix_run_id"] = None
        with log.transaction():
            if context.feedback.state is FeedbackState.FIX_PR_OPEN:
                log.feedback.give_back(mend.feedback_id, f"another fix is in {given.branch}", by=given.by)
            answer_merge_question(context, f"another fix is in {given.branch}")
            end_fix_run(context, f"another fix is in {given.branch}")
            return log.mends.move(mend, MendState.FIXING if back else None, **changes)

    def _classify_branch(self, context: FixContext, branch: str) -> FixClass:
        """Return the class of a person's fix by the paths that it changes."""
        tip = starting_commit(context.repository, branch)
        tests = IgnoreFile(context.settings.tests)
        paths = [one.path for one in list_changes(context.repository, context.base, tip)]
        others = [path for path in paths if not tests.covers(path)]
        folder = context.settings.prompt.folder
        if not others:
            return FixClass.TEST
        if all(path in context.settings.prompt.identity or (folder and path.startswith(f"{folder}/")) for path in others):
            return FixClass.PROMPT
        if all(path == NAME for path in others):
            return FixClass.POLICY
        return FixClass.DOC if all(path.endswith((".md", ".rst", ".txt")) for path in others) else FixClass.TOOL

    def _context(self, mend: Mend) -> FixContext:
        return FixContext(log=self.log, repository=self.repository, mend=mend, make=self.make, say=self.say)

    @contextmanager
    def _locked(self, mend_id: str) -> Iterator[None]:
        """Lock a fix on this machine; the lock ends with the process."""
        folder = self.repository.state / "mends"
        folder.mkdir(mode=0o700, exist_ok=True)
        with open(folder / f"{ref_part(mend_id)}.lock", "wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Busy(f"another process works on mend {mend_id}", hint="Wait for it, or see: decklog mend") from None
            yield
