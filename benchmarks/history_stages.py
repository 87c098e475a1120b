"""Where the processor time of a session's line goes, stage by stage, beside the same stages of the least that a program does.

Both are taken in one process: how two share the work is another question, and a busy machine answers it otherwise every time.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import import_floor
from benchmarks.measure import write_section

LINES = int(os.environ.get("DECKLOG_BENCH_STAGE_ROWS", "20000"))
HEADING = "Where the processor time goes"
# In the order of the work; of the first four and the last one a program that does the least has its own.
_READING, _SEARCHING, _BINDING, _SENDING, _WRITING, _INSERTING = range(6)
_NAMES = (
    "reading lines, and what becomes of them",
    "looking for signs of secrets, and searching and redacting where there are any",
    "checking, canonical JSON, digests",
    "from one process to the other",
    "keys that are looked up, hashes that are chained, charges and their prices, runs",
    "inserting",
)
PROGRAM = """
import pickle, sys, time
from decklog import Decklog, redaction, values
from decklog.agents import history_files
from decklog.agents.history import HistoryImport
from decklog.agents.spool import Spool
from decklog.db.sqlite.database import SqliteDatabase
from decklog.importing import reading_ahead

program, folder, place = sys.argv[1:]
took = dict.fromkeys(("whole", "read", "searched", "handed_on", "sent", "inserted"), 0.0)

def timed(name, work):
    def called(*given, **named):
        begun = time.process_time()
        try:
            return work(*given, **named)
        finally:
            took[name] += time.process_time() - begun
    return called

def read(reading, asked, _size):
    balance = reading_ahead.Balance(1.0)
    parts = timed("read", lambda: [*reading(asked, balance)])()
    sent = timed("sent", lambda: [pickle.dumps(part, pickle.HIGHEST_PROTOCOL) for part in parts])()
    del parts
    load = timed("sent", pickle.loads)
    yield from map(load, sent)

# Rules are loaded, and their tables filled, once an import, however long that is.
first = history_files.files_of(folder, program)[:1]
for _ in history_files.read_files(history_files.Asked(program, first, place + "/none", 2**26), reading_ahead.Balance(1.0)):
    pass
reading_ahead.read = read
history_files._Files._handed_on = timed("handed_on", history_files._Files._handed_on)
# What shows no sign is looked at there, what does is redacted where it is bound.
values.Values.look_through = timed("searched", values.Values.look_through)
redaction.scan = timed("searched", redaction.scan)
redaction.scan_json = timed("searched", redaction.scan_json)
SqliteDatabase.insert = timed("inserted", SqliteDatabase.insert)
with Decklog.open(place + "/log.db") as log:
    timed("whole", HistoryImport(log, program, folder, Spool(place + "/spool")).run)()
reading, binding = took["read"] - took["handed_on"], took["handed_on"] - took["searched"]
writing = took["whole"] - took["read"] - took["sent"] - took["inserted"]
print(reading, took["searched"], binding, took["sent"], writing, took["inserted"])
"""


def stages(folder: Path, program: str, lines: int) -> list[tuple[float, float | None]]:
    """Give the microseconds of each stage of a line's import, and of the same stage of the least."""
    place = folder / f"{program}-stages"
    place.mkdir()
    words = [sys.executable, "-c", PROGRAM, program, str(folder / program), str(place)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    least = import_floor.in_stages(folder / program, program, folder)
    beside: dict[int, float] = {
        _READING: least["reading"],
        _SEARCHING: least["looking"],
        _BINDING: least["canonical"] + least["digesting"],
        _INSERTING: least["inserting"],
    }
    found = [float(figure) for figure in done.stdout.split()]
    return [
        (seconds / lines * 1e6, None if place not in beside else beside[place] / lines * 1e6)
        for place, seconds in enumerate(found)
    ]


def lines_of(found: Mapping[str, list[tuple[float, float | None]]]) -> list[str]:
    """Write the stages of programs as a table, with what two cores make of them at most."""
    heads = [head for program in found for head in (program, f"the least for {program}")]
    written = [f"| of a line, µs | {' | '.join(heads)} |", f"| --- |{' ---: |' * len(heads)}"]
    for stage, name in enumerate(_NAMES):
        cells = [figure for stages in found.values() for figure in stages[stage]]
        written.append(f"| {name} | {' | '.join('' if cell is None else f'{cell:.1f}' for cell in cells)} |")
    sums = [sum(one[place] or 0 for one in stages) for stages in found.values() for place in range(2)]
    written.append(f"| altogether | {' | '.join(f'{each:.1f}' for each in sums)} |")
    written.append(
        f"| lines a second at most, with two cores that never wait | {' | '.join(f'{2e6 / each:,.0f}' for each in sums)} |"
    )
    return written


def write_stages(sessions: Mapping[str, Any], fill: Callable[[Path, Any, int], tuple[int, int]]) -> None:
    """Measure every program's stages; write them below the table of benchmarks/results/history.md."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as name:
        for program, session in sessions.items():
            lines, _ = fill(Path(name) / program, session, LINES)
            found[program] = stages(Path(name), program, lines)
    table = lines_of(found)
    print(*table, sep="\n", flush=True)
    why = (
        "Microseconds of processor time, both halves in one process, the reader preparing all that it can; without what loading"
        " the rules and filling their tables takes once. 20,000 lines a second on two cores is 100 altogether."
    )
    write_section("history", HEADING, [why, "", *table])


if __name__ == "__main__":
    from benchmarks import history

    write_stages({"claude": history.claude, "codex": history.codex}, history.fill)
