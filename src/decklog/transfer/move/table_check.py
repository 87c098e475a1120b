"""Comparing a log's tables with its entries in a process of its own, while the one that asks walks the chains.

Both take about as long, and one Python process uses one core.
"""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

from decklog.errors import Damaged
from decklog.stores.journal.verify import Problem, Verification, Verifier

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from decklog.app import Decklog

# Below this many entries another process takes longer to start than it saves.
WORTH_A_PROCESS = 50_000


@contextmanager
def table_check(log: "Decklog", entries: int) -> "Iterator[Callable[[], Verification]]":
    """Begin to compare the tables of a log with so many entries; what is given waits for the result."""
    if entries < WORTH_A_PROCESS:
        yield lambda: Verifier(log.db, log.record_classes()).run_tables()
        return
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.Popen(
        [sys.executable, "-m", __name__], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        # Not an argument: everyone on the machine can read those, and a server's address may hold a password.
        assert child.stdin is not None
        child.stdin.write(json.dumps(log.db.target).encode())
        child.stdin.close()
        child.stdin = None
        yield lambda: _result_of(child)
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate()


def _result_of(child: "subprocess.Popen[bytes]") -> Verification:
    said, trouble = child.communicate()
    if child.returncode != 0:
        last = trouble.decode(errors="replace").strip().rpartition("\n")[2]
        raise Damaged(f"the tables of the target could not be compared with its entries: {last}", hint="The source is as it was.")
    found = json.loads(said)
    return Verification(records=found["records"], problems=[Problem(**problem) for problem in found["problems"]])


def main() -> None:
    """Check the log that is named on standard input; write what was found on standard output."""
    from decklog.app import Decklog

    with Decklog.open(json.load(sys.stdin), read_only=True) as log:
        json.dump(Verifier(log.db, log.record_classes()).run_tables().as_dict(), sys.stdout)


if __name__ == "__main__":
    main()
