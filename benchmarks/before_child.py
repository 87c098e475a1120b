"""One tree's process of `benchmarks.before`: it imports nothing of the package but what every commit has."""

import itertools
import sys
import time

from benchmarks.children import work_as_child
from decklog import Decklog

TURNS = 40
STEPS = {"append": 100, "append with a key": 100, "claim and finish": 50}


def main(target: str) -> None:
    """Do so many of a verb at each word, and tell how long they took."""
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
        else:
            # No text comes twice: what was found clean once may be remembered, and who records has something new to say.
            number = next(numbers)
            key = f"key-{number}" if "key" in verb else None
            log.journal.append(run_id, f"Ran the tests: {number} passed", agent="developer", key=key)

    def turn(verb: str) -> dict[str, object]:
        if verb == "run":
            return {"run": run_id}
        begin, used = time.perf_counter(), time.process_time()
        for _ in range(STEPS[verb]):
            one(verb)
        return {"seconds": time.perf_counter() - begin, "processor": time.process_time() - used}

    work_as_child(turn)


if __name__ == "__main__":
    main(*sys.argv[1:])
