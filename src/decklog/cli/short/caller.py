"""A caller of the short way: who it is, on which log, and which run, task and fence it means."""

import os
from datetime import timedelta

from decklog.caller.claims import Claims, Remembered, folder_beside
from decklog.caller.worker import worker
from decklog.cli.call import Usage
from decklog.clock import from_text, to_text
from decklog.errors import NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from decklog import Decklog, Task
    from decklog.cli.call import Call
    from decklog.place.locate import Place

GET_ONE = "Get one: decklog next"


class Caller:
    """Who calls. What a call names goes before what the environment names, and that before what was claimed last."""

    def __init__(self, call: "Call", place: "Place", log: "Decklog", options: "dict[str, str | int | None]") -> None:
        self.log = log
        named = options.get("as_")
        self.worker = worker(None if named is None else str(named))
        self.claims = Claims(folder_beside(place), self.worker)
        self._agent = call.agent or os.environ.get("DECKLOG_AGENT") or self.worker.name
        self._agent_id = call.agent_id or os.environ.get("DECKLOG_AGENT_ID")
        self.run_id = _given(options, "run", "DECKLOG_RUN_ID")
        self._task_id = _given(options, "task", "DECKLOG_TASK_ID")
        self._fence = _given(options, "fence", "DECKLOG_FENCE") if self._task_id else None
        if options.get("fence") is not None and not self._task_id:
            raise Usage("--fence is the number of a task's claim, and no task is named", hint="Add --task TASK, or leave it out.")

    @property
    def is_given_a_task(self) -> bool:
        """Whether somebody else claimed a task for this worker, and so decides what it does next."""
        return self._fence is not None

    # What it has

    def claim(self, *, or_ended: bool = False) -> Remembered | None:
        """Give the claim that this call is about; None when the worker has none. One that it ended itself counts if asked for."""
        found = self.claims.load()
        if self._task_id is not None and (found is None or found.task_id != self._task_id or self._fence is not None):
            return self._named_claim()
        return found if found is not None and (found.is_open or or_ended) else None

    def _named_claim(self) -> Remembered:
        assert self._task_id is not None
        if self._fence is None or not self._fence.isdecimal():
            raise Usage(
                f"{self.worker.name} did not claim task {self._task_id}, and no number says that it is yours",
                hint=f"Add --fence N as the claim gave it, or take what is next: decklog next --as {self.worker.name}",
            )
        task = self.log.tasks.get(self._task_id)
        return self.of_task(task, int(self._fence), None)

    def of_task(self, task: "Task", fence: int, lease_seconds: float | None) -> Remembered:
        """Make what is to be remembered of a task that is held from now on."""
        return Remembered(task.run_id, task.id, fence, lease_seconds or LEASE_SECONDS, to_text(self.log.clock.now()))

    def must_have(self, *, or_ended: bool = False) -> Remembered:
        """Give the claim that this call is about; refuse a worker that has none."""
        claim = self.claim(or_ended=or_ended)
        if claim is None:
            others = self.claims.other_names()
            hint = f"You have one as {others[0]}: add --as {others[0]}" if others else GET_ONE
            raise NotFound(f"{self.worker.name} has no task", hint=hint, worker=self.worker.name)
        return claim

    def claim_here(self) -> Remembered | None:
        """Give the claim that this call is about, unless it names another run: then it is about that run alone."""
        claim = self.claim()
        return claim if claim is None or self.run_id in (None, claim.run_id) else None

    def keep(self, claim: Remembered) -> None:
        """Remember a claim, unless whoever started this worker keeps it."""
        if self._fence is None:
            self.claims.keep(claim)

    def end(self, claim: Remembered) -> None:
        """Remember that the worker ended its task: its run is still the one that it works in."""
        claim.is_open = False
        self.keep(claim)

    def renew(self, claim: Remembered) -> None:
        """Keep a lease alive of which a third is over: an agent that writes is at work."""
        now = self.log.clock.now()
        if now < from_text(claim.renewed_at) + timedelta(seconds=claim.lease_seconds / 3):
            return
        self.log.tasks.extend(claim.task_id, fence=claim.fence, lease_seconds=claim.lease_seconds)
        claim.renewed_at = to_text(now)
        self.keep(claim)

    def acting(self, claim: Remembered | None) -> "AbstractContextManager[None]":
        """Attribute what is written to this worker and its task, and have it refused once the lease is lost."""
        if claim is None:
            return self.log.acting(self._agent, agent_id=self._agent_id)
        return self.log.acting(self._agent, agent_id=self._agent_id, task_id=claim.task_id, fence=claim.fence)

    # The run

    def find_run(self, claim: Remembered | None = None) -> str | None:
        """Name the run that this call is about: as it says, that of its task, the last one, or the only one under way."""
        last = claim or self.claims.load()
        if self.run_id is not None or last is not None:
            return self.run_id or (None if last is None else last.run_id)
        under_way = self.under_way()
        return under_way[0] if len(under_way) == 1 else None

    def run(self, claim: Remembered | None = None) -> str:
        """Name the run that this call is about; refuse where there is none, or several and none was named."""
        if (found := self.find_run(claim)) is not None:
            return found
        under_way = self.under_way()
        if not under_way:
            raise NotFound("no run is under way", hint='Start one: decklog runs start "GOAL"')
        raise Usage(
            f"several runs are under way: {', '.join(under_way)}", hint=f"Say which: --run {under_way[0]}", runs=under_way
        )

    def under_way(self) -> list[str]:
        """Name the runs that give out work, the newest first, as many as a person looks through."""
        from decklog import RunStatus

        found = [
            run for status in (RunStatus.ACTIVE, RunStatus.PLANNING) for run in self.log.runs.find(status=status, limit=_RUNS)
        ]
        return [run.id for run in found]


# Agents think longer than programs do between two calls.
LEASE_SECONDS = 1800.0
_RUNS = 10


def _given(options: "dict[str, str | int | None]", name: str, variable: str) -> str | None:
    found = options.get(name)
    return str(found) if found is not None else os.environ.get(variable)
