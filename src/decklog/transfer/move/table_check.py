"""Comparing a log's tables with its entries in a process of its own, while the one that asks walks the chains.

Both take about as long, and one Python process uses one core.
"""

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from decklog.core.errors import Damaged
from decklog.journal.verify import Problem, Verification, Verifier
from decklog.transfer.move import child as processes
from decklog.transfer.move.child import child

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from decklog.log import Decklog


@contextmanager
def table_check(log: "Decklog", entries: int) -> "Iterator[Callable[[], Verification]]":
    """Begin to compare the tables of a log with so many entries; what is given waits for the result."""
    if entries < processes.WORTH_A_PROCESS:
        yield lambda: Verifier(log.db, log.record_classes()).run_tables()
        return
    with child(__name__, log.db.target) as checking:
        yield lambda: _result_of(checking)


def _result_of(checking: "subprocess.Popen[bytes]") -> Verification:
    said, trouble = checking.communicate()
    if checking.returncode != 0:
        last = trouble.decode(errors="replace").strip().rpartition("\n")[2]
        raise Damaged(f"the tables of the target could not be compared with its entries: {last}", hint="The source is as it was.")
    found = json.loads(said)
    return Verification(records=found["records"], problems=[Problem(**problem) for problem in found["problems"]])


def main() -> None:
    """Check the log that is named on standard input; write what was found on standard output."""
    from decklog.log import Decklog

    with Decklog.open(json.load(sys.stdin), read_only=True) as log:
        json.dump(Verifier(log.db, log.record_classes()).run_tables().as_dict(), sys.stdout)


if __name__ == "__main__":
    main()
