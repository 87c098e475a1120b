"""The conductor: claims the stage tasks of a run and works on them in threads until none is left."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

from decklog.conductor import escalation, kill_points
from decklog.conductor.agents.description import Description
from decklog.conductor.attempt import PlanningAttempt, WorkAttempt, apply_granted_plan, find_unreported
from decklog.conductor.checks.examination import Interrupted
from decklog.conductor.context import EndReason, RunContext
from decklog.conductor.git.changes import list_changes
from decklog.conductor.items.item import Rounds
from decklog.conductor.outages import Outages
from decklog.conductor.overlaps import OverlapProbe
from decklog.conductor.recovery import Recovery
from decklog.conductor.stages import CHECK, LAND, PLAN, WORK, all_tasks
from decklog.core.errors import BudgetExceeded, Busy, DecklogError, Invalid, LeaseLost, Unavailable, Unreachable
from decklog.guard.calls.tool import EffectCheck
from decklog.stores.effects.effects import Effect
from decklog.stores.tasks.claim import Claim
from decklog.stores.tasks.task import Task
from decklog.stores.workflow.gates import Gate

MOST_RACES = 5


class MergeQueue:
    """Lands the checked work items of one run on its target, one at a time."""

    def __init__(self, context: RunContext, end_reason: EndReason) -> None:
        self._context = context
        self._repository = context.repository
        self._end_reason = end_reason
        # Earlier attempts to move the target. Only the task's owner adds to them.
        self._advance_effects: list[Effect] = []

    def land(self, claim: Claim) -> None:
        """Land a work item that passed its checks, or begin another round."""
        if claim.task.inputs.get("parts"):
            # Other work items replaced it, and all of them have landed.
            self._record_landing(claim, self._context.target_commit())
            return
        landed = self._find_earlier_landing(claim.task)
        if landed is not None:
            self._record_change(claim, landed)
            return
        if Rounds(self._context).begin_if_requested(claim):
            return
        for _ in range(MOST_RACES):
            if self._try_landing(claim):
                return
        claim.release("the target moved during each try; back to the end of the queue")

    def _try_landing(self, claim: Claim) -> bool:
        """Try to land a work item on the current target. Return False if the target moved meanwhile."""
        task = claim.task
        target, tip = self._context.target_commit(), str(task.inputs["tip"])
        self._context.refs.fetch_missing([tip])
        merged = self._repository.merge(target, tip)
        if merged.conflicts:
            text = "it does not merge with what has landed since"
            self._context.stages.rework(claim, target, [{"kind": "conflict", "text": text, "paths": list(merged.conflicts)}])
            return True
        if merged.tree == self._repository.tree(target):
            self._record_landing(claim, target)
            return True
        candidate = self._create_candidate(task, merged.tree, target)
        if not self._may_land(claim, target, candidate):
            return True
        if not self._advance(f"advance:{task.id}:{candidate}:{target}", task.id, candidate, target):
            return False
        self._record_change(claim, candidate)
        return True

    def _create_candidate(self, task: Task, tree: str, target: str) -> str:
        """Create the commit to land. The same merge always gives the same commit."""
        title = task.title.removeprefix("Land: ")
        message = f"{title}\n\nDecklog-Run: {self._context.run_id}\nDecklog-Task: {task.id}\n"
        commit = self._repository.commit(tree, [target], message, self._context.person, int(str(task.inputs["at"])))
        kill_points.reached("lane:candidate")
        return commit

    def _may_land(self, claim: Claim, target: str, candidate: str) -> bool:
        """Check a candidate. Return whether it may land; if not, another round or a question has begun."""
        stages = self._context.stages
        result = self._context.examine(claim.task, target, candidate, self._end_reason)
        if result.is_green:
            # A person may have asked for another round during the check.
            return not Rounds(self._context).begin_if_requested(claim)
        if self._end_reason() is not None:
            claim.release("the conductor was stopped during the check")
        elif result.about is not None and stages.was_denied(claim.task) is None:
            stages.ask_person(claim, result.about, result.findings)
        else:
            stages.rework(claim, target, result.findings)
        return False

    def _record_change(self, claim: Claim, commit: str) -> None:
        changed = list_changes(self._repository, self._repository.parents(commit)[0], commit)
        self._record_landing(claim, commit, [change.path for change in changed])

    def _record_landing(self, claim: Claim, commit: str, files: Sequence[str] = ()) -> None:
        """Record that a work item has landed, and abandon earlier attempts to move the target."""
        for effect in self._advance_effects:
            self._context.effects.abandon(effect)
        with self._context.log.transaction():
            self._context.stages.record_landing(claim, commit, self._repository.tree(commit), files)
            Rounds(self._context).record_landing(claim.task, commit)

    def _advance(self, step: str, task_id: str, candidate: str, old: str) -> bool:
        """Move the target to the candidate if it is still at the old commit; return whether it moved."""
        moved: bool = self._context.effects.perform(
            step,
            lambda: self._context.refs.advance(candidate, old),
            lambda _: EffectCheck(self._is_landed(candidate), True),
            task_id=task_id,
            facts={"candidate": candidate, "old": old},
        )
        return moved

    def _is_landed(self, candidate: str) -> bool:
        target = self._context.target_commit()
        # This clone may lack a candidate of another host that did not land.
        return self._repository.has(candidate) and self._repository.is_ancestor(candidate, target)

    def _find_earlier_landing(self, task: Task) -> str | None:
        """Return the commit that a dead conductor landed for a work item; None if it landed none."""
        target = self._context.target_commit()
        self._advance_effects = list(
            self._context.log.effects.find(self._context.run_id, tool="conductor.advance", task_id=task.id, limit=100)
        )
        for effect in self._advance_effects:
            candidate, old = str(effect.facts["candidate"]), str(effect.facts["old"])
            if self._is_landed(candidate):
                self._advance(effect.step, task.id, candidate, old)
                return candidate
            if old != target:
                # The target only moves forward, so this step can no longer succeed.
                self._context.effects.abandon(effect)
        return None


WAIT_SECONDS = 1.0
TROUBLE_SECONDS = 30.0
CHECKS_AT_ONCE = 2
# Errors of a log that may be reachable again later.
_UNREACHABLE = (Busy, Unreachable)


class Conductor:
    """Works on one run in this process. `stop` lets agents finish; `stop_now` ends them and saves their work."""

    def __init__(self, context: RunContext, on_change: Callable[[], object] = lambda: None) -> None:
        if context.configuration.is_reviewed and context.reviewer is None:
            raise Invalid("the settings require a review, but no reviewer was given", hint="Start the run with: decklog run")
        self._context = context
        self._on_change = on_change
        self._log = context.log
        self._stopping = threading.Event()
        self._stopping_now = threading.Event()
        # Whether it was stopped before its work was finished.
        self.is_interrupted = False
        # Set when a stage has ended, to claim the next stages and to search for overlaps.
        self._changed, self._stage_ended = threading.Event(), threading.Event()
        self._slots = {LAND: 1, CHECK: CHECKS_AT_ONCE, PLAN: 1, WORK: context.configuration.agents_at_once}
        self._busy: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._has_budget = True
        # When all tasks were last read: there may be thousands, with many changes in a second.
        self._scanned_at = -WAIT_SECONDS
        self._outages = Outages(context)
        self._overlaps = OverlapProbe(context)
        self._recovery = Recovery(context)
        self.trouble: str | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether it has stopped claiming tasks."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Stop claiming tasks; running agents finish."""
        self.is_interrupted = True
        self._stop_claiming()

    def stop_now(self) -> None:
        """Stop claiming tasks, and end running agents and checks."""
        self._stopping_now.set()
        self.stop()

    def _stop_claiming(self) -> None:
        self._stopping.set()
        self._changed.set()

    def run(self) -> None:
        """Work until no task is left to claim, or until `stop` is called."""
        self._outages.allow_retry(self._all_agents)
        adopted = self._recovery.adopt_agents()
        with ThreadPoolExecutor(len(adopted) + sum(self._slots.values()) + 1, thread_name_prefix="conductor") as pool:
            futures = [pool.submit(self._housekeep)]
            futures += [self._submit(pool, claim, partial(self._resume_agent, fence=fence)) for claim, fence in adopted]
            try:
                while not self._stopping.is_set() and not self._is_finished():
                    futures = [one for one in futures if not one.done() or one.exception()] + self._claim_all(pool)
                    self._changed.wait(WAIT_SECONDS)
                    self._changed.clear()
                    self._on_change()
            finally:
                self._stop_claiming()
        for future in futures:
            future.result()
        if self._recovery.needs_cleanup:
            self._recovery.clean_up()
        self._overlaps.search(with_workspaces=False)

    def _housekeep(self) -> None:
        """Search for overlaps, reopen gates of agents that are logged in again, and clean up after lost attempts."""
        try:
            while not self._stopping.wait(WAIT_SECONDS):
                is_changed = self._stage_ended.is_set()
                self._stage_ended.clear()
                try:
                    self._overlaps.search_if_due(is_changed=is_changed)
                    self._outages.probe(self._all_agents)
                    if self._recovery.needs_cleanup and not self._context.refs.is_unreachable():
                        self._recovery.clean_up()
                except _UNREACHABLE as problem:
                    self.trouble = problem.message
        finally:
            self._stop_claiming()

    # Claims

    def _claim_all(self, pool: ThreadPoolExecutor) -> list[Future[None]]:
        """Claim ready tasks while there are free slots, and start their stages."""
        futures: list[Future[None]] = []
        handlers = {LAND: self._land, CHECK: self._check, PLAN: self._plan, WORK: self._work}
        if self._context.refs.is_unreachable():
            self.trouble = self._context.refs.trouble
            return futures
        for role, handle in handlers.items():
            while self._busy[role] < self._slots[role] and not self._stopping.is_set():
                if (claim := self._claim(role)) is None:
                    break
                futures.append(self._submit(pool, claim, handle))
        return futures

    def _claim(self, role: str) -> Claim | None:
        is_paid = role in (PLAN, WORK)
        try:
            if is_paid and self._can_start_no_agent(role):
                return None
            return self._log.tasks.claim(
                self._context.run_id,
                worker=self._context.holder,
                role=role,
                lease_seconds=self._context.configuration.lease_seconds,
                reserve_microdollars=self._context.configuration.item_microdollars if is_paid else None,
            )
        except BudgetExceeded as problem:
            self.trouble = problem.message
            self._has_budget = False
        except Unavailable as problem:
            self.trouble = problem.message
        return None

    def _can_start_no_agent(self, role: str) -> bool:
        """Return whether no agent can be started now."""
        if self._outages.is_disk_full():
            self.trouble = f"the disk of {self._context.repository.state} is full: no new work is started"
            return True
        configuration = self._context.configuration
        strategists = [configuration.agents[name] for name in configuration.strategists]
        return self._outages.are_all_closed(strategists if role == PLAN else self._all_agents)

    @property
    def _all_agents(self) -> list[Description]:
        """All agents of the settings; a plan may name any of them."""
        return list(self._context.configuration.agents.values())

    # Stages

    def _submit(self, pool: ThreadPoolExecutor, claim: Claim, handle: Callable[[Claim], None]) -> Future[None]:
        """Start the stage of a claimed task. An adopted agent already runs, so it takes a slot even if none is free."""
        role = str(claim.task.role)
        with self._lock:
            self._busy[role] += 1
        return pool.submit(self._handle, role, claim, handle)

    def _handle(self, role: str, claim: Claim, handle: Callable[[Claim], None]) -> None:
        """Run the stage of a task. An unexpected error stops the conductor, and `run` raises it."""
        try:
            with claim:
                try:
                    handle(claim)
                except LeaseLost:
                    raise
                except (DecklogError, OSError) as problem:
                    self._handle_error(claim, problem)
        except (LeaseLost, *_UNREACHABLE) as problem:
            # The task's new owner continues it. A lease that can't be released expires.
            self.trouble = problem.message
            self._recovery.needs_cleanup = True
        except BaseException:
            self._stopping.set()
            raise
        finally:
            with self._lock:
                self._busy[role] -= 1
            # The unspent part of its reservation is free again.
            self._has_budget = True
            self._stage_ended.set()
            self._changed.set()

    def _handle_error(self, claim: Claim, problem: DecklogError | OSError) -> None:
        self.trouble = str(problem)
        if claim.is_over:
            return
        if isinstance(problem, Interrupted):
            self._context.stages.interrupt(claim, self.trouble)
        elif isinstance(problem, (Unavailable, OSError)):
            # No task is claimed while the remote is unreachable, so no further wait is needed.
            is_unreachable = self._context.refs.is_unreachable()
            later = None if is_unreachable else self._log.clock.now() + timedelta(seconds=TROUBLE_SECONDS)
            claim.release(self.trouble, not_before=later)
        else:
            self._context.stages.end_attempt(claim, problem.code, self.trouble)

    def _build_stop_check(self, claim: Claim) -> EndReason:
        race = escalation.RaceWatch(self._log, self._context.stages.landing_of, claim.task)

        def end_reason() -> str | None:
            if claim.lost is not None:
                return "lease"
            if self._stopping_now.is_set():
                return "stopped"
            return escalation.LOST_RACE if race.is_lost() else None

        return end_reason

    def _build_attempt(self, claim: Claim, **given: Any) -> WorkAttempt:
        kind = PlanningAttempt if claim.task.role == PLAN else WorkAttempt
        return kind(self._context, claim, self._build_stop_check(claim), **given)

    def _resume_agent(self, claim: Claim, *, fence: int) -> None:
        self._build_attempt(claim, fence=fence).work()

    def _work(self, claim: Claim) -> None:
        if (unreported := find_unreported(self._context, claim.task)) is not None:
            self._build_attempt(claim, fence=unreported.fence).hand_over_unreported(unreported)
            return
        agents = self._context.configuration.agents_for(claim.task)
        agent = self._outages.choose(agents)
        if agent is None:
            later = self._outages.next_opening(agents) or self._log.clock.now() + timedelta(seconds=TROUBLE_SECONDS)
            claim.release("no agent can be started now; no attempt is used", not_before=later)
        else:
            self._build_attempt(claim, agent=agent).work()

    def _plan(self, claim: Claim) -> None:
        if not apply_granted_plan(self._context, claim):
            self._work(claim)

    def _check(self, claim: Claim) -> None:
        task, context, end_reason = claim.task, self._context, self._build_stop_check(claim)
        if end_reason() == escalation.LOST_RACE:
            context.stages.drop_race_loser(claim)
            return
        if Rounds(context).begin_if_requested(claim):
            return
        base, tip = str(task.inputs["base"]), str(task.inputs["tip"])
        context.refs.fetch_missing([base, tip])
        result = context.examine(task, base, tip, end_reason)
        if end_reason() == escalation.LOST_RACE:
            context.stages.drop_race_loser(claim)
        elif end_reason() is not None:
            claim.release("the conductor was stopped during the check")
        elif result.is_green:
            context.stages.pass_check(claim, result.findings)
        elif result.about is None:
            context.stages.fail_check(claim, result.findings)
        elif (denied := context.stages.was_denied(task)) is None:
            context.stages.ask_person(claim, result.about, result.findings)
        else:
            context.stages.fail_check(claim, [*result.findings, {"kind": "denied", "text": denied}])

    def _land(self, claim: Claim) -> None:
        MergeQueue(self._context, self._build_stop_check(claim)).land(claim)

    # The end

    def _is_finished(self) -> bool:
        """Return whether all tasks are done, blocked, or wait for a person; False while the log is unreachable."""
        try:
            return self._has_nothing_left()
        except _UNREACHABLE as problem:
            self.trouble = problem.message
            return False

    def _has_nothing_left(self) -> bool:
        is_running = bool(self._log.tasks.find(self._context.run_id, state="running", limit=1))
        if is_running and time.monotonic() < self._scanned_at + WAIT_SECONDS:
            return False
        self._scanned_at = time.monotonic()
        self._context.stages.resume_answered()
        if self._log.runs.get(self._context.run_id).status.value != "active":
            return True
        closed = self._outages.closed_gates()
        return not is_running and not any(self._can_continue(task, closed) for task in all_tasks(self._log, self._context.run_id))

    def _can_continue(self, task: Task, closed: dict[str, Gate]) -> bool:
        if task.state != "pending" or task.open_dependencies > 0:
            return task.state == "running"
        # Without budget no work is started, but finished work is still checked and landed.
        if task.role not in (PLAN, WORK):
            return task.role in (CHECK, LAND)
        return self._has_budget and not self._outages.needs_person(self._context.configuration.agents_for(task), closed)
