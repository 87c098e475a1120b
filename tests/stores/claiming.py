"""Claims for tests that need one."""

from typing import Any

from decklog import Decklog, Task
from decklog.stores.tasks.claim import Claim


def claimed(log: Decklog, run_id: str | None = None, *, worker: str = "w", **how: Any) -> Claim:
    """Claim a task; fail if there is none."""
    claim = log.tasks.claim(run_id, worker=worker, **how)
    assert claim is not None
    return claim


def taken(log: Decklog, run_id: str | None = "run_1", *, worker: str = "w", **how: Any) -> list[Task]:
    """Claim and finish all there is, one by one."""
    tasks = []
    while (claim := log.tasks.claim(run_id, worker=worker, **how)) is not None:
        claim.finish()
        tasks.append(claim.task)
    return tasks
