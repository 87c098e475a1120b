"""Flips single bits of a SQLite log, and counts those that change content and are not found.

Run it as `python -m tests.db.bit_flips --times 10000`; `make test` tries a part of it.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import apsw

from decklog import Decklog, DecklogError
from tests.db.mutations import sqlite_log
from tests.db.tampering import words_in

# Notes that SQLite and Decklog keep for themselves, which no answer depends on.
_NOTES = {"schema_steps": "version, name, checksum"}
# Pages of a text index also hold removed rows and merge statistics: compare the words only.
_INDEXES = ("entry_text", "lesson_text")
_PAGES = tuple(f"{index}_{part}" for index in _INDEXES for part in ("data", "idx"))


def content_of(path: str) -> object:
    """Return all that SQL can read, or None if reading fails."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        schema = connection.execute("select type, name, tbl_name, sql from sqlite_schema order by 1, 2").fetchall()
        settings = [connection.execute(f"pragma {name}").fetchall() for name in ("user_version", "application_id")]
        names = [str(name) for kind, name, *_ in schema if kind == "table" and not str(name).endswith(_PAGES)]
        words = [words_in(connection, index) for index in _INDEXES]
        rows = [sorted(map(repr, connection.execute(f"select {_NOTES.get(name, '*')} from {name}"))) for name in names]
        return schema, settings, rows, words
    except (apsw.Error, UnicodeDecodeError):
        return None
    finally:
        connection.close()


def flips(folder: Path, seed: int, times: int) -> Iterator[tuple[int, int, str]]:
    """Flip one bit at a time; yield its place and whether it was found, unchanged or missed."""
    dice = random.Random(seed)
    with sqlite_log(folder):
        original = bytearray((folder / "log.db").read_bytes())
    before, path = content_of(str(folder / "log.db")), folder / "copies" / "flipped.db"
    for _ in range(times):
        place, bit = dice.randrange(len(original)), dice.randrange(8)
        original[place] ^= 1 << bit
        path.write_bytes(original)
        original[place] ^= 1 << bit
        yield place, bit, _outcome(path, before)
        for file in path.parent.iterdir():
            file.unlink()


def _outcome(path: Path, before: object) -> str:
    try:
        with Decklog.open(path) as log:
            if not log.journal.verify().ok:
                return "found"
    except DecklogError:
        return "found"
    return "unchanged" if content_of(str(path)) == before else "missed"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        for place, bit, outcome in flips(Path(name), options.seed, options.times):
            counts[outcome] += 1
            if outcome == "missed":
                print(f"missed: bit {bit} of byte {place}, page {place // 4096 + 1}", flush=True)
    print(dict(counts))
    return 1 if counts["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
