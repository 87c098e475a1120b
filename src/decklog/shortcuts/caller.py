"""The caller of a shortcut: its worker, its log, and the run, task and fence that it uses."""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from decklog.agents.caller import StoredClaim, StoredClaims, Worker
from decklog.agents.sessions import planned_runs
from decklog.core.clock import from_text, to_text
from decklog.core.display import one_line
from decklog.core.errors import Invalid, NotFound

if TYPE_CHECKING:
    from decklog import Approval, ClaimExplanation, Decklog, Task


@dataclass(frozen=True)
class Surface:
    """Differences between the command line and MCP: the form of calls and options, and what may be read."""

    call: Callable[..., str]
    option: Callable[[str, object], str]
    # Error for an ambiguous call.
    usage_error: type[Invalid]
    # Reads stdin, if there is one.
    read_input: Callable[[], str] | None = None
    # Whether an argument may name a file: only on the caller's file system.
    reads_files: bool = False


class ShortcutContext:
    """The arguments of a call, with defaults from the environment."""

    def __init__(self, named: Mapping[str, object], environment: Mapping[str, str]) -> None:
        def argument(name: str) -> str | None:
            found = named.get(name)
            return str(found) if found is not None else environment.get(f"DECKLOG_{name.upper()}")

        self.agent = argument("agent")
        self.agent_id = argument("agent_id")
        self.run_id = argument("run_id")
        self.task_id = argument("task_id")
        # A claim number without its task is useless.
        self.fence = argument("fence") if self.task_id else None


class Caller:
    """The caller of a shortcut. A call's own arguments come before the environment, and that before the last claim."""

    def __init__(self, log: "Decklog", worker: Worker, claims_folder: str, context: ShortcutContext, surface: Surface) -> None:
        self.log = log
        self.worker = worker
        self.surface = surface
        self.claims = StoredClaims(claims_folder, worker)
        self.run_id = context.run_id
        self._agent = context.agent or worker.name
        self._agent_id = context.agent_id
        self._task_id = context.task_id
        self._fence = context.fence

    @property
    def has_assigned_task(self) -> bool:
        """Whether the program that started this worker claimed a task for it."""
        return self._fence is not None

    # What it has

    def load_claim(self, *, or_ended: bool = False) -> StoredClaim | None:
        """Return the claim of this call, or None. `or_ended` includes one that the worker has ended."""
        found = self.claims.load()
        if self._task_id is None or (found is not None and found.task_id == self._task_id and self._fence is None):
            return found if found is not None and (found.is_open or or_ended) else None
        if self._fence is None or not self._fence.isdecimal():
            add = self.surface.option("fence", "N")
            raise self.surface.usage_error(
                f"{self.worker.name} did not claim task {self._task_id}, and no claim number shows that it is yours",
                hint=f"Add {add} as the claim gave it, or take what is next: {self.surface.call('next', as_=self.worker.name)}",
            )
        return self.build_claim(self.log.tasks.get(self._task_id), int(self._fence))

    def build_claim(self, task: "Task", fence: int, lease_seconds: float | None = None) -> StoredClaim:
        """Return the claim to store for a task."""
        return StoredClaim(task.run_id, task.id, fence, lease_seconds or LEASE_SECONDS, to_text(self.log.clock.now()))

    def require_claim(self, *, or_ended: bool = False) -> StoredClaim:
        """Return the claim of this call; raise NotFound if the worker has none."""
        claim = self.load_claim(or_ended=or_ended)
        if claim is None:
            others = self.claims.other_names()
            hint = f"You have one as {others[0]}: add {self.surface.option('as_', others[0])}" if others else self.next_hint
            raise NotFound(f"{self.worker.name} has no task", hint=hint, worker=self.worker.name)
        return claim

    @property
    def next_hint(self) -> str:
        return f"Get one: {self.surface.call('next')}"

    def current_claim(self) -> StoredClaim | None:
        """Return the claim of this call; None if the call names another run."""
        claim = self.load_claim()
        return claim if claim is None or self.run_id in (None, claim.run_id) else None

    def store_claim(self, claim: StoredClaim) -> None:
        """Store a claim, unless the program that started this worker does."""
        if self._fence is None:
            self.claims.store(claim)

    def store_end(self, claim: StoredClaim) -> None:
        """Store that the worker ended its task. It still works in the task's run."""
        claim.is_open = False
        self.store_claim(claim)

    def renew_lease(self, claim: StoredClaim) -> None:
        """Renew a lease of which a third is over: an agent that writes is at work."""
        now = self.log.clock.now()
        if now < from_text(claim.renewed_at) + timedelta(seconds=claim.lease_seconds / 3):
            return
        self.log.tasks.extend(claim.task_id, fence=claim.fence, lease_seconds=claim.lease_seconds)
        claim.renewed_at = to_text(now)
        self.store_claim(claim)

    def acting(self, claim: StoredClaim | None) -> AbstractContextManager[None]:
        """Attribute writes to this worker and its task, and reject them once the lease is lost."""
        if claim is None:
            return self.log.acting(self._agent, agent_id=self._agent_id)
        return self.log.acting(self._agent, agent_id=self._agent_id, task_id=claim.task_id, fence=claim.fence)

    # The run

    def find_run(self, claim: StoredClaim | None = None) -> str | None:
        """Return the run of this call: the named one, its task's, the last one, or the only running one."""
        last = claim or self.claims.load()
        if self.run_id is not None or last is not None:
            return self.run_id or (None if last is None else last.run_id)
        active_runs = self.active_runs()
        return active_runs[0] if len(active_runs) == 1 else None

    def require_run(self, claim: StoredClaim | None = None) -> str:
        """Return the run of this call; raise an error if there is none, or if it is ambiguous."""
        if (found := self.find_run(claim)) is not None:
            return found
        active_runs = self.active_runs()
        if not active_runs:
            raise NotFound("no run is under way", hint='Start one: decklog runs start "GOAL"')
        raise self.surface.usage_error(
            f"several runs are under way: {', '.join(active_runs)}",
            hint=f"Say which: {self.surface.option('run', active_runs[0])}",
            runs=active_runs,
        )

    def active_runs(self) -> list[str]:
        """Return the newest runs with tasks, up to a limit. Recorded sessions of agents have no plan and are left out."""
        from decklog import RunStatus

        found = (
            run.id for status in (RunStatus.ACTIVE, RunStatus.PLANNING) for run in planned_runs(self.log, status, _RUN_LIMIT)
        )
        return [*found]


