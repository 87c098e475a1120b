"""Recovery from damage: a hundred damaged copies of one log, beside the `.recover` of SQLite's own command-line tool."""

import hashlib
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import apsw
from tests.transfer.damage import KINDS, damaged_copy, hashes_in

from benchmarks.measure import Row, row, write
from benchmarks.transfer import fill
from decklog import Decklog
from decklog.errors import DecklogError
from decklog.transfer.recovery import recover

COPIES = int(os.environ.get("DECKLOG_BENCH_COPIES", "100"))
ENTRIES = int(os.environ.get("DECKLOG_BENCH_DAMAGE_ENTRIES", "30000"))
TOOL = os.environ.get("DECKLOG_BENCH_SQLITE3", "sqlite3")


def digest(path: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))).hexdigest()


def tool_works(folder: Path) -> bool:
    """Say whether the tool is there and can recover at all: some distributions build it without what `.recover` needs."""
    if shutil.which(TOOL) is None:
        return False
    probe = str(folder / "probe.db")
    subprocess.run([TOOL, probe, "create table t (a); insert into t values ('here')"], check=True)
    return b"'here'" in subprocess.run([TOOL, probe, ".recover"], capture_output=True, check=False).stdout


def tool_share(path: Path, folder: Path, truth: set[str]) -> float:
    """What share of the entries SQLite's own tool finds in the copy."""
    copy, rebuilt = folder / "tool.db", folder / "tool-new.db"
    for suffix in ("", "-wal"):
        Path(f"{copy}{suffix}").unlink(missing_ok=True)
        if os.path.exists(f"{path}{suffix}"):
            shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
    rebuilt.unlink(missing_ok=True)
    script = subprocess.run([TOOL, str(copy), ".recover"], capture_output=True, check=False).stdout
    subprocess.run([TOOL, str(rebuilt)], input=script, capture_output=True, check=False)
    return len(_hashes(rebuilt) & truth) / len(truth)


def _hashes(path: Path) -> set[str]:
    """Collect what looks like an entry's hash from any table, `lost_and_found` too."""
    found: set[str] = set()
    connection = apsw.Connection(str(path))
    try:
        for (table,) in connection.execute("select name from sqlite_schema where type = 'table'").fetchall():
            if table == "entries" or str(table).startswith("lost_and_found"):
                for values in connection.execute(f"select * from {table}"):
                    found.update(value for value in values if isinstance(value, str) and len(value) == 64)
    except apsw.Error:
        return found
    finally:
        connection.close()
    return found


def one(source: Path, folder: Path, seed: int, truth: set[str], beside_tool: bool) -> tuple[str, float, float | None, bool]:
    """Damage one copy and recover it: kind, our share, the tool's share, and whether the copy stayed as it was."""
    path, kind = damaged_copy(source, folder, seed)
    before = digest(path)
    new = folder / f"new-{seed}.db"
    try:
        report = recover(str(path), str(new))
        with Decklog.open(report.to or path, read_only=True) as log:
            share = len(hashes_in(log) & truth) / len(truth)
    except DecklogError as problem:
        print(f"copy {seed} ({kind}): {problem.message}")
        share = 0.0
    untouched = digest(path) == before
    tool = tool_share(path, folder, truth) if beside_tool else None
    for file in [*folder.glob(f"{path.name}*"), *folder.glob(f"{new.name}*")]:
        file.unlink()
    return kind, share, tool, untouched


def main() -> list[Row]:
    """Measure what is recovered; write docs/benchmarks/damage.md. Without a tool that works there is no column for it."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        source, folder = Path(name) / "source.db", Path(name) / "copies"
        folder.mkdir()
        beside_tool = tool_works(Path(name))
        fill(source, ENTRIES)
        with Decklog.open(source) as log:
            # An open log keeps its WAL, so that there is one to be torn.
            for number in range(60):
                log.tasks.add("run_3", f"late task {number}")
            truth = hashes_in(log)
            begin = time.perf_counter()
            results = [one(source, folder, seed, truth, beside_tool) for seed in range(COPIES)]
            seconds = time.perf_counter() - begin
    for kind in KINDS:
        of_kind = [result for result in results if result[0] == kind]
        tools = [tool for _, _, tool, _ in of_kind if tool is not None]
        ours = 100 * statistics.mean(share for _, share, _, _ in of_kind)
        floor = 100 * statistics.mean(tools) if tools else None
        rows.append(
            row(f"recovered of {len(of_kind)} copies, {kind}", ours, "%", floor=floor, target=">= 0.999" if tools else "")
        )
    rows.append(
        row("copies that were changed by recovering them", float(sum(not same for *_, same in results)), "", target="<= 0")
    )
    rows.append(
        row("copies of which nothing was recovered", float(sum(share == 0 for _, share, _, _ in results)), "", target="<= 0")
    )
    rows.append(row(f"time per copy, {ENTRIES:,} entries, the tool included", seconds / COPIES, "s"))
    write("damage", "Recovery from damage, beside sqlite3 .recover", rows)
    return rows


if __name__ == "__main__":
    main()
