"""Background processes that tools started, and how they ended."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from decklog.core.errors import Invalid
from decklog.db.where import Where, parse_enum
from decklog.records.fork_rules import not_copied
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.base import Store


class ProcessState(StrEnum):
    RUNNING = "running"
    EXITED = "exited"
    STOPPED = "stopped"
    TIMED_OUT = "timed_out"
    LOST = "lost"


ProcessStateLike = ProcessState | Literal["running", "exited", "stopped", "timed_out", "lost"]


@dataclass(frozen=True, kw_only=True)
class Process(Record):
    """A background process. `keeper` identifies the process that looks after it, beyond what a reused pid could fake."""

    table = "processes"
    is_work = True
    fork = not_copied("A process runs once.")

    id: str
    run_id: str
    command: dict[str, object]
    cwd: str
    root: str
    folder: str
    sandbox: str
    state: ProcessState
    keeper: str
    pid: int
    started_at: datetime
    task_id: str | None = None
    exit_code: int | None = None
    signal: str | None = None
    signals_sent: list[str] = field(default_factory=list)
    ended_at: datetime | None = None

    @property
    def is_running(self) -> bool:
        return self.state is ProcessState.RUNNING


class Processes(Store):
    """Records background processes, beyond restarts of the program that started them."""

    records = (Process,)

    @writes
    def started(
        self,
        run_id: str,
        process_id: str,
        *,
        command: dict[str, object],
        cwd: str,
        root: str,
        folder: str,
        sandbox: str,
        keeper: str,
        pid: int,
        task_id: str | None = None,
    ) -> Process:
        """Record a process that was started; a known one is returned unchanged."""
        return self._find_or_add(
            lambda: self._seek(Process, process_id),
            lambda: self._add(
                Process,
                id=process_id,
                run_id=run_id,
                task_id=task_id,
                command=command,
                cwd=cwd,
                root=root,
                folder=folder,
                sandbox=sandbox,
                state=ProcessState.RUNNING,
                keeper=keeper,
                pid=pid,
                started_at=self._now(),
            ),
        )

    # Late writes too: the process has ended, even if another worker has the task.
    @writes(late=True)
    def ended(
        self,
        process_id: str,
        state: ProcessStateLike,
        *,
        exit_code: int | None = None,
        signal: str | None = None,
        signals_sent: list[str] | None = None,
    ) -> Process:
        """Record how a process ended; a known end is kept."""
        how = parse_enum(ProcessState, state, "state")
        if how is ProcessState.RUNNING:
            raise Invalid("a process does not end as running", field="state")
        changes = {"state": how, "exit_code": exit_code, "signal": signal, "signals_sent": signals_sent or []}
        changed = self._try_update(Process, process_id, {**changes, "ended_at": self._now()}, condition="state = 'running'")
        return changed if changed is not None else self._fetch(Process, process_id).mark_already()

    @reads
    def get(self, process_id: str) -> Process:
        """Get a process as it was last seen."""
        return self._fetch(Process, process_id)

    @reads
    def find(
        self,
        run_id: str | None = None,
        *,
        state: ProcessStateLike | None = None,
        task_id: str | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Process]:
        """List processes as they were last seen, newest first."""
        where = Where(Process, run_id=run_id, state=state, task_id=task_id)
        return self._page(Process, where, order=("started_at", "id"), limit=limit, after=after, descending=True)
