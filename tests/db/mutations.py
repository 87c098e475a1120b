"""Changes single values of a whole log, all over its tables, and counts what verify finds.

Run it as `python -m tests.db.mutations --times 2000`; `make test` tries a part of it.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Protocol

from decklog import Decklog
from tests.db import whole_log
from tests.db.tampering import Outcome, PostgresLog, SqliteLog, database_for, sampled
from tests.stores.approvals.trust.trust_desk import make_keys


class Mutable(Protocol):
    def columns(self) -> dict[str, list[str]]: ...
    def attempt(self, dice: random.Random, table: str, column: str) -> Outcome | None: ...


def outcomes(log: Mutable, seed: int, times: int) -> Iterator[Outcome]:
    """Change one value at a time; columns without a value to change are skipped."""
    dice = random.Random(seed)
    tried = (_changed(log, dice, *place) for place in sampled(dice, log.columns(), 2 * times))
    yield from islice((one for one in tried if one is not None), times)


def _changed(log: Mutable, dice: random.Random, table: str, column: str) -> Outcome | None:
    return next((outcome for _ in range(9) if (outcome := log.attempt(dice, table, column)) is not None), None)


@contextmanager
def sqlite_log(folder: Path) -> Iterator[SqliteLog]:
    whole_log.fill(str(folder / "log.db"), make_keys(folder))
    with Decklog.open(folder / "log.db") as log:
        assert log.journal.verify().ok  # otherwise whatever is changed would seem to be found
    (folder / "copies").mkdir()
    yield SqliteLog(folder / "log.db", folder / "copies")


@contextmanager
def postgres_log(template: str, folder: Path) -> Iterator[PostgresLog]:
    url = database_for(template, "mutations")
    whole_log.fill(url, make_keys(folder))
    with Decklog.open(url) as log:
        assert log.journal.verify().ok
        mutable = PostgresLog(url, log)
        yield mutable
        mutable.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", metavar="URL", help="a server that has the database decklog_template; otherwise SQLite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with postgres_log(options.postgres, folder) if options.postgres else sqlite_log(folder) as log:
            found = list(outcomes(log, options.seed, options.times))
    missed = [one for one in found if not one.is_found]
    for one in missed:
        print("not found:", one.change)
    for one in found:
        if one.is_found and not one.is_named:
            print("found, not by its table:", one.change, "->", one.message[:200])
    print(f"{len(found) - len(missed)} of {len(found)} found, {sum(one.is_named for one in found)} by the name of the table")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
