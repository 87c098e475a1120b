"""The conductor: lanes that claim the stages of a run one after the other, until there is nothing left that it can do."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from decklog.conductor import ladder
from decklog.conductor.checks.examination import Interrupted
from decklog.conductor.checks.overlap_probe import OverlapProbe
from decklog.conductor.lane import MergeQueue
from decklog.conductor.machines.taking_up import untold
from decklog.conductor.planning.strategist import PlanningAttempt, go_on_with
from decklog.conductor.recovery import Recovery
from decklog.conductor.site import RunContext
from decklog.conductor.stages import CHECK, LAND, PLAN, WORK, all_tasks
from decklog.conductor.weather import Weather
from decklog.conductor.working import WorkAttempt
from decklog.core.errors import BudgetExceeded, DecklogError, Invalid, LeaseLost, Unavailable

if TYPE_CHECKING:
    from decklog.conductor.agents.description import Description
    from decklog.stores.tasks.claim import Claim
    from decklog.stores.tasks.task import Task
    from decklog.stores.workflow.gates import Gate

WAIT_SECONDS = 1.0
SHORTEST_WAIT = 0.05
# So soon after its time a gate is tried, and whatever nobody told of is looked for, at the latest.
LONGEST_WAIT = 4.0
TROUBLE_SECONDS = 30.0
_EVERY_LANE = 10_000
CHECKS_AT_ONCE = 2
# Who may find something to do when a task of a stage is done; how else it may end may be anybody's business.
_NEXT = {WORK: (CHECK,), CHECK: (LAND, WORK), LAND: (WORK,)}
# So long a call of git that is kept open may have nothing to do.
REST_SECONDS = 10.0
# So long nothing was handed on before folders that nobody needs any more are removed.
QUIET_SECONDS = 3.0


class _Bell:
    """Wakes the lanes of one role that found nothing to claim; whoever begins to wait after it has rung is not left asleep.

    One at a time: who then finds something rings for the next, so that one task does not have every lane look for it.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self.rung = 0

    def ring(self, lanes: int = 1) -> None:
        with self._condition:
            self.rung += 1
            self._condition.notify(lanes)

    def wait(self, heard: int, seconds: float) -> None:
        """Wait until it has rung more often than was heard, or so long."""
        with self._condition:
            self._condition.wait_for(lambda: self.rung != heard, seconds)


