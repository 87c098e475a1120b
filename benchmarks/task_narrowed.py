"""Whether a claim by group, role or tag stays as fast when a run has very many tasks, and by which index it finds its task.

    python -m benchmarks.task_narrowed [--tasks 300000] [--postgres URL]

Without an address, PostgreSQL is the one that the tests use. Claims at both sizes are timed in turns.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.postgres import get_server

from benchmarks.figures import Figure
from decklog import Decklog
from decklog.core.clock import to_text
from decklog.stores.tasks.claimable import direct_claim_sql

FEW = 1_000
CLAIMS = 100
WAYS: dict[str, dict[str, str]] = {
    "any": {},
    "a rare role": {"role": "reviewer"},
    "a common role": {"role": "developer"},
    "a rare tag": {"tag": "rare"},
    "a common tag": {"tag": "common"},
    "a tag of nobody": {"tag": "nobody"},
    "a group": {"group_id": "B"},
}


def fill(log: Decklog, count: int) -> None:
    """Create a run of `count` ready tasks. Those that are rare come last: a claim that walks has to walk past all others."""
    log.runs.start("measure", run_id="r")
    log.tasks.add("r", "model", task_id="model", tags=["common"], role="developer", group_id="A")
    now = log.clock.now()
    rare = 3 * CLAIMS

    def row(number: int) -> dict[str, Any]:
        is_rare = number >= count - rare
        return {
            "id": f"task_{number:09}",
            "created_at": to_text(now.replace(microsecond=number % 1_000_000)),
            "priority": 10 if is_rare else 50,
            "role": "reviewer" if is_rare else "developer",
            "group_id": "B" if is_rare else "A",
            "tags": json.dumps(["rare"] if is_rare else ["common"]),
        }

    names, rows = log.db.read(lambda: log.db.rows("select * from tasks", {}))
    model = dict(zip(names, rows[0], strict=True))
    for start in range(0, count, 10_000):
        batch = [tuple({**model, **row(number)}.values()) for number in range(start, min(start + 10_000, count))]
        log.db.write(lambda batch=batch: log.db.insert("tasks", names, batch))  # type: ignore[misc]
    if log.db.engine == "postgres":
        log.db.write(lambda: log.db.rows("analyze tasks", {}))
        log.db.write(lambda: log.db.rows("analyze ready_tags", {}))


def measured(logs: tuple[Decklog, Decklog], wanted: dict[str, Any]) -> list[float]:
    """Claim and give back, in turns; give the median time of a claim in each log, in microseconds."""
    passed: tuple[list[float], list[float]] = ([], [])
    for _ in range(CLAIMS):
        for log, times in zip(logs, passed, strict=True):
            start = time.perf_counter()
            claim = log.tasks.claim("r", worker="w", **wanted)
            times.append(time.perf_counter() - start)
            if claim is not None:
                claim.release()
    return [Figure(times) * 1e6 for times in passed]


def plan(log: Decklog, asked: tuple[str, ...]) -> str:
    """Name the indexes by which the engine finds the task."""
    words = {"sqlite": "explain query plan ", "postgres": "explain "}[log.db.engine]
    now = to_text(log.clock.now())
    bound = {"run_id": "r", "worker": "w", **dict.fromkeys(("now", "steady_now", "until"), now)}
    bound |= {"role": "reviewer", "tag": "rare", "group_id": "B"}
    _, rows = log.db.write(lambda: log.db.rows(words + direct_claim_sql(asked).replace("returning *", ""), bound))
    text = " ".join(str(row[-1]) for row in rows)
    return next(name for name in ("tasks_ready_by_group", "tasks_ready_by_role", "ready_tags", "tasks_ready") if name in text)


@contextmanager
def places(address: str | None, names: Sequence[str] = ("few", "many")) -> Iterator[dict[str, list[str]]]:
    """Give places for logs on each engine, two unless more are named."""
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/{name}.db" for name in names]
        if address is not None:
            yield {"sqlite": files, "postgres": [address for _ in names]}
            return
        import psycopg

        server = get_server(Path(folder) / "pg")
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for name in names:
                connection.execute(f"create database {name}".encode())
        yield {"sqlite": files, "postgres": [server.get_uri(database=name) for name in names]}
        server.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=300_000)
    parser.add_argument("--postgres")
    given = parser.parse_args()
    with places(given.postgres) as targets:
        for engine, (few_at, many_at) in targets.items():
            with opened(few_at) as few, opened(many_at) as many:
                fill(few, FEW)
                fill(many, given.tasks)
                for name, wanted in WAYS.items():
                    small, large = measured((few, many), wanted)
                    times = f"{FEW:,} tasks {small:7.0f} µs, {given.tasks:,} tasks {large:7.0f} µs, {large / small:5.2f} ×"
                    sys.stdout.write(f"{engine:9} {name:16} {times}, by {plan(many, tuple(wanted))}\n")
                    sys.stdout.flush()


def opened(target: str) -> Decklog:
    # A disk's sync would hide the difference.
    return Decklog.open(target, migrate=True, durability="relaxed")


if __name__ == "__main__":
    main()
