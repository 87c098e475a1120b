"""Recovery from damage: a hundred damaged copies of one log, beside the `.recover` of SQLite's own command-line tool."""

import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
from tests.transfer.recover.damage import KINDS, damaged_copy, hashes_in

from benchmarks import sqlite_shell
from benchmarks.children import alone, work_as_child
from benchmarks.measure import Row, row, write
from benchmarks.transfer import fill
from decklog import Decklog
from decklog.errors import DecklogError
from decklog.transfer.recover.recovery import recover

COPIES = int(os.environ.get("DECKLOG_BENCH_COPIES", "100"))
MEGABYTES = float(os.environ.get("DECKLOG_BENCH_DAMAGE_MB", "20"))
# For each of opening, recovering and the tool's two steps; a copy that takes longer than all four counts as not recovered.
MOST_SECONDS = 120.0
AT_ONCE = min(4, os.cpu_count() or 1)
FILES = ("", "-wal")


class Copy:
    """One damaged copy, and what came of it on both sides."""

    def __init__(self, source: Path, folder: Path, seed: int) -> None:
        self.path, self.kind = damaged_copy(source, folder, seed)
        self._folder = folder
        self._truth = set(json.loads((folder / "truth.json").read_text()))

    def results(self, tool: str) -> "dict[str, Any]":
        before = digest(self.path)
        begin = time.perf_counter()
        opened = self._opened()
        share, told = self._recovered()
        seconds, untouched = time.perf_counter() - begin, digest(self.path) == before
        found = {"kind": self.kind, "opened": opened, "share": share, "told": told, "untouched": untouched, "seconds": seconds}
        return found | {"tool": self.tool_share(tool)} if tool else found

    def _opened(self) -> str:
        """Open another copy as anybody would, and verify it; say how that went."""
        other = self._another("opened.db")
        try:
            with Decklog.open(other) as log:
                return "verified" if log.journal.verify().ok else "verify told of the damage"
        except DecklogError:
            return "a clear error"
        except Exception as problem:  # noqa: BLE001 - whatever else it is, is what is counted
            return f"unclear: {type(problem).__name__}: {problem}"

    def _recovered(self) -> tuple[float, str]:
        """Recover into a new log; give the share of rows that it has, and the message if there is none."""
        try:
            report = recover(str(self.path), str(self._folder / "new.db"))
        except DecklogError as problem:
            return 0.0, problem.message
        # A file that is whole is left as it is; it is looked at in a copy, as opening it would make files beside it.
        with Decklog.open(report.to or self._another("whole.db"), read_only=True) as log:
            return len((hashes_in(log) | tasks_in(log)) & self._truth) / len(self._truth), ""

    def _another(self, name: str) -> Path:
        for suffix in FILES:
            if os.path.exists(f"{self.path}{suffix}"):
                shutil.copyfile(f"{self.path}{suffix}", self._folder / f"{name}{suffix}")
        return self._folder / name

    def tool_share(self, tool: str) -> float:
        """What share of the rows SQLite's own tool finds in another copy."""
        other, rebuilt = self._another("tool.db"), self._folder / "tool-new.db"
        try:
            found = subprocess.run([tool, str(other), ".recover"], capture_output=True, check=False, timeout=MOST_SECONDS)
            subprocess.run([tool, str(rebuilt)], input=found.stdout, capture_output=True, check=False, timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            return 0.0
        return len(set(rows_in(rebuilt)) & self._truth) / len(self._truth)


def digest(path: Path) -> str:
    """Digest a log's files, every one that is there."""
    found = hashlib.sha256()
    for file in sorted(path.parent.glob(f"{path.name}*")):
        found.update(file.name.encode() + b"\0" + file.read_bytes())
    return found.hexdigest()


def tasks_in(log: Decklog) -> set[str]:
    _, rows = log.db.read(lambda: log.db.rows("select id from tasks", {}))
    return {str(row[0]) for row in rows}


def rows_in(path: Path) -> Iterator[str]:
    """Give the hashes of entries and the ids of tasks that a rebuilt file has, those in `lost_and_found` too."""
    connection = apsw.Connection(str(path))
    try:
        for (table,) in connection.execute("select name from sqlite_schema where type = 'table'").fetchall():
            if table in ("entries", "tasks"):
                column = {"entries": "hash", "tasks": "id"}[table]
                yield from (str(value) for (value,) in connection.execute(f"select {column} from {table}"))
            elif str(table).startswith("lost_and_found"):
                yield from _lost(connection, str(table))
    except apsw.Error as problem:
        print(f"the tool's file ends early: {problem}", file=sys.stderr)
    finally:
        connection.close()


def _lost(connection: apsw.Connection, table: str) -> Iterator[str]:
    """A lost row is a task's if it has as many fields and begins with an id; any hash is taken for an entry's."""
    for _, _, fields, _, *values in connection.execute(f"select * from {table}"):
        texts = [value for value in values if isinstance(value, str)]
        yield from (text for text in texts if len(text) == 64)
        if fields > 25 and texts:
            yield texts[0]


def damaged(source: Path, folder: Path, seed: int, tool: str) -> "dict[str, Any]":
    """Damage one copy and recover it on both sides, in a process of its own; nothing of it stays."""
    place = folder / str(seed)
    place.mkdir()
    shutil.copyfile(folder / "truth.json", place / "truth.json")
    try:
        result: dict[str, Any] = alone("benchmarks.damage", str(source), str(place), str(seed), tool, seconds=4 * MOST_SECONDS)
    except RuntimeError as problem:
        kind = KINDS[seed % len(KINDS)]
        result = {"kind": kind, "opened": f"unclear: {problem}", "share": 0.0, "told": "", "untouched": False, "seconds": 0.0}
    finally:
        shutil.rmtree(place)
    if result["told"] or result["opened"].startswith("unclear"):
        print(f"copy {seed} ({result['kind']}): opening: {result['opened']}; recovering: {result['told'] or 'done'}", flush=True)
    return result


def all_damaged(source: Path, folder: Path, tool: str) -> "list[dict[str, Any]]":
    """Go through all copies, a few at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda seed: damaged(source, folder, seed, tool), range(COPIES)))


def make(source: Path) -> None:
    """Make a log of about the size wanted."""
    entries, size = 2_000, 0.0
    while size < MEGABYTES * 0.95:
        for suffix in (*FILES, "-shm", "-lock"):
            Path(f"{source}{suffix}").unlink(missing_ok=True)
        fill(source, entries)
        size = source.stat().st_size / 1e6
        entries = int(entries * max(1.05, MEGABYTES / size))


def rows_of(results: "list[dict[str, Any]]", size: str) -> list[Row]:
    rows = []
    for kind in KINDS:
        of_kind = [result for result in results if result["kind"] == kind]
        if not of_kind:
            continue
        ours = 100 * statistics.mean(result["share"] for result in of_kind)
        tools = [100 * result["tool"] for result in of_kind if "tool" in result]
        floor = statistics.mean(tools) if tools else None
        rows.append(
            row(f"recovered of {len(of_kind)} copies, {kind}", ours, "%", floor=floor, target=">= 0.999" if floor else "")
        )
    opened = Counter("unclear" if result["opened"].startswith("unclear") else result["opened"] for result in results)
    unclear = opened.pop("unclear", 0)
    given_up = sum(result.get("tool") == 0 for result in results)
    behind = sum(result.get("tool", 0.0) > result["share"] + 0.001 for result in results)
    rows += [row(f"copies that, opened as they were: {way}", float(count), "") for way, count in sorted(opened.items())]
    return [
        *rows,
        row("copies that failed without a clear message", float(unclear), "", target="<= 0"),
        row("copies that were changed by recovering them", float(sum(not r["untouched"] for r in results)), "", target="<= 0"),
        row("copies of which nothing was recovered", float(sum(r["share"] == 0 for r in results)), "", target="<= 0"),
        row("copies of which the tool recovered over 0.1 % more", float(behind), "", target="<= 0"),
        row("copies of which the tool recovered nothing", float(given_up), ""),
        row(f"time to open and recover a copy of {size}", statistics.mean(r["seconds"] for r in results), "s"),
    ]


def main() -> list[Row]:
    """Measure what is recovered; write docs/benchmarks/damage.md. Without a tool that works there is no column for it."""
    tool = sqlite_shell.find()
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        source, folder = Path(name) / "source.db", Path(name) / "copies"
        folder.mkdir()
        make(source)
        with Decklog.open(source) as log:
            # An open log keeps its WAL, so that there is one to be torn.
            for number in range(60):
                log.tasks.add("run_3", f"late task {number}")
            truth = hashes_in(log) | tasks_in(log)
            (folder / "truth.json").write_text(json.dumps(sorted(truth)))
            before, size = digest(source), f"{source.stat().st_size / 1e6:.0f} MB"
            results = all_damaged(source, folder, tool.path if tool else "")
            if digest(source) != before:
                raise RuntimeError("the log that was copied changed meanwhile")
    rows = rows_of(results, size)
    write("damage", "Recovery from damage, beside sqlite3 .recover", rows, notes_on(size, len(truth), tool))
    return rows


def notes_on(size: str, count: int, tool: "sqlite_shell.Shell | None") -> list[str]:
    beside = f"SQLite's command-line tool {tool.version}" if tool else "no tool: none here has a `.recover` that works"
    return [
        f"Copies of one log of {size} with {count:,} rows of entries and tasks; the same seed makes the same damage. "
        "pages: 1 to 20 pages at random overwritten with noise; zeros: with zeros; first page: the first and two more; "
        "truncated: cut anywhere from a tenth on; torn wal: noise in the middle of the WAL, and its end cut off.",
        f"Beside it: {beside}, on a copy of the same damaged copy, `.recover` read into a new file. What it puts into "
        "`lost_and_found` counts as recovered.",
        "Each copy is opened and recovered in a process of its own, with a limit of time. It is unchanged if each of its files "
        "has the digest it had before.",
    ]


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        log_path, place_path, number, tool_path = sys.argv[1:]
        work_as_child(lambda _: Copy(Path(log_path), Path(place_path), int(number)).results(tool_path))
