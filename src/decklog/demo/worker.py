"""A worker of the demonstration: claims, works in small steps, and finishes, until there is nothing left."""

import sys
import time

from decklog.demo import LEASE_SECONDS
from decklog.journal.entry import EntryKind
from decklog.log import Decklog
from decklog.stores.tasks.claim import Claim
from decklog.stores.tasks.task import TaskState

_STEPS = ("looked around", "made the change", "ran the tests")


def work(target: str, run_id: str, name: str) -> None:
    """Take tasks of a run until all are done."""
    with Decklog.open(target) as log, log.acting(name):
        while any(task.state != TaskState.DONE for task in log.tasks.find(run_id, limit=100)):
            claim = log.tasks.claim(run_id, worker=name, lease_seconds=LEASE_SECONDS, wait_seconds=0.5)
            if claim is not None:
                with claim, log.acting(task_id=claim.task.id):
                    _work_on(log, claim)


def _work_on(log: Decklog, claim: Claim) -> None:
    for step in _STEPS:
        log.journal.append(claim.task.run_id, f"{claim.task.title}: {step}", kind=EntryKind.TOOL, subtype="step")
        time.sleep(0.12)
    claim.finish(f"{claim.task.title}: done")


if __name__ == "__main__":
    work(*sys.argv[1:4])
