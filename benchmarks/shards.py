"""Four PostgreSQL servers as shards: a budget lent in slices is never overspent, and merged searches equal a single server's."""

import heapq
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from threading import Lock, Thread
from zlib import crc32

from tests.postgres import get_server

from benchmarks.measure import Row, row, write
from decklog import BudgetExceeded, Decklog, Entry, ManualClock

SHARDS = 4
RUNS, ENTRIES, TOP = 120, 20, 20
LIMIT, SLICE = 20_000_000, 500_000
WORKERS_PER_SHARD = 3
WORDS = [
    *("parser", "lexer", "token", "commit", "branch", "merge", "review", "budget"),
    *("lease", "claim", "retry", "cache", "index", "search", "anchor"),
]
NOTES = (
    "Four PostgreSQL servers on one machine; streams are placed by a hash of their names.",
    f"Budget: {SHARDS * WORKERS_PER_SHARD} threads spend until they are refused. A shard that is empty borrows a slice of "
    f"{SLICE:,} from the first server, where a slice is a charge under the budget of {LIMIT:,} microdollars.",
    "In one of ten loans the borrower crashes after the loan and before it is used: that slice is stranded, never spent twice.",
    f"Search: {len(WORDS)} words and {len(WORDS)} pairs; the first {TOP} hits of each shard are merged by run and number.",
)


@contextmanager
def servers() -> Iterator[list[str]]:
    """Start the servers and return their addresses."""
    with tempfile.TemporaryDirectory(prefix="decklog-shards-") as folder, ExitStack() as stack:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        made = []
        for number in range(SHARDS):
            server = get_server(Path(folder) / str(number), cleanup_mode="stop")
            stack.callback(server.cleanup)
            made.append(server.get_uri())
        yield made


class Shard:
    """One server's share of a budget that all have together."""

    def __init__(self, log: Decklog, treasury: Decklog, seed: int) -> None:
        self.log = log
        self._treasury = treasury
        self._random = random.Random(seed)
        self._lock = Lock()
        self.lent = self.stranded = 0
        log.budgets.set("all", limit_microdollars=1)

    def borrow(self) -> None:
        """Take a slice out of the whole budget, then raise this shard's. In this order a crash can't create money."""
        with self._lock:
            self._treasury.ledger.charge("slice", cost_microdollars=SLICE, reservation_id=self._held(self._treasury, SLICE))
            if self._random.random() < 0.1:
                self.stranded += SLICE
                return
            self.lent += SLICE
            self.log.budgets.set("all", limit_microdollars=self.lent)

    @staticmethod
    def _held(log: Decklog, amount: int) -> str:
        return log.reservations.reserve(amount_microdollars=amount).id

    def spend(self, seed: int) -> None:
        """Spend until the whole budget is gone."""
        amounts = random.Random(seed)
        while True:
            amount = amounts.randrange(10_000, 120_000)
            try:
                held = self._held(self.log, amount)
            except BudgetExceeded:
                try:
                    self.borrow()
                except BudgetExceeded:
                    return
                continue
            self.log.ledger.charge("a model", cost_microdollars=amount, reservation_id=held)
            self.log.reservations.settle(held)


def spent(log: Decklog) -> int:
    return sum(usage["spent"] for usage in log.budgets.burn(scope="all"))


def budgets(logs: list[Decklog], treasury: Decklog) -> list[Row]:
    treasury.budgets.set("all", limit_microdollars=LIMIT)
    shards = [Shard(log, treasury, seed) for seed, log in enumerate(logs)]
    threads = [Thread(target=shard.spend, args=(seed,)) for shard in shards for seed in range(WORKERS_PER_SHARD)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total, stranded = sum(map(spent, logs)), sum(shard.stranded for shard in shards)
    return [
        row("budget slices: spent of the budget", float(total), "microdollars", floor=float(LIMIT), target="<= 1.0"),
        row("budget slices: spent or stranded", float(total + stranded), "microdollars", floor=float(LIMIT), target="<= 1.0"),
        row("budget slices: left unspent in shards", float(LIMIT - total - stranded), "microdollars"),
    ]


def fill(logs: list[Decklog], single: Decklog, clock: ManualClock) -> None:
    """Write the same runs to their shards and to one server."""
    words = random.Random(7)
    for number in range(RUNS):
        run_id = f"run-{number:04}"
        both = (logs[crc32(run_id.encode()) % SHARDS], single)
        for log in both:
            log.runs.start(f"goal {number}", run_id=run_id)
        for _ in range(ENTRIES):
            body = " ".join(words.choices(WORDS, k=4))
            for log in both:
                log.journal.append(run_id, body)
        clock.advance(seconds=1)
    for log in (*logs, single):
        while log.db.prepare_search(None):
            pass


def merged(logs: list[Decklog], text: str) -> list[Entry]:
    """Merge the first hits of all shards: the newest run first, in a run the newest entry first."""
    found = [log.journal.find(text=text, limit=TOP) for log in logs]
    return list(islice(heapq.merge(*found, key=lambda entry: (entry.stream, entry.seq), reverse=True), TOP))


def searches(logs: list[Decklog], single: Decklog) -> Row:
    queries = [*WORDS, *(f"{one} {two}" for one, two in zip(WORDS, WORDS[1:] + WORDS[:1], strict=True))]
    same = sum(
        [(entry.stream, entry.hash) for entry in merged(logs, text)]
        == [(entry.stream, entry.hash) for entry in single.journal.find(text=text, limit=TOP)]
        for text in queries
    )
    return row("merged searches: equal to a single server's", float(same), "queries", floor=float(len(queries)), target=">= 1.0")


def main() -> list[Row]:
    clock = ManualClock(datetime(2026, 3, 2, 9, tzinfo=UTC))
    with servers() as urls, ExitStack() as stack:
        places = [*urls, *(_database(urls[0], name) for name in ("single", "treasury"))]
        opened = [stack.enter_context(Decklog.open(url, migrate=True, clock=clock)) for url in places]
        logs, (single, treasury) = opened[:SHARDS], opened[SHARDS:]
        fill(logs, single, clock)
        rows = [searches(logs, single), *budgets(logs, treasury)]
    write("shards", "Four servers as shards", rows, NOTES)
    return rows


def _database(server: str, name: str) -> str:
    from benchmarks.recall_server import database

    return database(server, name)


if __name__ == "__main__":
    main()
    sys.exit()
