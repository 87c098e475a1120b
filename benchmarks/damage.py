"""Recovery from damage: a hundred damaged copies of one log, compared with the `.recover` of SQLite's own command-line tool."""

import os
import pickle
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import apsw
from tests.transfer.recover.damage import KINDS, damaged_copy, digest, try_out
from tests.transfer.recover.source_log import source_log
from tests.transfer.recover.truth import Truth

from benchmarks import sqlite_shell
from benchmarks.children import alone, work_as_child
from benchmarks.measure import Row, row, write

COPIES = int(os.environ.get("DECKLOG_BENCH_COPIES", "100"))
# Another first seed damages in other ways.
FIRST_SEED = int(os.environ.get("DECKLOG_BENCH_FIRST_SEED", "0"))
ENTRIES = int(os.environ.get("DECKLOG_BENCH_DAMAGE_ENTRIES", "5000"))
# For recovering and for the tool's two steps; a copy that takes longer than all counts as not recovered.
MOST_SECONDS = 120.0
AT_ONCE = min(2, os.cpu_count() or 1)


def result_of(source: Path, folder: Path, seed: int, tool: str) -> "dict[str, Any]":
    """Damage one copy, recover it on both sides, and compare both with what it held."""
    truth: Truth = pickle.loads((folder.parent / "truth.pickle").read_bytes())
    begin = time.perf_counter()
    outcome = try_out(source, truth, folder, seed)
    found = {**asdict(outcome), "seconds": time.perf_counter() - begin}
    return found | {"tool": tool_share(source, truth, folder, seed, tool)} if tool and outcome.there else found


