"""Record an agent loop as a run."""

from typing import Any

from decklog.agents.closing import close_interrupted, close_open, own_identity
from decklog.agents.entries import cut_text
from decklog.agents.events import CallOutcome
from decklog.agents.texts import storable
from decklog.aio.log import AsyncDecklog
from decklog.core.errors import Invalid
from decklog.log import Decklog
from decklog.plugins.adapters.loops.calls import F, LoopCall, LoopRun, LoopStep, current_span, run_off_loop, wrap_function
from decklog.stores.money.records import Charge
from decklog.stores.runs.run import ENDED, Run, RunStatus

_STATUS = {CallOutcome.OK: RunStatus.COMPLETED, CallOutcome.FAILED: RunStatus.FAILED}
_MOST_SUMMARY = 2000
# Each new run checks this number of the newest runs for dead processes, which are seldom older.
_MOST_RUNS_CHECKED = 100


class Recorded(LoopRun):
    """One run of a loop. Inside another run of the same log it is a child of that run."""

    def __init__(self, log: Decklog | AsyncDecklog, goal: str, settings: dict[str, Any]) -> None:
        own = log.log if isinstance(log, AsyncDecklog) else log
        super().__init__(own, settings.get("agent") or "agent", settings.get("task_id"))
        self._goal = goal
        self._settings = settings
        self._run: Run | None = None

    @property
    def id(self) -> str:
        """The run's id."""
        assert self._run is not None, "the run has not begun yet"
        return self._run.id

    def begin(self) -> None:
        around = None if self._outer is None else self._outer.run
        parent = around.id if around is not None and around.log is self.log else None
        if parent is None:
            close_interrupted(self.log, most=_MOST_RUNS_CHECKED)
        metadata = {**(self._settings.get("metadata") or {}), "agent": self.agent, "process": own_identity()}
        names = {name: self._settings[name] for name in ("run_id", "key") if self._settings.get(name)}
        run = self._run = self.log.runs.start(self._goal, parent_run_id=parent, metadata=metadata, **names)
        if run.already:
            self._resume(run, metadata)

    def _resume(self, run: Run, metadata: dict[str, Any]) -> None:
        """Resume an existing run; close its open steps and calls."""
        close_open(self.log, run.id)
        status = RunStatus.ACTIVE if run.status in ENDED else None
        self._run = self.log.runs.update(run.id, metadata={**run.metadata, **metadata}, status=status)

    def end(self, outcome: CallOutcome, output: str, _facts: dict[str, Any]) -> None:
        if self.log.runs.get(self.id).status in ENDED:
            return  # the loop finished the run itself
        status = _STATUS.get(outcome, RunStatus.CANCELLED)
        summary = cut_text(storable(output))[0][:_MOST_SUMMARY] or None
        self.log.runs.finish(self.id, status=status, summary=summary)

    # For use from any thread

    def step(self, name: str) -> LoopStep:
        """Begin a step of this run."""
        return LoopStep(name, self)

    def tool(self, name: str, **arguments: Any) -> LoopCall:
        """Record the use of a tool in this run."""
        return LoopCall(name, arguments, self)

    def charge(self, model: str, **given: Any) -> Charge:
        """Record the cost of a model call, with the arguments of `ledger.charge`.

        The money is already spent, so no budget refuses it; `overdrew` on the charge means that a budget is exhausted.
        """
        here = {"run_id": self.id, "task_id": self.task_id, "agent": self.agent, "enforce": False}
        return self.log.ledger.charge(model, **{**here, **given})

    async def acharge(self, model: str, **given: Any) -> Charge:
        """Record the cost of a model call without blocking the event loop."""
        charges: list[Charge] = []
        await run_off_loop(self.log, lambda: charges.append(self.charge(model, **given)))
        return charges[0]

    def __call__(self, function: F) -> F:
        """Record each call of a function as a run."""
        settings = {name: value for name, value in self._settings.items() if name not in ("run_id", "key")}
        return wrap_function(function, lambda _args, _kwargs: Recorded(self.log, self._goal, settings))  # type: ignore[no-any-return]


def recorded(
    log: Decklog | AsyncDecklog,
    goal: str,
    *,
    agent: str = "agent",
    run_id: str | None = None,
    key: str | None = None,
    task_id: str | None = None,
    metadata: dict[str, object] | None = None,
) -> Recorded:
    """Record a loop as a run: `with recorded(log, "Fix it") as run:`, `async with`, or as a decorator of its function.

    Leaving the block completes the run, an error fails it, and a cancellation cancels it. A known id or key continues that run.
    Runs of dead processes are closed as interrupted when the next run begins.
    """
    given = {"agent": agent, "run_id": run_id, "key": key, "task_id": task_id, "metadata": metadata}
    return Recorded(log, goal, given)


def charge(model: str, **given: Any) -> Charge:
    """Record a charge for a model call in the surrounding run, with the arguments of `ledger.charge`."""
    return current_run().charge(model, **given)


async def acharge(model: str, **given: Any) -> Charge:
    """Record a charge for a model call in the surrounding run, without blocking the event loop."""
    return await current_run().acharge(model, **given)


def current_run() -> Recorded:
    """Return the run that records the current code."""
    here = current_span.get()
    run = None if here is None else here.run
    if not isinstance(run, Recorded):
        raise Invalid(
            "nothing is being recorded here",
            hint="Begin with `recorded(log, goal)`; a thread sees it when it is started by `copy_context().run`.",
        )
    return run
