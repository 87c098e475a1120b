"""The least that any program in this language does for a line or a row that it takes over, in two processes as an import is.

It reads the JSON, writes it canonically, looks at it once for the signs of secrets, digests it, and inserts a number, the text
and the digest into a table with one index. Nothing is mapped, searched for secrets, redacted, chained, priced or known by a key.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any, NamedTuple

import apsw

from decklog.agents import claude
from decklog.importing import reading_ahead
from decklog.importing.reading_ahead import Balance
from decklog.redaction import default_redactor

NOTE = (
    "The least that a program does is what any one in this language would have to: two processes as ours, which read a line as"
    " JSON, look at it once for the signs of secrets, write it as canonical JSON, digest it, and insert a number, the text and"
    " the digest into a table with one index. Lines that tell nothing of a session are skipped there too. It maps nothing,"
    " searches and redacts nothing, chains nothing, and knows nothing by a key."
)
ROOT = Path(__file__).parent.parent
# As many as an import writes together.
_TOGETHER = 1000
_MANY_ROWS = 20
_TWICE = "toolUseResult"
# Their rows lie in documents, and are found by being many.
_DOCUMENTS = frozenset({"taskmaster", "github", "otlp"})
# The parent's path goes on to the process that reads.
_PROGRAM = "import sys; sys.path.insert(0, sys.argv.pop(1)); from benchmarks import import_floor; import_floor.{}(*sys.argv[1:])"
_canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=bytes.hex).encode

Item = Any


class Asked(NamedTuple):
    """Which file or folder is to be read, and whose it is."""

    path: str
    system: str


class Floor(NamedTuple):
    """What a floor took: seconds, and processor time of both processes."""

    wall: float
    processor: float


STAGES = ("reading", "canonical", "looking", "digesting", "inserting")


def beside(path: Path, system: str, folder: Path) -> Floor:
    """Measure the floor of a source, in processes of its own; the better of two."""
    found = [_run("run", path, system, folder / f"{system}-floor-{number}.db") for number in range(2)]
    return Floor(*(min(one[place] for one in found) for place in range(2)))


def in_stages(path: Path, system: str, folder: Path) -> dict[str, float]:
    """Measure the processor time of each of its stages, in one process; the better of two."""
    found = [_run("run_in_stages", path, system, folder / f"{system}-stages-{number}.db") for number in range(2)]
    return {stage: min(one[place] for one in found) for place, stage in enumerate(STAGES)}


def _run(what: str, path: Path, system: str, place: Path) -> list[float]:
    words = [sys.executable, "-c", _PROGRAM.format(what), str(ROOT), str(path), system, str(place)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    for name in place.parent.glob(f"{place.name}*"):
        name.unlink()
    return [float(figure) for figure in done.stdout.split()]


# In their processes


def run(path: str, system: str, place: str) -> None:
    """Take over a source as a floor does; print the seconds and the processor time that it took."""
    asked, db = Asked(path, system), _made(place)
    _look()
    number, wall, processor = 0, time.perf_counter(), time.process_time()
    for is_ready, batch in reading_ahead.read(read, asked, sum(os.stat(name).st_size for name in _files(path))):
        number += _insert(db, number, batch if is_ready else [ready(item) for item in batch])
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    other = getrusage(RUSAGE_CHILDREN)
    print(wall, processor + other.ru_utime + other.ru_stime)


def read(asked: Asked, balance: Balance) -> Iterator[tuple[bool, list[Any]]]:
    """Read a source, and make ready what is the reader's share of it."""
    items = _items(asked)
    while batch := [*islice(items, _TOGETHER)]:
        is_mine = balance.is_mine()
        yield is_mine, [ready(item) for item in batch] if is_mine else batch


def ready(item: Item) -> tuple[str, str]:
    """Give a line or a row as canonical JSON, looked at once, with its digest."""
    text = _canonical(_value(item))
    data = text.encode()
    _look()(data)
    return text, _digest(data)


def run_in_stages(path: str, system: str, place: str) -> None:
    """Do so in one process; print the processor time of each stage."""
    took, db, number, items = [0.0] * len(STAGES), _made(place), 0, _items(Asked(path, system))
    look = _look()

    def stage(place: int, work: Callable[..., Any], *given: Any) -> Any:
        begun = time.process_time()
        made = work(*given)
        took[place] += time.process_time() - begun
        return made

    while batch := stage(0, list, islice(items, _TOGETHER)):
        texts = stage(1, list, map(_canonical, stage(0, list, map(_value, batch))))
        data = stage(2, list, map(str.encode, texts))
        stage(2, list, map(look, data))
        digests = stage(3, list, map(_digest, data))
        number += stage(4, _insert, db, number, [*zip(texts, digests, strict=True)])
    print(*took)


def _value(item: Item) -> Any:
    value = json.loads(item) if isinstance(item, bytes) else item
    if isinstance(value, dict):
        # What a tool printed stands in a transcript's line twice.
        value.pop(_TWICE, None)
    return value


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _look() -> Callable[[bytes], Any]:
    """Return the first pass of the redaction: which keywords a text has."""
    return default_redactor().keywords_of


def _made(place: str) -> apsw.Connection:
    db = apsw.Connection(place)
    db.execute("pragma journal_mode = wal; pragma synchronous = full")
    db.execute("create table plain (id integer primary key, body text, digest text); create index by_digest on plain (digest)")
    return db


def _insert(db: apsw.Connection, number: int, batch: list[tuple[str, str]]) -> int:
    with db:
        db.executemany("insert into plain values (?, ?, ?)", ((number + place, *one) for place, one in enumerate(batch, 1)))
    return len(batch)


def _files(path: str) -> list[str]:
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names) or [path]


def _items(asked: Asked) -> Iterator[Item]:
    """Give the lines and rows of a source, without those lines that tell nothing of a session, which no import reads."""
    for path in _files(asked.path):
        with open(path, "rb") as file:
            if file.read(6) == b"SQLite":
                yield from _rows(path)
                continue
            file.seek(0)
            if asked.system in _DOCUMENTS:
                yield from (row for line in file for row in _many(json.loads(line)))
            else:
                yield from file if asked.system != "claude" else filter(claude.may_tell, file)


def _rows(path: str) -> Iterator[Item]:
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    for (table,) in list(db.execute("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'")):
        names = [column[1] for column in db.execute(f"pragma table_info({table})")]
        for row in db.execute(f'select * from "{table}"'):
            yield dict(zip(names, row, strict=True))


def _many(value: Any) -> Iterator[Item]:
    """Find the lists of many objects in a document."""
    if isinstance(value, list) and len(value) > _MANY_ROWS:
        yield from value
    elif isinstance(value, dict | list):
        for below in value.values() if isinstance(value, dict) else value:
            yield from _many(below)
