"""The process of one source tree for `benchmarks.before`. It uses only names that every commit has."""

import itertools
import resource
import sys
import time

from benchmarks.children import work_as_child
from decklog import Decklog

TURNS = 40
STEPS = {"append": 100, "append with a key": 100, "claim and finish": 50, "read a run": 200, "find 20 entries": 100, "verify": 1}


def _cpu() -> float:
    """Return the CPU time of this process, and of children that have ended: some commits verify in several processes."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def main(target: str) -> None:
    """Run a verb several times for each request, and return how long it took."""
    log = Decklog.open(target, migrate=True)
    run_id = log.runs.start("before and now").id
    total = (TURNS + 2) * STEPS["claim and finish"]
    log.tasks.add_many(run_id, [{"title": f"task {number}", "objective": "x" * 150} for number in range(total)])
    numbers = itertools.count()

    def one(verb: str) -> None:
        if verb == "claim and finish":
            claim = log.tasks.claim(run_id, worker="w")
            assert claim is not None
            log.tasks.finish(claim.task.id, fence=claim.task.fence)
        elif verb == "read a run":
            log.runs.get(run_id)
        elif verb == "find 20 entries":
            log.journal.find(run_id, limit=20)
        elif verb == "verify":
            assert log.journal.verify().ok
        else:
            # Each text is new: a cache of texts without secrets must not help.
            number = next(numbers)
            key = f"key-{number}" if "key" in verb else None
            log.journal.append(run_id, f"Ran the tests: {number} passed", agent="developer", key=key)

    def turn(verb: str) -> dict[str, object]:
        if verb == "run":
            return {"run": run_id}
        begin, used = time.perf_counter(), _cpu()
        for _ in range(STEPS[verb]):
            one(verb)
        return {"seconds": time.perf_counter() - begin, "processor": _cpu() - used}

    work_as_child(turn)


if __name__ == "__main__":
    main(*sys.argv[1:])
