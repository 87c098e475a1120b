"""The conductor: claims the stages of a run and works on them in threads, until there is nothing left that it can do."""

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
from decklog.conductor.attempt import PlanningAttempt, WorkAttempt, find_unreported, work_granted_plan
from decklog.conductor.checks.examination import Interrupted
from decklog.conductor.context import RunContext, WantedEnd
from decklog.conductor.git.changes import changes
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
    """Lands work items of one run."""

    def __init__(self, context: RunContext, wanted_end: WantedEnd) -> None:
        self._context = context
        self._repository = context.repository
        self._wanted_end = wanted_end
        # Earlier steps to land the work item. Only the owner of the task adds to them.
        self._begun: list[Effect] = []

    def land(self, claim: Claim) -> None:
        """Land a work item that passed its checks, or hand it on."""
        if claim.task.inputs.get("parts"):
            # It was replaced by others, and all of them have landed.
            self._record(claim, self._context.target_commit())
            return
        landed = self._landed_before(claim.task)
        if landed is not None:
            self._record_change(claim, landed)
            return
        if Rounds(self._context).has_another(claim):
            return
        for _ in range(MOST_RACES):
            if self._tried(claim):
                return
        claim.release("the target moved each time; it goes to the end of the queue")

    def _tried(self, claim: Claim) -> bool:
        """Try to land a work item on the target as it is now; return whether the task is handed on."""
        task = claim.task
        target, tip = self._context.target_commit(), str(task.inputs["tip"])
        self._context.tips.fetch_missing([tip])
        merged = self._repository.merge(target, tip)
        if merged.conflicts:
            text = "it does not merge with what has landed since"
            self._context.stages.rework(claim, target, [{"kind": "conflict", "text": text, "paths": list(merged.conflicts)}])
            return True
        if merged.tree == self._repository.tree(target):
            self._record(claim, target)
            return True
        candidate = self._candidate(task, merged.tree, target)
        if self._is_handed_on(claim, target, candidate):
            return True
        if not self._advance(f"advance:{task.id}:{candidate}:{target}", task.id, candidate, target):
            return False
        self._record_change(claim, candidate)
        return True

    def _candidate(self, task: Task, tree: str, target: str) -> str:
        """Create the commit to land; the same merge gives the same commit."""
        title = task.title.removeprefix("Land: ")
        message = f"{title}\n\nDecklog-Run: {self._context.run_id}\nDecklog-Task: {task.id}\n"
        commit = self._repository.commit(tree, [target], message, self._context.person, int(str(task.inputs["at"])))
        kill_points.reached("lane:candidate")
        return commit

    def _is_handed_on(self, claim: Claim, target: str, candidate: str) -> bool:
        """Examine a candidate; return whether it is handed on instead of landed."""
        stages = self._context.stages
        found = self._context.examine(claim.task, target, candidate, self._wanted_end)
        if found.is_green:
            # Somebody may have asked for another round meanwhile.
            return Rounds(self._context).has_another(claim)
        if self._wanted_end() is not None:
            claim.release("the conductor was stopped while it was being checked")
        elif found.about is not None and stages.was_denied(claim.task) is None:
            stages.ask_person(claim, found.about, found.findings)
        else:
            stages.rework(claim, target, found.findings)
        return True

    def _record_change(self, claim: Claim, commit: str) -> None:
        changed = changes(self._repository, self._repository.parents(commit)[0], commit)
        self._record(claim, commit, [one.path for one in changed])

    def _record(self, claim: Claim, commit: str, files: Sequence[str] = ()) -> None:
        """Record that a work item has landed, and abandon other steps to land it."""
        for effect in self._begun:
            self._context.effects.abandon(effect)
        with self._context.log.transaction():
            self._context.stages.record_landing(claim, commit, self._repository.tree(commit), files)
            Rounds(self._context).landed(claim.task, commit)

    def _advance(self, step: str, task_id: str, candidate: str, old: str) -> bool:
        """Move the target to the candidate if it is still where it was; return whether it moved."""
        moved: bool = self._context.effects.perform(
            step,
            lambda: self._context.tips.advance(candidate, old),
            lambda _: EffectCheck(self._is_landed(candidate), True),
            task_id=task_id,
            facts={"candidate": candidate, "old": old},
        )
        return moved

    def _is_landed(self, candidate: str) -> bool:
        target = self._context.target_commit()
        # A candidate of another host that did not land may be missing here.
        return self._repository.has(candidate) and self._repository.is_ancestor(candidate, target)

    def _landed_before(self, task: Task) -> str | None:
        """Return the commit of a work item that a dead conductor landed; None if there is none."""
        target = self._context.target_commit()
        self._begun = list(
            self._context.log.effects.find(self._context.run_id, tool="conductor.advance", task_id=task.id, limit=100)
        )
        for effect in self._begun:
            candidate, old = str(effect.facts["candidate"]), str(effect.facts["old"])
            if self._is_landed(candidate):
                self._advance(effect.step, task.id, candidate, old)
                return candidate
            if old != target:
                # The target never goes back, so this step can't succeed any more.
                self._context.effects.abandon(effect)
        return None