class Conductor:
    """Works one run in this process. `stop` lets agents finish what they do; `stop_now` ends them, and keeps what they left."""

    def __init__(self, site: RunContext, on_change: Callable[[], object] = lambda: None) -> None:
        if site.configuration.is_reviewed and site.reviewer is None:
            raise Invalid("the settings ask for a review, and nobody was given who reviews", hint="Start it by: decklog run")
        self._site = site
        self._on_change = on_change
        self._log = site.log
        self._worker = site.holder
        self._stopping = threading.Event()
        self._ending = threading.Event()
        self._wanted_stop = False
        self._changed = threading.Event()
        self._bells = {role: _Bell() for role in (WORK, CHECK, LAND, PLAN)}
        self._room = threading.Semaphore(site.configuration.agents_at_once)
        self._has_money = True
        # When all tasks were last looked at: there may be thousands, and many changes in a second.
        self._looked_at = -WAIT_SECONDS
        self._handed_on_at = time.monotonic()
        self._lease_seconds = site.configuration.lease_seconds
        self._weather = Weather(site)
        self._overlaps = OverlapProbe(site)
        self.trouble: str | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._stopping.is_set()

    @property
    def is_interrupted(self) -> bool:
        """Whether somebody wanted it to stop before there was nothing left to do."""
        return self._wanted_stop

    def stop(self) -> None:
        """Claim nothing more."""
        self._wanted_stop = True
        self._end()

    def _end(self) -> None:
        self._stopping.set()
        self._changed.set()
        for bell in self._bells.values():
            bell.ring(_EVERY_LANE)

    def stop_now(self) -> None:
        """Claim nothing more, and end what runs."""
        self._ending.set()
        self.stop()

    def run(self) -> None:
        """Work until nothing is left that could be claimed, or until told to stop."""
        self._weather.person_came(self._everybody)
        with self._site.busy(CHECKS_AT_ONCE + 1):
            self._run()
        self._overlaps.look(with_places=False)

    def _run(self) -> None:
        recovery = Recovery(self._site, self._lease_seconds)
        adopted = recovery.take_over()
        lanes = [(WORK, self._work)] * self._site.configuration.agents_at_once
        lanes += [(CHECK, self._check)] * CHECKS_AT_ONCE + [(LAND, self._land), (PLAN, self._plan)]
        with ThreadPoolExecutor(len(adopted) + len(lanes) + 1, thread_name_prefix="conductor") as pool:
            under_way = [pool.submit(self._tidy)]
            under_way += [pool.submit(self._go_on, claim, fence) for claim, fence in adopted]
            under_way += [pool.submit(self._claims, role, handle) for role, handle in lanes]
            try:
                while not self._stopping.is_set() and not self._is_over():
                    is_changed = self._changed.wait(WAIT_SECONDS)
                    self._changed.clear()
                    self._on_change()
                    self._overlaps.look_again(is_changed=is_changed)
                    self._weather.probe(self._everybody)
                    if recovery.has_left and not self._site.tips.is_away():
                        recovery.clean_up()
                    self._site.repository.rest(REST_SECONDS)
                    # Many changes at once are told together.
                    self._stopping.wait(SHORTEST_WAIT)
            finally:
                self._end()
        for one in under_way:
            one.result()

    def _tidy(self) -> None:
        """Remove what is done with whenever nothing else is going on, or there is too much of it."""
        removal = self._site.removal
        while not self._stopping.wait(WAIT_SECONDS):
            if removal.is_full or time.monotonic() > self._handed_on_at + QUIET_SECONDS:
                removal.finish()
                self.trouble = removal.trouble or self.trouble

    # Lanes

    def _claims(self, role: str, handle: Callable[["Claim"], None]) -> None:
        """Claim one task after the other; a fault of our own stops all lanes, and is raised where they were started."""
        try:
            self._claim_on(role, handle)
        finally:
            self._end()

    def _claim_on(self, role: str, handle: Callable[["Claim"], None]) -> None:
        while not self._stopping.is_set():
            heard = self._bells[role].rung
            if self._is_remote_away() or (role in (PLAN, WORK) and self._is_bad_weather(role)):
                continue
            if role == WORK and not self._room.acquire(timeout=WAIT_SECONDS):
                continue
            claim = None
            try:
                claim = self._claim(role)
                if claim is not None:
                    # There may be more.
                    self._bells[role].ring()
                    self._held(claim, handle)
            except Unavailable as problem:
                self.trouble = problem.message
                self._stopping.wait(WAIT_SECONDS)
            finally:
                if role == WORK:
                    self._room.release()
            if claim is None:
                self._bells[role].wait(heard, LONGEST_WAIT)

    @property
    def _everybody(self) -> "list[Description]":
        """Everybody who may be started at all: a plan may name any agent that is described."""
        return list(self._site.configuration.agents.values())

    @property
    def _strategists(self) -> "list[Description]":
        return [self._site.configuration.agents[name] for name in self._site.configuration.strategists]

    def _is_remote_away(self) -> bool:
        """Return whether what is made here could be given to nobody now; wait a while if so, without a claim."""
        if not self._site.tips.is_away():
            return False
        self.trouble = self._site.tips.trouble
        self._stopping.wait(WAIT_SECONDS)
        return True

    def _is_bad_weather(self, role: str) -> bool:
        """Return whether no agent can be started now; wait a while if so, without a claim."""
        agents = self._strategists if role == PLAN else self._everybody
        is_full = self._weather.is_disk_full()
        if is_full:
            self.trouble = f"the disk of {self._site.repository.state} is full: nothing new is begun"
        elif not self._weather.are_all_shut(agents):
            return False
        opens_at = None if is_full else self._weather.opening(agents)
        left = LONGEST_WAIT if opens_at is None else (opens_at - self._log.clock.now()).total_seconds()
        self._stopping.wait(min(max(left, SHORTEST_WAIT), LONGEST_WAIT))
        return True

    def _claim(self, role: str) -> "Claim | None":
        money = self._site.configuration.piece_microdollars if role in (PLAN, WORK) else None
        try:
            return self._log.tasks.claim(
                self._site.run_id,
                worker=self._worker,
                role=role,
                lease_seconds=self._lease_seconds,
                reserve_microdollars=money,
            )
        except BudgetExceeded as problem:
            self.trouble = problem.message
            self._has_money = False
            self._changed.set()
            self._stopping.wait(WAIT_SECONDS)
            return None

    def _go_on(self, claim: "Claim", fence: int) -> None:
        """Go on with an agent that was adopted: it runs already, so it takes room where there is some and waits for none."""
        is_counted = self._room.acquire(blocking=False)
        try:
            self._held(claim, lambda held: self._attempt(held, fence=fence).work())
        finally:
            if is_counted:
                self._room.release()
            # It was no lane's, so that none goes on to the next by itself.
            self._ring()

    def _held(self, claim: "Claim", handle: Callable[["Claim"], None]) -> None:
        """Take a task through its stage; trouble that is nobody's fault gives it back."""
        try:
            with claim:
                try:
                    handle(claim)
                except LeaseLost:
                    raise
                except (DecklogError, OSError) as problem:
                    self._give_back(claim, problem)
        except LeaseLost as problem:
            # Whoever has the task now does what is to be done.
            self.trouble = problem.message
        finally:
            # What was reserved for it and not spent is free again.
            self._has_money = True
            self._handed_on_at = time.monotonic()
            self._changed.set()
            self._ring(_NEXT.get(str(claim.task.role), ()) if claim.task.state == "done" else ())

    def _give_back(self, claim: "Claim", problem: DecklogError | OSError) -> None:
        self.trouble = str(problem)
        if claim.is_over:
            return
        if isinstance(problem, Interrupted):
            self._site.stages.interrupted(claim, self.trouble)
        elif isinstance(problem, (Unavailable, OSError)):
            # While the remote is away nothing is claimed, and as soon as it is back there is nothing to wait for.
            is_away = self._site.tips.is_away()
            later = None if is_away else self._log.clock.now() + timedelta(seconds=TROUBLE_SECONDS)
            claim.release(self.trouble, not_before=later)
        else:
            self._site.stages.unfinished(claim, problem.code, self.trouble)

    def _ender(self, claim: "Claim") -> Callable[[], str | None]:
        race = ladder.RaceWatch(self._log, self._site.stages.landing_of, claim.task)

        def wanted_end() -> str | None:
            if claim.lost is not None:
                return "lease"
            if self._ending.is_set():
                return "stopped"
            return ladder.OUTRUN if race.is_lost() else None

        return wanted_end

    # Stages

    def _work(self, claim: "Claim") -> None:
        if (left := untold(self._site, claim.task)) is not None:
            self._attempt(claim, fence=left.fence).go_on_from(left)
            return
        agents = self._site.configuration.agents_for(claim.task)
        agent = self._weather.chosen(agents)
        if agent is None:
            later = self._weather.opening(agents) or self._log.clock.now() + timedelta(seconds=TROUBLE_SECONDS)
            claim.release("no agent can be started now; no attempt is used", not_before=later)
        else:
            self._attempt(claim, agent=agent).work()

    def _plan(self, claim: "Claim") -> None:
        if not go_on_with(self._site, claim):
            self._work(claim)

    def _attempt(self, claim: "Claim", **given: "Any") -> WorkAttempt:
        kind = PlanningAttempt if claim.task.role == PLAN else WorkAttempt
        return kind(self._site, claim, self._ender(claim), **given)

    def _check(self, claim: "Claim") -> None:
        task, site, ender = claim.task, self._site, self._ender(claim)
        if ender() == ladder.OUTRUN:
            site.stages.outrun(claim)
            return
        if site.rounds.has_another(claim):
            return
        site.tips.bring([task.inputs["base"], task.inputs["tip"]])
        found = site.examined(task, str(task.inputs["base"]), str(task.inputs["tip"]), ender)
        if ender() == ladder.OUTRUN:
            site.stages.outrun(claim)
        elif ender() is not None:
            claim.release("it was being checked when the conductor was told to stop")
        elif found.is_green:
            site.stages.passed(claim, found.findings)
        elif found.about is None:
            site.stages.failed(claim, found.findings)
        elif (denied := site.stages.was_denied(task)) is None:
            site.stages.asked(claim, found.about, found.findings)
        else:
            site.stages.failed(claim, [*found.findings, {"kind": "denied", "text": denied}])

    def _land(self, claim: "Claim") -> None:
        MergeQueue(self._site, self._ender(claim)).land(claim)

    # The end

    def _is_over(self) -> bool:
        """Return whether nothing is left that this run could do by itself: only done, blocked, or waiting for a person."""
        is_running = bool(self._log.tasks.find(self._site.run_id, state="running", limit=1))
        if is_running and time.monotonic() < self._looked_at + WAIT_SECONDS:
            return False
        self._looked_at = time.monotonic()
        self._site.stages.resume_answered()
        if self._log.runs.get(self._site.run_id).status.value != "active":
            return True
        if is_running:
            # It may be another conductor's doing, or somebody's time has come: lanes find that out faster than a look at all.
            self._ring()
            return False
        return not self._is_anything_left()

    def _is_anything_left(self) -> bool:
        """Look at all tasks, of which nobody has one: wake the lanes if there is something for them."""
        closed, now = self._weather.closed(), self._log.clock.now()
        going_on = [task for task in all_tasks(self._log, self._site.run_id) if self._can_go_on(task, closed)]
        if any(task.state == "pending" and (task.not_before is None or task.not_before <= now) for task in going_on):
            self._ring()
        return bool(going_on)

    def _ring(self, roles: "tuple[str, ...]" = ()) -> None:
        """Have a lane of each of these roles, or of every role, look whether there is something to do."""
        for role in roles or self._bells:
            self._bells[role].ring()

    def _can_go_on(self, task: "Task", closed: "dict[str, Gate]") -> bool:
        if task.state != "pending" or task.open_dependencies > 0:
            return task.state == "running"
        # Without money nothing new is begun; what is begun is still checked and landed.
        if task.role not in (PLAN, WORK):
            return task.role in (CHECK, LAND)
        return self._has_money and not self._weather.is_hopeless(self._site.configuration.agents_for(task), closed)
