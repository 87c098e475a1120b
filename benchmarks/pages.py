"""What a commit writes: pages of the write-ahead log compared with a baseline's, and the bytes that stay on disk.

Nothing here depends on how busy the machine is: pages and bytes are counted, not timed.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import apsw

from benchmarks.measure import Row, row, write
from benchmarks.outputs import outputs
from benchmarks.task_floor import Floor
from decklog import Decklog, EntryKind

COUNT = 300
OUTPUTS = 60
BODY = "x" * 200

# The same text and its key, and nothing else.
_RAW_TABLE = "create table if not exists t (id integer primary key, key text unique, body text)"


class Frames:
    """Counts the pages that a file's write-ahead log has had."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))

    def per_step(self, step: Callable[[int], object]) -> float:
        """Run a step many times; give the pages that each wrote."""
        pages, before = 0, self._now()
        for number in range(COUNT):
            step(number)
            now = self._now()
            # The log began anew when its pages had been copied to the file.
            pages, before = pages + (now - before if now >= before else now), now
        return pages / COUNT

    def _now(self) -> int:
        (found,) = self._connection.execute("pragma wal_checkpoint(noop)").fetchall()
        return int(found[1])

    def close(self) -> None:
        self._connection.close()


def floor_pages(folder: Path) -> tuple[float, float, float]:
    """Count for a raw insert, a raw claim and a raw finish."""
    connection = apsw.Connection(str(folder / "raw.db"))
    connection.execute("pragma journal_mode = wal")
    connection.execute(_RAW_TABLE)
    raw, queue = Frames(folder / "raw.db"), Floor(folder / "floor.db")
    queue.fill(COUNT)
    tasks = Frames(folder / "floor.db")
    claimed: list[int | None] = []
    inserts = raw.per_step(lambda n: connection.execute("insert into t (key, body) values (?, ?)", (f"k{n}", BODY)))
    claims = tasks.per_step(lambda _: claimed.append(queue.claim()))
    ends = tasks.per_step(lambda n: queue.finish(claimed[n] or 0))
    for opened in (raw, tasks, connection, queue):
        opened.close()
    return inserts, claims, ends


def our_pages(folder: Path) -> dict[str, float]:
    """Count for the verbs of a log."""
    path = folder / "log.db"
    with Decklog.open(path) as log:
        run_id = log.runs.start("count").id
        frames = Frames(path)
        found = {
            "append": frames.per_step(lambda n: log.journal.append(run_id, BODY, key=f"k{n}")),
            "add": frames.per_step(lambda n: log.tasks.add(run_id, f"task {n}")),
        }
        claims = []
        found["claim"] = frames.per_step(lambda _: claims.append(log.tasks.claim(run_id, worker="w")))
        found["finish"] = frames.per_step(lambda n: claims[n].finish())  # type: ignore[union-attr]
        frames.close()
    return found


def bytes_each(folder: Path, name: str, step: Callable[[Decklog, str, int], object], count: int = 3000) -> float:
    """Give the bytes that a step leaves in the file."""
    path = folder / f"{name}.db"
    with Decklog.open(path, durability="relaxed") as log:
        run_id = log.runs.start("measure").id
        empty = _size(log)
        for number in range(count):
            step(log, run_id, number)
        return (_size(log) - empty) / count


def _size(log: Decklog) -> int:
    (pages,) = log.db.read(lambda: log.db.one("pragma page_count", {})) or (0,)
    (size,) = log.db.read(lambda: log.db.one("pragma page_size", {})) or (0,)
    return int(pages) * int(size)


def _life(log: Decklog, run_id: str, number: int) -> None:
    log.tasks.add(run_id, f"task {number}")
    claim = log.tasks.claim(run_id, worker="w")
    assert claim is not None
    claim.finish()


def outputs_kept(folder: Path) -> tuple[float, float]:
    """Give the kilobytes that a day's long outputs leave in the file, and how many they are."""
    with Decklog.open(folder / "outputs.db", durability="relaxed") as log:
        run_id = log.runs.start("measure").id
        empty, plain = _size(log), 0
        for output in outputs(OUTPUTS):
            log.journal.append(run_id, output, kind=EntryKind.TOOL)
            plain += len(output)
        return (_size(log) - empty) / 1000, plain / 1000


def main() -> list[Row]:
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        folder = Path(name)
        raw, claim, finish = floor_pages(folder)
        ours = our_pages(folder)
        life = bytes_each(folder, "life", _life)
        kept, plain = outputs_kept(folder)
        entry = bytes_each(folder, "entry", lambda log, run_id, _: log.journal.append(run_id, BODY))
    rows = [
        row("pages of an append with a key, compared with a raw insert", ours["append"], "pages", floor=raw),
        row("pages of a claim, compared with a raw update", ours["claim"], "pages", floor=claim),
        row("pages of a finish, compared with a raw update", ours["finish"], "pages", floor=finish),
        row("pages of adding a task", ours["add"], "pages"),
        row("bytes on disk of a task's life", life, "bytes", target="<= 2200"),
        row("bytes of an entry over its body", entry - len(BODY), "bytes", target="<= 150"),
        row("long outputs of a day of builds and tests, compared with their length", kept, "kB", floor=plain, target="<= 0.33"),
    ]
    notes = [
        f"Pages are those that a commit adds to the write-ahead log, the mean of {COUNT} commits. They are counted, so that the "
        "machine and its disk don't matter.",
        f"The outputs are {OUTPUTS} of 70 to 300 kB of compilers, tests and packagers, made by `benchmarks/outputs.py`.",
        "A task's life is that it is added, claimed and finished: three entries with what it became, its row, and their indexes.",
    ]
    write("pages", "What a commit writes", rows, notes)
    return rows


if __name__ == "__main__":
    main()