WAIT_SECONDS = 1.0
TROUBLE_SECONDS = 30.0
CHECKS_AT_ONCE = 2
# A log that can be reached again later.
_OUT_OF_REACH = (Busy, Unreachable)


class Conductor:
    """Works on one run in this process. `stop` lets agents finish; `stop_now` ends them, and keeps what they left."""

    def __init__(self, context: RunContext, on_change: Callable[[], object] = lambda: None) -> None:
        if context.configuration.is_reviewed and context.reviewer is None:
            raise Invalid("the settings ask for a review, and nobody was given who reviews", hint="Start it by: decklog run")
        self._context = context
        self._on_change = on_change
        self._log = context.log
        self._stopping = threading.Event()
        self._ending = threading.Event()
        self._wanted_stop = False
        # Set when a stage has ended: for the claims of the next stages, and for the search for overlaps.
        self._changed, self._handed_on = threading.Event(), threading.Event()
        self._slots = {LAND: 1, CHECK: CHECKS_AT_ONCE, PLAN: 1, WORK: context.configuration.agents_at_once}
        self._busy: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._has_money = True
        # When all tasks were last looked at: there may be thousands, and many changes in a second.
        self._looked_at = -WAIT_SECONDS
        self._outages = Outages(context)
        self._overlaps = OverlapProbe(context)
        self._recovery = Recovery(context)
        self.trouble: str | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether it claims nothing more."""
        return self._stopping.is_set()

    @property
    def is_interrupted(self) -> bool:
        """Whether it was stopped before there was nothing left to do."""
        return self._wanted_stop

    def stop(self) -> None:
        """Claim nothing more."""
        self._wanted_stop = True
        self._end()

    def stop_now(self) -> None:
        """Claim nothing more, and end what runs."""
        self._ending.set()
        self.stop()

    def _end(self) -> None:
        self._stopping.set()
        self._changed.set()

    def run(self) -> None:
        """Work until nothing is left to claim, or until it is stopped."""
        self._outages.allow_retry(self._everybody)
        adopted = self._recovery.take_over()
        with ThreadPoolExecutor(len(adopted) + sum(self._slots.values()) + 1, thread_name_prefix="conductor") as pool:
            begun = [pool.submit(self._housekeep)]
            begun += [self._submit(pool, claim, partial(self._go_on, fence=fence)) for claim, fence in adopted]
            try:
                while not self._stopping.is_set() and not self._is_over():
                    begun = [one for one in begun if not one.done() or one.exception()] + self._claim_all(pool)
                    self._changed.wait(WAIT_SECONDS)
                    self._changed.clear()
                    self._on_change()
            finally:
                self._end()
        for one in begun:
            one.result()
        if self._recovery.has_left:
            self._recovery.clean_up()
        self._overlaps.look(with_workspaces=False)

    def _housekeep(self) -> None:
        """Look for overlaps, for agents that are logged in again, and for what lost attempts have left."""
        try:
            while not self._stopping.wait(WAIT_SECONDS):
                is_changed = self._handed_on.is_set()
                self._handed_on.clear()
                try:
                    self._overlaps.look_again(is_changed=is_changed)
                    self._outages.probe(self._everybody)
                    if self._recovery.has_left and not self._context.tips.is_away():
                        self._recovery.clean_up()
                except _OUT_OF_REACH as problem:
                    self.trouble = problem.message
        finally:
            self._end()

    # Claims

    def _claim_all(self, pool: ThreadPoolExecutor) -> list[Future[None]]:
        """Claim what there is to do, as far as there are free slots, and begin it."""
        begun: list[Future[None]] = []
        handlers = {LAND: self._land, CHECK: self._check, PLAN: self._plan, WORK: self._work}
        if self._context.tips.is_away():
            self.trouble = self._context.tips.trouble
            return begun
        for role, handle in handlers.items():
            while self._busy[role] < self._slots[role] and not self._stopping.is_set():
                if (claim := self._claim(role)) is None:
                    break
                begun.append(self._submit(pool, claim, handle))
        return begun

    def _claim(self, role: str) -> Claim | None:
        is_paid = role in (PLAN, WORK)
        try:
            if is_paid and self._is_outage(role):
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
            self._has_money = False
        except Unavailable as problem:
            self.trouble = problem.message
        return None

    def _is_outage(self, role: str) -> bool:
        """Return whether no agent can be started now."""
        if self._outages.is_disk_full():
            self.trouble = f"the disk of {self._context.repository.state} is full: nothing new is begun"
            return True
        configuration = self._context.configuration
        strategists = [configuration.agents[name] for name in configuration.strategists]
        return self._outages.are_all_shut(strategists if role == PLAN else self._everybody)

    @property
    def _everybody(self) -> list[Description]:
        """All agents: a plan may name any that is described."""
        return list(self._context.configuration.agents.values())

    # Stages

    def _submit(self, pool: ThreadPoolExecutor, claim: Claim, handle: Callable[[Claim], None]) -> Future[None]:
        """Begin the stage of a claimed task. An adopted agent takes a slot even if none is free, since it runs already."""
        role = str(claim.task.role)
        with self._lock:
            self._busy[role] += 1
        return pool.submit(self._handle, role, claim, handle)

    def _handle(self, role: str, claim: Claim, handle: Callable[[Claim], None]) -> None:
        """Take a task through its stage. An unexpected error stops the conductor, and is raised by `run`."""
        try:
            with claim:
                try:
                    handle(claim)
                except LeaseLost:
                    raise
                except (DecklogError, OSError) as problem:
                    self._give_back(claim, problem)
        except (LeaseLost, *_OUT_OF_REACH) as problem:
            # The new owner of the task goes on with it; a lease that can't be given back expires.
            self.trouble = problem.message
            self._recovery.has_left = True
        except BaseException:
            self._stopping.set()
            raise
        finally:
            with self._lock:
                self._busy[role] -= 1
            # What was reserved for it and not spent is free again.
            self._has_money = True
            self._handed_on.set()
            self._changed.set()

    def _give_back(self, claim: Claim, problem: DecklogError | OSError) -> None:
        self.trouble = str(problem)
        if claim.is_over:
            return
        if isinstance(problem, Interrupted):
            self._context.stages.interrupt(claim, self.trouble)
        elif isinstance(problem, (Unavailable, OSError)):
            # Nothing is claimed during an outage of the remote, so no further wait is needed.
            is_away = self._context.tips.is_away()
            later = None if is_away else self._log.clock.now() + timedelta(seconds=TROUBLE_SECONDS)
            claim.release(self.trouble, not_before=later)
        else:
            self._context.stages.end_attempt(claim, problem.code, self.trouble)

    def _ender(self, claim: Claim) -> WantedEnd:
        race = escalation.RaceWatch(self._log, self._context.stages.landing_of, claim.task)

        def wanted_end() -> str | None:
            if claim.lost is not None:
                return "lease"
            if self._ending.is_set():
                return "stopped"
            return escalation.OUTRUN if race.is_lost() else None

        return wanted_end

    def _attempt(self, claim: Claim, **given: Any) -> WorkAttempt:
        kind = PlanningAttempt if claim.task.role == PLAN else WorkAttempt
        return kind(self._context, claim, self._ender(claim), **given)

    def _go_on(self, claim: Claim, *, fence: int) -> None:
        self._attempt(claim, fence=fence).work()

    def _work(self, claim: Claim) -> None:
        if (left := find_unreported(self._context, claim.task)) is not None:
            self._attempt(claim, fence=left.fence).go_on_from(left)
            return
        agents = self._context.configuration.agents_for(claim.task)
        agent = self._outages.choose(agents)
        if agent is None:
            later = self._outages.next_opening(agents) or self._log.clock.now() + timedelta(seconds=TROUBLE_SECONDS)
            claim.release("no agent can be started now; no attempt is used", not_before=later)
        else:
            self._attempt(claim, agent=agent).work()

    def _plan(self, claim: Claim) -> None:
        if not work_granted_plan(self._context, claim):
            self._work(claim)

    def _check(self, claim: Claim) -> None:
        task, context, ender = claim.task, self._context, self._ender(claim)
        if ender() == escalation.OUTRUN:
            context.stages.drop_outrun(claim)
            return
        if Rounds(context).has_another(claim):
            return
        base, tip = str(task.inputs["base"]), str(task.inputs["tip"])
        context.tips.fetch_missing([base, tip])
        found = context.examine(task, base, tip, ender)
        if ender() == escalation.OUTRUN:
            context.stages.drop_outrun(claim)
        elif ender() is not None:
            claim.release("the conductor was stopped while it was being checked")
        elif found.is_green:
            context.stages.pass_check(claim, found.findings)
        elif found.about is None:
            context.stages.fail_check(claim, found.findings)
        elif (denied := context.stages.was_denied(task)) is None:
            context.stages.ask_person(claim, found.about, found.findings)
        else:
            context.stages.fail_check(claim, [*found.findings, {"kind": "denied", "text": denied}])

    def _land(self, claim: Claim) -> None:
        MergeQueue(self._context, self._ender(claim)).land(claim)

    # The end

    def _is_over(self) -> bool:
        """Return whether all tasks are done, blocked, or wait for a person; no as long as the log can't be reached."""
        try:
            return self._has_nothing_left()
        except _OUT_OF_REACH as problem:
            self.trouble = problem.message
            return False

    def _has_nothing_left(self) -> bool:
        is_running = bool(self._log.tasks.find(self._context.run_id, state="running", limit=1))
        if is_running and time.monotonic() < self._looked_at + WAIT_SECONDS:
            return False
        self._looked_at = time.monotonic()
        self._context.stages.resume_answered()
        if self._log.runs.get(self._context.run_id).status.value != "active":
            return True
        closed = self._outages.closed_gates()
        return not is_running and not any(self._can_go_on(task, closed) for task in all_tasks(self._log, self._context.run_id))

    def _can_go_on(self, task: Task, closed: dict[str, Gate]) -> bool:
        if task.state != "pending" or task.open_dependencies > 0:
            return task.state == "running"
        # Without money nothing new is begun; what is begun is still checked and landed.
        if task.role not in (PLAN, WORK):
            return task.role in (CHECK, LAND)
        return self._has_money and not self._outages.is_hopeless(self._context.configuration.agents_for(task), closed)
