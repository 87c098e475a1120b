"""Charging: compared with a raw insert of the same row, over a million charges, and under budgets that have seen few or many."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import apsw

from benchmarks.measure import Row, in_turns, row, write
from decklog import Decklog

COUNT = 1000
RUN = "run_06fq2v8k3c9d4e5f6g7h8j9kam"
MODEL = "claude-sonnet-4-5"
MILLION = 1_000_000
MODELS = 8

# The same columns as a charge, and nothing else: no index, no journal, no price, no budget.
_RAW_TABLE = """
create table if not exists t (
  id integer primary key, occurred_at text, model text, input_tokens integer, cache_read_tokens integer,
  cache_create_tokens integer, output_tokens integer, cost_microdollars integer, call_site text, agent text, run_id text
)
"""
_RAW_INSERT = "insert into t values (null, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_RAW_VALUES = ("2026-11-15T08:30:00.000000Z", MODEL, 1200, 48_000, 900, 350, 26_625, "plan", "developer", RUN)
_RAW_SUMMARY = """
select model, count(*), sum(input_tokens), sum(cache_read_tokens), sum(cache_create_tokens), sum(output_tokens),
       sum(cost_microdollars), count(*) - count(cost_microdollars)
  from charges
 group by model
"""
_FILL = f"""
with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < :count)
insert into charges (id, occurred_at, model, input_tokens, cache_read_tokens, cache_create_tokens, output_tokens,
                     cost_microdollars, call_site, agent, run_id, task_id, overdrew)
select printf('charge_filled_%09d', n), printf('2026-%02d-%02dT08:30:00.000000Z', n % 9 + 1, n % 28 + 1),
       'model-' || (n % {MODELS}), n % 5000, n % 90000, n % 700, n % 900, n % 30000,
       'plan', 'agent-' || (n % 5), '{RUN}', 'task-' || (n % 1000), 0
  from numbers
"""


def raw_insert(connection: apsw.Connection) -> None:
    connection.execute("begin immediate")
    connection.execute(_RAW_INSERT, _RAW_VALUES)
    connection.execute("commit")


def charge(log: Decklog) -> None:
    log.ledger.charge(
        MODEL,
        input_tokens=1200,
        cache_read_tokens=48_000,
        cache_create_tokens=900,
        output_tokens=350,
        call_site="plan",
        agent="developer",
        run_id=RUN,
    )


def microseconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1e6


def medians(*works: Callable[[], object]) -> list[float]:
    """Run single calls in turns, so that a busy disk meets all of them alike; give each one's median in microseconds."""
    for work in works:
        for _ in range(100):
            work()
    return in_turns(COUNT, *(lambda work=work: microseconds(work) for work in works))  # type: ignore[misc]


def opened(path: Path, filled: int = 0) -> Decklog:
    """Open a new log, with charges put in by one statement; only the time of what comes after is measured."""
    log = Decklog.open(path)
    log.runs.start("measure", run_id=RUN)
    log.db.write(lambda: log.db.count(_FILL, {"count": filled}) if filled else 0)
    return log


def raw_connection(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute(_RAW_TABLE)
    return connection


def charging(folder: Path) -> list[Row]:
    """Measure a charge: its price, its row and its chained entry, durable."""
    raw, log, kept = raw_connection(folder / "raw.db"), opened(folder / "plain.db"), opened(folder / "kept.db")
    kept.budgets.set("run", scope_id=RUN, limit_microdollars=10**15)
    floor, plain, budgeted = medians(lambda: raw_insert(raw), lambda: charge(log), lambda: charge(kept))
    log.close()
    kept.close()
    return [
        row("charge, compared with a raw insert and commit", 1e6 / plain, "per s", floor=1e6 / floor, target=">= 0.5"),
        row("charge under a budget that stops, compared with a raw insert", 1e6 / budgeted, "per s", floor=1e6 / floor),
    ]


def summing(log: Decklog, path: Path) -> list[Row]:
    """Measure a summary over a million charges, compared with its own SQL without us."""
    raw = apsw.Connection(str(path))
    raw.execute("pragma cache_size = -16384")
    log.ledger.summary(), raw.execute(_RAW_SUMMARY).fetchall()
    floor, ours = in_turns(
        9, lambda: microseconds(lambda: raw.execute(_RAW_SUMMARY).fetchall()), lambda: microseconds(log.ledger.summary)
    )
    assert len(log.ledger.summary()["rows"]) == MODELS  # type: ignore[arg-type]
    (one_task,) = in_turns(5, lambda: microseconds(lambda: log.ledger.summary(task_id="task-7")))
    return [
        row("summary by model of 1,000,000 charges", ours / 1000, "ms", floor=floor / 1000, target="<= 1.2"),
        row("summary by model of one task's 1,000 among them", one_task / 1000, "ms", target="<= 50"),
    ]


def checking(folder: Path) -> list[Row]:
    """Measure charges under a budget that has counted a thousand charges, and one that has counted a million."""
    few, many = opened(folder / "few.db", 1000), opened(folder / "many.db", MILLION)
    for log in (few, many):
        log.budgets.set("run", scope_id=RUN, limit_microdollars=10**15)
    floor, value = medians(lambda: charge(few), lambda: charge(many))
    rows = [row("charge under a budget of 1,000,000 charges, compared with 1,000", value, "µs", floor=floor, target="<= 1.25")]
    floor, value = medians(few.budgets.burn, many.budgets.burn)
    rows.append(row("the check itself, compared with 1,000 charges", value, "µs", floor=floor, target="<= 1.25"))
    few.close()
    many.close()
    return rows


def main() -> list[Row]:
    """Measure the ledger; write benchmarks/results/ledger.md."""
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        folder = Path(name)
        rows = charging(folder)
        log = opened(folder / "summing.db", MILLION)
        rows += summing(log, folder / "summing.db")
        log.close()
        rows += checking(folder)
    write("ledger", "Charging and adding up", rows)
    return rows


if __name__ == "__main__":
    main()
