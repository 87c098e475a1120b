"""Where the processor time of an import goes: reading beside a floor that only reads, writing beside one that only inserts.

Both halves run in one process here, one after the other: how they share two cores is another question, and a busy machine
answers it otherwise every time.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import history, import_floor
from benchmarks.import_sources import SOURCES, Source
from benchmarks.measure import write_section

ROWS = int(os.environ.get("DECKLOG_BENCH_STAGE_ROWS", "20000"))
HEADING = "Where the processor time goes"
WHY = (
    "Reading alone and inserting alone leave most of the 100 free. What takes them is between: looking through every text for"
    " secrets is the largest part of reading, a third to two thirds of it by the length of the texts; then come mapping and"
    " checking, and sending rows from one process to the other. Of writing, SQLite has about a third; the rest is Python's: keys"
    " that are looked up, hashes that are chained, charges and their prices, and what a tracker puts in order before anything is"
    " written, which one process does while the other waits.",
    "",
    "What was tried, by processor time on a busy machine beside a fixed piece of work, before and after:",
    "",
    "- entries come from the reader with the text that is hashed, so that the writer only numbers and chains them, and records"
    " are looked up by what columns hold: of the writer's time 25 to 22 µs a log row of bazinga, 96 to 80 an item of beads; the"
    " sum of both stays, since the reader makes what the writer made;",
    "- a tracker's parts are held with its items instead of read again, its rows are put in order five hundred at a time, and"
    " texts are spelled anew only where one needs it: in one process GitHub 239 to 171 µs a row, beads 156 to 118, Task Master"
    " 130 to 94, Hermes 110 to 83 (those before with a second process, which adds about 20);",
    "- LangGraph's checkpoints together instead of by a verb each, and its writes taken apart where they are read: 234 to 176;",
    "- a line that shows a sign of a secret is searched for no more than that, and a write of LangGraph's is looked through once"
    ' for its entry and its bytes: of a sentence that says "41 passed", as those of these sources do, 51 to 22 µs a look; of'
    " LangGraph 327 to 248 a row of both halves, on a busier machine than that of the lines above.",
)
# What only reads takes every row or line of the source as it is; what only inserts puts the entries that came of it into the
# tables and indexes of a new log, without their hashes being made.
PROGRAM = """
import json, os, pickle, sys, time
import apsw
from decklog import Decklog, redaction
from decklog.importing import reading_ahead
{imported}

path, place = sys.argv[1:]
reading_took = 0.0

def timed(work):
    begun = time.process_time()
    work()
    return time.process_time() - begun

def read(reading, asked, _size):
    global reading_took
    begun = time.process_time()
    balance = reading_ahead.Balance(1.0)
    parts = [pickle.dumps(part, pickle.HIGHEST_PROTOCOL) for part in reading(pickle.loads(pickle.dumps(asked)), balance)]
    reading_took += time.process_time() - begun
    yield from map(pickle.loads, parts)

def read_files(names):
    for name in names:
        with open(name, "rb") as file:
            if file.read(6) == b"SQLite":
                db = apsw.Connection(name)
                for (table,) in list(db.execute("select name from sqlite_schema where type = 'table'")):
                    for _ in db.execute('select * from "' + table + '"'):
                        pass
                continue
            file.seek(0)
            for line in file:
                json.loads(line)

def insert(rows):
    with there:
        there.executemany("insert into entries (%s) values (%s)" % (", ".join(names), ", ".join("?" * len(names))), rows)

reading_ahead.read, reading_ahead.WORTH_A_PROCESS = read, 0
# The rules are loaded once an import, however long that is.
redaction.scan("password = " + "x" * 300)
redaction.clean_texts(["some text"])
files = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names] or [path]
only_reading = timed(lambda: read_files(files))
with Decklog.open(place) as log:
    whole = timed({importing}.run)
with Decklog.open(place + ".floor") as log:
    pass
here, there = apsw.Connection(place), apsw.Connection(place + ".floor")
there.execute("pragma synchronous = off; pragma foreign_keys = off")
names = [row[1] for row in there.execute("pragma table_info(entries)")]
entries = list(here.execute("select %s from entries order by pos" % ", ".join(names)))
print(only_reading, reading_took, whole - reading_took, timed(lambda: insert(entries)), len(entries))
"""


def stages(folder: Path, system: str, source: Source, count: int) -> str:
    """Measure one system's import; give a line of the table."""
    path = folder / (f"{system}.db" if system == "opencode" else system)
    made: Any = source.fill(path, count)  # type: ignore[func-returns-value]
    # Sessions are written whole.
    count = made[0] if made else count
    program = PROGRAM.replace("{imported}", source.imported).replace("{importing}", source.importing)
    words = [sys.executable, "-c", program, str(path), str(folder / f"{system}-log.db")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    *took, entries = map(float, done.stdout.split())
    only_reading, reading, writing, only_inserting = (seconds / count * 1e6 for seconds in took)
    least = sum(import_floor.in_stages(path, system, folder).values()) / count * 1e6
    figures = (only_reading, reading, writing, only_inserting, reading + writing, least)
    print(system, *(f"{figure:.1f}" for figure in figures), flush=True)
    return f"| {system} | {' | '.join(f'{figure:.0f}' for figure in figures)} | {entries / count:.1f} |"


def sources() -> dict[str, tuple[Source, int]]:
    """Name all that is measured, with how many rows or lines of each."""
    told = "from decklog.agents.history import HistoryImport; from decklog.agents.spool import Spool"
    named = {
        name: Source(
            lambda path, count, session=session: history.fill(path, session, count),  # type: ignore[misc]
            told,
            f"HistoryImport(log, {name!r}, path, Spool(place + '.spool'))",
        )
        for name, session in (("claude", history.claude), ("codex", history.codex))
    }
    return {name: (source, ROWS) for name, source in {**named, **SOURCES}.items()}


def write_stages() -> None:
    """Measure every system's stages; write them below the table of benchmarks/results/importing.md."""
    lines = [
        "Microseconds of processor time a row or line, both halves in one process, the reader preparing all that it can. 20,000 a"
        " second on two cores is 100 altogether.",
        "",
        "| of | only reading | reading, mapping, redacting | writing | only inserting its entries | altogether"
        " | the least that a program does | entries |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        lines += [stages(Path(name), system, source, count) for system, (source, count) in sources().items()]
    write_section("importing", HEADING, [*lines, "", *WHY])


if __name__ == "__main__":
    write_stages()
