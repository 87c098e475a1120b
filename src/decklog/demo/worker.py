"""A worker of the demonstration: claims, works in small steps, and finishes, until there is nothing left."""

import sys
import time

from decklog.app import Decklog
from decklog.demo import LEASE_SECONDS
from decklog.stores.entry import Kind

_STEPS = ("looked around", "made the change", "ran the tests")


def work(target: str, run_id: str, name: str) -> None:
    """Take tasks of a run until all are done."""
    with Decklog.open(target) as log, log.acting(name):
        while (claim := log.tasks.claim(run_id, worker=name, lease_seconds=LEASE_SECONDS, wait_seconds=10)) is not None:
            with claim, log.acting(task_id=claim.task.id):
                for step in _STEPS:
                    log.journal.append(run_id, f"{claim.task.title}: {step}", kind=Kind.TOOL, subtype="step")
                    time.sleep(0.12)
                claim.finish(f"{claim.task.title}: done")
            if all(task.state == "done" for task in log.tasks.find(run_id, limit=100)):
                return


if __name__ == "__main__":
    work(*sys.argv[1:4])