# Agents think longer than programs do between two calls.
LEASE_SECONDS = 1800.0
_RUN_LIMIT = 10


# Results, as exit codes of the command line.
DONE, REFUSED, PENDING = 0, 6, 7


class ShortcutAnswer:
    """An answer; `reason` explains missing data."""

    def __init__(
        self,
        text: str,
        data: Any,
        *,
        code: int = DONE,
        reason: "ClaimExplanation | None" = None,
        warnings: Iterable[str] = (),
        notes: Iterable[str] = (),
    ) -> None:
        # Changes since the last call. They come before the answer.
        self.notes = list(notes)
        self.text = text
        self.data = data
        self.code = code
        self.reason = reason
        self.warnings = list(warnings)


def task_answer(task: "Task", answers: "list[Approval]", notes: Iterable[str] = ()) -> ShortcutAnswer:
    """Return a task for its worker, with the answers to questions about it."""
    details = {
        "do": task.objective,
        "done when": "; ".join(task.acceptance),
        "check with": "; ".join(task.verification),
        "only in": ", ".join(task.allowed_paths),
        "given": json.dumps(task.inputs, ensure_ascii=False) if task.inputs else "",
        "so far": task.stage or "",
        "last try": (task.summary or task.blocker or "") if task.attempts > 1 else "",
    }
    lines = [f"{task.id}  {one_line(task.title)}"]
    lines += [f"  {name}: {one_line(text)}" for name, text in details.items() if text]
    lines += [f"  asked: {one_line(approval.question or '')} -> {describe_approval(approval)}" for approval in answers]
    return ShortcutAnswer("\n".join(lines), task_data(task, answers), notes=notes)


def task_data(task: "Task", answers: "list[Approval]") -> dict[str, Any]:
    """Return the fields of a task that a worker needs, as JSON."""
    names = ("objective", "acceptance", "verification", "allowed_paths", "inputs", "stage")
    data: dict[str, Any] = {"task": task.id, "run": task.run_id, "title": task.title}
    data |= {name: value for name in names if (value := getattr(task, name))}
    data |= {"attempt": task.attempts, "fence": task.fence}
    if task.attempts > 1 and (task.summary or task.blocker):
        data["last_try"] = task.summary or task.blocker
    return {**data, "answers": [approval_data(approval) for approval in answers]} if answers else data


def approval_data(approval: "Approval") -> dict[str, Any]:
    """Return a question and its answer as JSON."""
    details = {"approval": approval.id, "state": approval.state.value, "question": approval.question}
    details |= {"by": approval.decided_by, "rationale": approval.rationale}
    return {name: value for name, value in details.items() if value}


def describe_approval(approval: "Approval") -> str:
    """Return the answer to a question as text."""
    if approval.state == "open":
        return "no answer yet"
    who = f" by {approval.decided_by}" if approval.decided_by else ""
    return f"{approval.state}{who}" + (f": {one_line(approval.rationale)}" if approval.rationale else "")
