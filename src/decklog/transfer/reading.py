"""Read a log in batches of bounded size."""

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from decklog.journal.chain import SEQ, estimate_size
from decklog.journal.replication import FIELDS, Replication
from decklog.log import Decklog

Entry = dict[str, Any]

MOST_ENTRIES = 5000
MOST_CHARACTERS = 8 * 1024 * 1024
DIGEST = re.compile(r"[0-9a-f]{64}")
DIGEST_IN_TEXT = re.compile(rf"(?<![0-9a-f]){DIGEST.pattern}(?![0-9a-f])")


def read_entries(log: Decklog, stream: str, *, after: int, until: int) -> Iterator[list[Entry]]:
    """Yield a stream's entries after one number up to another, in batches of bounded size."""
    for rows in read_rows(log, stream, after=after, until=until):
        yield [dict(zip(FIELDS, row[1:], strict=True)) for row in rows]


def read_rows(log: Decklog, stream: str, *, after: int, until: int) -> Iterator[list[tuple[Any, ...]]]:
    """Yield a stream's entries as rows, in batches of bounded size."""
    limit = 100
    while after < until:
        rows = Replication.of(log).rows_after(stream, after, min(limit, until - after))
        if not rows:
            return
        yield rows
        after = rows[-1][SEQ]
        average = estimate_size(rows) // len(rows) + 1
        limit = max(1, min(MOST_ENTRIES, MOST_CHARACTERS // average))


def read_blob_digests(log: Decklog) -> Iterator[list[str]]:
    """Yield the digests of all blobs in order, in batches."""
    after = ""
    while batch := Replication.of(log).blob_digests(after=after, limit=1000):
        yield batch
        after = batch[-1]


def find_digests(entry: Entry) -> Iterator[str]:
    """Yield the digests in an entry: of its texts, and in its record."""
    for name in ("body_digest", "payload_digest"):
        if entry[name] is not None:
            yield entry[name]
    if entry["record_table"] is not None:
        yield from DIGEST_IN_TEXT.findall(entry["payload"])


# Called with a description, the done amount and the total (0 if unknown).
Progress = Callable[[str, int, int], None]


def no_progress(_what: str, _done: int, _whole: int) -> None:
    """Report nothing."""


class WorkResult:
    """The base of result data classes."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload, no-any-return]