def tool_share(source: Path, truth: Truth, folder: Path, seed: int, tool: str) -> float:
    """What share of the entries that are still there SQLite's own tool finds in another copy."""
    place = folder / "tool"
    place.mkdir()
    (path, _), rebuilt = damaged_copy(source, place, seed), place / "new.db"
    there = truth.still_in(path)
    try:
        found = subprocess.run([tool, str(path), ".recover"], capture_output=True, check=False, timeout=MOST_SECONDS)
        subprocess.run([tool, str(rebuilt)], input=found.stdout, capture_output=True, check=False, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return 0.0
    hashes = set(hashes_in(rebuilt))
    return sum(truth.hashes[entry] in hashes for entry in there) / len(there)


def hashes_in(path: Path) -> Iterator[str]:
    """Give the hashes of the entries that a rebuilt file has, those in `lost_and_found` too."""
    connection = apsw.Connection(str(path))
    try:
        for (table,) in connection.execute("select name from sqlite_schema where type = 'table'").fetchall():
            if table == "entries":
                yield from (str(value) for (value,) in connection.execute("select hash from entries"))
            elif str(table).startswith("lost_and_found"):
                for values in connection.execute(f"select * from {table}"):
                    yield from (value for value in values if isinstance(value, str) and len(value) == 64)
    except (apsw.Error, UnicodeDecodeError) as problem:
        print(f"the tool's file ends early: {problem}", file=sys.stderr)
    finally:
        connection.close()


def damaged(source: Path, folder: Path, seed: int, tool: str) -> "dict[str, Any]":
    """Try one copy out in its own process; nothing of it stays."""
    place = folder / str(seed)
    place.mkdir()
    try:
        result: dict[str, Any] = alone("benchmarks.damage", str(source), str(place), str(seed), tool, seconds=4 * MOST_SECONDS)
    except RuntimeError as problem:
        result = {"kind": list(KINDS)[seed % len(KINDS)], "failed": f"crashed: {problem}", "there": 1, "back": 0, "seconds": 0.0}
    finally:
        shutil.rmtree(place)
    if result["failed"] or result["back"] < result["there"]:
        print(f"copy {seed} ({result['kind']}): {result['back']} of {result['there']} {result['failed']}", flush=True)
    return result


def all_damaged(source: Path, folder: Path, tool: str) -> "list[dict[str, Any]]":
    """Go through all copies, a few at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda seed: damaged(source, folder, seed, tool), range(FIRST_SEED, FIRST_SEED + COPIES)))


def rows_of(results: "list[dict[str, Any]]", size: str) -> list[Row]:
    rows = []
    for kind in KINDS:
        of_kind = [result for result in results if result["kind"] == kind and result["there"]]
        if not of_kind:
            continue
        ours = 100 * statistics.mean(result["back"] / result["there"] for result in of_kind)
        tools = [100 * result["tool"] for result in of_kind if "tool" in result]
        floor = statistics.mean(tools) if tools else None
        rows.append(row(f"recovered of {len(of_kind)} copies: {kind}", ours, "%", floor=floor))
    there, back = (sum(result[name] for result in results) for name in ("there", "back"))
    worst = min(100 * result["back"] / result["there"] for result in results if result["there"])

    def count(name: str, *what: str) -> Row:
        return row(name, float(sum(any(result.get(one) for one in what) for result in results)), "copies", target="<= 0")

    changed = float(sum(not result.get("is_untouched", False) for result in results))
    nothing = float(sum(result["there"] > 0 and not result["back"] for result in results))
    return [
        *rows,
        row(f"recovered of {there:,} entries that are still in a copy", 100 * back / there, "%", target=">= 99"),
        row("recovered of the worst copy", worst, "%"),
        row("entries recovered besides, from pages that are damaged", float(sum(r.get("besides", 0) for r in results)), ""),
        row("changed by recovering them", changed, "copies", target="<= 0"),
        count("called whole, and something was left out", "is_falsely_whole"),
        row("nothing recovered, where there was something", nothing, "copies", target="<= 0"),
        count("damage that neither opening, verify nor doctor reports", "is_unseen"),
        count("entries in another order than they were", "out_of_order"),
        count("something said to be lost that is not", "falsely_lost"),
        row(f"time to recover a copy of {size}", statistics.mean(result["seconds"] for result in results), "s"),
    ]


def main() -> list[Row]:
    """Measure what is recovered; write benchmarks/results/damage.md. Without a tool that works there is no column for it."""
    tool = sqlite_shell.find()
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        folder = Path(name) / "copies"
        folder.mkdir()
        with source_log(Path(name) / "source.db", entries=ENTRIES, long=ENTRIES // 12) as source:
            truth = Truth.of(source, folder)
            (folder / "truth.pickle").write_bytes(pickle.dumps(truth))
            sizes = [os.path.getsize(f"{source}{suffix}") / 1e6 for suffix in ("", "-wal")]
            before, size = digest(source), f"{sizes[0]:.0f} MB"
            results = all_damaged(source, folder, tool.path if tool else "")
            if digest(source) != before:
                raise RuntimeError("the log that was copied changed meanwhile")
    rows = rows_of(results, size)
    write("damage", "Recovery from damage, compared with sqlite3 .recover", rows, notes_on(sizes, len(truth.content), tool))
    return rows


def notes_on(sizes: list[float], count: int, tool: "sqlite_shell.Shell | None") -> list[str]:
    tool_name = f"SQLite's command-line tool {tool.version}" if tool else "no tool: none here has a `.recover` that works"
    kinds = "; ".join(f"{kind}: {(how.__doc__ or '').rstrip('.').lower()}" for kind, how in KINDS.items())
    return [
        f"Copies of one log of {sizes[0]:.0f} MB and a WAL of {sizes[1]:.0f} MB, with {count:,} entries and something in every "
        "store; the same seed makes the same damage. Every second copy was closed first, so that it has no WAL, unless the "
        f"damage needs one. {kinds}.",
        "Which pages an entry lies on is read from the undamaged log by a walk of its tree that shares no code with the "
        "recovery. An entry is still in a copy when all its pages are there, byte for byte, wherever they are now; it has come "
        "back when the new log has it word for word, as itself and not inside of another entry. Other entries may come back as "
        "well: from older versions of a page, or from a page that is damaged elsewhere.",
        f"Compared with: {tool_name}, on a copy with the same damage, `.recover` read into a new file. What it puts into "
        "`lost_and_found` counts as recovered.",
        "Each copy is recovered in its own process, with a limit of time. It is unchanged if each of its files has the "
        "digest it had before.",
    ]


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        log_path, place_path, number, tool_path = sys.argv[1:]
        work_as_child(lambda _: result_of(Path(log_path), Path(place_path), int(number), tool_path))
